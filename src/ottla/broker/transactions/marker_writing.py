"""Ends a producer's transaction in partitions that are led here, on behalf of its coordinator.

A marker is answered for when all in-sync replicas have it. Partitions of `__consumer_offsets` pass it on to the group
coordinator, for which the transaction's offsets count from then on, or never did.

Of a producer that bumps its epoch with every end (`transaction.version` 2), a marker carries an epoch that its records
never had. One with the epoch of an open transaction is a late marker of the one before, and must not end it.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.base.ports import Clock
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_end import announce, append
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.log.producer_state import AppendOrigin
from ottla.machines.coordinator_machine import TransactionStamp
from ottla.records.control import EndTransactionMarker, build_end_transaction_marker
from ottla.runtime.request import ClientConnection
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.coordination.coordinators import Groups
    from ottla.broker.partitions.held_partitions import Partitions
    from ottla.broker.transactions.transaction_verification import Verifications

_OFFSETS = "__consumer_offsets"
_MAX_EPOCH = 0x7FFF
_BUMPS_EPOCHS = 2
_NOBODY = ClientConnection(-1, "", "")

# The group coordinator is not there yet: for a coordinator of transactions that is a leader that is not there yet.
_AS_LEADER = dict.fromkeys(
    (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR),
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)

Errors = dict[TopicPartition, ErrorCode]


class Marker(NamedTuple):
    producer_id: int
    producer_epoch: int
    committed: bool
    coordinator_epoch: int
    transaction_version: int = 0


def write_markers(
    services: "MarkerServices", marker: Marker, partitions: Iterable[TopicPartition], then: Callable[[Errors], None]
) -> None:
    """Writes the marker to each partition, and tells of all of them once the last is decided, now or later."""
    _Writing(services, marker, then).begin(list(partitions))


class MarkerServices(NamedTuple):
    """What writing takes: the logs, the guards that a marker revokes, and the groups whose offsets it decides on."""

    partitions: "Partitions"
    clock: Clock
    verifications: "Verifications"
    groups: "Groups"


class _Writing(Operation):
    """One marker for several partitions. `_awaited`: what the high watermark of a partition has to reach.

    `_groups` is the number of partitions of groups whose coordinator has not answered yet. Nobody is answered before
    the marker has been brought to every partition (`_is_everywhere`), and then whatever is waited for comes last.
    """

    __slots__ = (
        "_awaited",
        "_clock",
        "_errors",
        "_groups",
        "_groups_of_offsets",
        "_is_everywhere",
        "_marker",
        "_partitions",
        "_then",
        "_verifications",
    )

    def __init__(self, services: MarkerServices, marker: Marker, then: Callable[[Errors], None]) -> None:
        super().__init__(_NOBODY)
        self._partitions, self._clock, self._verifications, self._groups_of_offsets = services
        self._marker = marker
        self._then = then
        self._errors: Errors = {}
        self._awaited: dict[Partition, int] = {}
        self._groups = 0
        self._is_everywhere = False

    def begin(self, names: list[TopicPartition]) -> None:
        grown: list[Partition] = []
        self._groups = sum(name.topic == _OFFSETS for name in names)
        for name in names:
            if name.topic == _OFFSETS:
                self._write_to_group(name)
            else:
                error = self._write(name, grown)
                if error is not None:
                    self._errors[name] = error
        if self._awaited:
            timeout_ms = self._partitions.node_settings.effective.integer("request.timeout.ms")
            self._partitions.purgatory.park(self, list(self._awaited), timeout_ms)
        for partition in grown:
            announce(self._partitions, partition)
        self._is_everywhere = True
        self._tell_if_done()

    # A partition of records

    def _write(self, name: TopicPartition, grown: list[Partition]) -> ErrorCode | None:
        """The outcome; None if it is still to be waited for."""
        partition, error = self._find(name)
        if partition is None:
            return error
        marker = EndTransactionMarker(self._marker.committed, self._marker.coordinator_epoch)
        data = build_end_transaction_marker(
            marker, self._marker.producer_id, self._marker.producer_epoch, self._clock.now_ms()
        )
        appended = append(self._partitions, partition, data, AppendOrigin.COORDINATOR)
        if appended.error:
            return appended.error
        self._verifications.revoke(name, self._marker.producer_id)
        grown.append(partition)
        if partition.log.high_watermark > appended.last_offset:
            return ErrorCode.NONE
        self._awaited[partition] = appended.last_offset + 1
        return None

    def _find(self, name: TopicPartition) -> tuple[Partition, ErrorCode] | tuple[None, ErrorCode]:
        """The partition, if it takes the marker."""
        partition = self._partitions.get(name)
        if partition is None:
            return None, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if partition.state is None:
            return None, ErrorCode.NOT_LEADER_OR_FOLLOWER
        if not partition.state.has_enough_replicas:
            return None, ErrorCode.NOT_ENOUGH_REPLICAS
        if self._is_late(partition):
            return None, ErrorCode.INVALID_PRODUCER_EPOCH
        return partition, ErrorCode.NONE

    def _is_late(self, partition: Partition) -> bool:
        producer = partition.log.producers.get(self._marker.producer_id)
        if producer is None or self._marker.transaction_version < _BUMPS_EPOCHS:
            return False
        epoch = self._marker.producer_epoch
        is_repeated = producer.current_txn_first_offset < 0 or epoch == _MAX_EPOCH
        return epoch == producer.epoch and not is_repeated

    # A partition of groups

    def _write_to_group(self, name: TopicPartition) -> None:
        partition, error = self._find(name)
        coordinated = self._groups_of_offsets.partitions.get(name.partition)
        if partition is None or coordinated is None:
            self._on_group(name, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        self._verifications.revoke(name, self._marker.producer_id)
        coordinated.end_transaction(
            TransactionStamp(self._marker.producer_id, self._marker.producer_epoch),
            EndTransactionMarker(self._marker.committed, self._marker.coordinator_epoch),
            lambda _: self._on_group(name, ErrorCode.NONE),
            lambda error: self._on_group(name, _AS_LEADER.get(error, error)),
        )

    def _on_group(self, name: TopicPartition, error: ErrorCode) -> None:
        self._errors[name] = error
        self._groups -= 1
        self._tell_if_done()

    # Waiting

    def is_done(self, place: Place) -> bool:
        assert isinstance(place, Partition)
        if place in self._awaited:
            error = self._outcome(place, self._awaited[place])
            if error is not None:
                del self._awaited[place]
                self._errors[place.name] = error
        return not self._awaited

    def _outcome(self, partition: Partition, end_offset: int) -> ErrorCode | None:
        if not self._partitions.holds(partition) or partition.state is None:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return partition.state.acknowledgement(end_offset)

    def complete(self) -> None:
        for partition in list(self._awaited):
            if self.is_done(partition):
                break
        self._errors.update((partition.name, ErrorCode.REQUEST_TIMED_OUT) for partition in self._awaited)
        self._awaited.clear()
        self._tell_if_done()

    def _tell_if_done(self) -> None:
        if self._is_everywhere and not self._awaited and not self._groups:
            self._then(self._errors)
