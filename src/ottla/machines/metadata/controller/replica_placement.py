"""Where replicas go: striped over racks and brokers from a random start, as Apache Kafka's placer does.

Partition after partition, the first replica goes to the next rack and the next of its unfenced brokers, and the others
to the racks after it. A partition has its replicas in as many racks as it can, leaders are spread evenly over unfenced
brokers, and a fenced broker is used when there is no other. After as many partitions as there are unfenced brokers
everything is shuffled, so that the same pairs of brokers do not share all their partitions.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ottla.machines.metadata.controller.controller_context import ControllerContext, Random
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode


class UsableBroker(NamedTuple):
    id: int
    rack: str | None
    fenced: bool


class _Ring:
    """Brokers in a circle. Each epoch starts one further, and gives every broker once."""

    def __init__(self, brokers: Iterable[int], random: Random) -> None:
        self.brokers = sorted(brokers)
        self._start = random.randrange(len(self.brokers)) if self.brokers else 0
        self._given = 0
        self._epoch = 0

    def next(self, epoch: int) -> int | None:
        if epoch != self._epoch and self.brokers:
            self._epoch, self._given = epoch, 0
            self._start = (self._start + 1) % len(self.brokers)
        if self._given >= len(self.brokers):
            return None
        broker = self.brokers[(self._start + self._given) % len(self.brokers)]
        self._given += 1
        return broker


class _Rack:
    def __init__(self, brokers: Sequence[UsableBroker], random: Random) -> None:
        self.fenced = _Ring((broker.id for broker in brokers if broker.fenced), random)
        self.unfenced = _Ring((broker.id for broker in brokers if not broker.fenced), random)

    def next(self, epoch: int) -> int | None:
        broker = self.unfenced.next(epoch)
        return self.fenced.next(epoch) if broker is None else broker


class _Racks:
    def __init__(self, brokers: Sequence[UsableBroker], random: Random) -> None:
        names = sorted({broker.rack for broker in brokers}, key=lambda name: (name is not None, name))
        self.racks = [_Rack([broker for broker in brokers if broker.rack == name], random) for name in names]
        self._random = random
        self._unfenced_count = sum(not broker.fenced for broker in brokers)
        self._offset = random.randrange(len(self.racks))
        self._epoch = 0

    def place(self, replication_factor: int) -> tuple[int, ...]:
        if self._epoch == self._unfenced_count and self._unfenced_count > 1:
            self._shuffle()
            self._epoch = 0
        count = len(self.racks)
        self._offset %= count
        first_rack = self._offset
        while (leader := self.racks[first_rack].unfenced.next(self._epoch)) is None:
            first_rack = (first_rack + 1) % count
        replicas = [leader]
        rack, skip = self._offset, first_rack
        while len(replicas) < replication_factor:
            # The leader's rack is passed over in the first round only.
            broker, skip = (None, -1) if rack == skip else (self.racks[rack].next(self._epoch), skip)
            if broker is not None:
                replicas.append(broker)
            rack = (rack + 1) % count
        self._epoch += 1
        self._offset += 1
        return tuple(replicas)

    def _shuffle(self) -> None:
        self._random.shuffle(self.racks)
        for rack in self.racks:
            self._random.shuffle(rack.fenced.brokers)
            self._random.shuffle(rack.unfenced.brokers)


def place(
    partition_count: int, replication_factor: int, brokers: Sequence[UsableBroker], random: Random
) -> list[tuple[int, ...]] | Refusal:
    """Replicas for each of `partition_count` partitions, the leader first."""
    problem = None
    if replication_factor <= 0:
        problem = f"Invalid replication factor {replication_factor}: the replication factor must be positive."
    elif all(broker.fenced for broker in brokers):
        problem = "All brokers are currently fenced, or have all their log directories cordoned."
    elif replication_factor > len(brokers):
        problem = (
            f"The target replication factor of {replication_factor} cannot be reached because only {len(brokers)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
    if problem is not None:
        return Refusal(ErrorCode.INVALID_REPLICATION_FACTOR, problem)
    racks = _Racks(brokers, random)
    return [racks.place(replication_factor) for _ in range(partition_count)]


def usable_brokers(context: ControllerContext) -> list[UsableBroker]:
    """Brokers that may be given replicas: none that shuts down, or has every directory cordoned (KIP-1066)."""
    return [
        UsableBroker(broker.id, broker.rack, broker.fenced)
        for broker in context.image.brokers.by_id.values()
        if not broker.in_controlled_shutdown
        and (not broker.directories or set(broker.directories) - set(broker.cordoned_directories or ()))
    ]


def check_manual_assignment(
    replicas: Sequence[int], replication_factor: int | None, context: ControllerContext
) -> Refusal | None:
    """Whether a client may ask for these replicas; the first partition decides how many the others have."""
    problem = None
    if not replicas:
        problem = "The manual partition assignment includes an empty replica list."
    previous = None
    for broker_id in sorted(replicas):
        if broker_id not in context.image.brokers.by_id:
            problem = f"The manual partition assignment includes broker {broker_id}, but no such broker is registered."
        elif broker_id == previous:
            problem = f"The manual partition assignment includes the broker {broker_id} more than once."
        if problem:
            break
        previous = broker_id
    if not problem and replication_factor not in (None, len(replicas)):
        problem = (
            f"The manual partition assignment includes a partition with {len(replicas)} replica(s), but this is not "
            f"consistent with previous partitions, which have {replication_factor} replica(s)."
        )
    return Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem) if problem else None


def new_partition(replicas: Sequence[int], context: ControllerContext) -> PartitionImage | None:
    """A partition at its beginning, led by the first active replica; None if there is none."""
    isr = tuple(broker_id for broker_id in replicas if context.is_active(broker_id))
    if not isr:
        return None
    directories = tuple(context.default_directory(broker_id) for broker_id in replicas)
    return PartitionImage(tuple(replicas), isr, isr[0], directories=directories)
