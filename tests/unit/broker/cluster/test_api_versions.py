"""ApiVersions, held to what Apache Kafka 4.3.1 answered to the same requests."""

from types import SimpleNamespace

import pytest

from ottla.apis.table import served_by_brokers
from ottla.runtime.request import RefusedRequest, RequestContext
from ottla.serving.api_versions import handle_unsupported
from ottla.wire.apis import ApiKey, api
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ApiVersionsRequest, FeatureLevelRecord
from tests.unit.broker.brokers import TestNode

VERSIONS = range(5)


def request(name="a-client", version="1.0", api_version=3):
    if api_version < 3:
        return ApiVersionsRequest()
    return ApiVersionsRequest(client_software_name=name, client_software_version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_routed_is_advertised_and_nothing_else(version):
    node = TestNode()
    node.broker.client_metrics.is_on = True
    reply = node.send(request(api_version=version), version)
    assert [key.api_key for key in reply.api_keys] == sorted(served_by_brokers())
    assert reply.error_code == ErrorCode.NONE


def test_where_metrics_of_clients_are_not_shown_it_is_not_advertised_that_they_are_taken():
    advertised = {key.api_key for key in TestNode().send(request(), 3).api_keys}
    assert {71, 72} == set(served_by_brokers()) - advertised


def test_every_api_is_advertised_with_the_versions_of_kafka():
    reply = TestNode().send(request(), 3)
    for key in reply.api_keys:
        versions = api(key.api_key).advertised_versions
        assert (key.min_version, key.max_version) == (versions.start, versions.stop - 1)


def test_produce_is_advertised_from_version_0_for_librdkafka():
    reply = TestNode().send(request(), 3)
    produce = next(key for key in reply.api_keys if key.api_key == ApiKey.PRODUCE)
    assert (produce.min_version, produce.max_version) == (0, 13)


def test_the_client_introduces_itself_to_its_connection():
    node = TestNode()
    node.send(request("librdkafka", "2.3.0-rc.1"), 3)
    assert (node.client.software_name, node.client.software_version) == ("librdkafka", "2.3.0-rc.1")


@pytest.mark.parametrize("name", ["", "pr obe", "-probe", "probe-", "prob\u00e9"])
def test_a_name_that_metrics_cannot_carry_is_an_invalid_request(name):
    node = TestNode()
    for refused in (request(name, "1.0"), request("probe", name)):
        reply = node.send(refused, 4)
        assert (reply.error_code, reply.api_keys) == (ErrorCode.INVALID_REQUEST, [])
    assert node.client.software_name == "unknown"


def test_features_of_the_cluster_are_finalized_at_the_offset_of_the_image():
    node = TestNode()
    node.broker.metadata.quorum = SimpleNamespace(high_watermark=51)
    node.commit(
        FeatureLevelRecord(name="metadata.version", feature_level=30),
        FeatureLevelRecord(name="group.version", feature_level=1),
    )
    reply = node.send(request(), 3)
    assert reply.finalized_features_epoch == 50
    levels = {each.name: (each.min_version_level, each.max_version_level) for each in reply.finalized_features}
    assert levels == {"group.version": (1, 1), "metadata.version": (30, 30)}


def test_features_that_begin_at_level_0_are_shown_from_version_4_only():
    node = TestNode()
    assert [feature.name for feature in node.send(request(), 3).supported_features] == ["metadata.version"]
    features = node.send(request(), 4).supported_features
    shown = {feature.name: (feature.min_version, feature.max_version) for feature in features}
    assert shown == {
        "eligible.leader.replicas.version": (0, 1),
        "group.version": (0, 1),
        "kraft.version": (0, 1),
        "metadata.version": (7, 30),
        "transaction.version": (0, 2),
    }


def test_a_version_from_the_future_is_told_which_to_use():
    node, replies = TestNode(), []
    handle_unsupported(RequestContext(ApiKey.API_VERSIONS, 99, 5, "c", node.client, 0.0), replies.append)
    (reply,) = replies
    assert reply.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(key.api_key, key.min_version, key.max_version) for key in reply.api_keys] == [(18, 0, 4)]


def test_any_other_unknown_request_is_refused():
    node = TestNode()
    with pytest.raises(RefusedRequest, match="version 99"):
        handle_unsupported(RequestContext(ApiKey.METADATA, 99, 5, "c", node.client, 0.0), print)
