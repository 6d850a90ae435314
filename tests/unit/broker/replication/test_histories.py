"""Brokers that are killed, cut off and restarted at random: nothing that was acknowledged is lost, and logs agree.

The controller's own decisions elect leaders and change ISRs; brokers hear of them late. A failing seed is repeated by
its number.
"""

from random import Random
from typing import Any

import pytest

from ottla.machines.metadata.image.partition_image import NO_LEADER
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import only, produce_request, produced, values_in
from tests.unit.broker.replicating_nodes import Cluster

SEEDS = range(60)
STEPS = 60
PRODUCER = 7
ALL = {1, 2, 3}


class History:
    """One life of a cluster, and an idempotent producer that repeats a batch until it is acknowledged."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.cluster = Cluster(3)
        settings = {"flush_messages": "1"} if seed % 5 == 0 else {}
        self.cluster.create_topic(min_insync_replicas=str(1 + seed % 2), **settings)
        self.acknowledged: list[tuple[int, bytes]] = []
        self.sequence = 0
        self._waiting: Any = None
        self._high_watermarks: dict[int, tuple[int, int]] = {}

    def live(self) -> None:
        choices = [self._produce] * 6 + [self._pass_time] * 4
        choices += [self._kill, self._start, self._start, self._deafen, self._let_hear, self._let_hear]
        for _ in range(STEPS):
            self.random.choice(choices)()
            self.check()
        self._heal()

    # What happens

    @property
    def leader(self) -> int:
        return self.cluster.image.topics.by_name["orders"].partitions[0].leader

    def _produce(self) -> None:
        """To the leader, or to a node that takes itself for it."""
        cluster = self.cluster
        asked = self.random.choice([*sorted(ALL - cluster.down), self.leader])
        if asked == NO_LEADER or asked in cluster.down:
            return
        if self._waiting is None:
            request = produce_request(produced(PRODUCER, self.sequence, b"%d" % self.sequence))
            request.timeout_ms = 2000
            self._waiting = cluster[asked].ask(request, 12)
        if self.random.random() < 0.7:
            cluster.run()
        self._look()

    def _look(self) -> None:
        reply = self._waiting
        if reply is None or not reply.is_here:
            return
        self._waiting = None
        answer = only(reply.message)
        if answer.error_code == ErrorCode.NONE:
            self.acknowledged.append((answer.base_offset, b"%d" % self.sequence))
            self.sequence += 1

    def _pass_time(self) -> None:
        self.cluster.advance(self.random.choice([1, 50, 500, 3000]))
        self._look()

    def _kill(self) -> None:
        cluster = self.cluster
        if len(cluster.down) < 2:
            killed = self.random.choice(sorted(ALL - cluster.down))
            cluster.kill(killed)
            cluster.deaf.discard(killed)
            self._waiting = None  # Its connection may be to that node. The batch is sent again.

    def _start(self) -> None:
        cluster = self.cluster
        if cluster.down:
            cluster.start(self.random.choice(sorted(cluster.down)))

    def _deafen(self) -> None:
        """A broker hears nothing of the metadata for a while: another leads, and it does not know."""
        cluster = self.cluster
        cluster.deaf = set(self.random.sample(sorted(ALL), 1))
        if self.random.random() < 0.5 and not cluster.deaf & cluster.down:
            (node_id,) = cluster.deaf
            cluster.fence(node_id)
            cluster.unfence(node_id)

    def _let_hear(self) -> None:
        self.cluster.deaf.clear()
        self.cluster.tell()

    # What must hold

    def check(self) -> None:
        logs = {node_id: self.cluster[node_id].partition().log for node_id in sorted(ALL - self.cluster.down)}
        for node_id, log in logs.items():
            epoch, before = self._high_watermarks.get(node_id, (-1, 0))
            node = self.cluster[node_id]
            if epoch == id(node):
                assert log.high_watermark >= before, f"the high watermark of {node_id} went back"
            self._high_watermarks[node_id] = id(node), log.high_watermark
        committed = min((log.high_watermark for log in logs.values()), default=0)
        below = {bytes_before(log, committed) for log in logs.values()}
        assert len(below) <= 1, f"logs differ below {committed}"

    def _heal(self) -> None:
        """Faults end: everything is led, in sync and served within a few seconds."""
        cluster = self.cluster
        for node_id in sorted(cluster.down):
            cluster.start(node_id)
        self._let_hear()
        self._waiting = None
        cluster.advance(10_000)
        assert sorted(cluster.isr()) == [1, 2, 3]
        while len(self.acknowledged) < 3 or self._waiting is not None:
            self._produce()
            self._pass_time()
        cluster.advance(1000)
        ends = {bytes_before(cluster[node_id].partition().log, 1 << 60) for node_id in ALL}
        assert len(ends) == 1
        values = values_in(cluster[self.leader].fetch(0))
        assert len(values) == len(set(values)), "a record was repeated"
        for offset, value in self.acknowledged:
            assert values[offset] == value, f"{value!r} was acknowledged at {offset}"


def bytes_before(log: Any, offset: int) -> bytes:
    end_offset = min(offset, log.log_end_offset)
    return bytes(log.read(0, 1 << 24, end_offset, min_one_batch=True).read())


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_no_acknowledged_record_is_lost_or_repeated(seed):
    history = History(seed)
    history.live()
