"""What has to be looked at again and again to be reported on a page: the loop's stalls, rates of the quorum, elections.

Every few seconds a sample is taken; what is shown is of the last minute. So a stall between two scrapes is seen by
both, and by two Prometheus servers alike. Nothing of this runs on a node without a metrics listener.
"""

from collections import deque
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.partition_image import NO_LEADER, RECOVERING
from ottla.node.metrics.group_lags import GroupLags
from ottla.node.metrics.node_health import NodeHealth
from ottla.runtime.loop import LoopTimes
from ottla.runtime.world import World

if TYPE_CHECKING:
    from ottla.broker.broker import Broker
    from ottla.machines.metadata.controller.controller import Controller
    from ottla.node.node_tls import NodeTls
    from ottla.runtime.metadata.metadata_log import MetadataLog
    from ottla.runtime.peers.node_connections import NodeConnections

SAMPLE_S: Final = 5.0
_SAMPLES: Final = 13
"""A minute of them, and the one before it."""


class Sample(NamedTuple):
    at_s: float
    busy_s: float
    longest_s: float
    log_end_offset: int
    led: bool


class NodeWatch:
    """See the module. `follow` when the metadata is known, `watch_broker` when the broker is."""

    def __init__(self, world: World, health: NodeHealth, loop: LoopTimes | None, tls: "NodeTls | None" = None) -> None:
        self.health = health
        self.tls = tls
        self.metadata: MetadataLog[Controller] | None = None
        self.connections: NodeConnections | None = None
        self.lags: GroupLags | None = None
        self.loop = loop
        self.unclean_elections = 0
        self.commit_count = 0
        self._commits: deque[tuple[float, float]] = deque(maxlen=256)
        self._world = world
        self._samples: deque[Sample] = deque(maxlen=_SAMPLES)

    def start(self) -> None:
        self._world.timers.every(SAMPLE_S, self.sample, first_s=0.0)

    def follow(self, metadata: "MetadataLog[Controller]", connections: "NodeConnections | None") -> None:
        self.metadata, self.connections = metadata, connections
        metadata.listen(self.on_metadata)

    def watch_broker(self, broker: "Broker") -> None:
        self.lags = GroupLags(broker)
        broker.client_metrics.is_on = True

    def sample(self) -> None:
        loop, raft = self.loop, self.metadata.raft if self.metadata is not None else None
        taken = Sample(
            self._world.timers.now_s(),
            loop.busy_s if loop is not None else 0.0,
            loop.longest_s if loop is not None else 0.0,
            raft.log_end.offset if raft is not None else 0,
            raft is not None and raft.is_leader,
        )
        if loop is not None:
            loop.longest_s = 0.0
        self._samples.append(taken)
        if self.lags is not None:
            self.lags.look()

    def on_metadata(self, delta: MetadataDelta) -> None:
        assert self.metadata is not None
        if self.metadata.is_active:
            self.commit_count += 1
            took_ms = max(self._world.clock.now_ms() - self.metadata.last_timestamp_ms, 0)
            self._commits.append((self._world.timers.now_s(), took_ms))
        topics = self.metadata.image.topics.by_id
        for (topic_id, index), before in delta.partitions.items():
            topic = topics.get(topic_id)
            now = topic.partitions.get(index) if topic is not None and before is not None else None
            if now is None or before is None or now.leader in (NO_LEADER, before.leader):
                continue
            known = (*before.isr, *before.eligible_leader_replicas)
            self.unclean_elections += now.leader_recovery_state == RECOVERING or now.leader not in known

    # What is shown

    @property
    def longest_stall_s(self) -> float:
        """In the last minute: the longest time in which the loop did not look for more to do."""
        now = self.loop.longest_s if self.loop is not None else 0.0
        return max([now, *(sample.longest_s for sample in self._samples)])

    @property
    def idle_share(self) -> float:
        """Of the last minute, 0 to 1."""
        if self.loop is None or not self._samples:
            return 1.0
        first = self._samples[0]
        elapsed_s = self._world.timers.now_s() - first.at_s
        return min(max(1 - (self.loop.busy_s - first.busy_s) / elapsed_s, 0.0), 1.0) if elapsed_s > 0 else 1.0

    def record_rate(self, *, as_leader: bool) -> float:
        """Records a second that came into the metadata log in the last minute: written here, or fetched."""
        pairs = list(zip(self._samples, list(self._samples)[1:], strict=False))
        added = sum(later.log_end_offset - one.log_end_offset for one, later in pairs if later.led is as_leader)
        elapsed_s = self._samples[-1].at_s - self._samples[0].at_s if pairs else 0.0
        return max(added, 0) / elapsed_s if elapsed_s > 0 else 0.0

    def commit_latency_ms(self) -> tuple[float, float]:
        """Average and most of the last minute, from the time that a batch says to when it was committed."""
        since_s = self._world.timers.now_s() - SAMPLE_S * (_SAMPLES - 1)
        recent = [took_ms for at_s, took_ms in self._commits if at_s >= since_s]
        return (sum(recent) / len(recent), max(recent)) if recent else (0.0, 0.0)
