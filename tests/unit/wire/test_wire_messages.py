"""Message classes: how they are built, compared and shown."""

import subprocess
import sys

import pytest

from ottla.base.ids import ZERO_UUID
from ottla.wire import messages
from ottla.wire.message import like
from ottla.wire.messages import FetchResponse, MetadataResponse, ProduceRequest, ProduceResponse


def test_fields_start_with_the_defaults_of_the_schema() -> None:
    request = ProduceRequest()
    assert request.transactional_id is None
    assert request.acks == 0
    assert request.topic_data == []
    assert request.unknown_tags == ()
    assert ProduceRequest.TopicProduceData().topic_id == ZERO_UUID


def test_structs_are_attributes_of_their_message() -> None:
    topic = ProduceRequest.TopicProduceData(name="clicks")
    request = ProduceRequest(acks=-1, topic_data=[topic])
    assert request.topic_data[0].name == "clicks"
    assert ProduceRequest.TopicProduceData.__qualname__ == "ProduceRequest.TopicProduceData"


def test_messages_do_not_share_their_defaults() -> None:
    one, other = ProduceRequest(), ProduceRequest()
    one.topic_data.append(ProduceRequest.TopicProduceData())
    assert other.topic_data == []
    partition = FetchResponse.PartitionData()
    partition.current_leader.leader_id = 7
    assert FetchResponse.PartitionData().current_leader.leader_id == -1


def test_a_misspelt_field_is_refused() -> None:
    with pytest.raises(TypeError, match="ack"):
        ProduceRequest(ack=1)  # type: ignore[call-arg]
    with pytest.raises(AttributeError):
        ProduceRequest().ack = 1  # type: ignore[attr-defined]


def test_messages_are_equal_when_their_fields_are() -> None:
    assert ProduceRequest(acks=1) == ProduceRequest(acks=1)
    assert ProduceRequest(acks=1) != ProduceRequest(acks=2)
    assert ProduceRequest() != MetadataResponse()


def test_an_array_may_be_a_list_or_a_tuple() -> None:
    partition = MetadataResponse.MetadataResponsePartition
    assert partition(replica_nodes=[1, 2]) == partition(replica_nodes=(1, 2))
    assert partition(replica_nodes=[1, 2]) != partition(replica_nodes=(1, 3))


def test_what_is_shown_is_what_differs_from_the_default() -> None:
    request = ProduceRequest(acks=-1, topic_data=[ProduceRequest.TopicProduceData(name="clicks")])
    assert repr(request) == "ProduceRequest(acks=-1, topic_data=[ProduceRequest.TopicProduceData(name='clicks')])"


def test_a_class_is_made_once() -> None:
    assert messages.ProduceRequest is ProduceRequest


def test_there_is_no_message_of_another_name() -> None:
    with pytest.raises(AttributeError, match="NoSuchRequest"):
        messages.NoSuchRequest  # type: ignore[attr-defined]  # noqa: B018


def test_every_message_is_listed() -> None:
    assert {"ProduceRequest", "PartitionRecord", "OffsetCommitKey", "QuorumStateData"} <= set(dir(messages))


def test_one_like_another_shares_its_values_and_can_be_changed_alone() -> None:
    prototype = ProduceResponse.PartitionProduceResponse(index=3, record_errors=())  # type: ignore[arg-type]
    made = like(prototype)
    assert made == prototype
    assert made is not prototype
    made.index, made.error_message = 4, "changed"
    assert (prototype.index, prototype.error_message) == (3, None)
    assert made.record_errors is prototype.record_errors


def test_one_like_another_without_a_compiler() -> None:
    script = (
        "import sys; sys.modules['ottla.wire._native'] = None\n"
        "from ottla.wire.message import like\n"
        "from ottla.wire.messages import FetchResponse\n"
        "one = FetchResponse(session_id=7)\n"
        "assert like(one) == one and like(one) is not one\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
