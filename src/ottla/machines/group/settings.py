"""The broker settings that groups live by, as numbers."""

from dataclasses import dataclass

from ottla.config.parse import Values


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


def group_settings(config: Values) -> GroupSettings:
    return GroupSettings(
        initial_rebalance_delay_ms=config.integer("group.initial.rebalance.delay.ms"),
        min_session_timeout_ms=config.integer("group.min.session.timeout.ms"),
        max_session_timeout_ms=config.integer("group.max.session.timeout.ms"),
        max_size=config.integer("group.max.size"),
        offset_metadata_max_bytes=config.integer("offset.metadata.max.bytes"),
        offsets_retention_ms=config.integer("offsets.retention.minutes") * 60_000,
        offsets_retention_check_interval_ms=config.integer("offsets.retention.check.interval.ms"),
    )
