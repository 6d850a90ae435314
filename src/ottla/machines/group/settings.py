"""The broker settings that groups live by, as numbers."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from ottla.config.parse import Values
from ottla.machines.group.consumer.assignors import ASSIGNORS


class MigrationPolicy(Enum):
    """Which way a group with members may change its protocol. Empty ones always may."""

    DISABLED = "disabled"
    UPGRADE = "upgrade"
    """From the classic to the consumer protocol."""
    DOWNGRADE = "downgrade"
    BIDIRECTIONAL = "bidirectional"

    @property
    def allows_upgrade(self) -> bool:
        return self in (MigrationPolicy.UPGRADE, MigrationPolicy.BIDIRECTIONAL)

    @property
    def allows_downgrade(self) -> bool:
        return self in (MigrationPolicy.DOWNGRADE, MigrationPolicy.BIDIRECTIONAL)


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """Times are in milliseconds. The defaults are Kafka's."""

    initial_rebalance_delay_ms: int = 3000
    min_session_timeout_ms: int = 6000
    max_session_timeout_ms: int = 1_800_000
    max_size: int = (1 << 31) - 1
    offset_metadata_max_bytes: int = 4096
    offsets_retention_ms: int = 10_080 * 60_000
    offsets_retention_check_interval_ms: int = 600_000
    consumer_session_timeout_ms: int = 45_000
    consumer_heartbeat_interval_ms: int = 5_000
    consumer_assignment_interval_ms: int = 1_000
    consumer_max_size: int = (1 << 31) - 1
    default_assignor: str = "uniform"
    migration_policy: MigrationPolicy = MigrationPolicy.BIDIRECTIONAL


def group_settings(config: Values) -> GroupSettings:
    return GroupSettings(
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
        max_size=config.integer("group.max.size"),
        offset_metadata_max_bytes=config.integer("offset.metadata.max.bytes"),
        offsets_retention_ms=config.integer("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.integer("offsets.retention.check.interval.ms"),
        consumer_session_timeout_ms=config.integer("group.consumer.session.timeout.ms"),
        consumer_heartbeat_interval_ms=config.integer("group.consumer.heartbeat.interval.ms"),
        consumer_assignment_interval_ms=config.integer("group.consumer.assignment.interval.ms"),
        consumer_max_size=config.integer("group.consumer.max.size"),
        default_assignor=_first_known(config.list("group.consumer.assignors")),
        migration_policy=MigrationPolicy(config.text("group.consumer.migration.policy").lower()),
    )


def _first_known(assignors: Sequence[str]) -> str:
    """Assignors may be given by name, or by the class that Kafka has for them."""
    for assignor in assignors:
        for name in ASSIGNORS:
            if assignor in (name, f"org.apache.kafka.coordinator.group.assignor.{name.capitalize()}Assignor"):
                return name
    return next(iter(ASSIGNORS))
