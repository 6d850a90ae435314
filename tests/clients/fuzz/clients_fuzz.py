"""Threads, Ctrl-C, forks, callbacks and faults from a seed: `python clients_fuzz.py SCENE SEED CASES`.

A process of its own for each run: Ctrl-C may strike at any step of the main thread, between those of a client's core as
in a command of ours, and in one scene anywhere. A seed draws the same calls and the
same faults in the same order; when they meet is another matter, so a seed that found something is worth many runs. Each
scene keeps what it did and holds it against the log in the end. Prints the seed, the number of cases, and what was met.
"""

import faulthandler
import os
import random
import signal
import sys
import threading
import time
from _thread import interrupt_main
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from itertools import pairwise
from typing import Any

from ottla import Admin, Consumer, Producer, TopicPartition
from ottla.cli.stopping import interrupts_between_steps
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.offsets.committing import Committer
from ottla.client.producer.append import Delivery
from ottla.errors import ClientClosed, FencedInstanceId, ForkedClient, KafkaError, RequestTimedOut, UnreleasedInstanceId
from ottla.testing import Broker
from ottla.testing.broker.fault_control import FaultRefused

TIMEOUT_S = 60
PARTITIONS = 2
QUICK = {
    "delivery_timeout_ms": 1500, "request_timeout_ms": 600, "retry_backoff_ms": 20, "retry_backoff_max_ms": 100,
    "reconnect_backoff_ms": 10,
}  # fmt: skip


class Chaos:
    """Something every now and then, on a thread of its own, until the scene is over. What it raises ends the scene."""

    def __init__(self, chance: random.Random, acts: list[Callable[[random.Random], Any]], most_s: float) -> None:
        self._chance = chance
        self._acts = acts
        self._most_s = most_s
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._is_over = self._has_ended = False  # no event, no join: interrupts would leave their locks taken
        self._raised: BaseException | None = None
        self.count = 0

    def _run(self) -> None:
        try:
            while True:
                time.sleep(self._chance.uniform(0.001, self._most_s))
                if self._is_over:
                    return
                with suppress(FaultRefused):  # a coordinator that nobody has asked for yet cannot move
                    self._chance.choice(self._acts)(self._chance)
                self.count += 1
        except BaseException as raised:
            self._raised = raised
        finally:
            self._has_ended = True

    def begin(self) -> None:
        if self._thread.ident is None:
            self._thread.start()

    def end(self) -> None:
        """Waits for the last of it. If it interrupts the caller, that may strike here, and `end` is called again."""
        self._is_over = True
        end_s = time.monotonic() + TIMEOUT_S
        while not self._has_ended:
            assert time.monotonic() < end_s, "the thread does not end"
            time.sleep(0.001)
        time.sleep(0)  # Python looks for signals here
        assert self._raised is None, f"faults ended early: {self._raised!r}"

    def __enter__(self) -> "Chaos":
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


class Interrupts(Chaos):
    """Ctrl-C every now and then, one at a time: the next comes when the one before was seen (`in_spite_of`). A second
    could strike where nobody sees it.
    """

    def __init__(self, chance: random.Random, most_s: float, *, does_strike: bool = True) -> None:
        super().__init__(chance, [lambda _: self._strike()], most_s)
        self._does_strike = does_strike
        self._may_strike = False

    def _strike(self) -> None:
        if self._may_strike:
            self._may_strike = False
            interrupt_main()

    def in_spite_of(self, work: Callable[[], None]) -> int:
        """Has it done, again from its start whenever Ctrl-C strikes in it. Returns how often that was."""
        strikes = 0
        while True:
            try:
                self._may_strike = self._does_strike
                work()
                return strikes
            except KeyboardInterrupt:
                strikes += 1


def produce_faults(broker: Broker) -> list[Callable[[random.Random], Any]]:
    return [
        lambda chance: broker.drop_connection("Produce", effect=chance.choice(["before", "after"])),
        lambda chance: broker.fail_next("Produce", "NOT_LEADER_OR_FOLLOWER", times=chance.randrange(1, 4)),
        lambda chance: broker.fail_next("Produce", "REQUEST_TIMED_OUT", times=chance.randrange(1, 3), effect="after"),
        lambda chance: broker.fail_next("Produce", chance.choice(["MESSAGE_TOO_LARGE", "INVALID_RECORD"]), times=1),
        # Some are carried out after the client has stopped waiting for them (`sequences.py`).
        lambda chance: broker.delay("Produce", ms=chance.choice([50, 300, 700, 1000]), times=1, effect="before"),
        lambda chance: broker.delay("Produce", ms=chance.choice([50, 300, 900]), times=1, effect="after"),
    ]


def read_all(bootstrap: str, topic: str, **settings: Any) -> dict[int, list[tuple[int, bytes]]]:
    """Offsets and values of every partition, to its end."""
    log: dict[int, list[tuple[int, bytes]]] = defaultdict(list)
    with Consumer(bootstrap_servers=bootstrap, **settings) as consumer:
        partitions = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(partitions)
        ends = consumer.end_offsets(partitions)
        while any(consumer.position(one) < ends[one] for one in partitions):
            for record in consumer.poll(1):
                log[record.partition].append((record.offset, record.value or b""))
    return log


# --- a producer that threads share ---


class Sending:
    """What was sent by all threads of one producer, and what was told of it."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.sent: list[tuple[bytes, Delivery]] = []
        self.told: Counter[int] = Counter()
        self.wanted: set[int] = set()
        self.interrupts = self.forks = 0

    def send_some(self, producer: Producer, name: int, chance: random.Random, count: int) -> None:
        for number in range(count):
            value = b"%d:%d " % (name, number) + b"x" * chance.choice([0, 0, 10, 300])
            options: dict[str, Any] = {}
            kind = chance.randrange(8)
            if kind < 2:
                options["partition"] = chance.randrange(PARTITIONS)
            elif kind < 4:
                options["key"] = b"%d" % chance.randrange(100)
            if chance.random() < 0.1:
                options["headers"] = [("h", b"1")]
            if chance.random() < 0.3:
                options["on_delivery"] = self.callback(chance)
            if chance.random() < 0.02:
                self.refused(producer)
            self.keep(value, producer.send("t", value, **options), "on_delivery" in options)

    def keep(self, value: bytes, delivery: Delivery, has_callback: bool) -> None:
        self.sent.append((value, delivery))
        if has_callback:
            self.wanted.add(id(delivery))

    def refused(self, producer: Producer) -> None:
        try:
            producer.send("t", b"bad", partition=0, timestamp_ms=-5)
        except ValueError:
            return
        raise AssertionError("a timestamp of -5 was taken")

    def callback(self, chance: random.Random) -> Callable[[Delivery], None]:
        kind = chance.randrange(6)

        def told(delivery: Delivery) -> None:
            self.told[id(delivery)] += 1
            if kind == 0:
                time.sleep(0.001)
            elif kind == 1:
                raise chance.choice([ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])

        return told

    def fork(self, producer: Producer) -> None:
        """A child is refused at once, whatever threads of the parent held when it was made."""
        undone = [delivery for _, delivery in self.sent[-20:] if not delivery.done()]
        child = os.fork()
        if not child:
            code = 0
            signal.alarm(20)
            for call in (lambda: producer.send("t", b"of a child"), producer.metrics, *(one.result for one in undone)):
                try:
                    call()  # type: ignore[operator]
                    code = 1
                except ForkedClient:
                    continue
                except BaseException:
                    code = 2
            os._exit(code)
        self.forks += 1
        assert os.waitpid(child, 0)[1] == 0, "a child of a fork was not refused, or hung"

    def send_interrupted(self, producer: Producer, name: int, chance: random.Random, numbers: Iterator[int]) -> None:
        """As `send_some`, on the main thread, while Ctrl-C strikes at any step. A record may be in or not."""
        for number in numbers:
            value = b"%d:%d" % (name, number)
            delivery = producer.send("t", value, partition=number % PARTITIONS)
            self.keep(value, delivery, False)
            if chance.random() < 0.01:
                delivery.exception(TIMEOUT_S)
            if chance.random() < 0.003:
                producer.flush(TIMEOUT_S)

    def send_until_ended(self, producer: Producer, name: int, numbers: Iterator[int]) -> bool:
        """The same, until Ctrl-C has cut its work short: whether it has. Otherwise it is as good as before."""
        try:
            for number in numbers:
                value = b"%d:%d" % (name, number)
                delivery = producer.send("t", value, partition=number % PARTITIONS)
                self.keep(value, delivery, False)
                if self.chance.random() < 0.02:
                    delivery.exception(TIMEOUT_S)
        except ClientClosed:
            return True
        return False


def shared_producer(broker: Broker, seed: int, cases: int) -> str:
    sending = Sending(seed)
    chance = sending.chance
    settings = {
        "linger_ms": chance.choice([0, 1, 20]),
        "batch_size": chance.choice([0, 200, 2000, 16384]),
        "buffer_memory": chance.choice([100_000, 1 << 25]),
        "compression_type": chance.choice(["none", "lz4"]),
        **QUICK,
    }
    sys.setswitchinterval(chance.choice([1e-6, 1e-4, 0.005]))
    threads = chance.randrange(2, 5)
    each = cases // (threads + 1)
    has_faults, has_interrupts, has_forks = (chance.random() < 0.6 for _ in range(3))
    producer = Producer(bootstrap_servers=broker.bootstrap, **settings)  # type: ignore[arg-type]
    for number in range(PARTITIONS):
        producer.send("t", b"warm", partition=number).result(TIMEOUT_S)
    failed: list[BaseException] = []

    def work(name: int, own: random.Random) -> None:
        try:
            sending.send_some(producer, name, own, each)
        except BaseException as raised:
            failed.append(raised)

    workers = [
        threading.Thread(target=work, args=(name, random.Random(f"{seed} {name}"))) for name in range(1, threads + 1)
    ]
    faults = Chaos(random.Random(f"{seed} faults"), produce_faults(broker) if has_faults else [lambda _: None], 0.2)
    interrupts = Interrupts(random.Random(f"{seed} interrupts"), 0.02, does_strike=has_interrupts)
    main_chance, numbers = random.Random(f"{seed} 0"), iter(range(each))

    def work_interrupted() -> None:
        interrupts.begin()
        sending.send_interrupted(producer, 0, main_chance, numbers)
        interrupts.end()

    for worker in workers:
        worker.start()
    with faults:
        sending.interrupts += interrupts.in_spite_of(work_interrupted)
        try:
            time.sleep(0.05)  # one that is on its way strikes here
        except KeyboardInterrupt:
            sending.interrupts += 1
        if has_forks:
            for _ in range(3):
                sending.fork(producer)
        for worker in workers:
            worker.join(TIMEOUT_S)
    broker.clear_faults()
    producer.flush(TIMEOUT_S)
    free = producer.metrics()
    producer.close(TIMEOUT_S)
    assert not failed, failed
    assert free["buffer-available-bytes"] == free["buffer-total-bytes"], "memory was not given back"
    check_log(broker, sending)
    return (
        f"{len(sending.sent)} records of {threads + 1} threads, {faults.count if has_faults else 0} faults, "
        f"{sending.interrupts} interrupts, {sending.forks} forks"
    )


def interrupted_producer(broker: Broker, seed: int, cases: int) -> str:
    """Ctrl-C in a program that has no handler for it. A producer that it cuts short has ended, and another goes on.

    What was acknowledged is in the log, once and in its place; what was not may be there or not.
    """
    sending = Sending(seed)
    numbers = iter(range(cases))
    interrupts = Interrupts(random.Random(f"{seed} interrupts"), 0.02)

    def made() -> Producer:
        linger_ms = sending.chance.choice([0, 1])
        return Producer(bootstrap_servers=broker.bootstrap, linger_ms=linger_ms, **QUICK)  # type: ignore[arg-type]

    producers = [made()]

    def work() -> None:
        interrupts.begin()
        while sending.send_until_ended(producers[-1], len(producers), numbers):
            producers.append(made())
        interrupts.end()

    sending.interrupts += interrupts.in_spite_of(work)
    for producer in producers:
        producer.close(TIMEOUT_S)
    check_log(broker, sending)
    return f"{len(sending.sent)} records, {sending.interrupts} interrupts, {len(producers) - 1} producers ended"


def check_log(broker: Broker, sending: Sending) -> None:
    log = read_all(broker.bootstrap, "t")
    where = {(partition, offset): value for partition, found in log.items() for offset, value in found}
    counts = Counter(value for found in log.values() for _, value in found if value != b"warm")
    assert b"bad" not in counts
    assert b"of a child" not in counts
    again = [value for value, count in counts.items() if count > 1]
    assert not again, f"twice in the log: {again[:3]}"
    order: dict[tuple[int, bytes], list[int]] = defaultdict(list)
    for value, delivery in sending.sent:
        assert delivery.done(), "a delivery was never settled"
        if delivery.exception() is not None:
            continue
        offset = delivery.result().offset
        if offset is None:  # only the acknowledgement of a later batch has told of it
            assert counts[value] == 1, f"{value!r} was acknowledged, and is not in the log"
            continue
        found = where.get((delivery.partition, offset))
        assert found == value, f"{value!r} was acknowledged, and {found!r} is at its place"
    acked = {value for value, delivery in sending.sent if delivery.exception() is None}
    for partition, records in log.items():
        for _, value in records:
            if value in acked:
                name, _, number = value.split()[0].partition(b":")
                order[partition, name].append(int(number))
    assert all(first < second for numbers in order.values() for first, second in pairwise(numbers)), "out of order"
    for _, delivery in sending.sent:
        expected = 1 if id(delivery) in sending.wanted else 0
        assert sending.told[id(delivery)] == expected, "a callback ran never, or twice"


# --- transactions ---


def transactions(broker: Broker, seed: int, cases: int) -> str:
    chance = random.Random(seed)
    apis = ["Produce", "EndTxn", "TxnOffsetCommit", "AddPartitionsToTxn", "InitProducerId", "FindCoordinator"]
    acts: list[Callable[[random.Random], Any]] = [
        lambda drawn: broker.drop_connection(drawn.choice(apis), effect=drawn.choice(["before", "after"])),
        lambda drawn: broker.move_coordinator(transactional_id="x"),
        lambda drawn: broker.move_coordinator(group="g"),
        lambda drawn: broker.fail_next("Produce", drawn.choice(["NOT_LEADER_OR_FOLLOWER", "INVALID_RECORD"]), times=1),
        lambda drawn: broker.delay(drawn.choice(apis), ms=drawn.choice([50, 300]), times=1, effect="after"),
        lambda drawn: broker.fail_next(
            drawn.choice(["EndTxn", "TxnOffsetCommit"]), "COORDINATOR_NOT_AVAILABLE", times=1, effect="after"
        ),
        *[lambda drawn: broker.clear_faults()] * 3,  # else they heap up on a slow machine, and nothing gets through
    ]
    outcomes: list[tuple[str, list[bytes]]] = []

    def begun() -> Producer:
        return Producer(
            bootstrap_servers=broker.bootstrap, transactional_id="x", linger_ms=1, batch_size=300, max_block_ms=8000,
            **QUICK,
        )  # type: ignore[arg-type]  # fmt: skip

    producer = begun()
    producer.init_transactions()
    with Chaos(random.Random(f"{seed} faults"), acts, 0.2) as chaos:
        for number in range(cases):
            values = [b"%d:%d" % (number, one) for one in range(chance.randrange(1, 25))]
            outcome, fatal = one_transaction(producer, chance, number, values)
            outcomes.append((outcome, values))
            if fatal:
                producer.close(1)
                producer = begun()
    broker.clear_faults()
    producer.close(TIMEOUT_S)
    with begun() as last:
        last.init_transactions()
    log = read_all(broker.bootstrap, "t", isolation_level="read_committed")
    counts = Counter(value for found in log.values() for _, value in found)
    assert max(counts.values(), default=0) <= 1, "a record is there twice"
    for outcome, values in outcomes:
        there = sum(counts[value] for value in values)
        assert outcome != "committed" or there == len(values), "committed, and not whole"
        assert outcome != "aborted" or not there, "aborted, and there"
        assert there in (0, len(values)), "torn"
    for records in log.values():
        numbers = [tuple(map(int, value.split(b":"))) for _, value in records]
        assert numbers == sorted(numbers), "out of order"
    return f"{cases} transactions, {dict(Counter(outcome for outcome, _ in outcomes))}, {chaos.count} faults"


def one_transaction(producer: Producer, chance: random.Random, number: int, values: list[bytes]) -> tuple[str, bool]:
    """What became of it, and whether the producer cannot go on."""
    try:
        producer.begin()
        for one, value in enumerate(values):
            producer.send("t", value, partition=one % PARTITIONS)
        if chance.random() < 0.5:
            producer.send_offsets({TopicPartition("in", 0): number}, "g")
        if chance.random() < 0.2:
            producer.abort()
            return "aborted", False
        while True:
            try:
                producer.commit()
                return "committed", False
            except RequestTimedOut:
                continue
    except KafkaError as error:
        if not error.fatal:
            try:
                producer.abort()
                return "aborted", False
            except KafkaError:
                return "unknown", True
        return "unknown", True


# --- one consumer, any calls ---


def one_consumer(broker: Broker, seed: int, cases: int) -> str:
    chance = random.Random(seed)
    truth: dict[int, list[int]] = {number: [] for number in range(PARTITIONS)}
    with Producer(bootstrap_servers=broker.bootstrap, transactional_id="x", linger_ms=0, batch_size=500) as producer:
        for _ in range(60):
            producer.begin()
            sent = [producer.send("t", b"%d" % one, partition=chance.randrange(PARTITIONS)) for one in range(15)]
            producer.flush()
            if chance.random() < 0.3:
                producer.abort()
                continue
            producer.commit()
            for delivery in sent:
                truth[delivery.partition].append(delivery.result().offset or 0)
    reading = Reading(broker, {number: sorted(found) for number, found in truth.items()}, chance)
    with reading.consumer:
        for _ in range(cases):
            reading.one_call()
    return f"{cases} calls, {reading.read} records"


class Reading:
    """A consumer that reads committed records, and where it has to be in each partition."""

    def __init__(self, broker: Broker, truth: dict[int, list[int]], chance: random.Random) -> None:
        self.truth = truth
        self.chance = chance
        self.consumer = Consumer(
            bootstrap_servers=broker.bootstrap, group_id="g", isolation_level="read_committed",
            enable_auto_commit=False, max_partition_fetch_bytes=chance.choice([300, 2000, 1 << 20]),
            fetch_max_wait_ms=20, auto_offset_reset="earliest",
        )  # fmt: skip
        self.partitions = [TopicPartition("t", number) for number in truth]
        self.consumer.assign(self.partitions)
        self.consumer.seek_to_beginning()
        self.place = dict.fromkeys(self.partitions, 0)
        self.paused: set[TopicPartition] = set()
        self.read = 0

    def next_of(self, partition: TopicPartition) -> int | None:
        return next((one for one in self.truth[partition.partition] if one >= self.place[partition]), None)

    def check(self, record: Any) -> None:
        partition = TopicPartition("t", record.partition)
        assert partition not in self.paused, f"{partition} is paused"
        assert record.offset == self.next_of(partition), (partition, record.offset, self.next_of(partition))
        self.place[partition] = record.offset + 1
        self.read += 1

    def has_more(self) -> bool:
        return any(self.next_of(one) is not None for one in self.partitions if one not in self.paused)

    def one_call(self) -> None:
        chance, consumer = self.chance, self.consumer
        kind, partition = chance.randrange(10), chance.choice(self.partitions)
        if kind < 4:
            for record in consumer.poll(chance.choice([0, 0, 0.02]), chance.choice([1, 3, 20, 500])):
                self.check(record)
        elif kind == 4 and self.has_more():
            left = chance.randrange(1, 12)
            for record in consumer:
                self.check(record)
                left -= 1
                if chance.random() < 0.1:
                    self.seek(partition)
                if not left or not self.has_more():
                    break
        elif kind == 5:
            consumer.pause([partition])
            self.paused.add(partition)
        elif kind == 6:
            consumer.resume(partition)
            self.paused.discard(partition)
        elif kind == 7:
            self.seek(partition)
        elif kind == 8:
            wanted, position = self.next_of(partition), consumer.position(partition)
            assert self.place[partition] <= position, (partition, position, self.place[partition])
            assert wanted is None or position <= wanted, (partition, position, wanted)
        elif kind == 9:
            self.commit() if chance.random() < 0.5 else self.take_again(partition)

    def seek(self, partition: TopicPartition) -> None:
        offset = self.chance.randrange(0, self.truth[partition.partition][-1] + 1)
        self.consumer.seek(partition, offset)
        self.place[partition] = offset

    def commit(self) -> None:
        self.consumer.commit()
        for partition, committed in self.consumer.committed(self.partitions).items():
            if committed is not None:
                wanted = self.next_of(partition)
                assert self.place[partition] <= committed.offset
                assert wanted is None or committed.offset <= wanted

    def take_again(self, partition: TopicPartition) -> None:
        self.consumer.assign([one for one in self.partitions if one != partition])
        self.consumer.assign(self.partitions)
        self.consumer.seek(partition, 0)
        self.place[partition] = 0
        self.paused.discard(partition)


# --- groups whose members come and go, with replies that are lost ---

GROUPS: list[dict[str, Any]] = [
    {"partition_assignment_strategy": ["range"]},
    {"partition_assignment_strategy": ["cooperative-sticky"]},
    {"group_protocol": "consumer"},
]


def groups(broker: Broker, seed: int, cases: int) -> str:
    return Group(broker, seed, cases, is_static=False).run()


def static_groups(broker: Broker, seed: int, cases: int) -> str:
    return Group(broker, seed, cases, is_static=True).run()


class Group:
    """Members that come and go. Each record is handed out at least once, and commits are held to what they promise.

    A static member (KIP-345) has an instance id. Another consumer may take its place while it is at work: it is told so
    (`FencedInstanceId`) and commits nothing more. Or it goes away without a word, and comes back under the same id. In
    groups of the new protocol (KIP-848) the other is refused instead, until the first is gone (`UnreleasedInstanceId`).
    """

    def __init__(self, broker: Broker, seed: int, cases: int, *, is_static: bool) -> None:
        self.broker = broker
        self.seed = seed
        self.is_static = is_static
        self.settings = GROUPS[seed % len(GROUPS)]
        self.values = [b"%d" % number for number in range(cases)]
        self.seen: Counter[bytes] = Counter()
        self.met: Counter[str] = Counter()
        self.guard, self.over = threading.Lock(), threading.Event()
        self.is_calm = False
        self.failed: list[BaseException] = []

    def faults(self) -> list[Callable[[random.Random], Any]]:
        apis = ["Heartbeat", "ConsumerGroupHeartbeat", "JoinGroup", "SyncGroup", "OffsetCommit", "Fetch", "LeaveGroup"]
        broker = self.broker
        return [
            lambda drawn: broker.move_coordinator(group="g"),
            lambda drawn: broker.fail_next(
                "OffsetCommit", drawn.choice(["COORDINATOR_LOAD_IN_PROGRESS", "REBALANCE_IN_PROGRESS"]), times=1
            ),
            lambda drawn: broker.fail_next("OffsetCommit", "REQUEST_TIMED_OUT", times=1, effect="after"),
            lambda drawn: broker.fail_next("FindCoordinator", "COORDINATOR_NOT_AVAILABLE", times=2),
            lambda drawn: broker.drop_connection(drawn.choice(apis), effect=drawn.choice(["before", "after"])),
            lambda drawn: broker.drop_connection("OffsetCommit", effect=drawn.choice(["before", "after"])),
            lambda drawn: broker.delay(drawn.choice(["OffsetFetch", "Fetch", "OffsetCommit"]), ms=150, times=1),
            *[lambda drawn: broker.clear_faults()] * 3,  # else they heap up on a slow machine
        ]

    def consumer(self, drawn: random.Random, name: int) -> Consumer:
        instance = {"group_instance_id": f"instance-{name}", "session_timeout_ms": 6000} if self.is_static else {}
        consumer = Consumer(
            bootstrap_servers=self.broker.bootstrap, group_id="g", auto_offset_reset="earliest", retry_backoff_ms=30,
            auto_commit_interval_ms=drawn.choice([20, 100, 5000]), heartbeat_interval_ms=100,
            **instance, **self.settings,
        )  # type: ignore[arg-type]  # fmt: skip
        consumer.subscribe(["t"])
        return consumer

    def member(self, drawn: random.Random, name: int) -> None:
        while not self.over.is_set():
            consumer = self.consumer(drawn, name)
            self.use(consumer, drawn, drawn.randrange(20, 60))
            if self.is_static and drawn.random() < 0.4:
                self.replace(consumer, drawn, name)
            elif drawn.random() < 0.3 and not self.is_calm:
                self.met["away"] += 1
                consumer._core.stop()  # without a word, as a process that is killed
            with suppress(KafkaError):
                consumer.close()

    def replace(self, consumer: Consumer, drawn: random.Random, name: int) -> None:
        """Two consumers with one instance id. The older one is told at the latest when it polls again."""
        with self.consumer(drawn, name) as newer:
            self.use(newer, drawn, 20)
            until_s = time.monotonic() + TIMEOUT_S
            while newer.assignment() and not self.over.is_set() and time.monotonic() < until_s:
                try:
                    self.take(consumer.poll(0.05))
                except FencedInstanceId:
                    self.met["fenced"] += 1
                    break
                except KafkaError:
                    continue
            self.use(newer, drawn, 10)

    def use(self, consumer: Consumer, drawn: random.Random, polls: int) -> None:
        for _ in range(polls):
            if self.over.is_set():
                return
            try:
                self.take(consumer.poll(0.05, max_records=drawn.choice([5, 100, 500])))
                if drawn.random() < 0.1:
                    self.commit(consumer)
                elif drawn.random() < 0.1:
                    consumer.commit_async()
            except FencedInstanceId:
                self.met["fenced"] += 1
                return
            except KafkaError as problem:
                self.met[type(problem).__name__] += 1
                if isinstance(problem, UnreleasedInstanceId):
                    time.sleep(0.05)

    def take(self, found: list[Any]) -> None:
        with self.guard:
            self.seen.update(record.value or b"" for record in found)

    def commit(self, consumer: Consumer) -> None:
        """If it returns, the group has what was consumed of all that the consumer still holds."""
        before = dict(consumer._core.offsets.consumed())
        consumer.commit()
        held = consumer.assignment()
        with Admin(bootstrap_servers=self.broker.bootstrap) as admin:
            told = admin.list_consumer_group_offsets("g", timeout=30)["g"]
        for partition, place in before.items():
            committed = told.get(partition)
            if partition in held and (committed is None or committed.offset < place.offset):
                raise AssertionError(f"commit() returned, and {partition} is at {committed} and not at {place.offset}")
        self.met["committed"] += 1

    def work(self, drawn: random.Random, name: int) -> None:
        try:
            self.member(drawn, name)
        except BaseException as raised:
            self.failed.append(raised)

    def wait_for_all(self) -> None:
        until_s = time.monotonic() + TIMEOUT_S
        while not self.is_enough() and not self.failed and time.monotonic() < until_s:
            time.sleep(0.05)

    def run(self) -> str:
        with Producer(bootstrap_servers=self.broker.bootstrap, linger_ms=2) as producer:
            for number, value in enumerate(self.values):
                producer.send("t", value, partition=number % PARTITIONS)
        members = [
            threading.Thread(target=self.work, args=(random.Random(f"{self.seed} {name}"), name)) for name in range(3)
        ]
        chaos = Chaos(random.Random(f"{self.seed} faults"), self.faults(), 0.3)
        with watching_owners(self.failed), watching_commits(self.broker, self.failed):
            for one in members:
                one.start()
            with chaos:
                self.wait_for_all()
            # A coordinator that moves all the time gives members that are gone another session each time, as Kafka's.
            self.broker.clear_faults()
            self.is_calm = True
            self.wait_for_all()
            self.over.set()
            for one in members:
                one.join(TIMEOUT_S)
        assert not self.failed, self.failed
        missing = [value for value in self.values if value not in self.seen]
        assert not missing, f"{len(missing)} records were never handed out, {missing[:3]} for instance"
        again = sum(self.seen.values()) - len(self.values)
        met = {**self.met, "faults": chaos.count, "handed out again": again}
        return f"{len(self.values)} records, {met}, {self.settings}"

    def is_enough(self) -> bool:
        has_replaced = not self.is_static or self.met["fenced"] + self.met["UnreleasedInstanceId"] > 0
        return len(self.seen) >= len(self.values) and has_replaced and self.met["committed"] > 0


@contextmanager
def watching_owners(failed: list[BaseException]) -> Iterator[None]:
    """A commit is sent only for partitions that its consumer has at that moment: nobody here names offsets itself."""
    made, overtake = ConsumerCore.__init__, Committer._overtake
    owners: dict[int, ConsumerCore] = {}

    def begin(core: ConsumerCore, *given: Any) -> None:
        made(core, *given)
        owners[id(core.offsets._committer)] = core

    def check(committer: Committer, partitions: Any, number: int) -> None:
        strange = [one for one in partitions if one not in owners[id(committer)].subscription.partitions]
        if strange:
            failed.append(AssertionError(f"a commit was sent for {strange}, which the consumer has not"))
        overtake(committer, partitions, number)

    ConsumerCore.__init__, Committer._overtake = begin, check  # type: ignore[method-assign,assignment]
    try:
        yield
    finally:
        ConsumerCore.__init__, Committer._overtake = made, overtake  # type: ignore[method-assign]


@contextmanager
def watching_commits(broker: Broker, failed: list[BaseException]) -> Iterator[None]:
    """Nobody seeks, so nothing that was committed may be set back."""
    over = threading.Event()

    def watch() -> None:
        last: dict[TopicPartition, int] = {}
        with Admin(bootstrap_servers=broker.bootstrap) as admin:
            while not over.wait(0.02):
                try:
                    told = admin.list_consumer_group_offsets("g", timeout=5)["g"]
                except KafkaError:
                    continue
                for partition, place in told.items():
                    if place is None:
                        continue
                    if place.offset < last.get(partition, 0):
                        failed.append(AssertionError(f"{partition}: {last[partition]} was set back to {place.offset}"))
                        return
                    last[partition] = place.offset

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join(TIMEOUT_S)


SCENES: dict[str, Callable[[Broker, int, int], str]] = {
    "shared_producer": shared_producer,
    "interrupted_producer": interrupted_producer,
    "transactions": transactions,
    "one_consumer": one_consumer,
    "groups": groups,
    "static_groups": static_groups,
}
SETTINGS = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.assignment.interval.ms": "0",
    "group.consumer.session.timeout.ms": "6000",
    "group.consumer.min.session.timeout.ms": "1000",
}


def main(scene: str, seed: int, cases: int) -> None:
    faulthandler.dump_traceback_later(240, exit=True)
    with Broker(SETTINGS) as broker:
        broker.create_topic("t", partitions=PARTITIONS)
        broker.create_topic("in", partitions=1)
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell has background jobs ignore it
        with nullcontext() if scene == "interrupted_producer" else interrupts_between_steps():
            print(f"{scene}, seed {seed}, {cases} cases: {SCENES[scene](broker, seed, cases)}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
