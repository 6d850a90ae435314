"""A node that is paused, restarted, killed, out of space or ahead of time, as clients see it."""

import time
from contextlib import closing, suppress

import confluent_kafka
import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition

from ottla.testing import Broker
from ottla.testing.broker.fault_control import FaultRefused
from ottla.testing.broker.given_broker import GivenBroker, NotOurBroker
from ottla.wire.messages import ApiVersionsRequest, FetchRequest
from tests.clients.eventually import eventually
from tests.interop.wire_connection import WireConnection


def produce(
    broker: Broker | GivenBroker, topic: str, value: str, **settings: object
) -> confluent_kafka.KafkaError | None:
    """What became of one record."""
    outcomes: list[confluent_kafka.KafkaError | None] = []
    producer = Producer({"bootstrap.servers": broker.bootstrap, "retry.backoff.ms": 1, **settings})
    producer.produce(topic, value, on_delivery=lambda error, _: outcomes.append(error))
    assert producer.flush(30) == 0
    return outcomes[0]


def values(broker: Broker | GivenBroker, topic: str, count: int) -> list[str]:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "readers"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = consumer.consume(count, timeout=30)
    consumer.close()
    return [message.value().decode() for message in found]


# Pausing


def test_a_paused_broker_answers_when_it_is_resumed(ottla_broker: Broker, ottla_topic: str) -> None:
    ottla_broker.pause()
    with WireConnection(ottla_broker.bootstrap) as wire:
        wire.send(ApiVersionsRequest(), 0)
        wire.send(ApiVersionsRequest(), 0)
        assert not wire.has_reply(0.1)
        ottla_broker.resume()
        assert wire.receive().error_code == 0
        assert wire.receive().error_code == 0


def test_a_fetch_that_waits_is_not_answered_by_a_paused_broker(ottla_broker: Broker, ottla_topic: str) -> None:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    topic = FetchRequest.FetchTopic(topic=ottla_topic, partitions=[partition])
    with WireConnection(ottla_broker.bootstrap) as wire:
        wire.send(FetchRequest(max_wait_ms=50, min_bytes=1, max_bytes=1 << 20, session_epoch=-1, topics=[topic]), 12)
        ottla_broker.pause()
        assert not wire.has_reply(0.2), "its time is over, and nobody says so"
        ottla_broker.resume()
        assert wire.receive().error_code == 0


def test_a_producer_waits_for_a_paused_broker(ottla_broker: Broker, ottla_topic: str) -> None:
    ottla_broker.pause()
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap})
    producer.produce(ottla_topic, "later")
    assert producer.flush(0.2) == 1
    ottla_broker.resume()
    assert producer.flush(30) == 0
    assert values(ottla_broker, ottla_topic, 1) == ["later"]


# Restarts and kills


@pytest.mark.parametrize("clean", [True, False])
def test_clients_find_their_way_back_after_a_restart(ottla_broker: Broker, ottla_topic: str, clean: bool) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "reconnect.backoff.ms": 10})
    producer.produce(ottla_topic, "before")
    assert producer.flush(30) == 0
    ottla_broker.restart(clean=clean)
    producer.produce(ottla_topic, "after")
    assert producer.flush(30) == 0
    assert values(ottla_broker, ottla_topic, 2) == ["before", "after"]


def test_a_broker_that_a_test_has_killed_is_back_for_the_next(ottla_broker: Broker, ottla_topic: str) -> None:
    ottla_broker.kill()
    with pytest.raises(FaultRefused, match="does not run"):
        ottla_broker.pause()
    ottla_broker.heal()
    assert ottla_broker.is_running
    assert produce(ottla_broker, ottla_topic, "x") is None


@pytest.fixture
def given(ottla_broker: Broker) -> GivenBroker:
    """The session's broker, as a test sees it that has it from the environment."""
    port = ottla_broker._control.port
    token = ottla_broker._node.environment["OTTLA_FAULTS_TOKEN"]
    ottla_broker.is_harmed = True
    return GivenBroker({"OTTLA_BROKER": ottla_broker.bootstrap, "OTTLA_FAULTS": str(port), "OTTLA_FAULTS_TOKEN": token})


@pytest.mark.parametrize("clean", [True, False])
def test_a_node_in_a_process_of_somebody_elses_is_restarted_over_the_control_port(
    given: GivenBroker, ottla_broker: Broker, ottla_topic: str, clean: bool
) -> None:
    pid = ottla_broker.pid
    assert produce(given, ottla_topic, "before") is None
    given.delay("*", 60_000)
    given.restart(clean=clean, down_ms=50)
    assert ottla_broker.is_running
    assert ottla_broker.pid == pid
    assert produce(given, ottla_topic, "after") is None, "it is up, at the same address, without the fault"
    assert values(given, ottla_topic, 2) == ["before", "after"]
    assert "warning" not in ottla_broker.log.read_text().lower()


def test_a_given_broker_that_is_healed_goes_by_the_real_time(given: GivenBroker, ottla_broker: Broker) -> None:
    given.advance_time(86_400_000)
    given.heal()
    assert abs(given._ask("advance_time", ms=1)["now_ms"] - time.time() * 1000) < 3_600_000


def test_a_given_broker_without_a_control_port_refuses_faults_and_says_how_to_have_them(ottla_broker: Broker) -> None:
    given = GivenBroker({"OTTLA_BROKER": ottla_broker.bootstrap})
    with pytest.raises(FaultRefused, match="OTTLA_FAULTS"):
        given.fail_next("Produce", "CORRUPT_MESSAGE")
    with pytest.raises(NotOurBroker, match="OTTLA_BROKER"):
        given.kill()
    with pytest.raises(NotOurBroker, match="OTTLA_FAULTS_TOKEN"):
        GivenBroker({"OTTLA_BROKER": ottla_broker.bootstrap, "OTTLA_FAULTS": "1"})


# The disk


def test_a_full_disk_refuses_records_until_there_is_room(ottla_broker: Broker, ottla_topic: str) -> None:
    assert produce(ottla_broker, ottla_topic, "before") is None
    ottla_broker.fill_disk()
    error = produce(ottla_broker, ottla_topic, "refused", **{"retries": 0, "enable.idempotence": False})
    assert error is not None
    assert error.name() == "KAFKA_STORAGE_ERROR"
    assert values(ottla_broker, ottla_topic, 1) == ["before"], "what is there can be read"
    ottla_broker.free_disk()
    assert produce(ottla_broker, ottla_topic, "after") is None
    assert values(ottla_broker, ottla_topic, 2) == ["before", "after"]


def test_a_producer_that_retries_gets_over_a_disk_that_was_full(ottla_broker: Broker, ottla_topic: str) -> None:
    ottla_broker.fill_disk()
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "retry.backoff.ms": 5})
    producer.produce(ottla_topic, "kept")
    assert producer.flush(0.2) == 1
    ottla_broker.free_disk()
    assert producer.flush(30) == 0
    assert values(ottla_broker, ottla_topic, 1) == ["kept"]


# Time


@pytest.mark.ottla_topic(settings={"retention.ms": 3_600_000, "segment.ms": 600_000})
def test_records_are_too_old_when_time_has_advanced(ottla_broker: Broker, ottla_topic: str) -> None:
    assert produce(ottla_broker, ottla_topic, "old") is None
    ottla_broker.advance_time(2 * 3_600_000)

    def watermarks() -> tuple[int, int] | None:
        """None while the broker is fenced: it has not been heard of for two hours, until its next heartbeat.

        A consumer that is told of no leader then asks again after minutes only: so each look is a new one's.
        """
        with closing(Consumer({"bootstrap.servers": ottla_broker.bootstrap, "group.id": "readers"})) as consumer:
            with suppress(KafkaException):
                return consumer.get_watermark_offsets(TopicPartition(ottla_topic, 0), timeout=10)
            return None

    eventually(watermarks, (1, 1))


def test_records_that_the_broker_stamps_are_of_its_time(ottla_broker: Broker, ottla_topic: str) -> None:
    topic = f"stamped-{ottla_topic[-200:]}"
    ottla_broker.create_topic(topic, settings={"message.timestamp.type": "LogAppendTime"})
    day_ms = 86_400_000
    ottla_broker.advance_time(day_ms)
    assert produce(ottla_broker, topic, "x") is None
    consumer = Consumer({"bootstrap.servers": ottla_broker.bootstrap, "group.id": "readers"})
    consumer.assign([TopicPartition(topic, 0, 0)])
    _, timestamp_ms = consumer.poll(30).timestamp()
    consumer.close()
    assert 0 <= timestamp_ms - time.time() * 1000 - day_ms + 60_000 < 120_000
