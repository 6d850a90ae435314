"""What the rows say of each API: who may ask it where, what it counts against, and functions that there are."""

import pytest

from ottla.apis.description import ServedApi, load
from ottla.apis.table import APIS, served_by_brokers, served_by_controllers
from ottla.security.api_access import Quota
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.apis import ApiKey, api

_FOR_ALL = {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
_FOR_ALL |= {key for key in ApiKey if key.name.endswith("_DELEGATION_TOKEN")}  # of one's own
_FOR_ALL |= {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}  # a client's own metrics (KIP-714)
BY_LISTENER = {"broker": served_by_brokers(), "controller": served_by_controllers()}


@pytest.mark.parametrize("listener", BY_LISTENER)
def test_every_api_is_served_where_it_may_be(listener: str) -> None:
    for key in BY_LISTENER[listener]:
        assert listener in api(key).listeners, f"{key.name} is not for the listeners of a {listener}"


def test_there_is_no_row_for_what_nobody_serves() -> None:
    assert set(APIS) == set(served_by_brokers()) | set(served_by_controllers())
    assert [key for key, row in APIS.items() if row.key != key] == []


@pytest.mark.parametrize("key", sorted(map(ApiKey, APIS)), ids=lambda key: key.name)
def test_only_greetings_need_nothing(key: ApiKey) -> None:
    assert bool(APIS[key].access.needs) == (key not in _FOR_ALL)


@pytest.mark.parametrize("key", sorted(map(ApiKey, APIS)), ids=lambda key: key.name)
def test_what_is_for_nodes_of_the_cluster_needs_its_right_and_counts_against_nothing(key: ApiKey) -> None:
    access = APIS[key].access
    is_of_nodes = [(need.operation, need.resource) for need in access.needs] == [
        (AclOperation.CLUSTER_ACTION, AclResource.CLUSTER)
    ]
    assert is_of_nodes == (access.quota is Quota.EXEMPT)
    # The two are marked so, and asked for by administrators all the same: KafkaApis wants DESCRIBE and ALTER.
    if api(key).cluster_action and key not in {ApiKey.DESCRIBE_QUORUM, ApiKey.UPDATE_FEATURES}:
        assert is_of_nodes


def test_rights_of_topics_groups_and_transactional_ids_are_those_that_there_are() -> None:
    allowed = {
        AclResource.TOPIC: {3, 4, 5, 6, 7, 8, 10, 11},
        AclResource.GROUP: {3, 6, 8, 10, 11},
        AclResource.CLUSTER: {5, 7, 8, 9, 10, 11, 12},
        AclResource.TRANSACTIONAL_ID: {4, 8},
    }
    for row in APIS.values():
        access = row.access
        for operation, resource in (*access.needs, *filter(None, [access.or_instead])):
            assert operation in allowed[resource]


@pytest.mark.parametrize("row", APIS.values(), ids=lambda row: row.key.name)
def test_what_changes_the_cluster_is_counted_and_says_which_clients_are_refused(row: ServedApi) -> None:
    is_counted = row.access.quota is Quota.CONTROLLER_MUTATION
    assert (row.strict_since is not None) == is_counted
    assert (row.controller is not None and "decide_counted" in row.controller.function) == is_counted


@pytest.mark.parametrize("row", APIS.values(), ids=lambda row: row.key.name)
def test_functions_that_a_row_names_are_there_and_of_the_part_that_calls_them(row: ServedApi) -> None:
    by_part = {"broker": row.broker, "controller": row.controller}
    named = {(part, answer.function) for part, answer in by_part.items() if answer is not None}
    named |= {(part, answer.check) for part, answer in by_part.items() if answer is not None and answer.check}
    for part, function in named:
        assert function.startswith((f"ottla.{part}.", "ottla.serving.")), function
        assert callable(load(function))
    if row.decision is not None:
        assert row.decision.startswith("ottla.machines.metadata.decisions.")
        assert callable(load(row.decision))
