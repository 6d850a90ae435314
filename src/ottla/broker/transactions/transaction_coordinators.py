"""The transaction coordinators of a broker: what a machine of theirs is given, and who writes its markers.

A machine (`machines.transaction`) is pure. Producer ids come from the block that the controller gave this node; one is
kept at hand, so that a decision never waits. Settings are one object, brought up to date with the cluster's metadata.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.broker.coordination.coordinated_partition import CoordinatorState
from ottla.broker.coordination.topic_coordinator import TopicCoordinator
from ottla.broker.transactions.transaction_markers import TransactionMarkers
from ottla.machines.metadata.image.features import TRANSACTION_VERSION
from ottla.machines.transaction.settings import TransactionSettings
from ottla.runtime.attribution import attributed
from ottla.runtime.channels import PeerChannel
from ottla.runtime.world import World
from ottla.wire.errors import ErrorCode
from ottla.wire.record_values import CoordinatorTopic

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions
    from ottla.broker.transactions.producer_ids import ProducerIds
    from ottla.machines.transaction.transaction_coordinator import TransactionCoordinator

TOPIC = "__transaction_state"
_NONE = -1


class Transactions(TopicCoordinator["TransactionCoordinator"]):
    """`submit` and `query` take a transactional id."""

    def __init__(self, partitions: "Partitions", world: World, peers: PeerChannel, producer_ids: "ProducerIds") -> None:
        super().__init__(
            partitions,
            world,
            CoordinatorTopic.TRANSACTION_STATE,
            TOPIC,
            "transaction.state.log.num.partitions",
            self._make_machine_of,
            commit_timeout_ms=partitions.node_settings.effective.integer("request.timeout.ms"),
        )
        self.settings = TransactionSettings()
        self.markers = TransactionMarkers(partitions.metadata, peers, world, self)
        self._producer_ids = producer_ids
        self._spare_id = _NONE
        self._is_taking = False
        self._waiting_for_id: list[Callable[[], None]] = []
        self.refresh_settings()

    def refresh_settings(self) -> None:
        """The cluster's features, or the node's settings, may have changed."""
        config, settings = self._held.node_settings.effective, self.settings
        settings.transaction_version = self._held.metadata.image.features.level(TRANSACTION_VERSION)
        settings.max_timeout_ms = config.integer("transaction.max.timeout.ms")
        settings.id_expiration_ms = config.integer("transactional.id.expiration.ms")
        settings.abort_interval_ms = config.integer("transaction.abort.timed.out.transaction.cleanup.interval.ms")
        settings.expiration_interval_ms = config.integer("transaction.remove.expired.transaction.cleanup.interval.ms")

    def _make_machine_of(self, _index: int, _leader_epoch: int) -> "TransactionCoordinator":
        from ottla.machines.transaction.transaction_coordinator import TransactionCoordinator

        self.refresh_settings()
        return TransactionCoordinator(self.settings, self._take_producer_id, self.markers)

    # Producer ids

    def when_id_is_at_hand(self, transactional_id: str, then: Callable[[], None]) -> None:
        """Calls back, now or later, when a producer id is there for this one, if it needs one and there is hope."""
        if self._needs_id(transactional_id):
            self._fill()
        if self._is_taking:
            self._waiting_for_id.append(attributed(then))
        else:
            then()

    def _needs_id(self, transactional_id: str) -> bool:
        led = self.find(transactional_id)
        if led is None or led.state is not CoordinatorState.ACTIVE:
            return False
        known = led.machine.transactions.get(transactional_id)
        return known is None or known.is_epoch_exhausted

    def _take_producer_id(self) -> int | None:
        self._fill()
        taken, self._spare_id = self._spare_id, _NONE
        return None if taken == _NONE else taken

    def _fill(self) -> None:
        if self._spare_id == _NONE and not self._is_taking:
            self._is_taking = True
            self._producer_ids.take(self._on_id)

    def _on_id(self, error: ErrorCode, producer_id: int) -> None:
        self._is_taking = False
        self._spare_id = _NONE if error else producer_id
        waiting, self._waiting_for_id = self._waiting_for_id, []
        for then in waiting:
            then()
