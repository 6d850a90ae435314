"""Several brokers that replicate to each other, in one thread, with a controller that decides as the real one does.

    cluster = Cluster(3)
    cluster.create_topic()
    cluster[1].produce(...)
    cluster.run()

Time moves when a test says so. Messages between brokers arrive when `run` or `advance` is called, in the order in which
they were sent; a broker that is `down` answers nothing, and hears nothing of the metadata until it is back.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from random import Random
from typing import Any

from ottla.base.ids import Uuid
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.controller.leadership import changes_when_added, changes_when_removed
from ottla.machines.metadata.decisions.alter_partition import alter_partition
from ottla.machines.metadata.decisions.assign_directories import assign_replicas_to_dirs
from ottla.machines.metadata.image.features import FEATURES
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.channels import Caller, Failed, Then
from ottla.testing.clock import FixedClock
from ottla.testing.memory_disk import MemoryDisk
from ottla.testing.step_timers import Agenda
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    AllocateProducerIdsRequest,
    AllocateProducerIdsResponse,
    AlterPartitionRequest,
    AssignReplicasToDirsRequest,
    ConfigRecord,
    FeatureLevelRecord,
    FenceBrokerRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
    UnfenceBrokerRecord,
)
from tests.unit.broker.brokers import NOW_MS, TestNode, broker_settings, over_the_wire, topic_id_of

QUIET_ROUNDS = 10_000


class Cluster:
    """`altered` are the ISRs that leaders have asked for. Brokers that are `deaf` get no new metadata."""

    def __init__(self, count: int = 3, **settings: str) -> None:
        self.clock = FixedClock(NOW_MS)
        self.agenda = Agenda(self.clock)
        self.image = MetadataImage()
        self.messages: deque[Callable[[], None]] = deque()
        self.down: set[int] = set()
        self.deaf: set[int] = set()
        self._log: list[Message] = []
        self._heard: dict[int, int] = {}
        self.altered: list[tuple[int, ...]] = []
        self._settings = {"replica_lag_time_max_ms": "3000", **settings}
        self._context = ControllerContext(self.image, 9, "the-cluster", broker_settings(), Uuid, Random(0))
        self._epochs = 100
        self._producer_ids = 0
        self.nodes: dict[int, TestNode] = {}
        newest = FEATURES["metadata.version"].supported[1]
        self.commit(FeatureLevelRecord(name="metadata.version", feature_level=newest))
        for node_id in range(1, count + 1):
            self._register(node_id)
            self._make(node_id)

    def __getitem__(self, node_id: int) -> TestNode:
        return self.nodes[node_id]

    def _make(self, node_id: int, disk: MemoryDisk | None = None) -> None:
        image = MetadataImage()
        for record in self._log:
            image.replay(record)
        self._heard[node_id] = len(self._log)
        lines = Lines(self, node_id)
        node = TestNode(disk, image, self.clock, node_id=node_id, agenda=self.agenda, leaders=lines, **self._settings)
        self.nodes[node_id] = node
        node.controller.other = self
        node.peers.other = OtherBrokers(lines)
        node.broker.identity.broker_epoch = self.epoch_of(node_id)
        node.broker.isr_changes.start()

    def epoch_of(self, node_id: int) -> int:
        return self.image.brokers.by_id[node_id].epoch

    # Metadata

    def commit(self, *records: Message) -> None:
        for record in records:
            self.image.replay(record)
        self._log += records
        self.tell()

    def tell(self) -> None:
        """Brokers that are there hear of all that has changed."""
        for node_id, node in self.nodes.items():
            if node_id not in self.down | self.deaf:
                news, self._heard[node_id] = self._log[self._heard[node_id] :], len(self._log)
                if news:
                    node.commit(*news)

    def _register(self, node_id: int, *, fenced: bool = False) -> None:
        self._epochs += 1
        endpoint = RegisterBrokerRecord.BrokerEndpoint(name="PLAINTEXT", host=f"b{node_id}", port=9092)
        record = RegisterBrokerRecord(
            broker_id=node_id,
            broker_epoch=self._epochs,
            end_points=[endpoint],
            fenced=fenced,
            rack=f"rack-{node_id}",
        )
        self.commit(record)

    def create_topic(
        self, name: str = "orders", replicas: tuple[int, ...] = (1, 2, 3), partitions: int = 1, **settings: str
    ) -> None:
        topic_id = topic_id_of(name)
        self.commit(
            TopicRecord(name=name, topic_id=topic_id),
            *(
                ConfigRecord(resource_type=2, resource_name=name, name=key.replace("_", "."), value=value)
                for key, value in settings.items()
            ),
            *(
                PartitionRecord(
                    partition_id=index,
                    topic_id=topic_id,
                    replicas=replicas,
                    isr=replicas,
                    leader=replicas[0],
                    leader_epoch=0,
                    partition_epoch=0,
                    directories=(bytes(16),) * len(replicas),
                )
                for index in range(partitions)
            ),
        )
        self.run()

    def change(self, name: str = "orders", index: int = 0, **changes: Any) -> None:
        self.commit(PartitionChangeRecord(topic_id=topic_id_of(name), partition_id=index, **changes))

    def isr(self, name: str = "orders", index: int = 0) -> tuple[int, ...]:
        return self.image.topics.by_name[name].partitions[index].isr

    # The controller

    def ask(self, request: Message, version: int, _caller: Caller, then: Then, failed: Failed) -> None:
        if isinstance(request, AllocateProducerIdsRequest):
            self._producer_ids += 1000
            block = AllocateProducerIdsResponse(producer_id_start=self._producer_ids, producer_id_len=1000)
            self.messages.append(lambda: then(block))
            return
        if isinstance(request, AssignReplicasToDirsRequest):
            assigned = over_the_wire(request, version)
            self.messages.append(lambda: then(self.decide(assign_replicas_to_dirs, assigned)))
            return
        assert isinstance(request, AlterPartitionRequest)
        self.messages.append(lambda: self._decide(over_the_wire(request, version), version, then, failed))

    def _decide(self, request: Message, version: int, then: Then, failed: Failed) -> None:
        assert isinstance(request, AlterPartitionRequest)
        if request.broker_id in self.down:
            return
        decision = alter_partition(self._context, request, version)
        for topic in request.topics:
            for partition in topic.partitions:
                self.altered.append(tuple(one.broker_id for one in partition.new_isr_with_epochs))
        records: list[VersionedRecord] = decision.records
        if records:
            self.commit(*(record.message for record in records))
        reply = over_the_wire(decision.reply, version)
        self.messages.append(lambda: then(reply))

    def decide(self, decide: Callable[..., Decision[Any]], request: Message) -> Any:
        """Lets the controller decide about something, as it decides about it in a node."""
        decision = decide(self._context, request)
        self.commit(*(record.message for record in decision.records))
        return decision.reply

    # Brokers that come and go

    def kill(self, node_id: int) -> None:
        """As `kill -9`: what its system has of its files stays."""
        self.down.add(node_id)
        self.nodes[node_id].timers.close()
        self.fence(node_id)

    def fence(self, node_id: int) -> None:
        """The controller has not heard of a broker for too long."""
        changes = [change.message for change in changes_when_removed(self._context, node_id)]
        self.commit(FenceBrokerRecord(id=node_id, epoch=self.epoch_of(node_id)), *changes)

    def start(self, node_id: int, *, empty: bool = False) -> None:
        """The same node again, or one that has lost its disk."""
        self._register(node_id, fenced=True)
        self.down.discard(node_id)
        disk = None if empty else self.nodes[node_id].disk.survivor_of_kill()  # type: ignore[attr-defined]
        self._make(node_id, disk)
        self.unfence(node_id)

    def unfence(self, node_id: int) -> None:
        changes = [change.message for change in changes_when_added(self._context, node_id)]
        self.commit(UnfenceBrokerRecord(id=node_id, epoch=self.epoch_of(node_id)), *changes)

    def elect(self, leader: int, isr: tuple[int, ...], name: str = "orders") -> None:
        self.change(name, leader=leader, isr=list(isr))

    # Time and messages

    def run(self) -> None:
        """Until nothing happens any more without time."""
        for _ in range(QUIET_ROUNDS):
            self.agenda.run_until(self.clock.elapsed_us())
            if not self.messages:
                return
            self.messages.popleft()()
        raise AssertionError("brokers keep talking")

    def advance(self, by_ms: int) -> None:
        end_us = self.clock.elapsed_us() + by_ms * 1000
        self.run()
        while self.agenda.next_us() <= end_us:
            self.agenda.fire_next()
            self.run()
        self.agenda.run_until(end_us)
        self.run()


class Lines:
    """What one follower asks its leaders."""

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self._cluster = cluster
        self._node_id = node_id
        self.dropped: list[tuple[int, int]] = []

    def ask(
        self, leader_id: int, fetcher: int, request: Message, version: int, then: Then, failed: Failed, timeout_ms: int
    ) -> None:
        asking = self._cluster.nodes.get(self._node_id)
        self._cluster.messages.append(partial(self._deliver, asking, leader_id, request, version, then, failed))

    def _deliver(
        self, asking: TestNode | None, leader_id: int, request: Message, version: int, then: Then, failed: Failed
    ) -> None:
        cluster = self._cluster
        leader = cluster[leader_id]

        def answer(call: Callable[[], None]) -> None:
            is_same = asking is None or cluster.nodes.get(self._node_id) is asking
            if self._node_id in cluster.down and is_same:
                failed(ErrorCode.NETWORK_EXCEPTION)
            elif is_same:
                call()

        if leader_id in cluster.down or self._node_id in cluster.down:
            cluster.messages.append(lambda: answer(lambda: failed(ErrorCode.NETWORK_EXCEPTION)))
            return

        def on_reply(message: Message | None) -> None:
            assert message is not None
            if leader_id in cluster.down:
                cluster.messages.append(lambda: answer(lambda: failed(ErrorCode.NETWORK_EXCEPTION)))
                return
            message = over_the_wire(message, version)
            cluster.messages.append(lambda: answer(lambda: then(message)))

        leader.hear(request, version, on_reply)

    def drop(self, leader_id: int, fetcher: int) -> None:
        self.dropped.append((leader_id, fetcher))


class OtherBrokers:
    """A `PeerChannel` to the other brokers of the cluster."""

    def __init__(self, lines: Lines) -> None:
        self._lines = lines

    def ask(self, node_id: int, request: Message, version: int, then: Then, failed: Failed) -> None:
        self._lines.ask(node_id, 0, request, version, then, failed, 30_000)
