"""What a lane says to nodes, without I/O: generators of requests that are given the replies.

A conversation yields `Ask`s. Its driver sends them in order, each on the lane's one connection to that node, and gives
the list of replies when all are there (None where there is none). An empty list asks the driver to wait a moment. So
one conversation runs over sockets and in the simulator.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.base.ids import TopicPartition, Uuid
from ottla.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.testing.workload.ledger import Ending, Fate, Ledger, SentBatch, SentTransaction
from ottla.testing.workload.plans import LaneKind, LanePlan, RequestPlan, RoundPlan
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    AddPartitionsToTxnRequest,
    ApiVersionsRequest,
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    MetadataRequest,
    ProduceRequest,
)


class Ask(NamedTuple):
    node: int
    request: Message
    version: int
    has_response: bool = True


Conversation = Generator[Sequence[Ask], list[Any], None]


class Routes(NamedTuple):
    """Where partitions are led, and the ids of topics."""

    leaders: Mapping[TopicPartition, int]
    topic_ids: Mapping[str, Uuid]
    replicas: Mapping[TopicPartition, Sequence[int]]


class Unexpected(AssertionError):
    """A reply that no node should give; the message says which."""


METADATA_VERSION: Final = 12
_FIRST_WITH_TOPIC_IDS: Final = 13
_TIMEOUT_MS: Final = 30_000
_TRANSACTION_TIMEOUT_MS: Final = 120_000
_MOST_ATTEMPTS: Final = 1_000
_TRANSACTIONS: Final = 1
_NOT_YET: Final = frozenset(
    {
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.NOT_COORDINATOR,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
    }
)


def metadata_request(topics: Iterable[str]) -> MetadataRequest:
    return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name) for name in topics])


def routes_of(metadata: Any) -> Routes:
    """From a reply of version 12."""
    leaders: dict[TopicPartition, int] = {}
    replicas: dict[TopicPartition, Sequence[int]] = {}
    for topic in metadata.topics:
        for one in topic.partitions:
            place = TopicPartition(topic.name, one.partition_index)
            leaders[place] = one.leader_id
            replicas[place] = tuple(one.replica_nodes)
    return Routes(leaders, {topic.name: topic.topic_id for topic in metadata.topics}, replicas)


def talk(lane: LanePlan, routes: Routes, ledger: Ledger) -> Conversation:
    """Sends all of a lane, and notes in the ledger what became of it."""
    yield from _Talk(lane, routes, ledger).run()


class _Talk:
    def __init__(self, lane: LanePlan, routes: Routes, ledger: Ledger) -> None:
        self._lane = lane
        self._routes = routes
        self._ledger = ledger
        self._producer_id = NO_PRODUCER_ID
        self._producer_epoch = NO_PRODUCER_EPOCH
        self._sequences: dict[TopicPartition, int] = {}
        self._coordinator = min(routes.leaders.values())
        self._transactional_id = f"of-{lane.name}"

    def run(self) -> Conversation:
        if self._lane.kind is not LaneKind.PLAIN:
            yield from self._begin_as_producer()
        for a_round in self._lane.rounds:
            if self._lane.kind.is_transactional:
                yield from self._transaction(a_round)
            else:
                yield from self._produce(a_round.requests, None)

    # Producers and transactions

    def _begin_as_producer(self) -> Conversation:
        if self._lane.kind.is_transactional:
            yield from self._find_coordinator()
        asked = InitProducerIdRequest(
            transactional_id=self._transactional_id if self._lane.kind.is_transactional else None,
            transaction_timeout_ms=_TRANSACTION_TIMEOUT_MS,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
        )
        version = 5 if self._lane.kind is LaneKind.TRANSACTIONS_2 else 4
        for _ in range(_MOST_ATTEMPTS):
            (reply,) = yield [Ask(self._coordinator, asked, version)]
            if not reply.error_code:
                self._producer_id, self._producer_epoch = reply.producer_id, reply.producer_epoch
                return
            self._expect_not_yet("InitProducerId", reply.error_code)
            yield []
        raise Unexpected(f"{self._lane.name}: no producer id")

    def _find_coordinator(self) -> Conversation:
        asked = FindCoordinatorRequest(key_type=_TRANSACTIONS, coordinator_keys=[self._transactional_id])
        for _ in range(_MOST_ATTEMPTS):
            (reply,) = yield [Ask(self._coordinator, asked, 4)]
            (found,) = reply.coordinators
            if not found.error_code:
                self._coordinator = found.node_id
                return
            self._expect_not_yet("FindCoordinator", found.error_code)
            yield []
        raise Unexpected(f"{self._lane.name}: no coordinator")

    def _transaction(self, a_round: RoundPlan) -> Conversation:
        transaction = self._ledger.begin()
        places = {batch.place for request in a_round.requests for batch in request.batches}
        transaction.places = places
        if self._lane.kind is LaneKind.TRANSACTIONS_1:
            yield from self._add_partitions(places)
        yield from self._produce(a_round.requests, transaction)
        asked = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            committed=a_round.commits,
        )
        has_new_epoch = self._lane.kind is LaneKind.TRANSACTIONS_2
        for _ in range(_MOST_ATTEMPTS):
            (reply,) = yield [Ask(self._coordinator, asked, 5 if has_new_epoch else 4)]
            if not reply.error_code:
                transaction.ending = Ending.COMMITTED if a_round.commits else Ending.ABORTED
                if has_new_epoch:
                    if (reply.producer_id, reply.producer_epoch) != (self._producer_id, self._producer_epoch):
                        self._sequences.clear()
                    self._producer_id, self._producer_epoch = reply.producer_id, reply.producer_epoch
                return
            self._expect_not_yet("EndTxn", reply.error_code)
            yield []
        raise Unexpected(f"{self._lane.name}: a transaction cannot be ended")

    def _add_partitions(self, places: Iterable[TopicPartition]) -> Conversation:
        by_topic: dict[str, list[int]] = {}
        for topic, index in sorted(places):
            by_topic.setdefault(topic, []).append(index)
        asked = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._producer_epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=indexes)
                for name, indexes in by_topic.items()
            ],
        )
        for _ in range(_MOST_ATTEMPTS):
            (reply,) = yield [Ask(self._coordinator, asked, 3)]
            errors = {
                one.partition_error_code
                for topic in reply.results_by_topic_v3_and_below
                for one in topic.results_by_partition
            } - {0}
            if not errors:
                return
            for error in errors:
                self._expect_not_yet("AddPartitionsToTxn", error)
            yield []
        raise Unexpected(f"{self._lane.name}: partitions cannot be added to a transaction")

    def _expect_not_yet(self, api: str, error: int) -> None:
        if error not in _NOT_YET:
            raise Unexpected(f"{self._lane.name} ({self._lane.kind.value}): {api} answers {ErrorCode(error).name}")

    # Batches

    def _produce(self, requests: Sequence[RequestPlan], transaction: SentTransaction | None) -> Conversation:
        """All at once; what was told to come again, one request after the other."""
        attempts = [attempt for request in requests for attempt in self._attempts(request, transaction)]
        yield from self._send(attempts)
        for attempt in attempts:
            for _ in range(_MOST_ATTEMPTS):
                if not attempt.open:
                    break
                yield []
                yield from self._send([attempt])
            if attempt.open:
                raise Unexpected(f"{self._lane.name}: told to try again for ever: {next(iter(attempt.open.values()))}")

    def _attempts(self, request: RequestPlan, transaction: SentTransaction | None) -> list["_Attempt"]:
        """A request for each node that leads some of its batches' partitions; twice if it is repeated."""
        by_node: dict[int, dict[TopicPartition, SentBatch]] = {}
        records: dict[TopicPartition, bytes] = {}
        for plan in request.batches:
            place = plan.place
            sent = self._ledger.note(self._lane, plan, transaction)
            by_node.setdefault(self._routes.leaders[place], {})[place] = sent
            sequence = NO_SEQUENCE
            if self._producer_id != NO_PRODUCER_ID:
                sequence = self._sequences.get(place, 0)
                if not plan.refusal:
                    self._sequences[place] = sequence + len(plan.records)
            records[place] = plan.build(
                self._producer_id, self._producer_epoch, sequence, transactional=transaction is not None
            )
        found = [_Attempt(node, request, open_, records) for node, open_ in by_node.items()]
        return [*found, *(one.again() for one in found)] if request.is_repeated else found

    def _send(self, attempts: Sequence["_Attempt"]) -> Conversation:
        asked = [self._ask(attempt) for attempt in attempts]
        # When this one is answered, what came before it on the connection has been handled.
        unanswered = sorted({attempt.node for attempt in attempts if attempt.plan.acks == 0})
        barriers = [Ask(node, ApiVersionsRequest(), 0) for node in unanswered]
        replies = yield [*asked, *barriers]
        waiting: set[TopicPartition] = set()
        for attempt, reply in zip(attempts, replies, strict=False):
            if attempt.plan.acks == 0:
                for sent in attempt.open.values():
                    sent.fate = Fate.UNANSWERED
                attempt.open = {}
            else:
                self._take(attempt, reply, waiting)

    def _ask(self, attempt: "_Attempt") -> Ask:
        by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        for place in attempt.open:
            data = ProduceRequest.PartitionProduceData(index=place.partition, records=attempt.records[place])
            by_topic.setdefault(place.topic, []).append(data)
        version, acks = attempt.plan.version, attempt.plan.acks
        topics = [
            ProduceRequest.TopicProduceData(topic_id=self._routes.topic_ids[name], partition_data=data)
            if version >= _FIRST_WITH_TOPIC_IDS
            else ProduceRequest.TopicProduceData(name=name, partition_data=data)
            for name, data in by_topic.items()
        ]
        request = ProduceRequest(
            transactional_id=self._transactional_id if self._lane.kind.is_transactional else None,
            acks=acks,
            timeout_ms=_TIMEOUT_MS,
            topic_data=topics,
        )
        return Ask(attempt.node, request, version, acks != 0)

    def _take(self, attempt: "_Attempt", reply: Any, waiting: set[TopicPartition]) -> None:
        """`waiting` are partitions whose earlier batch has to come again: so have the later ones."""
        names = {topic_id: name for name, topic_id in self._routes.topic_ids.items()}
        for topic in reply.responses:
            name = names[topic.topic_id] if attempt.plan.version >= _FIRST_WITH_TOPIC_IDS else topic.name
            for one in topic.partition_responses:
                place = TopicPartition(name, one.index)
                sent = attempt.open[place]
                error = ErrorCode(one.error_code)
                is_behind = error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and place in waiting
                if error in _NOT_YET or is_behind:
                    waiting.add(place)
                    continue
                del attempt.open[place]
                if error is not sent.plan.refusal:
                    self._ledger.tell(f"Produce {attempt.plan.version} is answered {error.name}: {sent}")
                if error:
                    sent.fate = Fate.REFUSED
                else:
                    self._ledger.acknowledge(sent, one.base_offset, one.log_append_time_ms)
        if attempt.open and not waiting & attempt.open.keys():
            raise Unexpected(f"{self._lane.name}: no answer for {sorted(attempt.open)}")


class _Attempt:
    """One request to one node. `open` are the batches that have no final answer."""

    __slots__ = ("node", "open", "plan", "records")

    def __init__(
        self,
        node: int,
        plan: RequestPlan,
        open_: dict[TopicPartition, SentBatch],
        records: Mapping[TopicPartition, bytes],
    ) -> None:
        self.node = node
        self.plan = plan
        self.open = open_
        self.records = records

    def again(self) -> "_Attempt":
        return _Attempt(self.node, self.plan, dict(self.open), self.records)
