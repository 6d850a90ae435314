"""What somebody expects who comes from another client, or who forgot something."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import ottla
import ottla.aio
from ottla.errors import ConcurrentUse, InvalidState, TopicAlreadyExists, UnknownTopicOrPartition
from ottla.testing import Broker

TIMEOUT_S = 60


def end_of(bootstrap: str, topic: str) -> int:
    with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
        [offset] = consumer.end_offsets([ottla.TopicPartition(topic, 0)]).values()
        return offset


@pytest.mark.parametrize("how", ["end", "exit", "raise", "dropped"])
def test_a_program_that_ends_without_closing_its_producer_has_its_records_delivered(
    bootstrap: str, topic: str, how: str
) -> None:
    ends = {"end": "", "exit": "sys.exit(3)", "raise": "raise ValueError", "dropped": "del producer"}
    program = f"""if True:
        import sys
        from ottla import Producer
        producer = Producer(bootstrap_servers={bootstrap!r}, linger_ms=60_000)
        for number in range(1000):
            producer.send({topic!r}, b"%d" % number)
        {ends[how]}
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert run.returncode == {"end": 0, "exit": 3, "raise": 1, "dropped": 0}[how]
    assert "lost" not in run.stderr
    assert end_of(bootstrap, topic) == 1000


def test_a_program_that_ends_says_what_it_could_not_deliver() -> None:
    program = """if True:
        import ottla.client.io.loop_thread as loop_thread
        from ottla import Producer
        from ottla.testing import Broker
        loop_thread._AT_EXIT_S = 0.2
        broker = Broker().__enter__()
        broker.create_topic("clicks", partitions=1)
        producer = Producer(bootstrap_servers=broker.bootstrap, linger_ms=60_000)
        producer.send("clicks", b"warm")
        producer.flush()
        broker.kill()
        for number in range(7):
            producer.send("clicks", b"%d" % number)
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=TIMEOUT_S)
    assert "without Producer.close(), and 7 records for clicks" in run.stderr


def test_transactions_have_the_names_of_javas_producer_too(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
        producer.begin_transaction()
        producer.send(topic, b"dropped")
        producer.abort_transaction()
        producer.begin_transaction()
        producer.send(topic, b"kept")
        producer.send_offsets_to_transaction({ottla.TopicPartition(topic, 0): 1}, f"{topic}-group")
        producer.commit_transaction()

    async def main() -> None:
        async with ottla.aio.Producer(bootstrap_servers=bootstrap, transactional_id=f"{topic}-id") as producer:
            await producer.begin_transaction()
            await producer.send_offsets_to_transaction({ottla.TopicPartition(topic, 0): 2}, f"{topic}-group")
            await producer.commit_transaction()

    asyncio.run(main())
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        offsets = admin.list_consumer_group_offsets(f"{topic}-group")[f"{topic}-group"]
        assert offsets[ottla.TopicPartition(topic, 0)].offset == 2


def test_partitions_may_be_given_one_by_one_or_in_a_list(bootstrap: str, make_topic: Callable[..., str]) -> None:
    topic = make_topic(partitions=3)
    a, b, c = (ottla.TopicPartition(topic, number) for number in range(3))
    with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([a, b, c])
        consumer.pause([a, b])
        assert consumer.paused() == {a, b}
        consumer.resume({a}, b)
        assert consumer.paused() == frozenset()
        consumer.pause((topic, 2))
        assert consumer.paused() == {c}
        consumer.pause([])
        assert consumer.paused() == {c}
        consumer.seek_to_end([a, b])
        consumer.seek_to_beginning(consumer.assignment())
        assert consumer.position(b, TIMEOUT_S) == 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_an_empty_subscription_unsubscribes(bootstrap: str, topic: str, protocol: str) -> None:
    with ottla.Consumer(bootstrap_servers=bootstrap, group_id=f"{topic}-{protocol}", group_protocol=protocol) as one:
        one.subscribe([topic])
        while not one.assignment():
            one.poll(0.1)
        one.subscribe([])
        assert one.subscription() == frozenset()
        assert one.assignment() == frozenset()
        with pytest.raises(InvalidState, match="nothing to poll"):
            one.poll(0)
        one.assign([ottla.TopicPartition(topic, 0)])  # another kind of subscription may follow

    async def main() -> None:
        async with ottla.aio.Consumer(bootstrap_servers=bootstrap, group_id=f"{topic}-aio") as consumer:
            consumer.subscribe([topic])
            consumer.subscribe([])
            with pytest.raises(InvalidState, match="nothing to poll"):
                await consumer.poll(0)

    asyncio.run(main())


def test_a_second_thread_in_one_consumer_is_told(bootstrap: str, topic: str) -> None:
    with ottla.Consumer(bootstrap_servers=bootstrap) as consumer:
        consumer.assign([ottla.TopicPartition(topic, 0)])
        ended: list[BaseException] = []

        def poll() -> None:
            try:
                consumer.poll(TIMEOUT_S)
            except BaseException as raised:
                ended.append(raised)

        polling = threading.Thread(target=poll)
        polling.start()
        while consumer._user.acquire(blocking=False):  # until it polls
            consumer._user.release()
        for call in (
            lambda: consumer.poll(0),
            lambda: consumer.poll_arrow(0),
            consumer.assignment,
            lambda: consumer.seek(ottla.TopicPartition(topic, 0), 0),
            lambda: consumer.position(ottla.TopicPartition(topic, 0)),
            consumer.close,
        ):
            with pytest.raises(ConcurrentUse, match="another thread"):
                call()  # type: ignore[no-untyped-call]
        assert "records-consumed-total" in consumer.metrics()
        consumer.wakeup()
        polling.join(TIMEOUT_S)
        assert [type(one) for one in ended] == [ottla.errors.Wakeup]
        consumer.seek(ottla.TopicPartition(topic, 0), 0)


def test_one_topic_that_is_not_in_a_list_raises_what_went_wrong(bootstrap: str, topic: str) -> None:
    with ottla.Admin(bootstrap_servers=bootstrap) as admin:
        with pytest.raises(TopicAlreadyExists):
            admin.create_topics(topic)
        with pytest.raises(TopicAlreadyExists):
            admin.create_topics(ottla.NewTopic(topic, 1))
        assert list(admin.create_topics([topic]).errors) == [topic]
        assert admin.create_topics(f"{topic}-more")[f"{topic}-more"].name == f"{topic}-more"
        admin.delete_topics(f"{topic}-more")
        with pytest.raises(UnknownTopicOrPartition):
            admin.delete_topics(f"{topic}-none")


class Spying(ottla.ProducerInterceptor, ottla.ConsumerInterceptor):
    """Changes values on the way, notes what it is told, and fails now and then."""

    def __init__(self, mark: bytes) -> None:
        self.mark = mark
        self.told: list[str] = []

    def on_send(self, record: ottla.RecordToSend) -> ottla.RecordToSend:
        if record.value == b"fail":
            raise ValueError("of an interceptor")
        return record._replace(value=record.value + self.mark)

    def on_acknowledgement(self, delivery: Any) -> None:
        self.told.append(f"acknowledged {delivery.result().offset}")

    def on_consume(self, records: list[Any]) -> list[Any]:
        return [record for record in records if record.value != b"fail"]

    def on_commit(self, offsets: Any) -> None:
        self.told += [f"committed {one.offset}" for one in offsets.values()]

    def close(self) -> None:
        self.told.append("closed")


def test_interceptors_see_and_change_records(bootstrap: str, topic: str) -> None:
    """KIP-42: in order, and what one raises keeps no record from being sent."""
    first, second, third = Spying(b" one"), Spying(b" two"), Spying(b"")
    callbacks: list[Any] = []
    with ottla.Producer(bootstrap_servers=bootstrap, interceptor_classes=[first, second]) as producer:
        deliveries = [producer.send(topic, value, on_delivery=callbacks.append) for value in (b"v", b"fail")]
        producer.flush(TIMEOUT_S)
    assert callbacks == deliveries
    assert first.told == second.told == ["acknowledged 0", "acknowledged 1", "closed"]

    async def main() -> None:
        async with ottla.aio.Producer(bootstrap_servers=bootstrap, interceptor_classes=[third]) as producer:
            await producer.send_and_wait(topic, b"of asyncio")

    asyncio.run(main())
    assert third.told == ["acknowledged 2", "closed"]
    spy = Spying(b"")
    with ottla.Consumer(bootstrap_servers=bootstrap, group_id=f"{topic}-g", interceptor_classes=[spy]) as consumer:
        consumer.assign([ottla.TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        found: list[Any] = []
        while consumer.position(ottla.TopicPartition(topic, 0), TIMEOUT_S) < 3:
            found += consumer.poll(1)
        consumer.commit()
        consumer.poll(0)
    assert [record.value for record in found] == [b"v one two", b"of asyncio"]
    assert "committed 3" in spy.told
    assert spy.told[-1] == "closed"


class Careless(ottla.ProducerInterceptor, ottla.ConsumerInterceptor):
    """Does as it is told: raises after it has emptied what it was given, or returns nothing."""

    def __init__(self, raises: BaseException | None) -> None:
        self.raises = raises

    def on_send(self, record: ottla.RecordToSend) -> Any:
        if self.raises is not None:
            raise self.raises

    def on_consume(self, records: list[Any]) -> Any:
        if self.raises is not None:
            records.clear()
            raise self.raises


@pytest.mark.parametrize("raises", [ValueError("of an interceptor"), None])
def test_an_interceptor_that_fails_costs_no_record(
    bootstrap: str, topic: str, raises: Exception | None, caplog: pytest.LogCaptureFixture
) -> None:
    careless = Careless(raises)
    with ottla.Producer(bootstrap_servers=bootstrap, interceptor_classes=[careless]) as producer:
        producer.send(topic, b"v").result(TIMEOUT_S)
    with ottla.Consumer(bootstrap_servers=bootstrap, interceptor_classes=[careless]) as consumer:
        consumer.assign([ottla.TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        assert [record.value for record in consumer.poll(TIMEOUT_S)] == [b"v"]
    assert ("of an interceptor" if raises else "Careless.on_send returned a NoneType") in caplog.text


def test_records_whose_interceptor_is_interrupted_are_handed_out_by_the_next_poll(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap) as producer:
        producer.send(topic, b"v").result(TIMEOUT_S)
    careless = Careless(KeyboardInterrupt())
    with ottla.Consumer(
        bootstrap_servers=bootstrap, group_id=topic, auto_offset_reset="earliest", interceptor_classes=[careless]
    ) as consumer:
        partition = ottla.TopicPartition(topic, 0)
        consumer.assign([partition])
        with pytest.raises(KeyboardInterrupt):
            consumer.poll(TIMEOUT_S)
        consumer.commit()
        committed = consumer.committed([partition])[partition]
        assert committed is None or committed.offset == 0
        careless.raises = ValueError()
        assert [record.value for record in consumer.poll(TIMEOUT_S)] == [b"v"]


class Backwards(ottla.ConsumerInterceptor):
    def on_consume(self, records: list[Any]) -> list[Any]:
        return records[::-1]


def test_a_loop_that_ends_among_records_in_another_order_loses_none(bootstrap: str, topic: str) -> None:
    with ottla.Producer(bootstrap_servers=bootstrap, linger_ms=1000) as producer:
        for number in range(5):
            producer.send(topic, b"%d" % number)
    with ottla.Consumer(bootstrap_servers=bootstrap, interceptor_classes=[Backwards()]) as consumer:
        consumer.assign([ottla.TopicPartition(topic, 0)])
        consumer.seek_to_beginning()
        seen = {next(iter(consumer)).value}
        while len(seen) < 5:
            found = consumer.poll(TIMEOUT_S)
            assert found, f"only {seen} were handed out"
            seen.update(record.value for record in found)


@pytest.mark.parametrize("interval_s", [0, -1, float("nan")])
def test_statistics_need_time_between_them(bootstrap: str, interval_s: float) -> None:
    with (
        ottla.Producer(bootstrap_servers=bootstrap) as producer,
        ottla.Consumer(bootstrap_servers=bootstrap) as consumer,
    ):
        for client in (producer, consumer):
            with pytest.raises(ValueError, match="more than 0"):
                client.on_statistics(print, interval_s)  # type: ignore[attr-defined]


def test_errors_and_statistics_are_told_to_callbacks() -> None:
    with Broker() as broker:
        broker.create_topic("t", partitions=1)
        numbers, errors = threading.Event(), threading.Event()
        with ottla.Producer(bootstrap_servers=broker.bootstrap, reconnect_backoff_ms=10) as producer:
            producer.on_statistics(lambda told: "record-send-total" in told and numbers.set(), 0.02)
            producer.on_error(lambda error: errors.set())
            producer.send("t", b"v").result(TIMEOUT_S)
            assert numbers.wait(TIMEOUT_S)
            consumer = ottla.Consumer(bootstrap_servers=broker.bootstrap, reconnect_backoff_ms=10)
            with consumer:
                told: list[Any] = []
                consumer.on_statistics(told.append, 0.02)
                consumer.on_error(told.append)
                consumer.assign([ottla.TopicPartition("t", 0)])
                while not told:
                    consumer.poll(0.05)
                broker.kill()
                assert errors.wait(TIMEOUT_S)
                while not any(isinstance(one, ottla.errors.KafkaError) for one in told):
                    consumer.poll(0.05)
            producer.close(0)
