"""Writes the markers of transactions whose end is decided, until every partition has them.

Theory of operation. A coordinator tells of a decided end (`then`), once it is committed, and maybe again. Each of the
transaction's partitions gets a marker from its leader, which is asked to write it (WriteTxnMarkers), be it this node or
another; when all have it, the coordinator completes it (`complete`), and the transaction is over. What could not be
written is tried again, at the leader that the partition has then; a partition that no longer exists needs none. Nothing
of this is remembered: a coordinator that takes over finds the decided end in its log and begins anew, and a marker that
is written twice ends nothing twice.
"""

import logging
from functools import partial
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.broker.coordination.coordinated_partition import CoordinatedPartition, CoordinatorState
from ottla.machines.metadata.image.partition_image import NO_LEADER
from ottla.runtime.apart import apart, ask_surely, later
from ottla.runtime.channels import Failed, PeerChannel, Then
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import WriteTxnMarkersRequest, WriteTxnMarkersResponse

if TYPE_CHECKING:
    from ottla.broker.cluster.cluster_metadata import ClusterMetadata
    from ottla.broker.transactions.transaction_coordinators import Transactions
    from ottla.machines.transaction.replies import DecidedEnd
    from ottla.machines.transaction.transaction_coordinator import TransactionCoordinator

_log = logging.getLogger(__name__)

_RETRY_S = 0.1
_VERSION = 2
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class TransactionMarkers:
    """Gets decided ends from the machines. `_under_way` are those whose markers are being written, by id."""

    def __init__(
        self, metadata: "ClusterMetadata", peers: PeerChannel, world: World, transactions: "Transactions"
    ) -> None:
        self.metadata = metadata
        self.peers = peers
        self.world = world
        self._transactions = transactions
        self._under_way: dict[str, _Ending] = {}

    def __len__(self) -> int:
        return len(self._under_way)

    @property
    def unwritten(self) -> int:
        """Ends of which some partition could not take the marker, and will be tried again."""
        return sum(ending.is_put_off and ending.has_unmarked for ending in self._under_way.values())

    @property
    def uncompleted(self) -> int:
        """Ends whose markers are all written, and whose coordinator's log has not taken that yet."""
        return sum(ending.is_put_off and not ending.has_unmarked for ending in self._under_way.values())

    def then(self, end: "DecidedEnd", /) -> None:
        coordinator = self._transactions.find(end.transactional_id)
        under_way = self._under_way.get(end.transactional_id)
        if coordinator is None or not coordinator.machine.awaits(end):
            return  # Another node's by now, or complete.
        if under_way is not None and under_way.is_of(end, coordinator):
            return
        ending = self._under_way[end.transactional_id] = _Ending(self, coordinator, end)
        ending.write()

    def failed(self, error: ErrorCode, /) -> None:
        """The end is not committed yet, or never will be. If it is, the coordinator tells of it again."""

    def is_current(self, ending: "_Ending") -> bool:
        return self._under_way.get(ending.end.transactional_id) is ending

    def forget(self, ending: "_Ending") -> None:
        if self.is_current(ending):
            del self._under_way[ending.end.transactional_id]


class _Ending:
    """One decided end on its way to its partitions, on behalf of a coordinator that may be replaced meanwhile."""

    __slots__ = ("_coordinator", "_markers", "_remaining", "_unanswered", "end", "is_put_off")

    def __init__(
        self,
        markers: TransactionMarkers,
        coordinator: "CoordinatedPartition[TransactionCoordinator]",
        end: "DecidedEnd",
    ) -> None:
        self.end = end
        self._markers = markers
        self._coordinator = coordinator
        self._remaining = set(end.partitions)
        self._unanswered: set[int] = set()
        self.is_put_off = False

    @property
    def has_unmarked(self) -> bool:
        return bool(self._remaining)

    def is_of(self, end: "DecidedEnd", coordinator: "CoordinatedPartition[TransactionCoordinator]") -> bool:
        return self.end == end and self._coordinator is coordinator

    def write(self) -> None:
        """Goes on with what remains."""
        self.is_put_off = False
        if not apart(self._markers.world.timers, self._write):
            self._try_again()

    def _write(self) -> None:
        if not self._markers.is_current(self):
            return
        if self._coordinator.state is CoordinatorState.CLOSED:
            self._markers.forget(self)
        elif by_leader := self._remaining_by_leader():
            self._ask_leaders(by_leader)
        elif self._remaining:
            self._try_again()
        else:
            ask_surely(
                self._markers.world.timers,
                self._complete,
                lambda _: self._markers.forget(self),
                lambda _error: self._try_again(),
            )

    def _complete(self, then: Then, failed: Failed) -> None:
        end = self.end
        self._coordinator.submit(
            lambda machine, now_ms: machine.complete(end, now_ms), then, failed, end.transactional_id
        )

    def _remaining_by_leader(self) -> dict[int, list[TopicPartition]]:
        """Which node to ask about which partitions. One without a leader waits; one that is gone is forgotten."""
        by_leader: dict[int, list[TopicPartition]] = {}
        for partition in sorted(self._remaining):
            leader = self._markers.metadata.leader_of(*partition)
            if leader is None:
                self._remaining.discard(partition)
            elif leader != NO_LEADER:
                by_leader.setdefault(leader, []).append(partition)
        return by_leader

    def _ask_leaders(self, by_leader: dict[int, list[TopicPartition]]) -> None:
        self._unanswered = set(by_leader)
        for leader, partitions in by_leader.items():
            ask_surely(
                self._markers.world.timers,
                partial(self._send, leader, partitions),
                partial(self._on_reply, leader),
                partial(self._on_no_reply, leader, partitions),
            )

    def _send(self, leader: int, partitions: list[TopicPartition], then: Then, failed: Failed) -> None:
        self._markers.peers.ask(leader, self._request(partitions), _VERSION, then, failed)

    def _request(self, partitions: list[TopicPartition]) -> WriteTxnMarkersRequest:
        end = self.end
        by_topic: dict[str, list[int]] = {}
        for topic, index in partitions:
            by_topic.setdefault(topic, []).append(index)
        marker = WriteTxnMarkersRequest.WritableTxnMarker(
            producer_id=end.producer_id,
            producer_epoch=end.producer_epoch,
            transaction_result=end.committed,
            topics=[
                WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
                for name, indexes in by_topic.items()
            ],
            coordinator_epoch=self._coordinator.leader_epoch,
            transaction_version=end.transaction_version,
        )
        return WriteTxnMarkersRequest(markers=[marker])

    def _on_reply(self, leader: int, response: WriteTxnMarkersResponse) -> None:
        self._on_written(
            leader,
            {
                TopicPartition(topic.name, one.partition_index): ErrorCode(one.error_code)
                for marker in response.markers
                for topic in marker.topics
                for one in topic.partitions
            },
        )

    def _on_no_reply(self, leader: int, partitions: list[TopicPartition], error: ErrorCode) -> None:
        self._on_written(leader, dict.fromkeys(partitions, error))

    def _on_written(self, leader: int, errors: dict[TopicPartition, ErrorCode]) -> None:
        """A leader has answered. When the last of them has, the rest is tried again."""
        self._unanswered.discard(leader)
        if not self._markers.is_current(self):
            return
        for partition, error in errors.items():
            if error in _FENCED:
                _log.warning(
                    "%s: could not write the transaction marker of %s: %s",
                    partition,
                    self.end.transactional_id,
                    error.name,
                )
                self._markers.forget(self)
                return
            if not error or not self._markers.metadata.knows(*partition):
                self._remaining.discard(partition)
        if self._unanswered:
            return
        if self._remaining:
            self._try_again()
        else:
            self.write()

    def _try_again(self) -> None:
        self.is_put_off = True
        later(self._markers.world.timers, _RETRY_S, self.write)
