"""What a program is where nodes are killed, or where some lanes may not write everywhere, and how its lanes do then."""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.base.ids import TopicPartition, Uuid
from ottla.records.batch import read_header
from ottla.records.header import Compression
from ottla.testing.workload.conversations import LOST, Ask, Routes, talk
from ottla.testing.workload.drawing import draw_program
from ottla.testing.workload.ledger import Ending, Fate, Ledger
from ottla.testing.workload.plans import (
    ACKS_ALL,
    BatchPlan,
    LaneKind,
    LanePlan,
    RecordPlan,
    RequestPlan,
    RoundPlan,
    TopicPlan,
)
from ottla.testing.workload.variants import FORBIDDEN, with_kills, with_rights
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    AddPartitionsToTxnResponse,
    EndTxnResponse,
    FindCoordinatorResponse,
    InitProducerIdResponse,
    MetadataResponse,
    ProduceResponse,
)

PLACE = TopicPartition("t", 0)
TOPIC = TopicPlan("t", 1, {})
TOPIC_ID = Uuid(bytes([7]) * 16)
PROGRAMS = [draw_program(seed, 1_700_000_000_000) for seed in range(6)]


def test_sequences_are_sent_with_acks_all_where_leaders_may_die() -> None:
    lanes = [lane for program in PROGRAMS for lane in with_kills(program).lanes]
    for lane in lanes:
        acks = {request.acks for one in lane.rounds for request in one.requests}
        assert lane.kind is LaneKind.PLAIN or acks == {ACKS_ALL}
        assert lane.client_codec is None or lane.kind is not LaneKind.PLAIN, "it would send again what may be there"
    assert any(request.acks == 0 for lane in lanes for one in lane.rounds for request in one.requests)


def test_some_batches_of_encrypted_lanes_are_forbidden_beside_others() -> None:
    requests = [
        (lane, request)
        for program in PROGRAMS
        for lane in with_rights(program).lanes
        for one in lane.rounds
        for request in one.requests
    ]
    forbidden = [
        (lane, request) for lane, request in requests if any(one.topic is FORBIDDEN for one in request.batches)
    ]
    assert forbidden
    assert any(len(request.batches) > 1 for _, request in forbidden)
    for lane, request in forbidden:
        assert lane.is_encrypted
        assert not lane.kind.is_transactional
        assert request.acks != 0
        for batch in request.batches:
            assert (batch.topic is FORBIDDEN) == (batch.refusal is ErrorCode.TOPIC_AUTHORIZATION_FAILED)


# --- lanes whose replies are lost ---


def lane(kind: LaneKind, batches: int = 2, **request: Any) -> LanePlan:
    plans = [
        BatchPlan(number, TOPIC, 0, Compression.NONE, (RecordPlan(1, None, number.to_bytes(4)),))
        for number in range(1, batches + 1)
    ]
    version = 9 if kind is LaneKind.TRANSACTIONS_1 else 12
    requests = tuple(RequestPlan((one,), request.get("acks", ACKS_ALL), version) for one in plans)
    return LanePlan("lane", kind, False, (RoundPlan(requests),))


class Nodes:
    """Two nodes of which one leads; `answer` is given each request with its number, and says what becomes of it."""

    def __init__(self, answer: Callable[["Nodes", int, Ask], Any]) -> None:
        self.leader = 1
        self.written: list[tuple[int, int]] = []
        """Sequence and number of each batch, as they came; a sequence that is there already is not written again."""
        self.asked: list[Ask] = []
        self._answer = answer

    def run(self, plan: LanePlan) -> Ledger:
        ledger = Ledger()
        routes = Routes({PLACE: self.leader}, {"t": TOPIC_ID}, {PLACE: (1, 2)})
        conversation = talk(plan, routes, ledger, expects_kills=True)
        asked = next(conversation)
        try:
            while True:
                replies = []
                for one in asked:
                    self.asked.append(one)
                    replies.append(self._answer(self, len(self.asked), one))
                asked = conversation.send(replies)
        except StopIteration:
            return ledger

    def reply(self, asked: Ask) -> Any:
        name = type(asked.request).__name__
        match name:
            case "MetadataRequest":
                partition = MetadataResponse.MetadataResponsePartition(
                    partition_index=0, leader_id=self.leader, replica_nodes=[1, 2], isr_nodes=[1, 2]
                )
                topic = MetadataResponse.MetadataResponseTopic(name="t", topic_id=TOPIC_ID, partitions=[partition])
                return MetadataResponse(topics=[topic])
            case "FindCoordinatorRequest":
                found = FindCoordinatorResponse.Coordinator(node_id=self.leader)
                return FindCoordinatorResponse(coordinators=[found])
            case "InitProducerIdRequest":
                return InitProducerIdResponse(producer_id=5, producer_epoch=0)
            case "AddPartitionsToTxnRequest":
                return AddPartitionsToTxnResponse()
            case "EndTxnRequest":
                return EndTxnResponse(producer_id=5, producer_epoch=1)
            case "ProduceRequest":
                return self.produce(asked) if asked.node == self.leader else refused(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            case _:
                return None

    def produce(self, asked: Ask) -> ProduceResponse:
        data = asked.request.topic_data[0].partition_data[0].records  # type: ignore[attr-defined]
        sequence = read_header(data).base_sequence
        known = {one: offset for offset, (one, _) in enumerate(self.written) if one >= 0}
        if sequence not in known:
            self.written.append((sequence, data[-5]))
        return refused(ErrorCode.NONE, known.get(sequence, len(self.written) - 1))


def refused(error: ErrorCode, offset: int = -1) -> ProduceResponse:
    one = ProduceResponse.PartitionProduceResponse(index=0, error_code=error, base_offset=offset)
    return ProduceResponse(responses=[ProduceResponse.TopicProduceResponse(name="t", partition_responses=[one])])


def lose_first(name: str, *, is_handled: bool) -> Callable[[Nodes, int, Ask], Any]:
    """The first request of that kind has no reply, and the other node leads from then on."""

    def answer(nodes: Nodes, _number: int, asked: Ask) -> Any:
        is_named = type(asked.request).__name__ == name
        if is_named and nodes.leader == 1:
            if is_handled:
                nodes.reply(asked)
            nodes.leader = 2
            return LOST
        return LOST if asked.node == 1 and nodes.leader == 2 else nodes.reply(asked)

    return answer


@pytest.mark.parametrize("is_handled", [False, True])
@pytest.mark.parametrize("kind", [LaneKind.IDEMPOTENT, LaneKind.TRANSACTIONS_1, LaneKind.TRANSACTIONS_2])
def test_batches_with_sequences_are_sent_again_to_the_next_leader_and_are_there_once(
    kind: LaneKind, is_handled: bool
) -> None:
    nodes = Nodes(lose_first("ProduceRequest", is_handled=is_handled))
    ledger = nodes.run(lane(kind))
    assert [sequence for sequence, _ in nodes.written] == [0, 1]
    assert [(sent.fate, sent.base_offset, sent.may_be_lost) for sent in ledger.sent] == [
        (Fate.ACKNOWLEDGED, 0, False),
        (Fate.ACKNOWLEDGED, 1, False),
    ]
    assert not ledger.differences


@pytest.mark.parametrize("is_handled", [False, True])
def test_what_a_plain_producer_has_no_answer_for_is_not_sent_again(is_handled: bool) -> None:
    nodes = Nodes(lose_first("ProduceRequest", is_handled=is_handled))
    ledger = nodes.run(lane(LaneKind.PLAIN))
    assert len(nodes.written) == is_handled
    assert [sent.fate for sent in ledger.sent] == [Fate.OPEN, Fate.OPEN]
    assert not any(sent.must_be_there for sent in ledger.sent)


@pytest.mark.parametrize("lost", ["FindCoordinatorRequest", "InitProducerIdRequest", "EndTxnRequest"])
def test_a_transaction_is_ended_by_the_next_coordinator(lost: str) -> None:
    nodes = Nodes(lose_first(lost, is_handled=True))
    ledger = nodes.run(lane(LaneKind.TRANSACTIONS_2))
    assert [one.ending for one in ledger.transactions] == [Ending.COMMITTED]
    assert nodes.asked[-1].node == 2


@pytest.mark.parametrize("acks", [0, 1])
def test_what_is_not_sent_with_acks_all_may_be_gone_with_its_leader(acks: int) -> None:
    ledger = Nodes(lambda nodes, _, asked: nodes.reply(asked)).run(lane(LaneKind.PLAIN, acks=acks))
    assert {sent.fate for sent in ledger.sent} == {Fate.UNANSWERED if acks == 0 else Fate.ACKNOWLEDGED}
    assert not any(sent.must_be_there for sent in ledger.sent)
    assert all(sent.may_be_committed for sent in ledger.sent)
