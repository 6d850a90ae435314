"""What the tests of the metadata log share: a node's metadata on a disk in memory, and workers that work when told."""

from random import Random
from typing import Any

from ottla.base.ids import Uuid
from ottla.base.ports import Disk
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.runtime.metadata.metadata_log import MetadataLog, MetadataLogFailed
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.store import MetadataStore, StoreConfig
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.step_timers import StepTimers
from ottla.testing.step_workers import StepWorkers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FeatureLevelRecord, PartitionRecord, TopicRecord

LOG_DIR = "/data"
ME = Voter(ReplicaKey(1, Uuid(b"directory-of-one")), (Endpoint("CONTROLLER", "127.0.0.1", 9093),))
STATIC_VOTERS = VoterSet([Voter(ReplicaKey(1))])
BOOTSTRAP = [
    FeatureLevelRecord(name="metadata.version", feature_level=30),
    FeatureLevelRecord(name="eligible.leader.replicas.version", feature_level=1),
]


def make_controller(image: MetadataImage) -> Controller:
    given = {"process.roles": "broker,controller", "node.id": "1", "controller.listener.names": "CONTROLLER"}
    config = parse(Scope.BROKER, given).values
    return Controller(
        image, node_id=1, cluster_id="test", config=config, new_uuid=lambda: Uuid(bytes(range(16))), random=Random(0)
    )


class Node:
    """The metadata of one node, and what came of its decisions."""

    def __init__(
        self,
        disk: Disk | None = None,
        *,
        clock: FixedClock | None = None,
        static_voters: VoterSet | None = STATIC_VOTERS,
        me: Voter = ME,
        store_config: StoreConfig | None = None,
        snapshots: SnapshotConfig | None = None,
        started: bool = True,
    ) -> None:
        self.disk = disk or MemoryDisk()
        self.clock = clock or FixedClock()
        self.workers = StepWorkers()
        self.timers = StepTimers(self.clock)
        self.events: list[object] = []
        self.problems: list[MetadataLogFailed] = []
        self.store = MetadataStore(self.disk, LOG_DIR, self.clock, store_config)
        self.log: MetadataLog[Controller] = MetadataLog(
            self.store,
            me,
            static_voters,
            bootstrap=BOOTSTRAP,
            make_controller=make_controller,
            workers=self.workers,
            clock=self.clock,
            timers=self.timers,
            failed=self.problems.append,
            snapshots=snapshots,
        )
        if started:
            self.log.start(lambda: self.events.append("ready"))

    @property
    def topics(self) -> list[str]:
        return sorted(self.log.image.topics.by_name)

    def create(self, *names: str, padding: int = 0) -> None:
        """Decides on topics of these names; the first is the reply."""
        records = [record for name in names for record in topic_records(name, padding)]
        self.log.submit(lambda _controller, _now_ms: Decision(names[0], records), self.events.append, self.refused)

    def ask(self) -> None:
        """A decision without records, which rests on what the controller knows."""
        self.log.submit(
            lambda controller, _: Decision(tuple(sorted(controller.image.topics.by_name))),
            self.events.append,
            self.refused,
        )

    def refused(self, error: ErrorCode) -> None:
        self.events.append(error)

    def listen(self) -> None:
        self.log.listen(self._on_delta)

    def _on_delta(self, delta: MetadataDelta) -> None:
        self.events.append(("delta", sorted(topic.name for topic in delta.topics_created.values())))

    def stop(self) -> None:
        self.log.stop(lambda: self.events.append("stopped"))

    def restarted(self, **options: Any) -> "Node":
        """The next start of this node, after a stop in good order."""
        self.stop()
        assert self.events[-1] == "stopped"
        return Node(self.disk, clock=self.clock, **options)


def topic_id(name: str) -> Uuid:
    return Uuid(name.encode()[-16:].rjust(16, b"\x07"))


def topic_records(name: str, padding: int = 0) -> list[VersionedRecord]:
    partition = PartitionRecord(
        topic_id=topic_id(name),
        partition_id=0,
        leader_epoch=0,
        partition_epoch=0,
        replicas=(1,) * (1 + padding),
        isr=(1,),
        leader=1,
        directories=(Uuid(b"directory-of-one"),) * (1 + padding),
    )
    return [VersionedRecord(TopicRecord(name=name, topic_id=topic_id(name)), 0), VersionedRecord(partition, 2)]
