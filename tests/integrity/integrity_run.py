"""One program on real nodes: sent, read back by every reader, killed, read from the files, recovered, read again.

While it is sent, rules and quotas change, and nodes may be killed.
"""

import time
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from contextlib import nullcontext, redirect_stdout
from dataclasses import replace
from io import StringIO
from itertools import product
from random import Random
from threading import Thread
from typing import Any, NamedTuple

from ottla import Producer, RecordMetadata, TopicPartition
from ottla.cli.verify import verify
from ottla.cli.verify.directory_check import DataDirectory
from ottla.cli.verify.problems import DAMAGE, Problem
from ottla.testing.workload.conversations import (
    LOST,
    METADATA_VERSION,
    Ask,
    Routes,
    metadata_request,
    routes_of,
    talk,
)
from ottla.testing.workload.drawing import MAX_MESSAGE_BYTES, draw_program
from ottla.testing.workload.ledger import Ending, Ledger, SentBatch
from ottla.testing.workload.plans import LaneKind, LanePlan, Program
from ottla.testing.workload.reading import read_partition
from ottla.testing.workload.variants import with_kills, with_rights
from tests.integrity.disturbances import Changes, Kills
from tests.integrity.lane_sockets import LaneSockets
from tests.integrity.readers import Seen, compare_directory, consumed, consumed_as_arrow
from tests.integrity.targets import Target

_BEFORE_MS = 6 * 3_600_000
_LANE_WITHIN_S = 90.0
_LANE_WITHIN_S_WITH_KILLS = 240.0
_IN_SYNC_WITHIN_S = 60.0
_ROUNDS_WITH_KILLS = 3
"""So many times more: a node is killed, and is back, several times before they are done."""
_DELIVERED_WITHIN_S = 60.0
_COMPACTED_WITHIN_S = 4.0
_ENOUGH = 3
_COMMITTED, _UNCOMMITTED = "read_committed", "read_uncommitted"
_FETCH_VERSIONS = range(4, 18)


class Outcome(NamedTuple):
    differences: list[str]
    counts: Counter[str]


def run_program(
    seed: int,
    target: Target,
    *,
    budget_bytes: int = 24 << 20,
    most_rounds: int = 12,
    only: Sequence[LaneKind] = (),
    kills: bool = False,
    cleaner_within_s: float = _COMPACTED_WITHIN_S,
) -> Outcome:
    """What must not be, and how much there was. The target's nodes are killed and started again in between.

    `kills`: while the program is sent, too, one at a time.
    `cleaner_within_s`: so long is waited for the cleaner to remove something, which it may have no reason to.
    `only` some kinds of lanes, if any are given: a smaller program that may show the same.
    """
    start_ms = int(time.time() * 1000) - _BEFORE_MS
    if kills:
        most_rounds *= _ROUNDS_WITH_KILLS
    program = with_rights(draw_program(seed, start_ms, budget_bytes=budget_bytes, most_rounds=most_rounds))
    if kills:
        program = with_kills(program)
    if only:
        program = replace(program, lanes=tuple(lane for lane in program.lanes if lane.kind in only))
    return IntegrityRun(program, target, cleaner_within_s, kills=kills).run()


class IntegrityRun:
    def __init__(self, program: Program, target: Target, cleaner_within_s: float, *, kills: bool) -> None:
        self.program = program
        self._kills = kills
        self.target = target
        self.ledger = Ledger()
        self._cleaner_within_s = cleaner_within_s
        self.counts: Counter[str] = Counter()
        self._random = Random(program.seed)
        self._ends: dict[TopicPartition, int] = {}

    def run(self) -> Outcome:
        for topic in self.program.topics:
            self.target.create(topic)
        self._send()
        self._fetch_all("before a kill")
        self.ledger.settle()
        self._consume_all("before a kill", records=_COMMITTED, arrow=_UNCOMMITTED)
        self._step("compaction", self._read_after_compaction)
        self._verify("while it runs")
        self._verify_cluster()
        self.target.kill()
        self._verify("after a kill")
        for node, data in self.target.data_dirs().items():
            self.counts["read by files"] += compare_directory(self.program, self.ledger, node, data)["records"]
        self.target.start()
        self._fetch_all("after a kill")
        self._consume_all("after a kill", records=_UNCOMMITTED, arrow=_COMMITTED)
        self.ledger.check_orders()
        self.counts += self.ledger.counts()
        return Outcome(self.ledger.differences, self.counts)

    # Sending

    def _send(self) -> None:
        routes = self._routes()
        threads = [Thread(target=self._guarded, args=(lane, routes), name=lane.name) for lane in self.program.lanes]
        changes = Changes(
            self.target,
            Random(f"changes {self.program.seed}"),
            [thread.name for thread in threads],
            [topic.name for topic in self.program.topics],
        )
        kills = Kills(self.target, Random(f"kills {self.program.seed}"), self._is_in_sync)
        with changes, kills if self._kills else nullcontext():
            for thread in threads:
                thread.daemon = True
                thread.start()
            within_s = _LANE_WITHIN_S_WITH_KILLS if self._kills else _LANE_WITHIN_S
            deadline_s = time.monotonic() + within_s
            for thread in threads:
                thread.join(max(deadline_s - time.monotonic(), 0))
                if thread.is_alive():
                    self.ledger.tell(f"{thread.name} is not done after {within_s:.0f} s")
        self.counts["rules, quotas and settings changed"] += changes.count
        self.counts["kills during the traffic"] += kills.count
        for problem in filter(None, (changes.problem, kills.problem)):
            self.ledger.tell(problem)
        self.target.start()
        self._wait_until_in_sync()

    def _wait_until_in_sync(self) -> None:
        deadline_s = time.monotonic() + _IN_SYNC_WITHIN_S
        while not self._is_in_sync():
            if time.monotonic() > deadline_s:
                self.ledger.tell(f"replicas are not in sync {_IN_SYNC_WITHIN_S:.0f} s after the traffic")
                return
            time.sleep(0.05)

    def _is_in_sync(self) -> bool:
        """Whether every replica of every topic of the program is in its ISR. No, where nobody can tell."""
        asked = metadata_request(topic.name for topic in self.program.topics)
        for node in self.target.nodes:
            sockets = self._sockets("sync", encrypted=False)
            try:
                reply = sockets.drive(_one(Ask(node, asked, METADATA_VERSION)))
            finally:
                sockets.close()
            if reply is LOST:
                return False
            partitions = [one for topic in reply.topics for one in topic.partitions]
            if any(one.leader_id < 0 or len(one.isr_nodes) < len(one.replica_nodes) for one in partitions):
                return False
        return True

    def _guarded(self, lane: LanePlan, routes: Routes) -> None:
        try:
            if lane.client_codec is None:
                sockets = self._sockets(lane.name, encrypted=lane.is_encrypted)
                try:
                    sockets.drive(talk(lane, routes, self.ledger, expects_kills=self._kills))
                finally:
                    sockets.close()
            else:
                self._send_with_producer(lane, lane.client_codec)
        except Exception as error:
            self.ledger.tell(f"{lane.name} ({lane.kind.value}) failed: {type(error).__name__}: {error}")

    def _send_with_producer(self, lane: LanePlan, codec: str) -> None:
        settings: dict[str, object] = {
            **self.target.client_settings(encrypted=lane.is_encrypted),
            "compression.type": codec,
            "max.request.size": MAX_MESSAGE_BYTES,
            "linger.ms": 1,
            "enable.idempotence": lane.kind is not LaneKind.PLAIN,
        }
        if lane.kind.is_transactional:
            settings["transactional.id"] = f"of-{lane.name}"
        with Producer(settings) as producer:
            for a_round in lane.rounds:
                transaction = self.ledger.begin() if lane.kind.is_transactional else None
                if transaction is not None:
                    producer.begin()
                    transaction.places = {one.place for request in a_round.requests for one in request.batches}
                sent = []
                for batch in (one for request in a_round.requests for one in request.batches):
                    for record in batch.records:
                        note = self.ledger.note(lane, replace(batch, records=(record,)), transaction)
                        delivery = producer.send(
                            batch.topic.name,
                            record.value,
                            record.key,
                            partition=batch.partition,
                            timestamp_ms=record.timestamp,
                            headers=record.headers,
                        )
                        sent.append((note, delivery))
                producer.flush()
                for note, delivery in sent:
                    self._note_delivery(note, delivery.result(_DELIVERED_WITHIN_S))
                if transaction is not None:
                    if a_round.commits:
                        producer.commit()
                    else:
                        producer.abort()
                    transaction.ending = Ending.COMMITTED if a_round.commits else Ending.ABORTED

    def _note_delivery(self, note: SentBatch, told: RecordMetadata) -> None:
        assert told.offset is not None, "acks=all"
        self.ledger.acknowledge(note, told.offset, told.timestamp_ms or -1)

    # Reading

    def _consume_all(self, when: str, records: str, arrow: str) -> None:
        """By a consumer and as Arrow, each with its isolation level."""
        settings = self.target.client_settings(encrypted=self._random.random() < 0.3)
        places = self.program.places
        self._step(
            f"a consumer, {when}",
            lambda: self._compare(f"a consumer, {when}", consumed(settings, places, records), records),
        )
        self._step(
            f"Arrow, {when}",
            lambda: self._compare(f"Arrow, {when}", consumed_as_arrow(settings, places, arrow), arrow),
        )

    def _step(self, name: str, read: Callable[[], None]) -> None:
        """A reader that fails is a difference. When something is wrong already, the others do not read."""
        if self.ledger.differences:
            return
        try:
            read()
        except Exception as error:
            self.ledger.tell(f"{name} failed: {type(error).__name__}: {error}")

    def _compare(self, reader: str, seen: Seen, isolation: str) -> None:
        is_committed = isolation == _COMMITTED
        for place, records in seen.items():
            self._add(
                reader, self.ledger.compare(f"{reader}, {isolation}", place, records, committed_only=is_committed)
            )

    def _fetch_all(self, when: str) -> None:
        """From every replica. The leader's is the first, and says where the others must get to."""
        routes = self._routes()
        for place in self.program.places:
            if len(self.ledger.differences) >= _ENOUGH:
                return  # what is damaged takes long to read
            sockets = self._sockets("reader", encrypted=False)
            try:
                self._fetch_place(place, routes, sockets, when)
            except Exception as error:
                self.ledger.tell(f"Fetch of {place}, {when}, failed: {type(error).__name__}: {error}")
            finally:
                sockets.close()

    def _fetch_place(self, place: TopicPartition, routes: Routes, sockets: LaneSockets, when: str) -> None:
        leader = routes.leaders[place]
        nodes = [leader, *(other for other in routes.replicas[place] if other != leader)]
        for node, is_committed in product(nodes, (False, True)):
            # A consumer may read from followers since version 11 (KIP-392).
            versions = _FETCH_VERSIONS if node == leader else _FETCH_VERSIONS[7:]
            asked = read_partition(
                place,
                node,
                routes,
                committed_only=is_committed,
                version=self._random.choice(versions),
                fetch_bytes=self._random.choice((1, 50_000, 1 << 20, 16 << 20)),
                least_end=self._ends.get(place, 0),
            )
            read = sockets.drive(asked)
            self._ends[place] = read.high_watermark
            reader = f"Fetch from {'its leader' if node == leader else 'a follower'}"
            isolation = _COMMITTED if is_committed else _UNCOMMITTED
            told = f"{reader}, {when}, {isolation}"
            self._add(reader, self.ledger.compare(told, place, read.records, committed_only=is_committed))
            if not is_committed and not self.program.topic(place.topic).is_compacted:
                offsets = [one.offset for one in read.records]
                self.ledger.check_gaps(place, offsets, read.high_watermark, has_kills=self._kills)

    def _read_after_compaction(self) -> None:
        """Waits a while until the cleaner has removed something, if it has anything to do."""
        places = [place for place in self.program.places if self.program.topic(place.topic).is_compacted]
        settings = self.target.client_settings(encrypted=False)
        deadline_s = time.monotonic() + self._cleaner_within_s
        while True:
            seen = consumed(settings, places, _COMMITTED)
            found: Counter[str] = Counter()
            for place, records in seen.items():
                found += self.ledger.compare("a consumer, after compaction", place, records, committed_only=True)
            if found["gone"] or time.monotonic() > deadline_s or self.ledger.differences:
                self.counts["compacted away"] += found["gone"]
                return
            time.sleep(0.1)

    def _add(self, reader: str, found: Counter[str]) -> None:
        self.counts[f"read by {reader.split(',')[0]}"] += found["records"]

    def _verify(self, when: str) -> None:
        """What `ottla verify` says of every directory."""
        for node, data in self.target.data_dirs().items():
            DataDirectory(str(data), deep=True).check(lambda found, node=node: self._tell(node, when, found), _nothing)
            self.counts["directories verified"] += 1

    def _verify_cluster(self) -> None:
        """What `ottla verify` says of the running cluster: every replica."""
        told = StringIO()
        with redirect_stdout(told):
            code = verify.main(["-b", str(self.target.client_settings(encrypted=False)["bootstrap.servers"])])
        if code:
            self.ledger.tell(f"ottla verify of the cluster ends with {code}: {told.getvalue()}")

    def _tell(self, node: str, when: str, found: Problem) -> None:
        if found.level == DAMAGE:
            self.ledger.tell(f"ottla verify of {node}, {when}: {found.partition} offset {found.offset}: {found.what}")

    # The target

    def _routes(self) -> Routes:
        sockets = self._sockets("routes", encrypted=False)
        try:
            while True:
                asked = metadata_request(topic.name for topic in self.program.topics)
                routes = routes_of(sockets.drive(_one(Ask(1, asked, METADATA_VERSION))))
                if all(leader >= 0 for leader in routes.leaders.values()):
                    return routes
                time.sleep(0.05)
        finally:
            sockets.close()

    def _sockets(self, name: str, *, encrypted: bool) -> LaneSockets:
        tls = self.target.tls() if encrypted else None
        return LaneSockets(
            lambda node: self.target.address_of(node, encrypted=encrypted), tls, name, expects_kills=self._kills
        )


def _nothing(_partition: str, _size_bytes: int) -> None:
    """Nobody looks at the progress."""


def _one(asked: Ask) -> Generator[list[Ask], list[Any], Any]:
    """A conversation of one request: returns the reply."""
    (reply,) = yield [asked]
    return reply
