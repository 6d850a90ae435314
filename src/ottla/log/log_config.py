"""The topic settings that the log acts on, as plain values with Kafka's defaults."""

from collections.abc import Mapping
from typing import Any, NamedTuple
from zlib import crc32

from ottla.base.ids import TopicPartition

_DAY_MS = 24 * 60 * 60 * 1000
_NEVER_MS = (1 << 63) - 1


class LogConfig(NamedTuple):
    """Fields carry the names of the topic settings, with underscores for dots."""

    cleanup_policy: tuple[str, ...] = ("delete",)
    delete_retention_ms: int = _DAY_MS
    file_delete_delay_ms: int = 60_000
    index_interval_bytes: int = 4096
    max_compaction_lag_ms: int = _NEVER_MS
    min_cleanable_dirty_ratio: float = 0.5
    min_compaction_lag_ms: int = 0
    retention_bytes: int = -1
    retention_ms: int = 7 * _DAY_MS
    segment_bytes: int = 1 << 30
    segment_index_bytes: int = 10 << 20
    segment_jitter_ms: int = 0
    segment_ms: int = 7 * _DAY_MS

    @property
    def is_compacted(self) -> bool:
        return "compact" in self.cleanup_policy

    @property
    def deletes_old(self) -> bool:
        return "delete" in self.cleanup_policy

    def roll_ms(self, partition: TopicPartition, base_offset: int) -> int:
        """`segment.ms` less this segment's share of `segment.jitter.ms`.

        The active segment is never cleaned. So that of a compacted topic rolls after `max.compaction.lag.ms` if that is
        shorter (KIP-354), with the first append that comes then, as in Kafka.

        The share spreads the rolls of many partitions. It comes from the segment's name and not from chance, so that a
        run can be repeated.
        """
        longest_ms = min(self.segment_ms, self.max_compaction_lag_ms) if self.is_compacted else self.segment_ms
        jitter_ms = min(self.segment_jitter_ms, longest_ms)
        if not jitter_ms:
            return longest_ms
        return longest_ms - crc32(f"{partition}/{base_offset}".encode()) % jitter_ms

    @classmethod
    def of_settings(cls, values: Mapping[str, Any]) -> "LogConfig":
        """From parsed topic settings by their dotted names; what is not among them has its default."""
        fields = {name: values[name.replace("_", ".")] for name in cls._fields if name.replace("_", ".") in values}
        if "cleanup_policy" in fields:
            fields["cleanup_policy"] = tuple(fields["cleanup_policy"])
        return cls(**fields)
