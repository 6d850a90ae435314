"""What a lane says to nodes, without I/O: generators of requests that are given the replies.

A conversation yields `Ask`s. Its driver sends them in order, each on the lane's one connection to that node, and gives
the list of replies when all are there (None where there is none). An empty list asks the driver to wait a moment. So
one conversation runs over sockets and in the simulator.

Where nodes die meanwhile, a driver may give `LOST` in place of a reply: the connection broke, and nobody knows whether
the request was handled. A lane that `expects_kills` then does what a good client does. Batches with sequences are sent
again to the leader of then, and must be there once. Those of plain producers are not: they may be there or not.
"""

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from ottla.base.ids import TopicPartition, Uuid
from ottla.records.header import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE
from ottla.testing.workload.ledger import Ending, Fate, Ledger, SentBatch, SentTransaction
from ottla.testing.workload.plans import ACKS_ALL, LaneKind, LanePlan, RequestPlan, RoundPlan
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


LOST: Final = object()
"""In place of a reply that will not come."""

METADATA_VERSION: Final = 12
_FIRST_WITH_TOPIC_IDS: Final = 13
_TIMEOUT_MS: Final = 30_000
_TRANSACTION_TIMEOUT_MS: Final = 120_000
_MOST_ATTEMPTS: Final = 1_000
_MOST_WITH_KILLS: Final = 20_000
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


_MOVED: Final = _NOT_YET | {
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
    ErrorCode.REQUEST_TIMED_OUT,
    ErrorCode.KAFKA_STORAGE_ERROR,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.FENCED_LEADER_EPOCH,
}
"""What nodes that die bring about."""


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


def talk(lane: LanePlan, routes: Routes, ledger: Ledger, *, expects_kills: bool = False) -> Conversation:
    """Sends all of a lane, and notes in the ledger what became of it."""
    yield from _Talk(lane, routes, ledger, expects_kills=expects_kills).run()


class _Talk:
    def __init__(self, lane: LanePlan, routes: Routes, ledger: Ledger, *, expects_kills: bool) -> None:
        self._lane = lane
        self._routes = routes
        self._ledger = ledger
        self._expects_kills = expects_kills
        self._not_yet = _MOVED if expects_kills else _NOT_YET
        self._most_attempts = _MOST_WITH_KILLS if expects_kills else _MOST_ATTEMPTS
        self._nodes = sorted({node for nodes in routes.replicas.values() for node in nodes})
        self._has_moved = False
        # A leader that dies takes along what its followers do not have yet; one that is alone comes back with it.
        self._may_lose = expects_kills and len(self._nodes) > 1
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

    # Where to ask

    def _look(self) -> Conversation:
        """Finds the leaders of now. A node that is gone is passed over."""
        names = list(self._routes.topic_ids)
        for attempt in range(self._most_attempts):
            (reply,) = yield [Ask(self._nodes[attempt % len(self._nodes)], metadata_request(names), METADATA_VERSION)]
            if reply is not LOST:
                found = routes_of(reply)
                if len(found.leaders) == len(self._routes.leaders) and min(found.leaders.values()) >= 0:
                    self._routes, self._has_moved = found, False
                    return
            yield []
        raise Unexpected(f"{self._lane.name}: no leaders")

    def _find_coordinator(self) -> Conversation:
        asked = FindCoordinatorRequest(key_type=_TRANSACTIONS, coordinator_keys=[self._transactional_id])
        for attempt in range(self._most_attempts):
            node = self._nodes[attempt % len(self._nodes)] if self._expects_kills else self._coordinator
            (reply,) = yield [Ask(node, asked, 4)]
            if reply is not LOST:
                (found,) = reply.coordinators
                if not found.error_code:
                    self._coordinator = found.node_id
                    return
                self._expect_not_yet("FindCoordinator", found.error_code)
            yield []
        raise Unexpected(f"{self._lane.name}: no coordinator")

    def _ask_coordinator(
        self, request: Message, version: int, errors_of: Callable[[Any], Iterable[int]]
    ) -> Generator[Sequence[Ask], list[Any], Any]:
        """Until it is done, by the coordinator of that moment; returns the reply."""
        name = type(request).__name__.removesuffix("Request")
        for attempt in range(self._most_attempts):
            (reply,) = yield [Ask(self._coordinator, request, version)]
            errors = set() if reply is LOST else set(errors_of(reply)) - {0}
            if reply is not LOST and not errors:
                return reply
            for error in errors:
                self._expect_not_yet(name, error)
            yield []
            if self._expects_kills and self._lane.kind.is_transactional:
                yield from self._find_coordinator()
            elif reply is LOST:
                self._coordinator = self._nodes[attempt % len(self._nodes)]  # any node gives ids
        raise Unexpected(f"{self._lane.name}: {name} is never done")

    def _expect_not_yet(self, api: str, error: int) -> None:
        if error not in self._not_yet:
            raise Unexpected(f"{self._lane.name} ({self._lane.kind.value}): {api} answers {ErrorCode(error).name}")

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
        reply = yield from self._ask_coordinator(asked, version, lambda reply: [reply.error_code])
        self._producer_id, self._producer_epoch = reply.producer_id, reply.producer_epoch

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
        reply = yield from self._ask_coordinator(asked, 5 if has_new_epoch else 4, lambda reply: [reply.error_code])
        transaction.ending = Ending.COMMITTED if a_round.commits else Ending.ABORTED
        if has_new_epoch:
            if (reply.producer_id, reply.producer_epoch) != (self._producer_id, self._producer_epoch):
                self._sequences.clear()
            self._producer_id, self._producer_epoch = reply.producer_id, reply.producer_epoch

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

        def errors_of(reply: Any) -> Iterable[int]:
            topics = reply.results_by_topic_v3_and_below
            return [one.partition_error_code for topic in topics for one in topic.results_by_partition]

        yield from self._ask_coordinator(asked, 3, errors_of)

    # Batches

    def _produce(self, requests: Sequence[RequestPlan], transaction: SentTransaction | None) -> Conversation:
        """All at once; what was told to come again, one request after the other."""
        if self._has_moved:
            yield from self._look()
        attempts = [attempt for request in requests for attempt in self._attempts(request, transaction)]
        yield from self._send(attempts)
        for attempt in attempts:
            for _ in range(self._most_attempts):
                if not attempt.open:
                    break
                yield []
                if self._has_moved:
                    yield from self._look()
                yield from self._send([attempt])
            if attempt.open:
                raise Unexpected(f"{self._lane.name}: asked to try again for ever: {next(iter(attempt.open.values()))}")

    def _attempts(self, request: RequestPlan, transaction: SentTransaction | None) -> list["_Attempt"]:
        """The request, twice if it is repeated."""
        open_: dict[TopicPartition, SentBatch] = {}
        records: dict[TopicPartition, bytes] = {}
        for plan in request.batches:
            place = plan.place
            open_[place] = self._ledger.note(self._lane, plan, transaction)
            sequence = NO_SEQUENCE
            if self._producer_id != NO_PRODUCER_ID:
                sequence = self._sequences.get(place, 0)
                if not plan.refusal:
                    self._sequences[place] = sequence + len(plan.records)
            records[place] = plan.build(
                self._producer_id, self._producer_epoch, sequence, transactional=transaction is not None
            )
        found = _Attempt(request, open_, records)
        return [found, found.again()] if request.is_repeated else [found]

    def _send(self, attempts: Sequence["_Attempt"]) -> Conversation:
        """Each to the nodes that lead what is open of it."""
        pieces = [(attempt, *piece) for attempt in attempts for piece in attempt.by_leader(self._routes)]
        asked = [self._ask(attempt.plan, node, places, attempt.records) for attempt, node, places in pieces]
        # When this one is answered, what came before it on the connection has been handled.
        unanswered = sorted({node for attempt, node, _ in pieces if attempt.plan.acks == 0})
        replies = yield [*asked, *(Ask(node, ApiVersionsRequest(), 0) for node in unanswered)]
        handled = {node for node, reply in zip(unanswered, replies[len(asked) :], strict=True) if reply is not LOST}
        waiting: set[TopicPartition] = set()
        for (attempt, node, places), reply in zip(pieces, replies, strict=False):
            if attempt.plan.acks == 0:
                for place in places:
                    sent = attempt.open.pop(place)
                    if node in handled and reply is not LOST:
                        sent.fate = Fate.UNANSWERED
                        sent.may_be_lost = self._may_lose
                self._has_moved |= node not in handled
            elif reply is LOST:
                self._has_moved = True
                for place in places:
                    self._come_again(attempt, place, waiting)
            else:
                self._take(attempt, places, reply, waiting)

    def _come_again(self, attempt: "_Attempt", place: TopicPartition, waiting: set[TopicPartition]) -> None:
        """It is not known whether a batch is written. Only one with a sequence may be sent once more."""
        if self._lane.kind is not LaneKind.PLAIN or not self._expects_kills:
            waiting.add(place)
            return
        sent = attempt.open.pop(place)
        if sent.plan.refusal:
            sent.fate = Fate.REFUSED  # by every leader

    def _ask(
        self, plan: RequestPlan, node: int, places: Iterable[TopicPartition], records: Mapping[TopicPartition, bytes]
    ) -> Ask:
        by_topic: dict[str, list[ProduceRequest.PartitionProduceData]] = {}
        for place in places:
            data = ProduceRequest.PartitionProduceData(index=place.partition, records=records[place])
            by_topic.setdefault(place.topic, []).append(data)
        version, acks = plan.version, plan.acks
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
        return Ask(node, request, version, acks != 0)

    def _take(
        self, attempt: "_Attempt", places: Iterable[TopicPartition], reply: Any, waiting: set[TopicPartition]
    ) -> None:
        """`waiting` are partitions whose earlier batch has to come again: so have the later ones."""
        names = {topic_id: name for name, topic_id in self._routes.topic_ids.items()}
        unanswered = set(places)
        for topic in reply.responses:
            name = names[topic.topic_id] if attempt.plan.version >= _FIRST_WITH_TOPIC_IDS else topic.name
            for one in topic.partition_responses:
                place = TopicPartition(name, one.index)
                unanswered.discard(place)
                sent = attempt.open[place]
                error = ErrorCode(one.error_code)
                is_behind = error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and place in waiting
                if is_behind:
                    waiting.add(place)
                    continue
                if error in self._not_yet:
                    self._has_moved = self._expects_kills
                    self._come_again(attempt, place, waiting)
                    continue
                del attempt.open[place]
                if error is not sent.plan.refusal:
                    self._ledger.tell(f"Produce {attempt.plan.version} is answered {error.name}: {sent}")
                if error:
                    sent.fate = Fate.REFUSED
                else:
                    self._ledger.acknowledge(sent, one.base_offset, one.log_append_time_ms)
                    sent.may_be_lost = self._may_lose and attempt.plan.acks != ACKS_ALL
        if unanswered:
            raise Unexpected(f"{self._lane.name}: no answer for {sorted(unanswered)}")


class _Attempt:
    """One request. `open` are the batches that have no final answer."""

    __slots__ = ("open", "plan", "records")

    def __init__(
        self, plan: RequestPlan, open_: dict[TopicPartition, SentBatch], records: Mapping[TopicPartition, bytes]
    ) -> None:
        self.plan = plan
        self.open = open_
        self.records = records

    def again(self) -> "_Attempt":
        return _Attempt(self.plan, dict(self.open), self.records)

    def by_leader(self, routes: Routes) -> list[tuple[int, list[TopicPartition]]]:
        """A request for each node that leads some of what is open."""
        found: dict[int, list[TopicPartition]] = {}
        for place in self.open:
            found.setdefault(routes.leaders[place], []).append(place)
        return list(found.items())
