"""Items go to the broker that is right for them, several in one request, again where it is worth it."""

from typing import Any

import pytest

from ottla.base.ids import parse_uuid
from ottla.client.admin import cluster_nodes, configs, feature_levels, log_dirs, records, replicas, transaction_states
from ottla.client.admin.asking import UNKNOWN_TOPIC_PATIENCE_S, Asking
from ottla.client.admin.configs import ConfigResource
from ottla.client.admin.feature_levels import FeatureUpdate, UpgradeType
from ottla.client.admin.groups import describing, listing, offsets, removal
from ottla.client.admin.records import OffsetSpec
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import (
    Disconnected,
    ElectionNotNeeded,
    GroupIdNotFound,
    InvalidGroupId,
    InvalidRequest,
    NoBrokerReachable,
    NotController,
    NotCoordinator,
    NotLeaderOrFollower,
    RebalanceInProgress,
    RequestTimedOut,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.client.topic_partition import OffsetAndMetadata, TopicPartition
from ottla.config.scopes import Scope
from ottla.testing.scripted_brokers import KEEP, ScriptedBrokers
from ottla.wire import messages
from ottla.wire.message import Message
from tests.unit.client.admin.fake_cluster import FakeCluster

A0, A1, A2 = (TopicPartition("a", number) for number in range(3))


def metadata(leaders: dict[int, int], topic: str = "a") -> messages.MetadataResponse:
    response = messages.MetadataResponse
    partitions = [
        response.MetadataResponsePartition(partition_index=index, leader_id=leader) for index, leader in leaders.items()
    ]
    brokers = [response.MetadataResponseBroker(node_id=node, host="fake", port=node) for node in (1, 2, 3)]
    return response(
        brokers=brokers, topics=[response.MetadataResponseTopic(name=topic, partitions=partitions)], controller_id=1
    )


def listed(node_id: int, request: Any) -> messages.ListOffsetsResponse:
    response = messages.ListOffsetsResponse
    return response(
        topics=[
            response.ListOffsetsTopicResponse(
                name=topic.name,
                partitions=[
                    response.ListOffsetsPartitionResponse(partition_index=one.partition_index, offset=node_id * 10)
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ]
    )


def test_partitions_of_one_leader_go_in_one_request_and_leaders_are_asked_side_by_side() -> None:
    cluster = FakeCluster(3)
    cluster.on("MetadataRequest", metadata({0: 2, 1: 3, 2: 2}))
    cluster.on("ListOffsetsRequest", listed)
    found = cluster.run(records.list_offsets(cluster.asking, dict.fromkeys([A0, A1, A2], OffsetSpec.LATEST)))
    assert {partition: one.offset for partition, one in found.items()} == {A0: 20, A1: 30, A2: 20}
    asked = [(node, [one.partition_index for one in request.topics[0].partitions])
             for node, request in cluster.asked if isinstance(request, messages.ListOffsetsRequest)]  # fmt: skip
    assert asked == [(2, [0, 2]), (3, [1])]


def test_a_partition_whose_leader_has_moved_is_asked_for_again_and_no_other() -> None:
    cluster = FakeCluster(3)
    cluster.on("MetadataRequest", [metadata({0: 2, 1: 3}), metadata({1: 1})])

    def answer(node_id: int, request: Any) -> Message:
        response = listed(node_id, request)
        if node_id == 3:
            response.topics[0].partitions[0].error_code = NotLeaderOrFollower.code
        return response

    cluster.on("ListOffsetsRequest", answer)
    found = cluster.run(records.list_offsets(cluster.asking, {A0: -1, A1: -1}))
    assert (found[A0].offset, found[A1].offset) == (20, 10)
    assert [node for node, request in cluster.asked if isinstance(request, messages.ListOffsetsRequest)] == [2, 3, 1]


def test_a_leader_that_does_not_answer_fails_its_own_partitions_alone() -> None:
    cluster = FakeCluster(3)
    cluster.on("MetadataRequest", metadata({0: 2, 1: 3}))
    cluster.on("ListOffsetsRequest", lambda node, request: Disconnected() if node == 3 else listed(node, request))
    found = cluster.run(records.list_offsets(cluster.asking, {A0: -1, A1: -1}, timeout=1.0))
    assert found[A0].offset == 20
    assert type(found.errors[A1]) is Disconnected


def test_a_topic_that_no_broker_knows_is_waited_for_a_while_and_not_until_the_deadline() -> None:
    cluster = FakeCluster()
    unknown = messages.MetadataResponse.MetadataResponseTopic(name="a", error_code=UnknownTopicOrPartition.code)
    cluster.on("MetadataRequest", lambda node, request: messages.MetadataResponse(topics=[unknown]))
    found = cluster.run(records.list_offsets(cluster.asking, {A0: -1}))
    assert type(found.errors[A0]) is UnknownTopicOrPartition
    waited_s = cluster.clock.elapsed_s()
    assert UNKNOWN_TOPIC_PATIENCE_S < waited_s < UNKNOWN_TOPIC_PATIENCE_S + 2


def test_a_place_that_an_old_broker_does_not_know_is_refused_and_not_asked_for() -> None:
    cluster = FakeCluster(3)
    cluster.newest["ListOffsetsRequest"] = 6
    cluster.on("MetadataRequest", metadata({0: 1}))
    found = cluster.run(records.list_offsets(cluster.asking, {A0: OffsetSpec.MAX_TIMESTAMP}))
    assert type(found.errors[A0]) is UnsupportedVersion
    assert cluster.requests("ListOffsetsRequest") == []


def coordinators(node_id: int, request: Any) -> messages.FindCoordinatorResponse:
    """Groups whose name ends with a number are that broker's."""
    response = messages.FindCoordinatorResponse
    if request.key:
        return response(node_id=int(request.key[-1]), host="fake", port=1)
    return response(
        coordinators=[
            response.Coordinator(key=key, node_id=int(key[-1]), host="fake", port=1) for key in request.coordinator_keys
        ]
    )


def described(node_id: int, request: Any) -> messages.DescribeGroupsResponse:
    response = messages.DescribeGroupsResponse
    group = response.DescribedGroup
    return response(
        groups=[group(group_id=name, protocol_type="consumer", group_state="Stable") for name in request.groups]
    )


@pytest.mark.parametrize("newest", [3, 6])
def test_groups_go_to_their_coordinators_which_are_found_in_one_request_if_brokers_can(newest: int) -> None:
    cluster = FakeCluster(3)
    cluster.newest["FindCoordinatorRequest"] = newest
    cluster.on("FindCoordinatorRequest", coordinators)
    cluster.on("DescribeGroupsRequest", described)
    groups = cluster.run(describing.describe_classic_groups(cluster.asking, ["x1", "y2", "z1"]))
    assert {name: group.coordinator.id for name, group in groups.items()} == {"x1": 1, "y2": 2, "z1": 1}
    assert len(cluster.requests("FindCoordinatorRequest")) == (3 if newest < 4 else 1)
    assert [list(request.groups) for request in cluster.requests("DescribeGroupsRequest")] == [["x1", "z1"], ["y2"]]


def test_a_group_of_either_protocol_is_described_and_a_group_of_something_else_refused() -> None:
    cluster = FakeCluster()
    cluster.on("FindCoordinatorRequest", coordinators)
    new = messages.ConsumerGroupDescribeResponse.DescribedGroup
    gone = GroupIdNotFound.code
    cluster.on(
        "ConsumerGroupDescribeRequest",
        messages.ConsumerGroupDescribeResponse(
            groups=[
                new(group_id="new1", group_state="Stable"),
                *(new(group_id=name, error_code=gone) for name in ("old1", "connect1", "gone1")),
            ]
        ),
    )
    old = messages.DescribeGroupsResponse.DescribedGroup
    cluster.on(
        "DescribeGroupsRequest",
        messages.DescribeGroupsResponse(
            groups=[
                old(group_id="old1", protocol_type="consumer", group_state="Empty"),
                old(group_id="connect1", protocol_type="connect", group_state="Stable"),
                old(group_id="gone1", error_code=gone),
            ]
        ),
    )
    names = ["new1", "old1", "connect1", "gone1"]
    groups = cluster.run(describing.describe_consumer_groups(cluster.asking, names))
    assert list(groups) == names
    assert groups["new1"].type is listing.GroupType.CONSUMER
    assert groups["old1"].type is listing.GroupType.CLASSIC
    assert type(groups.errors["connect1"]) is InvalidGroupId
    assert type(groups.errors["gone1"]) is GroupIdNotFound
    [request] = cluster.requests("DescribeGroupsRequest")
    assert "new1" not in request.groups


def test_a_coordinator_that_has_moved_is_looked_for_again() -> None:
    cluster = FakeCluster(2)
    found = messages.FindCoordinatorResponse.Coordinator
    places = [messages.FindCoordinatorResponse(coordinators=[found(key="g", node_id=node)]) for node in (1, 2)]
    cluster.on("FindCoordinatorRequest", [*places])
    result = messages.DeleteGroupsResponse.DeletableGroupResult
    moved, deleted = (
        messages.DeleteGroupsResponse(results=[result(group_id="g", error_code=code)])
        for code in (NotCoordinator.code, 0)
    )
    cluster.on("DeleteGroupsRequest", [moved, deleted])
    cluster.run(removal.delete_groups(cluster.asking, ["g"])).raise_first()
    assert [node for node, request in cluster.asked if isinstance(request, messages.DeleteGroupsRequest)] == [1, 2]


def test_an_old_broker_is_asked_for_the_offsets_of_one_group_at_a_time() -> None:
    cluster = FakeCluster()
    cluster.newest["OffsetFetchRequest"] = 7
    cluster.on("FindCoordinatorRequest", coordinators)
    topic = messages.OffsetFetchResponse.OffsetFetchResponseTopic
    partition = messages.OffsetFetchResponse.OffsetFetchResponsePartition
    answer = messages.OffsetFetchResponse(
        topics=[
            topic(
                name="a",
                partitions=[
                    partition(partition_index=0, committed_offset=5, metadata="m"),
                    partition(partition_index=1, committed_offset=-1),
                ],
            )
        ]
    )
    cluster.on("OffsetFetchRequest", answer)
    committed = cluster.run(offsets.list_consumer_group_offsets(cluster.asking, {"x1": [A0, A1], "y1": None}))
    assert committed["x1"] == {A0: OffsetAndMetadata(5, "m"), A1: None}
    first, second = cluster.requests("OffsetFetchRequest")
    assert (first.group_id, list(first.topics[0].partition_indexes)) == ("x1", [0, 1])
    assert (second.group_id, second.topics) == ("y1", None)


def test_all_brokers_are_asked_for_groups_and_one_that_stays_away_is_an_error() -> None:
    cluster = FakeCluster(2)
    group = messages.ListGroupsResponse.ListedGroup
    cluster.on(
        "ListGroupsRequest",
        lambda node, request: messages.ListGroupsResponse(groups=[group(group_id=f"g{node}", group_state="Stable")]),
    )
    assert [one.group_id for one in cluster.run(listing.list_groups(cluster.asking))] == ["g1", "g2"]
    cluster.on(
        "ListGroupsRequest", lambda node, request: Disconnected() if node == 2 else messages.ListGroupsResponse()
    )
    with pytest.raises(Disconnected):
        cluster.run(listing.list_groups(cluster.asking, timeout=0.5))


def test_a_state_that_this_client_does_not_know_is_told_as_unknown() -> None:
    cluster = FakeCluster()
    group = messages.ListGroupsResponse.ListedGroup
    answer = messages.ListGroupsResponse(groups=[group(group_id="g", group_state="Levitating", group_type="modern")])
    cluster.on("ListGroupsRequest", answer)
    [told] = cluster.run(listing.list_groups(cluster.asking))
    assert (told.state, told.type) == (listing.GroupState.UNKNOWN, listing.GroupType.UNKNOWN)


def test_settings_of_a_broker_are_asked_of_that_broker() -> None:
    cluster = FakeCluster(3)

    def answer(node_id: int, request: Any) -> Message:
        result = messages.DescribeConfigsResponse.DescribeConfigsResult
        return messages.DescribeConfigsResponse(
            results=[
                result(resource_type=one.resource_type, resource_name=one.resource_name) for one in request.resources
            ]
        )

    cluster.on("DescribeConfigsRequest", answer)
    resources = [
        ConfigResource.broker(3),
        ConfigResource.topic("a"),
        ConfigResource.broker(),
        ConfigResource.broker("x"),
    ]
    results = cluster.run(configs.describe_configs(cluster.asking, resources))
    asked = [(node, [one.resource_name for one in request.resources]) for node, request in cluster.asked]
    assert asked == [(3, ["3"]), (1, ["a", ""])]
    assert type(results.errors[ConfigResource.broker("x")]) is InvalidRequest


def test_an_election_that_is_not_needed_is_told_and_not_tried_again() -> None:
    cluster = FakeCluster()
    result = messages.ElectLeadersResponse.ReplicaElectionResult
    partition = messages.ElectLeadersResponse.PartitionResult
    answer = messages.ElectLeadersResponse(
        replica_election_results=[
            result(topic="a", partition_result=[partition(partition_id=0, error_code=ElectionNotNeeded.code)])
        ]
    )
    cluster.on("ElectLeadersRequest", answer)
    results = cluster.run(replicas.elect_leaders(cluster.asking, replicas.ElectionType.PREFERRED, [A0]))
    assert type(results.errors[A0]) is ElectionNotNeeded
    assert len(cluster.asked) == 1


def test_an_old_controller_is_told_of_downgrades_in_its_own_way() -> None:
    cluster = FakeCluster()
    cluster.on("UpdateFeaturesRequest", messages.UpdateFeaturesResponse())
    change = {"metadata.version": FeatureUpdate(5, UpgradeType.SAFE_DOWNGRADE)}
    cluster.run(feature_levels.update_features(cluster.asking, change)).raise_first()
    cluster.newest["UpdateFeaturesRequest"] = 0
    cluster.run(feature_levels.update_features(cluster.asking, change)).raise_first()
    new, old = (request.feature_updates[0] for request in cluster.requests("UpdateFeaturesRequest"))
    assert (new.upgrade_type, new.allow_downgrade) == (UpgradeType.SAFE_DOWNGRADE, False)
    assert old.allow_downgrade


def test_a_cluster_of_old_brokers_is_described_from_metadata() -> None:
    cluster = FakeCluster()
    cluster.on("DescribeClusterRequest", UnsupportedVersion())
    cluster.on("MetadataRequest", metadata({}))
    told = cluster.run(cluster_nodes.describe_cluster(cluster.asking))
    assert ([node.id for node in told.nodes], told.controller and told.controller.id) == ([1, 2, 3], 1)


def test_a_named_broker_that_does_not_hold_the_partition_says_so_at_once() -> None:
    cluster = FakeCluster(2)
    response = messages.DescribeProducersResponse
    partition = response.PartitionResponse(partition_index=0, error_code=NotLeaderOrFollower.code)
    cluster.on("DescribeProducersRequest", response(topics=[response.TopicResponse(name="a", partitions=[partition])]))
    told = cluster.run(transaction_states.describe_producers(cluster.asking, [A0], broker_id=2))
    assert type(told.errors[A0]) is NotLeaderOrFollower
    assert [node for node, _ in cluster.asked] == [2]


def test_the_time_of_a_call_is_also_its_requests_and_its_last_error_is_told() -> None:
    cluster = FakeCluster()
    cluster.on("DescribeLogDirsRequest", RequestTimedOut("too slow"))
    told = cluster.run(log_dirs.describe_log_dirs(cluster.asking, timeout=3.0))
    assert told.errors[1].message == "too slow"
    assert cluster.clock.elapsed_s() == pytest.approx(3.0)


def controllers(active: int, *others: int) -> messages.DescribeClusterResponse:
    node = messages.DescribeClusterResponse.DescribeClusterBroker
    return messages.DescribeClusterResponse(
        endpoint_type=2,
        cluster_id="c",
        controller_id=active,
        brokers=[node(broker_id=one, host="fake", port=one) for one in (active, *others)],
    )


def test_controllers_are_asked_who_leads_them_and_again_when_it_has_moved() -> None:
    cluster = FakeCluster(bootstrap_servers=None, bootstrap_controllers="fake:1")
    cluster.on("DescribeClusterRequest", lambda node, request: controllers(7, 8) if not moved else controllers(8, 7))
    moved: list[bool] = []

    def unregister(node_id: int, request: Any) -> Message:
        if node_id == 7:
            moved.append(True)
            return messages.UnregisterBrokerResponse(error_code=NotController.code)
        return messages.UnregisterBrokerResponse()

    cluster.on("UnregisterBrokerRequest", unregister)
    cluster.run(cluster_nodes.unregister_broker(cluster.asking, 5))
    asked = [node for node, request in cluster.asked if isinstance(request, messages.UnregisterBrokerRequest)]
    assert asked == [7, 8]
    assert all(request.endpoint_type == 2 for request in cluster.requests("DescribeClusterRequest"))


def test_offsets_wait_for_a_rebalance_to_end_and_not_for_a_topic_that_is_not_there() -> None:
    cluster = FakeCluster()
    cluster.on("FindCoordinatorRequest", coordinators)
    topic = messages.OffsetCommitResponse.OffsetCommitResponseTopic
    partition = messages.OffsetCommitResponse.OffsetCommitResponsePartition

    def committed(**codes: int) -> Message:
        return messages.OffsetCommitResponse(
            topics=[
                topic(name=name, partitions=[partition(partition_index=0, error_code=code)])
                for name, code in codes.items()
            ]
        )

    answers = [committed(a=RebalanceInProgress.code, b=UnknownTopicOrPartition.code), committed(a=0)]
    cluster.on("OffsetCommitRequest", [*answers])
    b0 = TopicPartition("b", 0)
    results = cluster.run(offsets.alter_consumer_group_offsets(cluster.asking, "g1", {A0: 5, b0: 6}))
    assert results[A0] is None
    assert type(results.errors[b0]) is UnknownTopicOrPartition
    _, again = cluster.requests("OffsetCommitRequest")
    assert [one.name for one in again.topics] == ["a"]


@pytest.mark.parametrize("up", [1, 2, 3])
def test_a_topics_settings_are_changed_though_most_bootstrap_servers_are_down(up: int) -> None:
    brokers = ScriptedBrokers([1, 2, 3])
    brokers.unreachable |= {1, 2, 3} - {up}
    response = messages.IncrementalAlterConfigsResponse
    answer = response.AlterConfigsResourceResponse(resource_type=2, resource_name="a")
    brokers.answer("IncrementalAlterConfigs", response(responses=[answer]))
    settings = read_settings(Scope.ADMIN, {"bootstrap.servers": brokers.bootstrap}, {})
    asking = Asking(Cluster(brokers.world, settings))
    topic = ConfigResource(configs.ResourceType.TOPIC, "a")
    changed = spawn(configs.incremental_alter_configs(asking, {topic: {"retention.ms": "1000"}}))
    brokers.advance(20_000)
    changed.value().raise_first()


def test_a_broker_that_was_reached_and_is_slow_is_not_one_that_cannot_be_reached() -> None:
    """Though the client has not asked for metadata yet, and knows the address alone."""
    for is_up, expected in ((True, RequestTimedOut), (False, NoBrokerReachable)):
        brokers = ScriptedBrokers([1])
        brokers.answer("DescribeConfigs", KEEP)
        if not is_up:
            brokers.unreachable.add(1)
        settings = read_settings(Scope.ADMIN, {"bootstrap.servers": brokers.bootstrap}, {})
        asking = Asking(Cluster(brokers.world, settings))
        topic = ConfigResource(configs.ResourceType.TOPIC, "a")
        described = spawn(configs.describe_configs(asking, [topic], timeout=0.3))
        brokers.advance(1000)
        assert type(described.value().errors[topic]) is expected


def test_a_broker_that_collects_metrics_tells_the_clients_id_once() -> None:
    cluster = FakeCluster()
    given = parse_uuid("4L6g3nShT-eMCtK--X86sw")
    cluster.on("GetTelemetrySubscriptionsRequest", messages.GetTelemetrySubscriptionsResponse(client_instance_id=given))
    for _ in range(2):
        assert cluster.run(cluster_nodes.client_instance_id(cluster.asking)) == "4L6g3nShT-eMCtK--X86sw"
    assert len(cluster.requests("GetTelemetrySubscriptionsRequest")) == 1
