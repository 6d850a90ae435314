"""Records into batches and batches into requests, by transcript."""

from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.client.errors import (
    BufferExhausted,
    ClientClosed,
    DeliveryTimedOut,
    InvalidRecord,
    MessageTooLarge,
    NotEnoughReplicas,
    TopicAuthorizationFailed,
    UnknownTopicOrPartition,
)
from ottla.client.producer.append import partition_for_key
from ottla.client.promise import Promise
from ottla.config.parse import ConfigError
from ottla.records.batch import read_header
from ottla.records.header import Compression
from ottla.testing.scripted_brokers import KEEP, ScriptedBrokers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import InitProducerIdResponse, ProduceResponse
from tests.unit.client.producer.written_logs import Producing, WrittenLogs, error_of, refusing


def begun(nodes: tuple[int, ...] = (1,), partitions: int = 1, **settings: object) -> tuple[Producing, WrittenLogs]:
    brokers = ScriptedBrokers(nodes, {"clicks": partitions, "views": 1})
    logs = WrittenLogs(brokers)
    return Producing(brokers, **settings), logs


def sizes(producing: Producing) -> list[list[int]]:
    """For each Produce request, how many records each of its batches has."""
    return [
        [read_header(one.records).record_count for topic in request.topic_data for one in topic.partition_data]
        for request in producing.brokers.asked("Produce")
    ]


def test_a_record_is_sent_when_it_has_lingered() -> None:
    producing, logs = begun(linger_ms=5)
    delivery = producing.send(b"one", key=b"k", timestamp_ms=77)
    producing.brokers.advance(4)
    assert not delivery.done()
    producing.brokers.advance(2)
    assert delivery.result() == ("clicks", 0, 0, 77, 1, 3)
    assert logs.values["clicks", 0] == [b"one"]


def test_without_linger_a_record_is_sent_at_once() -> None:
    producing, logs = begun(linger_ms=0)
    producing.send(b"one")
    producing.brokers.run()
    assert logs.values["clicks", 0] == [b"one"]


def test_a_full_batch_is_sent_and_the_next_one_waits() -> None:
    producing, _ = begun(linger_ms=1000, batch_size=300)
    for _ in range(5):
        producing.send(b"x" * 100)
    producing.brokers.run()
    assert sizes(producing) == [[2], [2]]
    producing.flush()
    assert sizes(producing) == [[2], [2], [1]]


@pytest.mark.parametrize(("settings", "batches"), [({}, 7), ({"batch_size": 16_384}, 17)])
def test_a_batch_grows_while_its_node_takes_no_more_unless_its_size_was_chosen(
    settings: dict[str, object], batches: int
) -> None:
    producing, logs = begun(linger_ms=1000, **settings)
    producing.send(b"first")
    producing.flush()
    producing.brokers.answer("Produce", KEEP)
    for number in range(250):
        producing.send(b"%d" % number + b"x" * 1000)
        producing.brokers.run()
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.release()
    producing.flush()
    assert len(logs.headers["clicks", 0]) == batches
    assert [int(value.split(b"x")[0]) for value in logs.values["clicks", 0][1:]] == list(range(250))
    assert producing.core.metrics()["buffer-available-bytes"] == 33_554_432


def test_one_request_has_a_batch_of_each_partition_that_a_node_leads() -> None:
    producing, _ = begun((1, 2), 4, linger_ms=5)
    for partition in range(4):
        producing.send(partition=partition)
    producing.brokers.advance(10)
    assert sizes(producing) == [[1, 1], [1, 1]]


def test_a_request_is_no_larger_than_max_request_size() -> None:
    producing, _ = begun(partitions=3, linger_ms=5, max_request_size=1000, batch_size=600)
    for partition in range(3):
        producing.send(b"x" * 400, partition=partition)
    producing.brokers.advance(10)
    assert sizes(producing) == [[1, 1], [1]]


def test_at_most_five_requests_are_on_their_way() -> None:
    producing, logs = begun(batch_size=0, linger_ms=0)
    producing.send(b"0")
    producing.brokers.run()
    producing.brokers.answer("Produce", KEEP)
    for number in range(1, 8):
        producing.send(b"%d" % number)
    producing.brokers.run()
    assert len(producing.brokers.asked("Produce")) == 6
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.release()
    producing.brokers.run()
    assert logs.values["clicks", 0] == [b"%d" % number for number in range(8)]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_batches_are_compressed_as_the_setting_says(codec: str) -> None:
    producing, logs = begun(compression_type=codec)
    for number in range(50):
        producing.send(b"the same words again and again %d" % number)
    producing.flush()
    (header,) = logs.headers["clicks", 0]
    assert Compression(header.compression).name.lower() == codec
    assert len(logs.values["clicks", 0]) == 50


def test_a_compressible_topic_gets_fuller_batches() -> None:
    producing, logs = begun(compression_type="zstd", batch_size=2000, linger_ms=1000)
    for _ in range(2000):
        producing.send(b"x" * 100)
        producing.brokers.run()
    counts = [header.record_count for header in logs.headers["clicks", 0]]
    assert max(counts) > counts[0] * 1.05


def test_headers_are_written_and_callbacks_called() -> None:
    producing, _ = begun()
    done: list[Any] = []
    delivery = producing.send(b"v", headers=[("trace", b"1"), ("none", None)], on_delivery=done.append)
    late = producing.send(b"w", on_delivery=done.append)
    producing.flush()
    assert done == [delivery, late]
    again: list[Any] = []
    delivery.add_done_callback(again.append)
    assert again == [delivery]


def test_old_brokers_are_given_topics_by_name() -> None:
    brokers = ScriptedBrokers((1,), {"clicks": 1}, newest={"Produce": 3})
    logs = WrittenLogs(brokers)
    producing = Producing(brokers)
    delivery = producing.send()
    producing.flush()
    assert brokers.asked("Produce")[0].topic_data[0].name == "clicks"
    assert delivery.result().offset == 0
    assert logs.values["clicks", 0] == [b"v"]


def test_with_acks_0_nobody_knows_the_offset() -> None:
    producing, _ = begun(acks="0")
    producing.brokers.answer("Produce", lambda *_: None)
    delivery = producing.send()
    producing.flush()
    assert delivery.result().offset is None
    assert producing.brokers.asked("Produce")[0].acks == 0


def test_the_brokers_time_is_told_when_it_set_one() -> None:
    producing, logs = begun()
    producing.brokers.answer("Produce", refusing(logs, 0, base_offset=8, log_append_time_ms=99))
    delivery = producing.send(timestamp_ms=5)
    producing.flush()
    assert (delivery.result().offset, delivery.result().timestamp_ms) == (8, 99)


def test_memory_is_bounded_and_given_back() -> None:
    producing, logs = begun(buffer_memory=1000, batch_size=400, linger_ms=1000)
    producing.brokers.answer("Produce", KEEP)
    producing.send(b"x" * 300)
    producing.send(b"x" * 300)
    producing.brokers.run()
    blocked = producing.core.send("clicks", b"x" * 300, None, None, None, None, None)
    assert isinstance(blocked, Promise)
    assert isinstance(producing.core.too_late("clicks"), BufferExhausted)
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.release()
    producing.brokers.run()
    assert blocked.is_done
    assert producing.core.metrics()["buffer-available-bytes"] == 1000


def test_a_record_beyond_max_request_size_is_refused() -> None:
    producing, _ = begun(max_request_size=1000)
    with pytest.raises(MessageTooLarge, match=r"max\.request\.size"):
        producing.send(b"x" * 2000)


def test_a_topic_that_is_not_there_is_waited_for() -> None:
    producing, logs = begun()
    outcome = producing.core.send("later", b"v", None, None, None, None, None)
    producing.brokers.advance(50)
    assert isinstance(outcome, Promise)
    assert isinstance(producing.core.too_late("later"), UnknownTopicOrPartition)
    producing.brokers.topics["later"] = 1
    logs._names[producing.brokers.topic_id("later")] = "later"
    delivery = producing.send(topic="later")
    producing.flush()
    assert delivery.result().offset == 0


def test_partitions_that_a_topic_got_are_used() -> None:
    producing, _ = begun()
    producing.send()
    producing.brokers.topics["clicks"] = 3
    delivery = producing.send(partition=2)
    producing.flush()
    assert delivery.result().partition == 2
    found = producing.core.partitions_for("clicks")
    assert not isinstance(found, Promise)
    assert [info.partition for info in found] == [0, 1, 2]


def test_records_without_a_key_change_partition_with_each_batch() -> None:
    producing, logs = begun(partitions=4, batch_size=1000, linger_ms=1000)
    for _ in range(400):
        producing.send(b"x" * 90)
    producing.flush()
    counts = [len(logs.values.get(("clicks", index), ())) for index in range(4)]
    assert sum(counts) == 400
    assert min(counts) > 40, "every partition has its share"
    assert all(header.record_count in (9, 10) for index in range(4) for header in logs.headers["clicks", index][:-1])


def test_a_longer_queue_is_chosen_more_seldom() -> None:
    producing, _ = begun(partitions=2)
    producing.send(partition=0)
    queues = producing.core.accumulator.topics["clicks"].queues
    queues[0].waiting.extend([queues[0].waiting[0]] * 8)
    drawn = [producing.core._sticky.choose(queues) for _ in range(1000)]
    assert 20 < drawn.count(0) < 200  # a chance of 1 in 11


def test_a_node_that_takes_nothing_is_avoided() -> None:
    producing, _ = begun((1, 2), 2, partitioner_availability_timeout_ms=100, batch_size=0, linger_ms=0)
    producing.send(partition=0)
    producing.brokers.run()
    producing.brokers.answer("Produce", KEEP)
    for _ in range(6):
        producing.send(partition=0)
    producing.brokers.advance(200)
    queues = producing.core.accumulator.topics["clicks"].queues
    assert {producing.core._sticky.choose(queues) for _ in range(50)} == {1}


def test_a_partitioner_of_the_users_own_decides() -> None:
    seen = []

    def last(topic: str, key: bytes | None, value: bytes | None, count: int, available: Any) -> int:
        seen.append((topic, key, value, count, list(available)))
        return count - 1

    producing, _ = begun(partitions=3, partitioner_class=last)
    first = producing.send(b"v", key=b"k")
    assert (first.partition, producing.send().partition) == (2, 2)
    assert seen[0] == ("clicks", b"k", b"v", 3, [0, 1, 2])


def test_refused_records_are_named_and_the_others_told_why() -> None:
    producing, logs = begun()
    error = ProduceResponse.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.INVALID_RECORD, record_errors=[error]))
    good, bad = producing.send(b"good"), producing.send(b"bad")
    producing.flush()
    assert (error_of(good), error_of(bad)) == (InvalidRecord, InvalidRecord)
    assert "no key" in str(bad.exception())
    assert "other records" in str(good.exception())


def test_what_cannot_be_retried_fails() -> None:
    producing, logs = begun()
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
    delivery = producing.send()
    producing.flush()
    assert error_of(delivery) is TopicAuthorizationFailed
    with pytest.raises(TopicAuthorizationFailed):
        delivery.result()


def test_what_is_too_old_fails() -> None:
    producing, _ = begun(delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=0)
    producing.send()
    producing.flush()
    producing.brokers.unreachable.add(1)
    producing.brokers.drop_connections()
    delivery = producing.send()
    producing.brokers.advance(900)
    assert not delivery.done()
    producing.brokers.advance(200)
    assert error_of(delivery) is DeliveryTimedOut
    told = str(delivery.exception())
    assert "1 record for clicks-0 could not be delivered within 1000 ms; the last problem was: " in told
    assert "connection refused" in told


def test_what_is_refused_until_it_is_too_old_fails_with_the_reason() -> None:
    producing, logs = begun(delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=0)
    producing.brokers.answer("Produce", refusing(logs, ErrorCode.NOT_ENOUGH_REPLICAS))
    delivery = producing.send()
    producing.brokers.advance(1100)
    assert error_of(delivery) in (DeliveryTimedOut, NotEnoughReplicas)
    assert "min.insync.replicas" in str(delivery.exception())


def test_what_waits_for_a_producer_id_grows_too_old_as_well() -> None:
    producing, _ = begun(delivery_timeout_ms=1000, request_timeout_ms=900, linger_ms=0)
    busy = InitProducerIdResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    producing.brokers.answer("InitProducerId", busy)
    delivery = producing.send()
    producing.brokers.advance(900)
    assert not delivery.done()
    producing.brokers.advance(200)
    assert error_of(delivery) is DeliveryTimedOut


def test_closing_fails_what_is_left_and_takes_no_more() -> None:
    producing, _ = begun(linger_ms=1000)
    delivery = producing.send()
    producing.core.close()
    assert error_of(delivery) is ClientClosed
    with pytest.raises(ClientClosed):
        producing.send()


@pytest.mark.parametrize(
    "settings",
    [
        {"acks": "1", "enable_idempotence": True},
        {"max_in_flight_requests_per_connection": 6, "enable_idempotence": True},
        {"retries": 0, "transactional_id": "t"},
        {"enable_idempotence": False, "transactional_id": "t"},
        {"delivery_timeout_ms": 1000},
        {"partitioner_class": "org.example.Partitioner"},
    ],
)
def test_settings_that_contradict_each_other_are_refused(settings: dict[str, object]) -> None:
    with pytest.raises(ConfigError):
        begun(**settings)


def test_idempotence_is_quietly_off_where_it_was_not_asked_for() -> None:
    producing, logs = begun(acks="1")
    producing.send()
    producing.flush()
    assert logs.headers["clicks", 0][0].producer_id == -1
    assert not producing.brokers.asked("InitProducerId")


def test_what_was_counted_has_kafkas_names() -> None:
    producing, logs = begun()
    for _ in range(3):
        producing.send()
    producing.flush()
    metrics = producing.core.metrics()
    assert (metrics["record-send-total"], metrics["request-total"], metrics["records-per-request-avg"]) == (3, 1, 3)
    producing.brokers.answer("Produce", KEEP)
    producing.send()
    producing.brokers.advance(5)  # it lingers
    producing.brokers.answer("Produce", logs.produce)
    producing.brokers.advance(70)
    producing.brokers.release()
    producing.brokers.run()
    metrics = producing.core.metrics()
    assert metrics["record-queue-time-max"] == pytest.approx(5, abs=1)
    assert metrics["request-latency-max"] == pytest.approx(70, abs=1)


def test_a_topic_that_is_not_used_any_more_is_forgotten_and_its_sequence_is_not() -> None:
    producing, logs = begun(metadata_max_idle_ms=5000)
    producing.send()
    producing.flush()
    producing.brokers.advance(11_000)
    producing.core.cluster.refresh()
    producing.brokers.run()
    assert [topic.name for topic in producing.brokers.asked("Metadata")[-1].topics] == []
    producing.send()
    producing.flush()
    producing.brokers.advance(500)
    assert [header.base_sequence for header in logs.headers["clicks", 0]] == [0, 1]


def test_a_topic_that_is_made_again_with_fewer_partitions_gets_records_there() -> None:
    producing, logs = begun(partitions=4, linger_ms=60_000)
    key = next(key for key in (b"%d" % number for number in range(100)) if partition_for_key(key, 4) == 3)
    producing.send(b"before", key=key)
    producing.flush()
    waiting = producing.send(b"in between", key=key)
    brokers = producing.brokers
    brokers.topics["clicks"] = 2
    again = Uuid(b"clicks again".ljust(16))
    brokers.topic_id = lambda name: again if name == "clicks" else Uuid(name.encode().ljust(16, b"\1"))  # type: ignore[method-assign]
    logs._names[again] = "clicks"
    producing.core.cluster.refresh()
    brokers.run()
    assert error_of(waiting) is UnknownTopicOrPartition, "its partition is gone for good"
    after = producing.send(b"after", key=key)
    producing.flush()
    assert (after.topic, after.partition) == ("clicks", partition_for_key(key, 2))
    assert logs.values["clicks", after.partition] == [b"after"]


def test_metadata_that_tells_of_fewer_partitions_of_the_same_topic_is_behind() -> None:
    producing, logs = begun(partitions=4, linger_ms=0)
    producing.send(b"one", partition=3)
    producing.brokers.run()
    producing.brokers.topics["clicks"] = 2
    producing.core.cluster.refresh()
    producing.brokers.run()
    producing.brokers.topics["clicks"] = 4
    delivery = producing.send(b"two", partition=3)
    producing.core.cluster.refresh()
    producing.brokers.run()
    assert delivery.done()
    assert logs.values["clicks", 3] == [b"one", b"two"]
