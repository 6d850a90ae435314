"""The two topics of a copy: which they are, and the settings that decide whether records stay in the destination.

A name is not enough to know a topic by: it may be deleted and made again, and another cluster may have one of the same
name. So the place of a copy is kept with the ids of both topics and of their clusters (`CopyOf`), and a place that was
kept for other topics is refused: from there, records would be skipped.

A destination that does not exist is made with the settings of the source. Where it exists, each setting by which it
keeps less than the source is named before a record is copied. It is not changed: it may have other records in it.
"""

from collections.abc import Callable, Mapping
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ottla.base.errors import OttlaError

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

T = TypeVar("T")
FOREVER_MS: Final = 2**63 - 1
_KNOWN_WITHIN_S: Final = 30.0
_ASK_AGAIN_S: Final = 0.05
Settings = Mapping[str, str]


class CannotCopy(OttlaError):
    """The two topics, or the options, do not go together."""


class CopiedTopic(NamedTuple):
    """One end of a copy."""

    cluster_id: str
    topic: str
    topic_id: str | None
    """None if the broker is older than topic ids (KIP-516)."""

    def __str__(self) -> str:
        return f"{self.topic} (topic id {self.topic_id}, cluster {self.cluster_id})"


class CopyOf(NamedTuple):
    """What the place of a copy is kept with."""

    source: CopiedTopic
    destination: CopiedTopic

    def check_kept(self, kept: Any, keeper: str, remedy: str) -> None:
        """Raises `CannotCopy` if `keeper` has the place of another copy, of which it kept `kept` (`as_kept`)."""
        for end, now in (("source", self.source), ("destination", self.destination)):
            before = CopiedTopic(**kept[end])
            if before == now:
                continue
            what = f"{keeper} has the place of a copy whose {end} was {before}, and not {now}"
            if (before.cluster_id, before.topic) == (now.cluster_id, now.topic):
                what = f"{now.topic} was deleted and made again since {keeper} kept its place: it was {before}"
            raise CannotCopy(f"{what}. {remedy}")

    def as_kept(self) -> dict[str, dict[str, str | None]]:
        """For JSON."""
        return {"source": self.source._asdict(), "destination": self.destination._asdict()}


def described(admin: "Admin", topic: str, timeout_s: float | None = None) -> tuple[CopiedTopic, int]:
    """A topic that exists, and the number of its partitions."""
    found = admin.describe_topics([topic], timeout=timeout_s)[topic]
    cluster_id = admin.describe_cluster(timeout=timeout_s).cluster_id
    return CopiedTopic(cluster_id, topic, found.topic_id), len(found.partitions)


def once_known(ask: Callable[[], T]) -> T:
    """The answer for a topic that was just made: a broker may be asked that has not heard of it yet."""
    from ottla.client.errors import UnknownTopicOrPartition

    deadline_s = monotonic() + _KNOWN_WITHIN_S
    while True:
        try:
            return ask()
        except UnknownTopicOrPartition:
            if monotonic() > deadline_s:
                raise
            sleep(_ASK_AGAIN_S)


class _Setting(NamedTuple):
    """One that a copy is to have from its source."""

    keeps_less: Callable[[str, str], bool]
    """Whether the first, the destination's, keeps less than the second."""
    consequence: str
    wanted: str | None = None
    """What the destination is made with, whatever the source has."""


def _is_smaller(ours: str, theirs: str) -> bool:
    """-1 is without limit."""
    return int(ours) >= 0 and (int(theirs) < 0 or int(ours) < int(theirs))


def _is_other(ours: str, theirs: str) -> bool:
    return {one.strip() for one in ours.split(",")} != {one.strip() for one in theirs.split(",")}


def _is_not_kept(ours: str, theirs: str) -> bool:
    return ours != "CreateTime"


def _never(ours: str, theirs: str) -> bool:
    return False


_SETTINGS: Final = {
    "cleanup.policy": _Setting(_is_other, "records are deleted or compacted by other rules"),
    "retention.ms": _Setting(_is_smaller, "records are deleted earlier, old ones at once"),
    "retention.bytes": _Setting(_is_smaller, "records are deleted earlier"),
    "max.message.bytes": _Setting(_is_smaller, "large records are refused"),
    # A source with LogAppendTime has given its records a time, and the copy has the same.
    "message.timestamp.type": _Setting(_is_not_kept, "records get the time at which they are copied", "CreateTime"),
    # The source has taken its records when they were new.
    "message.timestamp.before.max.ms": _Setting(_is_smaller, "old records are refused", str(FOREVER_MS)),
    "message.timestamp.after.max.ms": _Setting(_is_smaller, "records with times to come are refused"),
    "delete.retention.ms": _Setting(_is_smaller, "tombstones are removed earlier"),
    "min.compaction.lag.ms": _Setting(_is_smaller, "records are compacted earlier"),
    "max.compaction.lag.ms": _Setting(_never, ""),
    "compression.type": _Setting(_never, ""),
}
_OF_COMPACTION: Final = {"delete.retention.ms", "min.compaction.lag.ms"}


def settings_of(admin: "Admin", topic: str) -> dict[str, str]:
    """The settings of an existing topic that count for a copy, wherever they come from: the topic, or its cluster."""
    from ottla.client.admin.configs import ConfigResource

    resource = ConfigResource.topic(topic)
    found = admin.describe_configs([resource])[resource]
    return {name: found[name].value or "" for name in _SETTINGS if name in found}


def make_destination(admin: "Admin", topic: str, partitions: int, source: Settings) -> None:
    """Makes the topic with those settings of the source that it would not have anyway, at once and not afterwards."""
    from ottla.client.admin.topics import NewTopic

    wanted = {name: _SETTINGS[name].wanted or value for name, value in source.items()}
    planned = admin.create_topics(NewTopic(topic, partitions), validate_only=True)[topic].config
    if planned is not None:  # None if this principal may create the topic, and not see its settings
        wanted = {name: value for name, value in wanted.items() if planned.get(name, value) != value}
    admin.create_topics(NewTopic(topic, partitions, config=wanted))


def differences(topic: str, of_topic: Settings, source: str, of_source: Settings) -> list[str]:
    """By which settings an existing destination keeps less than the source, and what follows from each."""
    is_compacted = "compact" in of_topic.get("cleanup.policy", "")
    return [
        f"{topic} has {name}={of_topic[name]}, and {source} has {of_source[name]}: {setting.consequence} in {topic}"
        for name, setting in _SETTINGS.items()
        if name in of_topic and name in of_source and (is_compacted or name not in _OF_COMPACTION)
        if setting.keeps_less(of_topic[name], of_source[name])
    ]
