"""What the members of a group read, as one of them is about to change; and the records that follow from it."""

from collections.abc import Callable, Collection, Iterable, Mapping
from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.coordinator_machine import CoordinatorRecord
from ottla.machines.group.consumer.assignors import Candidate
from ottla.machines.group.consumer.group import ConsumerGroup, ResolvedRegex
from ottla.machines.group.consumer.member import NO_TARGET, ConsumerMember, Subscription
from ottla.machines.group.consumer.records import regex_forgotten, regex_resolved
from ottla.machines.group.consumer.topic_hash import group_hash
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.patterns import ClientPattern


class Subscriptions:
    """Those of a group's members, who need not be in it yet. `regexes` are resolved against the topics there are."""

    def __init__(
        self,
        group: ConsumerGroup,
        subscriptions: Collection[Subscription],
        regexes: Mapping[str, ResolvedRegex],
        image: MetadataImage,
    ) -> None:
        self._group = group
        self._subscriptions = subscriptions
        self._regexes = regexes
        self._image = image
        self._topic_ids: dict[Subscription, frozenset[Uuid]] = {}

    @property
    def metadata_hash(self) -> int:
        """Worked out again if the group reads other topics than when it was last, or something about them is new."""
        group = self._group
        topics = frozenset[str]().union(*(group.topics_of(each, self._regexes) for each in self._subscriptions))
        if group.hashed is None or group.is_metadata_stale or group.hashed[0] != topics:
            group.hashed = topics, group_hash(self._image, topics)
        return group.hashed[1]

    @property
    def are_alike(self) -> bool:
        """Whether all members read the same."""
        return len(self._subscriptions) == 1

    def candidates(self, members: Mapping[str, ConsumerMember], target_ids: Mapping[str, str]) -> list[Candidate]:
        """The members as assignors see them; `target_ids` says under which id a member's target is found."""
        targets, topic_ids = self._group.target, self.topic_ids
        return [
            Candidate(
                member_id,
                member.instance_id,
                topic_ids(member),
                targets.get(target_ids.get(member_id, member_id), NO_TARGET),
            )
            for member_id, member in members.items()
        ]

    def topic_ids(self, member: ConsumerMember) -> frozenset[Uuid]:
        """Of the topics that it reads and that exist."""
        subscription = member.topic_names, member.topic_regex
        found = self._topic_ids.get(subscription)
        if found is None:
            by_name = self._image.topics.by_name
            names = self._group.topics_of(subscription, self._regexes)
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
    group: ConsumerGroup,
    subscriptions: Iterable[Subscription],
    image: MetadataImage,
    now_ms: int,
    *,
    again: bool,
    may_describe: Callable[[str], bool] | None = None,
) -> Resolution:
    """Resolves the expressions in these that are new to the group, and with `again` all of them.

    Topics that the member may not describe which makes the group look are not found. Raises `InvalidPattern`. An
    expression that no member has any more is forgotten.
    """
    wanted = dict.fromkeys(regex for _, regex in subscriptions if regex)
    regexes: dict[str, ResolvedRegex] = {}
    records: list[CoordinatorRecord] = []
    has_changed = False
    for regex in wanted:
        known = group.regexes.get(regex)
        if known is not None and not again:
            regexes[regex] = known
            continue
        pattern = ClientPattern(regex)
        topics = frozenset(name for name in image.topics.by_name if pattern.matches(name))
        if may_describe is not None:
            topics = frozenset(filter(may_describe, topics))
        if known is not None and known.topics == topics:
            regexes[regex] = known
            continue
        has_changed = True
        regexes[regex] = ResolvedRegex(topics, timestamp_ms=now_ms)
        records.append(regex_resolved(group.group_id, regex, topics, 0, now_ms))
    records += [regex_forgotten(group.group_id, regex) for regex in group.regexes if regex not in wanted]
    return Resolution(regexes, records, has_changed)
