"""The settings that one topic lives by, in the shapes that the hot paths want.

Resolved once per set of overrides and shared: ten thousand partitions without settings of their own have one object.
"""

import logging
from collections.abc import Mapping
from typing import NamedTuple

from ottla.config.parse import ConfigError, Values
from ottla.config.topic import resolve_topic
from ottla.log.log_config import LogConfig
from ottla.records.header import Compression, TimestampType
from ottla.records.validate import ProduceRules

_log = logging.getLogger(__name__)

_TIMESTAMP_TYPES = {"CreateTime": TimestampType.CREATE_TIME, "LogAppendTime": TimestampType.LOG_APPEND_TIME}
_CODECS = {
    "producer": None,
    "uncompressed": Compression.NONE,
    "gzip": Compression.GZIP,
    "snappy": Compression.SNAPPY,
    "lz4": Compression.LZ4,
    "zstd": Compression.ZSTD,
}
_GZIP_DEFAULT_LEVEL = -1
_INTERNAL_SEGMENT_BYTES = "internal.segment.bytes"
"""Kafka's own way around the lower bound of `segment.bytes`, for its tests; a directory may have it."""


class TopicSettings(NamedTuple):
    """What a topic's overrides, the broker's settings and the defaults come to."""

    log: LogConfig
    rules: ProduceRules
    min_insync_replicas: int
    flush_messages: int
    flush_ms: int

    @property
    def stamps_records(self) -> bool:
        return self.rules.timestamp_type is TimestampType.LOG_APPEND_TIME


def topic_settings(overrides: Mapping[str, str], broker: Values | None = None) -> TopicSettings:
    """What the overrides come to. Those that cannot be used (another version took them) are passed over, and named."""
    values = resolve_topic(_usable(overrides), broker)
    log = LogConfig.of_settings(values)
    if _INTERNAL_SEGMENT_BYTES in overrides:
        log = log._replace(segment_bytes=int(overrides[_INTERNAL_SEGMENT_BYTES]))
    return TopicSettings(
        log=log,
        rules=_produce_rules(values),
        min_insync_replicas=values.integer("min.insync.replicas"),
        flush_messages=values.integer("flush.messages"),
        flush_ms=values.integer("flush.ms"),
    )


def _usable(overrides: Mapping[str, str]) -> dict[str, str]:
    usable: dict[str, str] = {}
    for key, text in overrides.items():
        if key == _INTERNAL_SEGMENT_BYTES:
            continue
        try:
            resolve_topic({**usable, key: text})
            usable[key] = text
        except ConfigError as problem:
            _log.warning("a topic's setting is ignored: %s", problem)
    return usable


def _produce_rules(values: Values) -> ProduceRules:
    codec = values.text("compression.type")
    level = values.integer(f"compression.{codec}.level") if codec in ("gzip", "lz4", "zstd") else None
    return ProduceRules(
        compression=_CODECS[codec],
        compression_level=None if codec == "gzip" and level == _GZIP_DEFAULT_LEVEL else level,
        max_message_bytes=values.integer("max.message.bytes"),
        timestamp_type=_TIMESTAMP_TYPES[values.text("message.timestamp.type")],
        timestamp_before_max_ms=values.integer("message.timestamp.before.max.ms"),
        timestamp_after_max_ms=values.integer("message.timestamp.after.max.ms"),
        compacted="compact" in values.list("cleanup.policy"),
    )


class SettingsOfTopics:
    """Finds a topic's settings by the overrides that it has; the broker's own settings are behind all of them."""

    def __init__(self, broker: Values) -> None:
        self._broker = broker
        self._known: dict[tuple[tuple[str, str], ...], TopicSettings] = {}

    def of(self, overrides: Mapping[str, str]) -> TopicSettings:
        key = tuple(sorted(overrides.items()))
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = topic_settings(overrides, self._broker)
        return found

    def on_broker_settings(self, broker: Values) -> None:
        """The broker's settings have changed: what follows from them is found anew."""
        self._broker = broker
        self._known.clear()
