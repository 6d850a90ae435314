"""What a client is told when its whole request failed, for every API that a client may call."""

from typing import Any

import pytest

from ottla.apis.error_responses import error_response, refusal_response
from ottla.wire.apis import ApiKey, all_apis
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_response, request_type, response_type
from ottla.wire.message import Message, WireStruct
from ottla.wire.messages import (
    AddPartitionsToTxnRequest,
    AlterReplicaLogDirsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    FetchRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetFetchRequest,
    ProduceRequest,
)

FAILED = ErrorCode.UNKNOWN_SERVER_ERROR
APIS = [
    api
    for api in all_apis().values()
    if "broker" in api.listeners and not api.cluster_action and not api.name.startswith(("Sasl", "DescribeAcls"))
]
# Versions that have no place for an error.
SILENT = {(ApiKey.DESCRIBE_LOG_DIRS, 1), (ApiKey.DESCRIBE_LOG_DIRS, 2)}
# Not served yet: their rows come with them.
LATER = {"CreateAcls", "DeleteAcls", "PushTelemetry", "ShareGroupDescribe", "StreamsGroupDescribe"} | {
    "InitializeShareGroupState",
    "ReadShareGroupState",
    "WriteShareGroupState",
    "DeleteShareGroupState",
    "ReadShareGroupStateSummary",
    "DescribeShareGroupOffsets",
    "AlterShareGroupOffsets",
    "DeleteShareGroupOffsets",
}


def filled(struct: type[WireStruct], owner: type[Message], version: int) -> Any:
    """A struct that has one entry in every list."""
    made = struct()
    for field in struct._struct.fields:
        if version not in field.versions or not field.is_array:
            continue
        if field.struct is not None:
            entry = filled(getattr(owner, field.type), owner, version)
        else:
            entry = "x" if field.type == "string" else 7
        setattr(made, field.attribute, [entry])
    return made


@pytest.mark.parametrize("key", [api.key for api in APIS if api.name not in LATER], ids=lambda key: key.name)
def test_every_version_of_every_api_can_say_that_a_request_failed(key: ApiKey) -> None:
    for version in all_apis()[key].stable_versions:
        request = filled(request_type(key), request_type(key), version)
        if key == ApiKey.PRODUCE:
            request.acks = -1
        response = error_response(request, version, FAILED)
        if (key, version) in SILENT:
            assert response is None
            continue
        assert response is not None, f"version {version}"
        _, decoded = decode_response(response_type(key), encode_response(response, version, 1)[4:], version)
        assert "=-1" in repr(decoded).replace(" ", "")
        assert "error_code=-1" in repr(decoded), f"version {version}: {decoded}"


def test_an_api_with_an_error_of_its_own_says_it_there() -> None:
    response: Any = error_response(JoinGroupRequest(), 9, FAILED)
    assert response.error_code == FAILED


def test_a_produce_request_is_answered_partition_by_partition() -> None:
    partitions = [ProduceRequest.PartitionProduceData(index=index) for index in (3, 5)]
    topics = [ProduceRequest.TopicProduceData(name="orders", partition_data=partitions)]
    response: Any = error_response(ProduceRequest(acks=1, topic_data=topics), 9, FAILED)
    [topic] = response.responses
    assert topic.name == "orders"
    assert [(one.index, one.error_code, one.base_offset) for one in topic.partition_responses] == [
        (3, FAILED, -1),
        (5, FAILED, -1),
    ]


def test_a_produce_request_without_acks_has_no_answer() -> None:
    assert error_response(ProduceRequest(acks=0, topic_data=[]), 9, FAILED) is None


@pytest.mark.parametrize("version", [6, 12, 13])
def test_a_fetch_says_it_of_every_partition_until_there_are_topic_ids(version: int) -> None:
    partitions = [FetchRequest.FetchPartition(partition=4)]
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic="orders", partitions=partitions)])
    response: Any = error_response(request, version, FAILED)
    assert response.error_code == (FAILED if version >= 7 else 0)
    told = [(one.topic, one.partitions[0].partition_index, one.partitions[0].error_code) for one in response.responses]
    assert told == ([("orders", 4, FAILED)] if version < 13 else [])


def test_lists_that_only_some_versions_have_are_answered_in_those() -> None:
    by_name: Any = error_response(DeleteTopicsRequest(topic_names=["a"]), 5, FAILED)
    by_state: Any = error_response(
        DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name="b")]), 6, FAILED
    )
    assert [one.name for one in by_name.responses + by_state.responses] == ["a", "b"]
    topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="a", partitions=[1])
    added: Any = error_response(AddPartitionsToTxnRequest(v3_and_below_topics=[topic]), 3, FAILED)
    [result] = added.results_by_topic_v3_and_below[0].results_by_partition
    assert (result.partition_index, result.partition_error_code) == (1, FAILED)
    groups: Any = error_response(
        OffsetFetchRequest(groups=[OffsetFetchRequest.OffsetFetchRequestGroup(group_id="g")]), 9, FAILED
    )
    assert [(one.group_id, one.error_code) for one in groups.groups] == [("g", FAILED)]


def test_the_topics_of_all_directories_are_answered() -> None:
    topics = [AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name="a", partitions=[0, 2])]
    dirs = [AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=path, topics=topics) for path in ("/1", "/2")]
    response: Any = error_response(AlterReplicaLogDirsRequest(dirs=dirs), 2, FAILED)
    assert [[one.partition_index for one in topic.partitions] for topic in response.results] == [[0, 2], [0, 2]]


def test_a_request_of_everything_has_no_place_for_an_error() -> None:
    assert error_response(MetadataRequest(topics=None), 5, FAILED) is None


def test_a_request_without_entries_is_answered_without_entries() -> None:
    """Else a client that asked for nothing would wait for ever."""
    for version in range(1, 6):
        response: Any = error_response(DeleteTopicsRequest(), version, FAILED)
        assert response is not None
        assert not response.responses


def test_a_refusal_of_everything_is_an_answer() -> None:
    response: Any = refusal_response(ElectLeadersRequest(topic_partitions=None), 0, FAILED)
    assert not response.replica_election_results
