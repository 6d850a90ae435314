"""The states that a transactional id is brought into before its coordinator is asked, and how.

A scene is one transactional id and a client of it, on any cluster that can be asked. The topic `held` has a leader that
does not answer: a transaction that reaches it stays prepared, its markers on their way. That of `orders` answers.

States come about in three ways: by requests; by records that are put into the coordinator's log before it is loaded,
which is how epochs near their last one are reached; and by a request whose records wait for a follower (`PENDING`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ottla.records.builder import BatchBuilder
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    DescribeTransactionsRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
    TransactionLogKey,
    TransactionLogValue,
)
from ottla.wire.record_values import encode_key, encode_versioned

TIMEOUT_MS = 600_000
GROUP = "g"
LAST_EPOCH = 32766
NO_ID = -1
OLD, NEW = 1, 2
"""The first protocol of transactions and the second (KIP-890)."""

Send = Callable[[Message, int], Any]


class Has(NamedTuple):
    """What a client or a coordinator has for a transactional id."""

    producer_id: int
    producer_epoch: int


class Described(NamedTuple):
    state: str
    has: Has
    topics: tuple[str, ...]


class Scene:
    """One transactional id. `has` is what its client was answered last.

    `first_id` is the producer id that it has in a record of the log; the next one is for after its last epoch.
    """

    def __init__(self, send: Send, name: str, first_id: int = NO_ID) -> None:
        self.send = send
        self.name = name
        self.has = Has(-1, -1)
        self.first_id = first_id

    def init(self, *, carries_on: bool = False) -> str:
        expected = self.has if carries_on else Has(-1, -1)
        reply = self.send(init_request(self.name, expected), 5)
        return self._take(reply)

    def start(self) -> None:
        """Three producers have started, one after the other: there are epochs before the current one."""
        for _ in range(3):
            must(self.init())

    def add(self, topic: str, protocol: int) -> None:
        if protocol == OLD:
            reply = self.send(add_request(self.name, self.has, topic), 3)
            (result,) = reply.results_by_topic_v3_and_below
        else:
            reply = self.send(broker_request(self.name, self.has, topic, verify_only=False), 5)
            (result,) = reply.results_by_transaction[0].topic_results
        must(ErrorCode(result.results_by_partition[0].partition_error_code).name)

    def add_group(self) -> None:
        must(ErrorCode(self.send(group_request(self.name, self.has), 4).error_code).name)

    def end(self, *, committed: bool, protocol: int) -> str:
        reply = self.send(end_request(self.name, self.has, committed=committed), 4 if protocol == OLD else 5)
        return self._take(reply) if protocol == NEW else ErrorCode(reply.error_code).name

    def _take(self, reply: Any) -> str:
        if not reply.error_code:
            self.has = Has(reply.producer_id, reply.producer_epoch)
        return ErrorCode(reply.error_code).name

    def described(self) -> Described:
        (one,) = self.send(DescribeTransactionsRequest(transactional_ids=[self.name]), 0).transaction_states
        if one.error_code:
            return Described(ErrorCode(one.error_code).name, Has(-1, -1), ())
        topics = tuple(sorted(topic.topic for topic in one.topics))
        return Described(one.transaction_state, Has(one.producer_id, one.producer_epoch), topics)


def must(error: str) -> None:
    assert error == "NONE", error


# By requests


def _unknown(_scene: Scene) -> None:
    """Nobody has asked for this id."""


def _empty(scene: Scene) -> None:
    scene.start()


def _carried_on(scene: Scene) -> None:
    scene.start()
    must(scene.init(carries_on=True))


def _ongoing(protocol: int) -> Callable[[Scene], None]:
    def reach(scene: Scene) -> None:
        scene.start()
        scene.add("held", protocol)

    return reach


def _ongoing_with_group(scene: Scene) -> None:
    scene.start()
    scene.add_group()


def _prepared(committed: bool, protocol: int) -> Callable[[Scene], None]:
    def reach(scene: Scene) -> None:
        scene.start()
        scene.add("held", protocol)
        must(scene.end(committed=committed, protocol=protocol))

    return reach


def _completed(committed: bool, protocol: int) -> Callable[[Scene], None]:
    def reach(scene: Scene) -> None:
        scene.start()
        scene.add("orders", protocol)
        must(scene.end(committed=committed, protocol=protocol))

    return reach


def _aborted_by_a_newer_producer(topic: str, protocol: int) -> Callable[[Scene], None]:
    def reach(scene: Scene) -> None:
        scene.start()
        scene.add(topic, protocol)
        assert scene.init() == "CONCURRENT_TRANSACTIONS"

    return reach


def _aborted_nothing(scene: Scene) -> None:
    scene.start()
    must(scene.end(committed=False, protocol=NEW))


def _then(reach: Callable[[Scene], None], more: Callable[[Scene], None]) -> Callable[[Scene], None]:
    def reach_both(scene: Scene) -> None:
        reach(scene)
        settle(scene)
        more(scene)

    return reach_both


def settle(scene: Scene, wait: Callable[[], None] = lambda: None) -> Described:
    """What the coordinator has when markers are written, where they can be."""
    while (found := scene.described()).state.startswith("Prepare") and "held" not in found.topics:
        wait()
    return found


_PROTOCOLS = {OLD: "protocol 1", NEW: "protocol 2"}

REACHED: dict[str, Callable[[Scene], None]] = {
    "unknown": _unknown,
    "Empty": _empty,
    "Empty, carried on": _carried_on,
    "Ongoing, with a group": _ongoing_with_group,
    "CompleteAbort of nothing": _aborted_nothing,
}
for _number, _words in _PROTOCOLS.items():
    REACHED |= {
        f"Ongoing, {_words}": _ongoing(_number),
        f"PrepareCommit, {_words}": _prepared(True, _number),
        f"PrepareAbort, {_words}": _prepared(False, _number),
        f"PrepareAbort by a newer producer, {_words}": _aborted_by_a_newer_producer("held", _number),
        f"CompleteCommit, {_words}": _completed(True, _number),
        f"CompleteAbort, {_words}": _completed(False, _number),
        f"CompleteAbort by a newer producer, {_words}": _aborted_by_a_newer_producer("orders", _number),
        f"CompleteCommit, then Empty, {_words}": _then(_completed(True, _number), lambda scene: must(scene.init())),
        f"CompleteCommit, then carried on, {_words}": _then(
            _completed(True, _number), lambda scene: must(scene.init(carries_on=True))
        ),
        f"CompleteCommit, then Ongoing, {_words}": _then(
            _completed(True, _number), lambda scene, number=_number: scene.add("held", number)
        ),
    }


OF_PROTOCOL_2 = {"CompleteAbort of nothing", *(title for title in REACHED if title.endswith(_PROTOCOLS[NEW]))}


# By the log

IDS_IN_THE_LOG = 100
_FIRST_ID = 880_000


class Written(NamedTuple):
    """A record of the coordinator's log. Producer ids are counted from that of its transactional id, and -1 is none."""

    state: int
    has: Has
    client_version: int
    topic: str = ""
    previous_id: int = NO_ID
    next_id: int = NO_ID
    version: int = 1

    def record(self, first_id: int, now_ms: int) -> TransactionLogValue:
        partitions = [TransactionLogValue.PartitionsSchema(topic=self.topic, partition_ids=[0])] if self.topic else []
        value = TransactionLogValue(
            producer_id=first_id + self.has.producer_id,
            producer_epoch=self.has.producer_epoch,
            transaction_timeout_ms=TIMEOUT_MS,
            transaction_status=self.state,
            transaction_partitions=partitions if self.state else None,
            transaction_last_update_timestamp_ms=now_ms,
            transaction_start_timestamp_ms=now_ms if self.state else -1,
        )
        if self.version:
            value.previous_producer_id = NO_ID if self.previous_id == NO_ID else first_id + self.previous_id
            value.next_producer_id = NO_ID if self.next_id == NO_ID else first_id + self.next_id
            value.client_transaction_version = self.client_version
        return value


_EMPTY, _ONGOING, _PREPARE_COMMIT, _PREPARE_ABORT, _COMPLETE_COMMIT, _COMPLETE_ABORT = range(6)
_OLD, _NEXT = range(2)
_LAST, _OVER, _FIRST = Has(_OLD, LAST_EPOCH), Has(_OLD, LAST_EPOCH + 1), Has(_NEXT, 0)

WRITTEN: dict[str, Written] = {
    "Empty at the last epoch": Written(_EMPTY, _LAST, 0, previous_id=_OLD),
    "Empty in a new id": Written(_EMPTY, _FIRST, 0, previous_id=_OLD),
    "PrepareCommit, next id": Written(_PREPARE_COMMIT, _OVER, 2, "held", _OLD, _NEXT),
    "PrepareAbort, next id": Written(_PREPARE_ABORT, _OVER, 2, "held", _OLD, _NEXT),
    "PrepareAbort, fenced at the end of epochs": Written(_PREPARE_ABORT, _OVER, 0, "held", _OLD),
    "CompleteCommit in a new id": Written(_COMPLETE_COMMIT, _FIRST, 2, previous_id=_OLD),
    "CompleteAbort in a new id": Written(_COMPLETE_ABORT, _FIRST, 2, previous_id=_OLD),
    "CompleteAbort, fenced at the end of epochs": Written(_COMPLETE_ABORT, _OVER, 0, previous_id=_OLD),
    "Ongoing in a new id, protocol 2": Written(_ONGOING, _FIRST, 2, "held", _NEXT),
}
for _number, _words in ((0, "protocol 1"), (2, "protocol 2")):
    WRITTEN |= {
        f"Ongoing at the last epoch, {_words}": Written(_ONGOING, _LAST, _number, "held", _OLD),
        f"Ongoing before the last epoch, {_words}": Written(_ONGOING, Has(_OLD, LAST_EPOCH - 1), _number, "held", _OLD),
        f"CompleteCommit at the last epoch, {_words}": Written(_COMPLETE_COMMIT, _LAST, _number, previous_id=_OLD),
        f"CompleteCommit, loaded, {_words}": Written(_COMPLETE_COMMIT, Has(_OLD, 5), _number, previous_id=_OLD),
        f"CompleteAbort, loaded, {_words}": Written(_COMPLETE_ABORT, Has(_OLD, 5), _number, previous_id=_OLD),
    }
WRITTEN["CompleteCommit, loaded from version 0"] = Written(_COMPLETE_COMMIT, Has(_OLD, 5), 0, version=0)


def written_id(title: str, number: int) -> tuple[str, int]:
    """One of the transactional ids that are in the log in this state, and its first producer id."""
    assert number < IDS_IN_THE_LOG
    place = list(WRITTEN).index(title) * IDS_IN_THE_LOG + number
    return f"{title} #{number}", _FIRST_ID + 2 * place


def log_request(title: str, now_ms: int) -> ProduceRequest:
    """Puts a state into the coordinator's log, which Kafka lets its own tools do (`__admin_client`)."""
    builder = BatchBuilder()
    written = WRITTEN[title]
    for number in range(IDS_IN_THE_LOG):
        name, first_id = written_id(title, number)
        key = encode_key(TransactionLogKey(transactional_id=name))
        builder.append(now_ms, key, encode_versioned(written.record(first_id, now_ms), written.version))
    data = ProduceRequest.PartitionProduceData(index=0, records=bytes(builder.build()))
    topic = ProduceRequest.TopicProduceData(name="__transaction_state", partition_data=[data])
    return ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[topic])


# By a request whose records wait


@dataclass(frozen=True)
class Pending:
    """`reach` is done before, then this request is asked, and not answered. `becomes` is the state that it asks for."""

    reach: Callable[[Scene], None]
    request: Callable[[Scene], Message]
    version: int
    becomes: str


def _ask_end(committed: bool) -> Callable[[Scene], Message]:
    return lambda scene: end_request(scene.name, scene.has, committed=committed)


PENDING: dict[str, Pending] = {
    "first InitProducerId": Pending(_unknown, lambda scene: init_request(scene.name, scene.has), 5, "Empty, first"),
    "InitProducerId": Pending(_empty, lambda scene: init_request(scene.name, Has(-1, -1)), 5, "Empty, once more"),
    "InitProducerId to carry on": Pending(
        _empty, lambda scene: init_request(scene.name, scene.has), 5, "Empty, carried on"
    ),
    "AddOffsetsToTxn": Pending(_empty, lambda scene: group_request(scene.name, scene.has), 4, "Ongoing, with a group"),
    "EndTxn, abort of nothing": Pending(_empty, _ask_end(False), 5, "PrepareAbort of nothing"),
}
for _number, _words in _PROTOCOLS.items():
    _ends = 4 if _number == OLD else 5
    PENDING |= {
        f"EndTxn, commit, {_words}": Pending(_ongoing(_number), _ask_end(True), _ends, f"PrepareCommit, {_words}"),
        f"EndTxn, abort, {_words}": Pending(_ongoing(_number), _ask_end(False), _ends, f"PrepareAbort, {_words}"),
        f"InitProducerId of a newer producer, {_words}": Pending(
            _ongoing(_number),
            lambda scene: init_request(scene.name, Has(-1, -1)),
            5,
            f"PrepareAbort by a newer producer, {_words}",
        ),
    }
PENDING |= {
    "AddPartitionsToTxn, protocol 1": Pending(
        _empty, lambda scene: add_request(scene.name, scene.has, "held"), 3, "Ongoing, protocol 1"
    ),
    "AddPartitionsToTxn, protocol 2": Pending(
        _empty,
        lambda scene: broker_request(scene.name, scene.has, "held", verify_only=False),
        5,
        "Ongoing, protocol 2",
    ),
    "AddPartitionsToTxn, one more": Pending(
        _ongoing(NEW),
        lambda scene: broker_request(scene.name, scene.has, "orders", verify_only=False),
        5,
        "Ongoing, one more",
    ),
}


# Requests


def init_request(name: str, has: Has) -> InitProducerIdRequest:
    return InitProducerIdRequest(
        transactional_id=name,
        transaction_timeout_ms=TIMEOUT_MS,
        producer_id=has.producer_id,
        producer_epoch=has.producer_epoch,
    )


def add_request(name: str, has: Has, topic: str) -> AddPartitionsToTxnRequest:
    return AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=name,
        v3_and_below_producer_id=has.producer_id,
        v3_and_below_producer_epoch=has.producer_epoch,
        v3_and_below_topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )


def broker_request(name: str, has: Has, topic: str, *, verify_only: bool) -> AddPartitionsToTxnRequest:
    """As brokers ask, on behalf of clients of the second protocol, or to look."""
    transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction(
        transactional_id=name,
        producer_id=has.producer_id,
        producer_epoch=has.producer_epoch,
        verify_only=verify_only,
        topics=[AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=topic, partitions=[0])],
    )
    return AddPartitionsToTxnRequest(transactions=[transaction])


def group_request(name: str, has: Has) -> AddOffsetsToTxnRequest:
    return AddOffsetsToTxnRequest(
        transactional_id=name, producer_id=has.producer_id, producer_epoch=has.producer_epoch, group_id=GROUP
    )


def end_request(name: str, has: Has, *, committed: bool) -> EndTxnRequest:
    return EndTxnRequest(
        transactional_id=name, producer_id=has.producer_id, producer_epoch=has.producer_epoch, committed=committed
    )
