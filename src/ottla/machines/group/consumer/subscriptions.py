"""What the members of a group read, as one of them is about to change; and the records that follow from it."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.coordinator import CoordinatorRecord
from ottla.machines.group.consumer.assignors import Candidate
from ottla.machines.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.machines.group.consumer.member import NO_TARGET, ConsumerMember
from ottla.machines.group.consumer.records import regex_forgotten, regex_resolved
from ottla.machines.group.consumer.topic_hash import group_hash
from ottla.machines.group.consumer.topic_regex import TopicRegex
from ottla.machines.metadata.image import MetadataImage


class Subscriptions:
    """Of `members`, who need not be in the group yet. `regexes` are resolved against the topics that there are."""

    def __init__(
        self,
        group: ConsumerGroup,
        members: Mapping[str, ConsumerMember],
        regexes: Mapping[str, ResolvedRegex],
        image: MetadataImage,
    ) -> None:
        self._group = group
        self._members = members
        self._regexes = regexes
        self._image = image
        # Most members of a group have the same subscription.
        self._topic_ids: dict[tuple[frozenset[str], str | None], frozenset[Uuid]] = {}

    @property
    def metadata_hash(self) -> int:
        """Worked out again if the group reads other topics than when it was last, or something about them is new."""
        group = self._group
        alike = {(member.topic_names, member.topic_regex): member for member in self._members.values()}
        topics = frozenset[str]().union(*(group.topics_of(member, self._regexes) for member in alike.values()))
        if group.hashed is None or group.is_metadata_stale or group.hashed[0] != topics:
            group.hashed = topics, group_hash(self._image, topics)
        return group.hashed[1]

    def candidates(self, target_ids: Mapping[str, str]) -> list[Candidate]:
        """The members as assignors see them; `target_ids` says under which id a member's target is found."""
        targets, topic_ids = self._group.target, self.topic_ids
        return [
            Candidate(
                member_id,
                member.instance_id,
                topic_ids(member),
                targets.get(target_ids.get(member_id, member_id), NO_TARGET),
            )
            for member_id, member in self._members.items()
        ]

    def topic_ids(self, member: ConsumerMember) -> frozenset[Uuid]:
        """Of the topics that it reads and that exist."""
        subscription = member.topic_names, member.topic_regex
        found = self._topic_ids.get(subscription)
        if found is None:
            by_name = self._image.topics.by_name
            names = self._group.topics_of(member, self._regexes)
            found = frozenset(by_name[name].id for name in names if name in by_name)
            self._topic_ids[subscription] = found
        return found

    def partition_counts(self, topic_ids: Iterable[Uuid]) -> dict[Uuid, int]:
        by_id = self._image.topics.by_id
        return {topic_id: len(by_id[topic_id].partitions) for topic_id in sorted(topic_ids)}


class Resolution(NamedTuple):
    """Regular expressions and their topics, and the records that tell of what is new about them."""

    regexes: dict[str, ResolvedRegex]
    records: list[CoordinatorRecord]
    has_changed: bool


def resolve(
    group: ConsumerGroup, members: Iterable[ConsumerMember], image: MetadataImage, now_ms: int, *, again: bool
) -> Resolution:
    """Resolves the expressions of these members that are new to the group, and with `again` all of them.

    Raises `InvalidRegex`. An expression that no member has any more is forgotten.
    """
    wanted = dict.fromkeys(member.topic_regex for member in members if member.topic_regex)
    regexes: dict[str, ResolvedRegex] = {}
    records: list[CoordinatorRecord] = []
    has_changed = False
    for regex in wanted:
        known = group.regexes.get(regex)
        if known is not None and not again:
            regexes[regex] = known
            continue
        automaton = TopicRegex(regex)
        topics = frozenset(name for name in image.topics.by_name if automaton.matches(name))
        if known is not None and known.topics == topics:
            regexes[regex] = known
            continue
        has_changed = True
        regexes[regex] = ResolvedRegex(topics, timestamp_ms=now_ms)
        records.append(regex_resolved(group.group_id, regex, topics, 0, now_ms))
    records += [regex_forgotten(group.group_id, regex) for regex in group.regexes if regex not in wanted]
    return Resolution(regexes, records, has_changed)
