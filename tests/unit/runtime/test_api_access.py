"""No API is served of which nobody has said who may ask, and what it counts against."""

import pytest

from ottla.broker.dispatch import ROUTES
from ottla.controller.controller_apis import SERVED
from ottla.runtime.api_access import ACCESS, Quota, listeners_of
from ottla.wire.acls import AclOperation, AclResource
from ottla.wire.apis import ApiKey, api

_FOR_ALL = {ApiKey.API_VERSIONS, ApiKey.DESCRIBE_CLUSTER, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
_FOR_ALL |= {key for key in ApiKey if key.name.endswith("_DELEGATION_TOKEN")}  # of one's own
BY_LISTENER = {"broker": ROUTES, "controller": SERVED}


@pytest.mark.parametrize("listener", BY_LISTENER)
def test_every_api_that_is_served_has_a_row_and_is_served_where_it_may_be(listener: str) -> None:
    for key in BY_LISTENER[listener]:
        assert key in ACCESS, key.name
        assert listener in listeners_of(key), f"{key.name} is not for the listeners of a {listener}"


def test_there_is_no_row_for_what_nobody_serves() -> None:
    assert set(ACCESS) == set(ROUTES) | set(SERVED)


@pytest.mark.parametrize("key", ACCESS, ids=lambda key: key.name)
def test_only_greetings_need_nothing(key: ApiKey) -> None:
    assert bool(ACCESS[key].needs) == (key not in _FOR_ALL)


@pytest.mark.parametrize("key", ACCESS, ids=lambda key: key.name)
def test_what_is_for_nodes_of_the_cluster_needs_its_right_and_counts_against_nothing(key: ApiKey) -> None:
    access = ACCESS[key]
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
    for access in ACCESS.values():
        for operation, resource in (*access.needs, *filter(None, [access.or_instead])):
            assert operation in allowed[resource]
