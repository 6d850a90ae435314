"""The table of APIs: every row leads somewhere, and what is not in it is refused."""

import pytest

from ottla.apis.table import served_by_brokers
from ottla.broker.dispatch import find_handler, served_versions
from ottla.broker.services import services_of
from ottla.runtime.request import RefusedRequest
from ottla.wire.apis import ApiKey, api
from tests.unit.broker.brokers import TestNode, batch, produce_request


@pytest.mark.parametrize("key", served_by_brokers(), ids=lambda key: key.name.lower())
def test_every_row_has_its_handler(key):
    for version in served_versions(key):
        assert callable(find_handler(key, version))


@pytest.mark.parametrize("key", served_by_brokers(), ids=lambda key: key.name.lower())
def test_every_stable_version_is_served(key):
    assert served_versions(key) == api(key).stable_versions


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.PRODUCE, 2),  # advertised for librdkafka's sake, and refused
        (ApiKey.FETCH, 3),
        (ApiKey.FETCH, 19),
        (ApiKey.LEADER_AND_ISR, 0),
        (999, 0),
    ],
)
def test_what_is_not_served_is_refused(key, version):
    with pytest.raises(RefusedRequest, match="is not served"):
        find_handler(key, version)


def test_a_request_finds_its_handler():
    node = TestNode()
    node.create_topic()
    assert node.send(produce_request(batch()), 9).responses[0].partition_responses[0].error_code == 0


@pytest.mark.parametrize("key", served_by_brokers(), ids=lambda key: key.name)
def test_a_handler_names_services_that_there_are(key):
    broker = TestNode().broker
    names = services_of(find_handler(key, max(served_versions(key))))
    assert [name for name in names if not hasattr(broker, name)] == []
    assert "broker" not in names
