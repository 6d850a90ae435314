"""Copies that are killed at any step, from a seed, and gone on with: `python copy_fuzz.py SEED CASES [--nodes 3]`.

A case is a topic of records of every kind, and a copy of it in another cluster. The copier is killed (`kill -9`) at a
step that is drawn: before a call of its clients or of the file system, or a few milliseconds later. Or it kills a node
of the source or the destination then, and goes on; the node comes again. It is started until it is through.
Then the copy is held against its source, byte for byte and in order: each record once with `--exactly-once` and
`--keep-offsets`, at least once otherwise. Prints the seed, the number of cases, and who was killed how often.

A process that was forked before there were threads forks each copier: a start takes milliseconds.
"""

import faulthandler
import json
import os
import random
import select
import signal
import socket
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.cli.records import copy_command
from ottla.client.blocking.admin import Admin as BlockingAdmin
from ottla.client.blocking.consumer import Consumer as BlockingConsumer
from ottla.client.blocking.producer import Producer as BlockingProducer
from ottla.client.producer.append import Delivery
from ottla.testing import Broker, Cluster

TIMEOUT_S = 90
HOWS = ("state", "group", "exactly-once", "keep-offsets")
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MOST_KILLS = 6
STEPS_LOG2 = 7.5
"""Few lives have more steps than two to that; in a short one, early steps count."""
NEVER = 10**9
QUICK = {"reconnect.backoff.ms": "10", "reconnect.backoff.max.ms": "100", "retry.backoff.ms": "10"}
QUICK_WRITING = dict(QUICK)
STEPS = [
    *((BlockingProducer, name) for name in ("init_transactions", "begin", "send", "flush", "send_offsets", "commit")),
    *((BlockingConsumer, name) for name in ("poll", "commit", "committed", "assign", "seek", "close")),
    *((BlockingAdmin, name) for name in ("create_topics", "describe_topics")),
    (os, "fsync"),
    (os, "replace"),
]


class Order(NamedTuple):
    """One life of a copier."""

    words: list[str]
    save_records: int
    step: int
    """At which call it acts; beyond the last, never."""
    victim: int
    """Whom it kills: a process, or itself if 0."""
    delay_s: float


class Copiers:
    """Forks copiers. Must be made while the process has one thread."""

    def __init__(self) -> None:
        self._ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if not self.pid:
            self._ours.close()
            _serve(theirs.makefile("rw"))
        theirs.close()
        self._answers = self._ours.makefile("r")

    def begin(self, order: Order) -> None:
        self._ours.sendall(json.dumps(order).encode() + b"\n")

    def is_over(self, timeout_s: float) -> bool:
        return bool(select.select([self._ours], [], [], timeout_s)[0])

    def status(self) -> int:
        """How the last one ended, negative for the signal that killed it."""
        return int(self._answers.readline())

    def close(self) -> None:
        self._answers.close()
        self._ours.close()
        os.waitpid(self.pid, 0)


def break_copies() -> None:
    """Has copiers keep the place without waiting for what they have sent."""

    def save(copying: Any) -> None:
        if copying._next:
            copying._progress.save(copying._next)
            if copying._is_transactional:
                copying._producer.commit()
            copying._next, copying._unsaved = {}, 0

    copy_command._Copying.save = save  # type: ignore[method-assign]
    QUICK_WRITING["linger.ms"] = "1000"


def _serve(orders: Any) -> None:
    """Never returns."""
    for line in orders:
        copier = os.fork()
        if not copier:
            _copy(Order(*json.loads(line)))
        orders.write(f"{os.waitstatus_to_exitcode(os.waitpid(copier, 0)[1])}\n")
        orders.flush()
    os._exit(0)


def _copy(order: Order) -> None:
    """Never returns."""
    copy_command._SAVE_RECORDS = order.save_records
    steps = 0

    def act() -> None:
        os.kill(order.victim or os.getpid(), signal.SIGKILL)

    def counted(call: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any, **options: Any) -> Any:
            nonlocal steps
            steps += 1
            if steps == order.step:
                if order.delay_s:
                    threading.Timer(order.delay_s, act).start()
                else:
                    act()
            return call(*arguments, **options)

        return step

    for owner, name in STEPS:
        setattr(owner, name, counted(getattr(owner, name)))
    status = 70
    try:
        status = copy_command.main(order.words)
    finally:
        sys.stderr.flush()
        os._exit(status)


Nodes = Broker | Cluster
Content = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]
Records = dict[int, list[tuple[int, Content]]]
"""Offsets and contents, by partition."""


class Fuzz:
    def __init__(self, seed: int, copiers: Copiers, source: Nodes, destination: Nodes, directory: Path) -> None:
        self.killed: Counter[str] = Counter()
        self.records = 0
        self._chance = random.Random(seed)
        self._copiers = copiers
        self._nodes = {"source": source, "destination": destination}
        self._directory = directory
        self._settings = directory / "to.properties"

    def case(self, number: int) -> None:
        chance, topic = self._chance, f"t{number}"
        how = HOWS[number % len(HOWS)]
        expected = self._fill(topic, chance.randint(1, 3), can_have_gaps=how != "keep-offsets")
        assert self._read("source", topic) == expected, f"case {number}: the source has other records than were sent"
        self.records += sum(map(len, expected.values()))
        batch_bytes = chance.choice((100, 1000, 16384))
        self._settings.write_text(
            "".join(f"{k}={v}\n" for k, v in {**QUICK_WRITING, "batch.size": batch_bytes}.items())
        )
        place = {
            "state": ["--state", str(self._directory / f"{topic}.json")],
            "group": ["--group", f"{topic}-place"],
            "exactly-once": ["--group", f"{topic}-place", "--exactly-once"],
            "keep-offsets": ["--keep-offsets"],
        }[how]
        settings = {**QUICK, "max.poll.records": chance.choice((1, 7, 500))}
        words = [topic, topic, "-q", *place, *(word for k, v in settings.items() for word in ("--set", f"{k}={v}"))]
        words += ["-b", self._nodes["source"].bootstrap]
        words += ["--to-server", self._nodes["destination"].bootstrap, "--to-config", str(self._settings)]
        for life in range(MOST_KILLS + 1):
            victim = chance.choices(("copier", "source", "destination"), (14, 1, 1))[0] if life < MOST_KILLS else ""
            if self._live(words, victim):
                break
        else:
            raise AssertionError(f"case {number}: the last copier was not killed, and did not end")
        self._check(f"case {number}, {how}", expected, self._read("destination", topic), how)

    def _live(self, words: list[str], victim: str) -> bool:
        """Returns whether the copy is through."""
        chance = self._chance
        step = int(2 ** chance.uniform(0, STEPS_LOG2)) if victim else NEVER
        node = self._node_of(victim)
        pid = node.pid if node is not None else 0
        assert pid is not None
        delay_s = chance.choice((0, 0, chance.uniform(0, 0.005)))
        self._copiers.begin(Order(words, chance.choice((1, 10, 50)), step, pid, delay_s))
        deadline_s = time.monotonic() + TIMEOUT_S
        is_over = is_killed = False
        while not is_over:
            assert time.monotonic() < deadline_s, f"copy {' '.join(words)} does not end"
            is_over = self._copiers.is_over(0.02)
            # A node whose copier has ended is killed in any case: the signal may be on its way.
            if node is not None and not is_killed and (is_over or not node.is_running):
                is_killed = True
                self.killed[victim] += 1
                node.kill()
                node.start()
        status = self._copiers.status()
        if status == -signal.SIGKILL:
            self.killed["copier"] += 1
        elif status:  # it may give up for a node that was killed, and for nothing else
            assert node is not None, f"copy {' '.join(words)} ended with {status}"
        return status == 0

    def _node_of(self, victim: str) -> Broker | None:
        nodes = self._nodes.get(victim)
        return self._chance.choice([*nodes]) if isinstance(nodes, Cluster) else nodes

    def _fill(self, topic: str, partitions: int, *, can_have_gaps: bool) -> Records:
        """Records of every kind, in a few batches of a codec each, or transactions. Each has a time of its own.

        Returns those that were committed, as `_read` does.
        """
        chance, bootstrap = self._chance, self._nodes["source"].bootstrap
        committed: Records = {}
        with Admin(bootstrap_servers=bootstrap) as admin:
            admin.create_topics(NewTopic(topic, partitions, config={"retention.ms": "-1"}))
        times = chance.sample(range(1_700_000_000_000), 200)
        for part in range(chance.randint(1, 3)):
            is_transaction = can_have_gaps and chance.random() < 0.5
            settings: dict[str, object] = {
                "compression.type": chance.choice(CODECS),
                "linger.ms": chance.choice((0, 20)),
            }
            if is_transaction:
                settings["transactional.id"] = f"{topic}-{part}"
            with Producer({"bootstrap.servers": bootstrap, **settings}) as producer:
                if is_transaction:
                    producer.init_transactions()
                    producer.begin()
                sent: list[tuple[Delivery, Content]] = []
                for _ in range(chance.randint(1, 40)):
                    value, key, partition = self._bytes(), self._bytes(), chance.randrange(partitions)
                    time_ms, headers = times.pop(), self._headers()
                    delivery = producer.send(
                        topic, value, key, partition=partition, timestamp_ms=time_ms, headers=headers
                    )
                    sent.append((delivery, (time_ms, key, value, tuple(headers or ()))))
                is_committed = True
                if is_transaction:
                    is_committed = chance.choice((True, True, False))
                    (producer.commit if is_committed else producer.abort)()
                producer.flush()
                if is_committed:
                    for delivery, content in sent:
                        committed.setdefault(delivery.partition, []).append((delivery.result(0).offset, content))
        return committed

    def _bytes(self) -> bytes | None:
        chance = self._chance
        sizes = (0, 1, 20, 20, 20, 5000)
        return None if chance.random() < 0.2 else chance.randbytes(chance.choice(sizes))

    def _headers(self) -> list[tuple[str, bytes | None]] | None:
        chance = self._chance
        names = ("", "h", "h", "\u00e9\n")
        return (
            [(chance.choice(names), self._bytes()) for _ in range(chance.randint(1, 3))]
            if chance.random() < 0.3
            else None
        )

    def _read(self, which: str, topic: str) -> Records:
        """Waits for the markers of transactions that have ended, and reads all that is committed."""
        found: Records = {}
        with Consumer(
            bootstrap_servers=self._nodes[which].bootstrap, isolation_level="read_committed", group_id=None
        ) as consumer:
            partitions = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
            deadline_s = time.monotonic() + TIMEOUT_S
            while (ends := consumer.end_offsets(partitions)) != self._ends_of_logs(which, partitions):
                assert time.monotonic() < deadline_s, f"a transaction in {topic} of the {which} is open at {ends}"
                time.sleep(0.01)
            consumer.assign(partitions)
            consumer.seek_to_beginning(*partitions)
            while any(consumer.position(partition) < end for partition, end in ends.items()):
                for one in consumer.poll(0.2):
                    content = (one.timestamp, one.key, one.value, tuple(one.headers))
                    found.setdefault(one.partition, []).append((one.offset, content))
        return found

    def _ends_of_logs(self, which: str, partitions: list[TopicPartition]) -> dict[TopicPartition, int]:
        with Consumer(
            bootstrap_servers=self._nodes[which].bootstrap, isolation_level="read_uncommitted", group_id=None
        ) as consumer:
            return consumer.end_offsets(partitions)

    def _check(self, case: str, expected: Records, copied: Records, how: str) -> None:
        assert expected.keys() == copied.keys(), f"{case}: {sorted(expected)} became {sorted(copied)}"
        for partition, wanted in expected.items():
            there = copied[partition]
            if how == "keep-offsets":
                assert there == wanted, f"{case}: {_difference(wanted, there)}"
                continue
            contents, got = [content for _, content in wanted], [content for _, content in there]
            if how == "exactly-once":
                assert got == contents, f"{case}: {_difference(contents, got)}"
                continue
            places = {content[0]: place for place, content in enumerate(contents)}
            following = 0
            for content in got:
                assert content[0] in places, f"{case}: {content} was never committed in the source"
                place = places[content[0]]
                assert content == contents[place], f"{case}: {content} was {contents[place]}"
                assert place <= following, f"{case}: record {place} comes before record {following}"
                following = max(following, place + 1)
            assert following == len(contents), f"{case}: {len(contents) - following} are missing"


def _difference(wanted: list[Any], got: list[Any]) -> str:
    first = next((at for at, (one, other) in enumerate(zip(wanted, got, strict=False)) if one != other), None)
    return f"{len(wanted)} records became {len(got)}; the first that differs is {first}"


def main(seed: int, cases: int, nodes: int) -> None:
    faulthandler.dump_traceback_later(TIMEOUT_S * 3, exit=True)
    copiers = Copiers()
    try:
        with _nodes(nodes) as source, _nodes(nodes) as destination, TemporaryDirectory() as directory:
            fuzz = Fuzz(seed, copiers, source, destination, Path(directory))
            for number in range(cases):
                fuzz.case(number)
        killed = ", ".join(f"{who} {count}" for who, count in sorted(fuzz.killed.items()))
        on = "" if nodes == 1 else f" on {nodes} nodes"
        print(f"copies{on}, seed {seed}, {cases} cases: {fuzz.records} records; killed: {killed}")
    finally:
        copiers.close()


def _nodes(count: int) -> Nodes:
    return Broker(faults=False) if count == 1 else Cluster(count, faults=False)


if __name__ == "__main__":
    if "--canary" in sys.argv:
        break_copies()
    nodes = int(sys.argv[sys.argv.index("--nodes") + 1]) if "--nodes" in sys.argv else 1
    main(int(sys.argv[1]), int(sys.argv[2]), nodes)
