"""The coordinator of one topic: finds the partition that a key belongs to, and lets its machine decide."""

import logging
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from ottla.broker.coordination.coordinated_partition import CoordinatedPartition, CoordinatorState
from ottla.broker.coordination.placement import partition_of
from ottla.broker.partitions.partition import Partition
from ottla.machines.coordinator_machine import CoordinatorDecision, CoordinatorMachine, EncodedCommand
from ottla.runtime.rate_limited_log import FaultLog
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.record_values import CoordinatorTopic

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)

MachineT = TypeVar("MachineT", bound=CoordinatorMachine)
ReplyT = TypeVar("ReplyT")


class TopicCoordinator(Generic[MachineT]):
    """`make_machine` is given the number of the partition and its leader epoch. `partitions` are those led here."""

    def __init__(
        self,
        partitions: "Partitions",
        world: World,
        topic: CoordinatorTopic,
        topic_name: str,
        partition_count_setting: str,
        make_machine: Callable[[int, int], MachineT],
        *,
        compression: int = 0,
        commit_timeout_ms: int,
        linger_ms: int = -1,
    ) -> None:
        self.topic_name = topic_name
        self.partitions: dict[int, CoordinatedPartition[MachineT]] = {}
        self._held = partitions
        self._world = world
        self._faults = FaultLog(_log, world.clock.elapsed_s)
        """For what a client's request can bring up again and again, and that costs that request alone."""
        self._topic = topic
        self._partition_count_setting = partition_count_setting
        self._make_machine = make_machine
        self._compression = compression
        self._commit_timeout_ms = commit_timeout_ms
        self._linger_ms = linger_ms

    # Leadership

    def on_leadership(self, partition: Partition) -> None:
        """This node may have become the leader of a partition of the topic, or no longer be it."""
        index = partition.name.partition
        led = self.partitions.get(index)
        if led is not None:
            is_same = led.partition is partition and led.leader_epoch == partition.leader_epoch
            if is_same and partition.is_leader:
                return
            del self.partitions[index]
            led.close()
        if partition.is_leader:
            self._begin(index, partition)

    def _begin(self, index: int, partition: Partition) -> None:
        led = CoordinatedPartition(
            self._held,
            self._world,
            self._faults,
            partition,
            self._topic,
            lambda: self._make_machine(index, partition.leader_epoch),
            compression=self._compression,
            commit_timeout_ms=self._commit_timeout_ms,
            linger_ms=self._linger_ms,
        )
        self.partitions[index] = led
        led.load()

    def close(self) -> None:
        """The node stops: what is decided is written, and everybody who waits is sent elsewhere."""
        for led in list(self.partitions.values()):
            led.write()
            led.close()
        self.partitions.clear()

    # Finding

    @property
    def partition_count(self) -> int:
        """Of the topic, or that it will be created with."""
        topic = self._held.metadata.image.topics.by_name.get(self.topic_name)
        if topic is not None:
            return len(topic.partitions)
        return self._held.node_settings.effective.integer(self._partition_count_setting)

    def partition_for(self, key: str) -> int:
        return partition_of(key, self.partition_count)

    def find(self, key: str) -> CoordinatedPartition[MachineT] | None:
        return self.partitions.get(self.partition_for(key))

    @property
    def active(self) -> Iterator[CoordinatedPartition[MachineT]]:
        return (led for led in self.partitions.values() if led.state is CoordinatorState.ACTIVE)

    @property
    def is_loading(self) -> bool:
        return any(led.state is CoordinatorState.LOADING for led in self.partitions.values())

    # Deciding

    def submit(
        self,
        key: str,
        decide: Callable[[MachineT, int], CoordinatorDecision[ReplyT]],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
        *,
        only_reads: bool = False,
    ) -> None:
        """Lets the machine of the key's partition decide; see `CoordinatedPartition.submit`."""
        led = self.partitions.get(partition_of(key, self.partition_count))
        if led is None:
            failed(ErrorCode.NOT_COORDINATOR)
        else:
            led.submit(decide, then, failed, key, only_reads=only_reads)

    def submit_encoded(self, command: EncodedCommand) -> None:
        """The same for a command whose records are bytes."""
        led = self.partitions.get(partition_of(command.subject, self.partition_count))
        if led is None:
            command.refuse(ErrorCode.NOT_COORDINATOR)
        else:
            led.submit_encoded(command)

    def query(
        self,
        key: str,
        read: Callable[[MachineT, int], ReplyT],
        then: Callable[[ReplyT], None],
        failed: Callable[[ErrorCode], None],
    ) -> None:
        """Reads state, and tells of it once all that it came from is committed."""
        led = self.find(key)
        if led is None:
            failed(ErrorCode.NOT_COORDINATOR)
        else:
            led.query(read, then, failed, key)
