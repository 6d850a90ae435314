"""The settings that a consumer acts on itself, checked against one another and typed."""

from typing import Any, NamedTuple

from ottla.client.consumer.offsets.offset_lookup import READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.consumer.offsets.offset_reset import OffsetReset, parse_offset_reset
from ottla.client.serialization import deserialize_bytes, deserializer
from ottla.client.settings import ClientSettings
from ottla.config.parse import ConfigError, Problem
from ottla.records.columns import Deserialize


class ConsumerSettings(NamedTuple):
    group_id: str | None
    offset_reset: OffsetReset
    isolation_level: int
    auto_commits: bool
    auto_commit_interval_ms: int
    fetch_min_bytes: int
    fetch_max_bytes: int
    fetch_max_wait_ms: int
    max_partition_fetch_bytes: int
    max_poll_records: int
    max_poll_interval_ms: int
    check_crcs: bool
    client_rack: str
    request_timeout_ms: int
    retry_backoff_ms: int
    api_timeout_ms: int
    metadata_max_age_ms: int
    excludes_internal_topics: bool
    creates_topics: bool
    key_deserializer: Deserialize | None
    """None for bytes, which cost nothing."""
    value_deserializer: Deserialize | None

    @property
    def patience_s(self) -> float:
        """How long a poll may wait before it counts as another one: for the group, and for committing by the way."""
        most_ms = self.max_poll_interval_ms / 3
        return (min(most_ms, self.auto_commit_interval_ms) if self.auto_commits else most_ms) / 1000

    @classmethod
    def of(cls, settings: ClientSettings) -> "ConsumerSettings":
        group_id = settings.optional_text("group.id") or None
        auto_commits = settings.flag("enable.auto.commit")
        if group_id is None:
            if "enable.auto.commit" in settings.given and auto_commits:
                raise ConfigError((Problem("enable.auto.commit", "true", "false without a group.id to commit for"),))
            auto_commits = False
        is_committed = settings.text("isolation.level").lower() == "read_committed"
        return cls(
            group_id=group_id,
            offset_reset=parse_offset_reset(settings.text("auto.offset.reset")),
            isolation_level=READ_COMMITTED if is_committed else READ_UNCOMMITTED,
            auto_commits=auto_commits,
            auto_commit_interval_ms=settings.integer("auto.commit.interval.ms"),
            fetch_min_bytes=settings.integer("fetch.min.bytes"),
            fetch_max_bytes=settings.integer("fetch.max.bytes"),
            fetch_max_wait_ms=settings.integer("fetch.max.wait.ms"),
            max_partition_fetch_bytes=settings.integer("max.partition.fetch.bytes"),
            max_poll_records=settings.integer("max.poll.records"),
            max_poll_interval_ms=settings.integer("max.poll.interval.ms"),
            check_crcs=settings.flag("check.crcs"),
            client_rack=settings.text("client.rack"),
            request_timeout_ms=settings.integer("request.timeout.ms"),
            retry_backoff_ms=settings.integer("retry.backoff.ms"),
            api_timeout_ms=settings.integer("default.api.timeout.ms"),
            metadata_max_age_ms=settings.integer("metadata.max.age.ms"),
            excludes_internal_topics=settings.flag("exclude.internal.topics"),
            creates_topics=settings.flag("allow.auto.create.topics"),
            key_deserializer=_deserializer(settings, "key.deserializer"),
            value_deserializer=_deserializer(settings, "value.deserializer"),
        )


def _deserializer(settings: ClientSettings, key: str) -> Deserialize | None:
    given: Any = settings.plug_in(key)
    try:
        found = deserializer(given)
    except ValueError as expected:
        raise ConfigError((Problem(key, repr(given), str(expected)),)) from None
    return None if found is deserialize_bytes else found
