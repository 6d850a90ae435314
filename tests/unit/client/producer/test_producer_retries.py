"""Attempts that fail, and what idempotence makes of them. Numbers in comments are sequences."""

import random
from typing import Any

import pytest

from ottla.client.errors import (
    DeliveryTimedOut,
    InvalidRecord,
    MessageTooLarge,
    OutOfOrderSequenceNumber,
    TopicAuthorizationFailed,
)
from ottla.records.batch import read_header
from ottla.records.reader import read_records
from ottla.testing.scripted_brokers import DROP, KEEP, ScriptedBrokers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ProduceResponse
from tests.unit.client.producer.written_logs import (
    PRODUCER_ID,
    PartitionAnswer,
    Producing,
    WrittenLogs,
    answer_produce,
    error_of,
    refusing,
)


def begun(nodes: tuple[int, ...] = (1,), partitions: int = 1, **settings: object) -> tuple[Producing, WrittenLogs]:
    brokers = ScriptedBrokers(nodes, {"clicks": partitions})
    logs = WrittenLogs(brokers)
    return Producing(brokers, **{"linger_ms": 0, **settings}), logs


def begun_with_five_on_their_way(**settings: object) -> tuple[Producing, WrittenLogs, list[Any]]:
    """One record was acknowledged, then five requests of one record each were sent and not, and one more waits."""
    producing, logs = begun(batch_size=0, **settings)
    first = producing.send(b"0")
    producing.brokers.run()
    producing.brokers.answer("Produce", KEEP)
    deliveries = [first] + [producing.send(b"%d" % number) for number in range(1, 7)]
    producing.brokers.run()
    assert len(producing.brokers.asked("Produce")) == 6
    return producing, logs, deliveries


IN_ORDER = [b"%d" % number for number in range(7)]


def test_the_first_batch_of_an_epoch_goes_alone() -> None:
    """A broker takes any sequence for a producer's first, so the second batch must not come before the first."""
    producing, logs = begun(batch_size=0)
    deliveries = [producing.send(b"%d" % number) for number in range(7)]
    producing.brokers.answer("Produce", [refusing(logs, ErrorCode.NOT_LEADER_OR_FOLLOWER)] + [logs.produce] * 20)
    producing.brokers.run()
    assert len(producing.brokers.asked("Produce")) == 1
    producing.brokers.advance(2000)
    assert logs.values["clicks", 0] == IN_ORDER
    assert [delivery.result().offset for delivery in deliveries] == list(range(7))


def test_an_attempt_is_repeated_after_growing_pauses() -> None:
    producing, logs = begun(retry_backoff_ms=100, retry_backoff_max_ms=1000)
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS))
    producing.send()
    counts = []
    for _ in range(4):
        producing.brokers.advance(130)
        counts.append(len(producing.brokers.asked("Produce")))
    assert counts[0] == 2
    assert counts[3] == 3, "the second pause is about 200 ms"
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.advance(1000)
    assert logs.values["clicks", 0] == [b"v"]
    assert producing.core.metrics()["record-retry-total"] == 3


def test_retries_are_counted() -> None:
    producing, logs = begun(retries=2)
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS))
    delivery = producing.send()
    producing.brokers.advance(5000)
    assert len(producing.brokers.asked("Produce")) == 3
    assert delivery.done()


@pytest.mark.parametrize("is_written", [False, True])
def test_a_connection_that_breaks_loses_and_repeats_nothing(is_written: bool) -> None:
    producing, logs, deliveries = begun_with_five_on_their_way()
    if is_written:
        for request in producing.brokers.asked("Produce")[1:]:
            logs.produce(1, 13, request)
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.drop_connections()
    producing.brokers.advance(5000)
    assert logs.values["clicks", 0] == IN_ORDER
    assert [delivery.result().offset for delivery in deliveries] == list(range(7))


def test_the_batches_behind_a_failed_one_wait_for_it() -> None:
    producing, logs, deliveries = begun_with_five_on_their_way()
    first = [refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS)]
    producing.brokers.answer("Produce", first + [logs.produce] * 100)
    producing.brokers.release()
    producing.brokers.advance(5000)
    assert logs.values["clicks", 0] == IN_ORDER
    assert [delivery.result().offset for delivery in deliveries] == list(range(7))
    assert all(header.producer_epoch == 0 for header in logs.headers["clicks", 0])


def test_a_new_leader_is_found_and_asked_at_once() -> None:
    producing, logs = begun((1, 2), retry_backoff_ms=10_000, retry_backoff_max_ms=10_000)
    producing.send(b"0")
    producing.brokers.run()
    hint = ProduceResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=5)

    def answer(node_id: int, version: int, request: Any) -> Any:
        if node_id == 2:
            return logs.produce(node_id, version, request)
        response = answer_produce(
            version,
            request,
            lambda _, index, __: PartitionAnswer(
                index=index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=hint
            ),
            logs,
        )
        response.node_endpoints = [ProduceResponse.NodeEndpoint(node_id=2, host="broker-2", port=9092)]
        return response

    producing.brokers.answer("Produce", answer)
    producing.brokers.leaders["clicks", 0] = (2, 5)
    delivery = producing.send(b"1")
    producing.brokers.advance(50)
    assert delivery.done(), "the hint of KIP-951 makes a pause needless"
    assert logs.values["clicks", 0] == [b"0", b"1"]


def test_a_leader_that_moved_is_found_by_metadata() -> None:
    producing, logs = begun((1, 2))
    producing.send(b"0")
    producing.brokers.run()
    not_leader = refusing(logs, ErrorCode.NOT_LEADER_OR_FOLLOWER)
    producing.brokers.answer("Produce", lambda node, *rest: (not_leader if node == 1 else logs.produce)(node, *rest))
    producing.brokers.leaders["clicks", 0] = (2, 1)
    producing.send(b"1")
    producing.brokers.advance(1000)
    assert logs.values["clicks", 0] == [b"0", b"1"]


def test_a_batch_that_is_too_large_is_split() -> None:
    producing, logs = begun(batch_size=100_000)
    most = 10

    def append(name: str, index: int, data: Any) -> Any:
        if read_header(data).record_count > most:
            return PartitionAnswer(index=index, error_code=ErrorCode.MESSAGE_TOO_LARGE)
        return logs.append(name, index, bytes(data))

    producing.brokers.answer("Produce", lambda node, version, request: answer_produce(version, request, append, logs))
    done: list[Any] = []
    deliveries = [producing.send(b"%d" % number, on_delivery=done.append) for number in range(64)]
    producing.flush()
    producing.brokers.advance(1000)
    assert logs.values["clicks", 0] == [b"%d" % number for number in range(64)]
    assert [delivery.result().offset for delivery in deliveries] == list(range(64))
    assert done == deliveries
    assert producing.core.metrics()["batch-split-total"] >= 1


def test_a_record_that_is_too_large_for_the_broker_fails_alone() -> None:
    producing, logs = begun(batch_size=0)

    def append(name: str, index: int, data: Any) -> Any:
        if len(data) > 1000:
            return PartitionAnswer(index=index, error_code=ErrorCode.MESSAGE_TOO_LARGE)
        return logs.append(name, index, bytes(data))

    producing.brokers.answer("Produce", lambda node, version, request: answer_produce(version, request, append, logs))
    large, small = producing.send(b"x" * 2000), producing.send(b"small")
    producing.brokers.advance(2000)
    assert error_of(large) is MessageTooLarge
    assert small.result().offset == 0


def test_without_idempotence_and_one_in_flight_order_is_kept() -> None:
    producing, logs = begun(enable_idempotence=False, max_in_flight_requests_per_connection=1, batch_size=0)
    first = [refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS)]
    producing.brokers.answer("Produce", first + [logs.produce] * 20)
    for number in range(7):
        producing.send(b"%d" % number)
    producing.brokers.advance(5000)
    assert logs.values["clicks", 0] == IN_ORDER


def test_a_refused_batch_leaves_no_gap_a_new_epoch_begins() -> None:
    """KIP-360: 2 is refused for good, so 3 to 5 cannot follow 1; the producer counts again in the next epoch."""
    producing, logs, deliveries = begun_with_five_on_their_way()
    refuse = refusing(logs, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    producing.brokers.answer("Produce", [logs.produce, refuse] + [logs.produce] * 100)
    producing.brokers.release()
    producing.brokers.advance(5000)
    assert error_of(deliveries[2]) is TopicAuthorizationFailed
    assert logs.values["clicks", 0] == [b"0", b"1", b"3", b"4", b"5", b"6"]
    epochs = [header.producer_epoch for header in logs.headers["clicks", 0]]
    assert epochs == [0, 0, 1, 1, 1, 1]
    assert [header.producer_id for header in logs.headers["clicks", 0]] == [PRODUCER_ID] * 6


def test_a_broker_that_has_forgotten_the_producer_gets_a_new_epoch() -> None:
    producing, logs = begun()
    producing.send(b"0")
    producing.brokers.run()
    logs.forget_producers()
    producing.brokers.answer(
        "Produce", [refusing(logs, ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=1), logs.produce]
    )
    producing.send(b"1")
    producing.brokers.advance(1000)
    assert logs.values["clicks", 0] == [b"0", b"1"]
    assert [header.producer_epoch for header in logs.headers["clicks", 0]] == [0, 1]


def test_after_the_last_epoch_comes_a_new_id() -> None:
    producing, logs = begun()
    producing.send(b"0")
    producing.brokers.run()
    sequences = producing.core.sequences
    assert sequences is not None
    sequences.identity = sequences.identity._replace(producer_epoch=0x7FFF)
    producing.brokers.answer(
        "Produce", [refusing(logs, ErrorCode.UNKNOWN_PRODUCER_ID, log_start_offset=1)] * 1 + [logs.produce] * 5
    )
    producing.send(b"1")
    producing.brokers.advance(1000)
    assert len(producing.brokers.asked("InitProducerId")) == 2


@pytest.mark.parametrize("is_written", [False, True])
def test_a_batch_that_is_given_up_does_not_block_those_behind_it(is_written: bool) -> None:
    producing, logs = begun(batch_size=0, delivery_timeout_ms=1000, request_timeout_ms=1000)
    producing.brokers.answer("Produce", KEEP)
    lost = producing.send(b"lost")
    producing.brokers.run()
    if is_written:
        logs.produce(1, 13, producing.brokers.asked("Produce")[0])
    producing.brokers.advance(1500)
    assert error_of(lost) is DeliveryTimedOut
    producing.brokers.answer("Produce", logs.produce)
    later = producing.send(b"later")
    producing.brokers.advance(1500)
    assert later.exception() is None
    assert logs.values["clicks", 0] == [b"lost"] * is_written + [b"later"]


class LateRequests:
    """Requests that a broker has got, and carries out after their producer has stopped waiting for them."""

    def __init__(self, logs: WrittenLogs, chance: random.Random) -> None:
        self.logs = logs
        self.chance = chance
        self.values: set[bytes] = set()
        """Of all records in them."""
        self._waiting: list[tuple[int, Any]] = []

    def keep(self, version: int, request: Any) -> None:
        for topic in request.topic_data:
            for one in topic.partition_data:
                one.records = bytes(one.records)
                self.values.update(record.value or b"" for record in read_records(one.records))
        self._waiting.append((version, request))

    def come(self, *, all_of_them: bool = False) -> None:
        """Some of them; those of one connection in the order in which they were sent."""
        while self._waiting and (all_of_them or self.chance.random() < 0.4):
            self.logs.produce(1, *self._waiting.pop(0))


@pytest.mark.parametrize("seed", range(40))
def test_under_any_faults_no_record_is_lost_repeated_or_out_of_order(seed: int) -> None:
    """Connections break before and after the effect, answers do not come, leaders refuse, sizes are refused.

    What was not answered may be carried out at any later time, in the order in which it was sent. A broker finds out by
    the sequences: as long as the producer keeps its epoch, it is in the log once, and every record is delivered.
    """
    chance = random.Random(seed)
    producing, logs = begun(
        (1, 2),
        partitions=2,
        batch_size=chance.choice([0, 60, 400]),
        request_timeout_ms=500,
        compression_type=chance.choice(["none", "lz4"]),
    )
    refusals = (
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.NOT_ENOUGH_REPLICAS,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.KAFKA_STORAGE_ERROR,
    )
    is_faulty = True
    late = LateRequests(logs, chance)

    def produce(node_id: int, version: int, request: Any) -> Any:
        late.come()
        if not is_faulty:
            return logs.produce(node_id, version, request)
        match chance.randrange(8):
            case 0:
                late.keep(version, request)
                return DROP
            case 1:
                logs.produce(node_id, version, request)
                return DROP
            case 2:
                return refusing(logs, chance.choice(refusals))(node_id, version, request)
            case 3:
                logs.produce(node_id, version, request)
                return refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)(node_id, version, request)
            case 4:
                logs.produce(node_id, version, request)
                return KEEP
            case 5:
                late.keep(version, request)
                return KEEP
            case _:
                return logs.produce(node_id, version, request)

    producing.brokers.answer("Produce", produce)
    deliveries: list[list[Any]] = [[], []]
    for number in range(120):
        partition = chance.randrange(2)
        deliveries[partition].append(producing.send(b"%d" % number, partition=partition))
        if chance.random() < 0.3:
            producing.brokers.advance(chance.randrange(200))
    is_faulty = False
    producing.core.flush()
    producing.brokers.advance(30_000)
    late.come(all_of_them=True)
    for partition in (0, 1):
        assert all(header.producer_epoch == 0 for header in logs.headers["clicks", partition])
        values = [int(value) for value in logs.values["clicks", partition]]
        assert values == sorted(set(values)), "repeated or out of order"
        assert len(values) == len(deliveries[partition]), "lost"
        # A broker that has written six since it wrote a batch does not say any more where that is.
        places = [delivery.result().offset for delivery in deliveries[partition]]
        assert all(place in (None, number) for number, place in enumerate(places))


@pytest.mark.parametrize("partitions", [1, 2])
def test_a_batch_that_may_be_written_is_not_sent_again_under_another_epoch(partitions: int) -> None:
    """The one behind it is refused, which takes a new epoch: under that a broker cannot tell that it has the first."""
    producing, logs = begun(partitions=partitions, batch_size=0)
    for number in range(partitions):
        producing.send(b"warm", partition=number)
    producing.flush()

    def written_and_not_told(node_id: int, version: int, request: Any) -> Any:
        logs.produce(node_id, version, request)
        return refusing(logs, ErrorCode.REQUEST_TIMED_OUT)(node_id, version, request)

    producing.brokers.answer("Produce", KEEP)
    sent = [producing.send(b"%d" % number, partition=0) for number in range(4)]
    others = [producing.send(b"other", partition=number) for number in range(1, partitions)]
    producing.brokers.run()
    refused = refusing(logs, ErrorCode.INVALID_RECORD)
    producing.brokers.answer("Produce", [written_and_not_told, refused] + [logs.produce] * 20)
    producing.brokers.release()
    producing.brokers.advance(30_000)
    assert error_of(sent[1]) is InvalidRecord
    assert [error_of(one) for one in (sent[0], sent[2], sent[3], *others)] == [None] * (2 + partitions)
    assert logs.values["clicks", 0] == [b"warm", b"0", b"2", b"3"]
    for delivery in (sent[0], sent[2], sent[3]):
        assert logs.values["clicks", 0][delivery.result().offset] in (b"0", b"2", b"3")


@pytest.mark.parametrize("is_expired", [False, True])
def test_a_batch_that_may_be_carried_out_late_is_not_sent_again_under_another_epoch(is_expired: bool) -> None:
    """1 and 2 are not answered. 1 is given up, so 2 leaves a gap, says the broker; then it carries out both."""
    producing, logs = begun(batch_size=0, request_timeout_ms=600, delivery_timeout_ms=1000 if is_expired else 120_000)
    producing.send(b"0")
    producing.flush()
    producing.brokers.answer("Produce", KEEP)
    given_up = producing.send(b"1")
    producing.brokers.advance(500 if is_expired else 0)
    behind = producing.send(b"2")
    producing.brokers.advance(600 if is_expired else 0)
    late = producing.brokers.asked("Produce")[1:3]

    def gap_and_late(node_id: int, version: int, request: Any) -> Any:
        answer = logs.produce(node_id, version, request)
        for one in late:
            logs.produce(1, 13, one)
        return answer

    first = [] if is_expired else [refusing(logs, ErrorCode.INVALID_RECORD)]
    producing.brokers.answer("Produce", [*first, gap_and_late] + [logs.produce] * 20)
    producing.brokers.advance(2_000)
    assert error_of(given_up) is (DeliveryTimedOut if is_expired else InvalidRecord)
    assert error_of(behind) is OutOfOrderSequenceNumber
    assert "may still write" in str(behind.exception())
    after = producing.send(b"3")
    producing.brokers.advance(2_000)
    assert after.exception() is None
    assert logs.values["clicks", 0] == [b"0", b"1", b"2", b"3"]


def test_a_part_is_not_sent_again_under_another_epoch_if_its_whole_may_be_written() -> None:
    """The limit was lowered before the second attempt, and for a moment the producer has no right to write."""
    producing, logs = begun(linger_ms=1000)
    producing.send(b"warm")
    producing.flush()

    def written_and_not_told(node_id: int, version: int, request: Any) -> Any:
        logs.produce(node_id, version, request)
        return refusing(logs, ErrorCode.REQUEST_TIMED_OUT)(node_id, version, request)

    too_large = refusing(logs, ErrorCode.MESSAGE_TOO_LARGE)
    no_right = refusing(logs, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    producing.brokers.answer("Produce", [written_and_not_told, too_large, no_right] + [logs.produce] * 20)
    sent = [producing.send(b"%d" % number * 100) for number in range(2)]
    producing.flush()
    producing.brokers.advance(30_000)
    assert [error_of(one) for one in sent] == [TopicAuthorizationFailed, OutOfOrderSequenceNumber]
    assert logs.values["clicks", 0] == [b"warm", b"0" * 100, b"1" * 100]


def test_a_batch_behind_one_that_leaves_a_gap_does_not_keep_a_new_epoch_waiting() -> None:
    """1 is refused for good, 2 is out of order then, and nobody tells what became of 3. It is not written: 2 is not."""
    producing, logs = begun(batch_size=0)
    producing.send(b"0")
    producing.flush()
    producing.brokers.answer("Produce", KEEP)
    refused, *others = (producing.send(b"%d" % number) for number in range(1, 4))
    producing.brokers.run()
    first = [refusing(logs, ErrorCode.INVALID_RECORD), logs.produce, DROP]
    producing.brokers.answer("Produce", first + [logs.produce] * 9)
    producing.brokers.release()
    producing.brokers.advance(5000)
    assert error_of(refused) is InvalidRecord
    assert [error_of(one) for one in others] == [None, None]
    assert logs.values["clicks", 0] == [b"0", b"2", b"3"]


def test_the_parts_of_a_batch_that_was_split_keep_its_epoch() -> None:
    """Another partition has taken a new epoch meanwhile. Were the parts counted under it, so would what follows,
    from 0 again: the broker would take that for what it has, and acknowledge what it does not write.
    """
    producing, logs = begun((1, 2), partitions=2, linger_ms=1000)
    producing.send(b"warm", partition=1)
    producing.flush()
    producing.brokers.answer("Produce", KEEP)
    sent = [producing.send(b"%d" % number, partition=0) for number in range(2)]
    producing.flush()
    refused = producing.send(b"refused", partition=1)
    producing.flush()
    invalid = refusing(logs, ErrorCode.INVALID_RECORD)
    producing.brokers.release(lambda node_id, *rest: KEEP if node_id == 1 else invalid(node_id, *rest))
    producing.brokers.run()
    assert error_of(refused) is InvalidRecord
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.release(refusing(logs, ErrorCode.MESSAGE_TOO_LARGE))
    producing.brokers.advance(5000)
    sent.append(producing.send(b"2", partition=0))
    producing.flush()
    producing.brokers.advance(5000)
    assert [error_of(one) for one in sent] == [None] * 3
    assert logs.values["clicks", 0] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("is_written", [False, True])
def test_a_batch_that_is_found_too_large_when_it_may_be_written_is_not_written_twice(is_written: bool) -> None:
    """`max.message.bytes` was lowered before the second attempt. Its parts are other batches than the broker knows."""
    producing, logs = begun(linger_ms=1000)
    producing.send(b"warm")
    producing.flush()

    def lost(node_id: int, version: int, request: Any) -> Any:
        if is_written:
            logs.produce(node_id, version, request)
        return DROP

    producing.brokers.answer("Produce", [lost, refusing(logs, ErrorCode.MESSAGE_TOO_LARGE)] + [logs.produce] * 20)
    sent = [producing.send(b"%d" % number) for number in range(3)]
    producing.flush()
    producing.brokers.advance(30_000)
    behind = producing.send(b"behind")
    producing.flush()
    producing.brokers.advance(30_000)
    assert logs.values["clicks", 0] == [b"warm", b"0", b"1", b"2", b"behind"]
    assert [error_of(one) for one in (*sent, behind)] == [OutOfOrderSequenceNumber if is_written else None] * 3 + [None]
    if is_written:
        assert "may have been written before" in str(sent[0].exception())


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60))
def test_beside_records_that_are_refused_no_other_is_lost_repeated_or_out_of_order(seed: int) -> None:
    """Some records are refused for good, and large batches: gaps, new epochs and splits meet all faults.

    What is too large may change meanwhile: then a broker refuses as too large what it has written already. What was not
    answered may be carried out later, beside batches of newer epochs.
    """
    chance = random.Random(seed)
    producing, logs = begun(
        (1, 2), partitions=3, batch_size=chance.choice([0, 100, 400, 2000]), linger_ms=chance.choice([0, 5, 50])
    )
    most = chance.choice([1, 2, 4, 1000])
    changes_limit = chance.random() < 0.5
    is_faulty = True
    late = LateRequests(logs, chance)

    def is_refused(value: bytes) -> bool:
        return int(value) % 17 == 0

    def append(name: str, index: int, data: Any) -> Any:
        if read_header(data).record_count > most:
            return PartitionAnswer(index=index, error_code=ErrorCode.MESSAGE_TOO_LARGE)
        if any(is_refused(record.value or b"") for record in read_records(bytes(data))):
            return PartitionAnswer(index=index, error_code=ErrorCode.INVALID_RECORD)
        fault = chance.randrange(14) if is_faulty else -1
        if fault == 0:
            return PartitionAnswer(index=index, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER)
        written = None if fault == 1 else logs.append(name, index, bytes(data))
        if fault in (1, 2):
            return PartitionAnswer(index=index, error_code=ErrorCode.REQUEST_TIMED_OUT)
        return written

    def produce(node_id: int, version: int, request: Any) -> Any:
        late.come()
        fault = chance.randrange(5) if is_faulty else -1
        response = None if fault == 0 else answer_produce(version, request, append, logs)
        if fault in (0, 1):
            late.keep(version, request)
        late.come()
        return DROP if fault in (0, 1) else response

    producing.brokers.answer("Produce", produce)
    sent: list[list[tuple[bytes, Any]]] = [[], [], []]
    for number in range(1, 120):
        value, partition = b"%d" % number, chance.randrange(3)
        sent[partition].append((value, producing.send(value, partition=partition)))
        if chance.random() < 0.3:
            producing.brokers.advance(chance.randrange(200))
        if changes_limit and chance.random() < 0.05:
            most = chance.choice([0, 1, 2, 4, 8])
    is_faulty = False
    producing.core.flush()
    producing.brokers.advance(30_000)
    for partition, records in enumerate(sent):
        values = logs.values.get(("clicks", partition), [])
        assert values == sorted(set(values), key=int), "repeated or out of order"
        lost = {value for value, delivery in records if error_of(delivery) is OutOfOrderSequenceNumber}
        refused = {value for value, delivery in records if error_of(delivery) in (InvalidRecord, MessageTooLarge)}
        told = [value for value, delivery in records if error_of(delivery) is None]
        assert told == [value for value in values if value not in lost | refused]
        assert changes_limit or refused & set(values) <= late.values, "a record that was refused is written"
        places = [(value, one.result().offset) for value, one in records if one.exception() is None]
        assert all(values[offset] == value for value, offset in places if offset is not None)
        assert changes_limit or all(offset is not None or value in late.values for value, offset in places)
    metrics = producing.core.metrics()
    assert metrics["buffer-available-bytes"] == metrics["buffer-total-bytes"]


def test_a_batch_that_the_broker_has_and_no_longer_knows_is_delivered() -> None:
    """0 is written, and not acknowledged in time, again and again, while the batches behind it are: more than the five
    of which a broker knows that it has them.
    """
    producing, logs = begun(batch_size=0)
    producing.send(b"first")
    producing.flush()
    is_late = True

    def produce(node_id: int, version: int, request: Any) -> Any:
        def append(name: str, index: int, data: Any) -> Any:
            written = logs.append(name, index, bytes(data))
            if is_late and any(record.value == b"0" for record in read_records(bytes(data))):
                return PartitionAnswer(index=index, error_code=ErrorCode.REQUEST_TIMED_OUT)
            return written

        return answer_produce(version, request, append, logs)

    producing.brokers.answer("Produce", KEEP)
    sent = []
    for number in range(12):
        sent.append(producing.send(b"%d" % number))
        if number % 3 == 2:
            producing.brokers.advance(1500)
            producing.brokers.release(produce)
            producing.brokers.advance(1)
    is_late = False
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.release()
    producing.brokers.advance(10_000)
    assert [error_of(one) for one in sent] == [None] * 12
    assert logs.values["clicks", 0] == [b"first", *(b"%d" % number for number in range(12))]


def test_attempts_that_go_on_for_long_are_told_of_in_the_log_and_their_success() -> None:
    producing, logs = begun()
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS))
    producing.send()
    producing.brokers.advance(4_900)
    assert producing.brokers.lines == []
    producing.brokers.advance(1_200)
    [line] = producing.brokers.lines
    assert line.text.startswith("records for clicks-0 are not written yet; trying again: ")
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.advance(2_000)
    assert producing.brokers.lines[-1].text.startswith("records for clicks-0 are written after ")
