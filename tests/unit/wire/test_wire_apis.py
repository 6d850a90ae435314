"""The table of APIs against the messages' schemas."""

import pytest

from ottla.wire import schema
from ottla.wire.apis import ApiKey, all_apis, api


def test_every_api_has_its_key() -> None:
    assert {key.value for key in ApiKey} == set(all_apis())
    assert all(ApiKey[screaming(fact.name)] == key for key, fact in all_apis().items())


def test_the_versions_of_an_api_are_those_of_its_messages() -> None:
    for fact in all_apis().values():
        for kind in ("Request", "Response"):
            assert schema.message_schema(fact.name + kind).versions == fact.versions


def test_an_unstable_latest_version_is_not_advertised() -> None:
    init_producer_id = api(ApiKey.INIT_PRODUCER_ID)
    assert init_producer_id.versions == range(7)
    assert init_producer_id.advertised_versions == range(6)


def test_produce_is_advertised_from_version_0() -> None:
    assert api(ApiKey.PRODUCE).versions == range(3, 14)
    assert api(ApiKey.PRODUCE).advertised_versions == range(14)


def test_listeners_say_who_serves_an_api() -> None:
    assert api(ApiKey.FETCH).listeners == {"broker", "controller"}
    assert api(ApiKey.PRODUCE).listeners == {"broker"}
    assert api(ApiKey.STOP_REPLICA).listeners == set()
    assert api(ApiKey.VOTE).cluster_action


def test_there_is_no_api_of_another_key() -> None:
    with pytest.raises(KeyError):
        api(4242)


def screaming(name: str) -> str:
    return "".join("_" + letter if letter.isupper() else letter.upper() for letter in name).lstrip("_")
