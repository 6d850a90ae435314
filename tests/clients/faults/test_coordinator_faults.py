"""A coordinator that moves and sessions that are over, as members and transactional producers see them."""

import pytest
from confluent_kafka import Consumer, KafkaException, Producer

import ottla
from ottla.testing import Broker
from ottla.testing.broker.fault_control import FaultRefused
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FindCoordinatorRequest, HeartbeatRequest
from tests.clients.eventually import eventually
from tests.interop.wire_connection import WireConnection

PROTOCOLS = pytest.mark.parametrize("protocol", ["classic", "consumer"])


def member(broker: Broker, topic: str, protocol: str = "classic") -> Consumer:
    """A consumer that is a member by now, and has its partition. The group has the topic's name."""
    settings: dict[str, object] = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 50}
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "group.id": topic,
            "group.protocol": protocol,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 20,  # What it asks of a coordinator waits behind its fetches.
            **(settings if protocol == "classic" else {}),
        }
    )
    consumer.subscribe([topic])
    eventually(lambda: consumer.poll(0.05) is None and len(consumer.assignment()) == 1, True)
    return consumer


def produce(broker: Broker, topic: str, value: str) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    producer.produce(topic, value)
    assert producer.flush(30) == 0


def next_value(consumer: Consumer) -> bytes:
    found: list[bytes] = []

    def look() -> bool:
        message = consumer.poll(0.2)
        if message is not None and message.error() is None:
            found.append(message.value())
        return bool(found)

    eventually(look, True)
    return found[0]


@PROTOCOLS
def test_a_member_finds_a_coordinator_that_has_moved(ottla_broker: Broker, ottla_topic: str, protocol: str) -> None:
    consumer = member(ottla_broker, ottla_topic, protocol)
    finds = ottla_broker.delay("FindCoordinator", 1)
    ottla_broker.move_coordinator(group=ottla_topic)
    produce(ottla_broker, ottla_topic, "one")
    assert next_value(consumer) == b"one"
    consumer.commit(asynchronous=False)
    assert finds.seen >= 1
    assert len(consumer.assignment()) == 1
    consumer.close()


def test_requests_are_turned_away_until_somebody_looks_for_the_coordinator(
    ottla_broker: Broker, ottla_topic: str
) -> None:
    with WireConnection(ottla_broker.bootstrap) as wire:
        find = FindCoordinatorRequest(key=ottla_topic, key_type=0)
        heartbeat = HeartbeatRequest(group_id=ottla_topic, generation_id=1, member_id="nobody")
        eventually(lambda: wire.ask(find, 3).error_code == ErrorCode.NONE, True)
        eventually(lambda: wire.ask(heartbeat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID, True)
        ottla_broker.move_coordinator(group=ottla_topic)
        for _ in range(3):
            assert wire.ask(heartbeat, 4).error_code == ErrorCode.NOT_COORDINATOR
        assert wire.ask(find, 3).error_code == ErrorCode.NONE
        eventually(lambda: wire.ask(heartbeat, 4).error_code == ErrorCode.UNKNOWN_MEMBER_ID, True)


def test_committed_offsets_move_along(ottla_broker: Broker, ottla_topic: str) -> None:
    consumer = member(ottla_broker, ottla_topic)
    produce(ottla_broker, ottla_topic, "one")
    assert next_value(consumer) == b"one"
    consumer.commit(asynchronous=False)
    ottla_broker.move_coordinator(group=ottla_topic)
    assignment = consumer.assignment()
    consumer.close()
    another = Consumer({"bootstrap.servers": ottla_broker.bootstrap, "group.id": ottla_topic})
    (found,) = another.committed(assignment, timeout=30)
    assert found.offset == 1
    another.close()


def test_a_transaction_outlives_a_move_of_its_coordinator(ottla_broker: Broker, ottla_topic: str) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "transactional.id": ottla_topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(ottla_topic, "one")
    ottla_broker.move_coordinator(transactional_id=ottla_topic)
    producer.commit_transaction(30)
    consumer = Consumer(
        {
            "bootstrap.servers": ottla_broker.bootstrap,
            "group.id": "readers",
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([ottla_topic])
    assert next_value(consumer) == b"one"
    consumer.close()


def test_leaders_find_the_coordinator_that_has_moved_and_their_clients_look_for_it(
    ottla_broker: Broker, ottla_topic: str
) -> None:
    """With KIP-890 a client does not ask the coordinator before it writes: the partition's leader does."""
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap, transactional_id=ottla_topic) as producer:
        producer.init_transactions()
        with producer.transaction():
            finds = ottla_broker.delay("FindCoordinator", 1)
            ottla_broker.move_coordinator(transactional_id=ottla_topic)
            assert producer.send(ottla_topic, b"one").result(30).offset == 0
            assert finds.seen == 0
        assert finds.seen >= 1


def test_a_transaction_gets_over_errors_that_pass(ottla_broker: Broker, ottla_topic: str) -> None:
    faults = [
        ottla_broker.fail_next("InitProducerId", "COORDINATOR_LOAD_IN_PROGRESS"),
        ottla_broker.fail_next("AddPartitionsToTxn", "CONCURRENT_TRANSACTIONS", topic=ottla_topic),
        ottla_broker.fail_next("EndTxn", "COORDINATOR_NOT_AVAILABLE"),
        ottla_broker.drop_connection("EndTxn", effect="after"),
    ]
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "transactional.id": ottla_topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(ottla_topic, "one")
    producer.commit_transaction(30)
    assert [fault.seen for fault in faults] == [1, 1, 1, 1]


def test_a_producer_that_is_fenced_knows_it(ottla_broker: Broker, ottla_topic: str) -> None:
    producer = Producer({"bootstrap.servers": ottla_broker.bootstrap, "transactional.id": ottla_topic})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(ottla_topic, "one")
    ottla_broker.fail_next("EndTxn", "PRODUCER_FENCED")
    with pytest.raises(KafkaException) as refused:
        producer.commit_transaction(30)
    assert refused.value.args[0].fatal()


@PROTOCOLS
def test_a_member_whose_session_is_over_loses_its_partitions_and_joins_again(
    ottla_broker: Broker, ottla_topic: str, protocol: str
) -> None:
    lost: list[int] = []
    consumer = Consumer(
        {
            "bootstrap.servers": ottla_broker.bootstrap,
            "group.id": ottla_topic,
            "group.protocol": protocol,
            "fetch.wait.max.ms": 20,
            **({"heartbeat.interval.ms": 50} if protocol == "classic" else {}),
        }
    )
    consumer.subscribe([ottla_topic], on_lost=lambda _, partitions: lost.append(len(partitions)))
    eventually(lambda: consumer.poll(0.05) is None and len(consumer.assignment()) == 1, True)
    assert ottla_broker.expire_member(ottla_topic) != []
    eventually(lambda: consumer.poll(0.05) is None and lost == [1], True)
    eventually(lambda: consumer.poll(0.05) is None and len(consumer.assignment()) == 1, True)
    consumer.close()


def test_one_member_of_several_may_be_named(ottla_broker: Broker, ottla_topic: str) -> None:
    consumer = member(ottla_broker, ottla_topic)
    member_id = consumer.memberid()
    with pytest.raises(FaultRefused, match="no member nobody"):
        ottla_broker.expire_member(ottla_topic, "nobody")
    assert ottla_broker.expire_member(ottla_topic, member_id) == [member_id]
    eventually(lambda: consumer.poll(0.05) is None and consumer.memberid() not in ("", member_id), True)
    consumer.close()


def test_what_is_not_there_cannot_be_moved_or_expired(ottla_broker_factory: object) -> None:
    broker: Broker = ottla_broker_factory()  # type: ignore[operator]
    with pytest.raises(FaultRefused, match="none to move"):
        broker.move_coordinator(group="g")
    with pytest.raises(FaultRefused, match="give one of them"):
        broker.move_coordinator()
    with pytest.raises(FaultRefused, match="no members"):
        broker.expire_member("g")
