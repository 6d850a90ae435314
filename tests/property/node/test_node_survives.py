"""Single requests that once stopped a node or held it up for everybody, and what Apache Kafka answers to each.

`OTTLA_TEST_TARGET=apache-kafka` asks Apache Kafka the same.
"""

import time
from collections.abc import Iterator
from typing import Any

import pytest

from ottla.testing.node import RunningNode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message
from ottla.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeProducersRequest,
    FindCoordinatorRequest,
    IncrementalAlterConfigsRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    ListTransactionsRequest,
    OffsetCommitRequest,
)
from tests.interop.target import Target
from tests.property.node.raw_connection import RawConnection
from tests.property.node.witness import Witness

LONGEST = 32767
UNKNOWN = ErrorCode.UNKNOWN_SERVER_ERROR
TOPIC, ID = "orders", "a" * 60
NOT_YET = {ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR}


class Asking:
    """One request, one connection: the answer, and that the node still serves others."""

    def __init__(self, node: Target) -> None:
        self.node = node

    def __call__(self, request: Message, version: int, client_id: str = "raw", timeout_s: float = 20.0) -> Any:
        deadline = time.monotonic() + 30
        while True:
            with RawConnection(self.node.bootstrap, timeout_s) as connection:
                connection.send(encode_request(request, version, 7, client_id))
                frame = connection.read_frame()
            assert frame is not None, f"the node hung up on {type(request).__name__}"
            answer = decode_response(response_type(request._schema.api_key), frame, version)[1]
            if getattr(answer, "error_code", 0) not in NOT_YET or time.monotonic() > deadline:
                return answer
            time.sleep(0.1)


@pytest.fixture(scope="module")
def ask(node: Target) -> Asking:
    ask = Asking(node)
    ask(CreateTopicsRequest(topics=[topic(TOPIC)], timeout_ms=10_000), 7)
    for type, key in ((0, "warm"), (1, ID)):
        ask(FindCoordinatorRequest(key=key, key_type=type), 3)
    assert ask(joining("warm"), 9).error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert ask(InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=10_000), 4).error_code == 0
    return ask


@pytest.fixture(autouse=True)
def _others_notice_nothing(ask: Asking, witness: Witness) -> Iterator[None]:
    """They are answered, and nothing unexpected is in the node's log."""
    yield
    witness.check(growth_bytes=100 << 20)
    if isinstance(ask.node, RunningNode):
        assert "Traceback" not in ask.node.log.read_text(errors="replace"), ask.node.end_of_log()


def topic(name: str, **more: Any) -> CreateTopicsRequest.CreatableTopic:
    return CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1, **more)


def joining(group_id: str, *protocols: str, **more: Any) -> JoinGroupRequest:
    offered = JoinGroupRequest.JoinGroupRequestProtocol
    return JoinGroupRequest(
        group_id=group_id,
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[offered(name=name, metadata=b"") for name in protocols or ("range",)],
        **more,
    )


@pytest.mark.parametrize("version", [0, 3, 4, 9])
def test_a_join_that_names_a_protocol_twice(version: int, ask: Asking) -> None:
    """Kafka takes the member in, fails to choose a protocol, and never answers."""
    if not isinstance(ask.node, RunningNode):
        pytest.skip("Apache Kafka never answers")
    answer = ask(joining(f"twice-{version}", "range", "range"), version)
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


@pytest.mark.parametrize("version", [3, 4, 9])
def test_a_client_id_that_leaves_no_room_for_a_member_id(version: int, ask: Asking) -> None:
    assert ask(joining(f"long-{version}"), version, "c" * LONGEST).error_code == UNKNOWN
    known = ask(joining(f"less-{version}"), version, "c" * (LONGEST - 37))
    assert known.error_code == (ErrorCode.NONE if version == 3 else ErrorCode.MEMBER_ID_REQUIRED)
    assert len(known.member_id) == LONGEST


def test_an_instance_id_that_leaves_no_room_for_a_member_id(ask: Asking) -> None:
    assert ask(joining("long-instance", group_instance_id="i" * LONGEST), 9).error_code == UNKNOWN


@pytest.mark.parametrize("version", [2, 3, 4])
@pytest.mark.parametrize("retention_ms", [(1 << 63) - 1, -(1 << 63), -2, 0])
def test_a_commit_that_is_to_be_kept_for_ever(version: int, retention_ms: int, ask: Asking) -> None:
    partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=5)
    request = OffsetCommitRequest(
        group_id="keeps",
        generation_id_or_member_epoch=-1,
        retention_time_ms=retention_ms,
        topics=[OffsetCommitRequest.OffsetCommitRequestTopic(name=TOPIC, partitions=[partition])],
    )
    assert ask(request, version).topics[0].partitions[0].error_code == 0


@pytest.mark.parametrize("count", [(1 << 31) - 1, 100_000])
def test_more_partitions_than_a_topic_can_have(count: int, ask: Asking) -> None:
    if not isinstance(ask.node, RunningNode):
        pytest.skip("Apache Kafka answers the same, and makes ten thousand of them all the same")
    grown = CreatePartitionsRequest.CreatePartitionsTopic(name=TOPIC, count=count, assignments=None)
    answer = ask(CreatePartitionsRequest(topics=[grown], timeout_ms=10_000), 3)
    assert [(one.error_code, one.error_message) for one in answer.results] == [(UNKNOWN, None)]


@pytest.mark.parametrize("version", [2, 5, 7])
def test_a_topics_name_that_the_error_cannot_repeat(version: int, ask: Asking) -> None:
    (answer,) = ask(CreateTopicsRequest(topics=[topic("n" * LONGEST)], timeout_ms=10_000), version).topics
    assert (answer.error_code, answer.error_message) == (UNKNOWN, None)


def test_settings_that_the_error_cannot_repeat(ask: Asking) -> None:
    setting = CreateTopicsRequest.CreatableTopicConfig(name="retention.ms", value="9" * LONGEST)
    (created,) = ask(CreateTopicsRequest(topics=[topic("set", configs=[setting])], timeout_ms=10_000), 7).topics
    assert created.error_code == UNKNOWN
    for type, name in ((2, "n" * LONGEST), (4, "9" * LONGEST)):
        resource = DescribeConfigsRequest.DescribeConfigsResource(resource_type=type, resource_name=name)
        (described,) = ask(DescribeConfigsRequest(resources=[resource]), 4).results
        assert described.error_code == UNKNOWN
    for type, name in ((4, "n" * LONGEST), (4, "9" * LONGEST), (2, "n" * LONGEST)):
        changed = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=type,
            resource_name=name,
            configs=[IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", value="1")],
        )
        (altered,) = ask(IncrementalAlterConfigsRequest(resources=[changed]), 1).responses
        assert altered.error_code == UNKNOWN


def test_names_that_descriptions_cannot_repeat(ask: Asking) -> None:
    name = "n" * LONGEST
    asked = DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0])
    (producers,) = ask(DescribeProducersRequest(topics=[asked]), 0).topics
    assert producers.partitions[0].error_code == UNKNOWN
    (group,) = ask(DescribeGroupsRequest(groups=[name]), 5).groups
    assert (group.error_code, group.group_state) == (0, "Dead")
    (group,) = ask(DescribeGroupsRequest(groups=[name]), 6).groups
    assert group.error_code == UNKNOWN
    (consumers,) = ask(ConsumerGroupDescribeRequest(group_ids=[name]), 1).groups
    assert consumers.error_code == UNKNOWN


EXPRESSIONS = {
    "(" * 400 + "a" + ")" * 400: ErrorCode.NONE,
    "(" * 2000 + "a" + ")" * 2000: ErrorCode.NONE,
    "(a+)+": ErrorCode.NONE,
    "(a+)+b": ErrorCode.NONE,
    r"\pN": ErrorCode.NONE,
    "a{99999999999}": ErrorCode.INVALID_REGULAR_EXPRESSION,
    "(": ErrorCode.INVALID_REGULAR_EXPRESSION,
}


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda text: text[:12])
def test_expressions_over_topics(expression: str, ask: Asking) -> None:
    request = ConsumerGroupHeartbeatRequest(
        group_id=f"reads {expression}"[:100],
        member_id="member",
        rebalance_timeout_ms=10_000,
        subscribed_topic_regex=expression,
        topic_partitions=[],
    )
    assert ask(request, 1, timeout_s=2).error_code == EXPRESSIONS[expression]


@pytest.mark.parametrize("expression", EXPRESSIONS, ids=lambda text: text[:12])
def test_expressions_over_transactional_ids(expression: str, ask: Asking) -> None:
    answer = ask(ListTransactionsRequest(transactional_id_pattern=expression), 2, timeout_s=2)
    assert answer.error_code == EXPRESSIONS[expression]
    found = [state.transactional_id for state in answer.transaction_states]
    assert found == ([ID] if expression == "(a+)+" else [])


def test_a_name_of_an_assignor_that_the_error_cannot_repeat(ask: Asking) -> None:
    for more in ({"server_assignor": "n" * LONGEST}, {"subscribed_topic_regex": "(" * LONGEST}):
        request = ConsumerGroupHeartbeatRequest(
            group_id="long", member_id="member", rebalance_timeout_ms=10_000, topic_partitions=[],
            subscribed_topic_names=[TOPIC], **more,
        )  # fmt: skip
        assert ask(request, 1).error_code == UNKNOWN
