"""A member's turn: it has said what it is and has, and three things happen, each if there is a reason to.

    1. The member is written down as it is now. If the group now reads other topics, the group's epoch rises.
    2. If the group's epoch is ahead of the target's, a new target is computed for everybody: who is to have what. That
       is done at most every `consumer.assignment.interval.ms`, so that a crowd of newcomers costs one computation.
    3. The member takes its next step towards its target (see `reconciling`).

A turn gathers records; they are written if the caller hands them over.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from ottla.base.ids import Uuid
from ottla.machines.coordinator_machine import CoordinatorRecord
from ottla.machines.group.consumer.assignors import ASSIGNORS, UNIFORM
from ottla.machines.group.consumer.group import ConsumerGroup, most_wanted
from ottla.machines.group.consumer.member import ConsumerMember, Target
from ottla.machines.group.consumer.newcomers import with_newcomer
from ottla.machines.group.consumer.reconciling import Owned, reconciled
from ottla.machines.group.consumer.records import (
    current_written,
    epoch_written,
    member_tombstones,
    member_written,
    target_epoch_written,
    target_written,
)
from ottla.machines.group.consumer.subscriptions import Subscriptions, resolve
from ottla.machines.group.effects import Effects
from ottla.machines.group.settings import GroupSettings
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.image.metadata_image import MetadataImage


class Found(NamedTuple):
    """The member whose turn it is: as the group has it, or as it would be new; `replaces` is its old id."""

    member: ConsumerMember
    replaces: str | None = None


class ConsumerRules(NamedTuple):
    """The node's settings, and the cluster: a group may have settings of its own."""

    settings: GroupSettings
    image: MetadataImage

    def of_group(self, group_id: str, name: str, otherwise: int) -> int:
        value = self.image.configs.of(ResourceType.GROUP, group_id).get(name)
        return otherwise if value is None else int(value)

    def assignment_interval_ms(self, group_id: str) -> int:
        return self.of_group(group_id, "consumer.assignment.interval.ms", self.settings.consumer_assignment_interval_ms)

    def heartbeat_interval_ms(self, group_id: str) -> int:
        return self.of_group(group_id, "consumer.heartbeat.interval.ms", self.settings.consumer_heartbeat_interval_ms)

    def session_timeout_ms(self, group_id: str) -> int:
        return self.of_group(group_id, "consumer.session.timeout.ms", self.settings.consumer_session_timeout_ms)


class Turn:
    """`updated` is the member after what it has said. `epoch` is the group's, after the first step."""

    def __init__(
        self,
        group: ConsumerGroup,
        found: Found,
        updated: ConsumerMember,
        rules: ConsumerRules,
        now_ms: int,
        may_describe: Callable[[str], bool] | None = None,
    ) -> None:
        """Takes the first step. Raises `InvalidPattern`."""
        self._records: list[CoordinatorRecord] = []
        self._group = group
        self._found = found
        self.updated = updated
        self._rules = rules
        self._now_ms = now_ms
        self._may_describe = may_describe
        self._target_ids = {} if found.replaces is None else {updated.member_id: found.replaces}
        self._is_new = found.replaces is None and updated.member_id not in group.members
        self.epoch = group.epoch
        if self._has_news():
            self.epoch = self._update_subscriptions()
        else:
            self._subscriptions = Subscriptions(group, group.subscriptions, group.regexes, rules.image)
        self._target_epoch = group.assignment_epoch
        self._target = self._known_target(updated.member_id)

    def _has_news(self) -> bool:
        """Most heartbeats have none, and are not to cost more in a larger group."""
        group, found = self._group, self._found
        is_stale = group.is_metadata_stale or group.are_regexes_stale
        return is_stale or self._is_new or found.replaces is not None or self.updated != found.member

    def _update_subscriptions(self) -> int:
        group, old, updated = self._group, self._found.member, self.updated
        group_id, image = group.group_id, self._rules.image
        known = group.members.get(self._found.replaces or updated.member_id)
        subscriptions = group.subscriptions_after([known] if known is not None else [], updated)
        resolution = resolve(
            group,
            subscriptions,
            image,
            self._now_ms,
            again=group.are_regexes_stale,
            may_describe=self._may_describe,
        )
        self._subscriptions = Subscriptions(group, subscriptions, resolution.regexes, image)
        self._replace_member()
        if updated != old or self._is_new:
            self._records.append(member_written(group_id, updated))
        self._records += resolution.records
        has_changed = (
            updated.topic_names != old.topic_names
            or (updated.topic_regex or "") != (old.topic_regex or "")
            or resolution.has_changed
        )
        if has_changed or group.is_metadata_stale:
            metadata_hash = self._subscriptions.metadata_hash
            if has_changed or metadata_hash != group.metadata_hash:
                self._records.append(epoch_written(group_id, group.epoch + 1, metadata_hash))
                return group.epoch + 1
        return group.epoch

    def _replace_member(self) -> None:
        """A static member is back under another id, with everything that it had."""
        (member, replaces), group_id = self._found, self._group.group_id
        if replaces is not None:
            self._records += member_tombstones(group_id, replaces)
            self._records.append(member_written(group_id, member))
            self._records.append(target_written(group_id, member.member_id, self._group.target_of(replaces)))
            self._records.append(current_written(group_id, member))

    def update_target(self) -> None:
        """The second step."""
        group, updated = self._group, self.updated
        if self.epoch <= group.assignment_epoch or not self._may_assign():
            return
        changed = self._with_newcomer() if self._is_new else None
        if changed is None:
            changed = self._divided_anew()
        for member_id, target in changed.items():
            self._records.append(target_written(group.group_id, member_id, target))
        self._records.append(target_epoch_written(group.group_id, self.epoch, self._now_ms))
        self._target_epoch = self.epoch
        self._target = changed.get(updated.member_id, self._target)

    def _with_newcomer(self) -> dict[str, Target] | None:
        if self._assignor != UNIFORM or not self._subscriptions.are_alike:
            return None
        counts = self._subscriptions.partition_counts(self._subscriptions.topic_ids(self.updated))
        return with_newcomer(self._group, self.updated.member_id, counts)

    def _divided_anew(self) -> dict[str, Target]:
        """A target for everybody; of those, the ones that are other than before. Most of a large group are not."""
        group = self._group
        candidates = self._subscriptions.candidates(self._members(), self._target_ids)
        topic_ids = frozenset[Uuid]().union(*{candidate.topics for candidate in candidates})
        targets = ASSIGNORS[self._assignor](candidates, self._subscriptions.partition_counts(topic_ids))
        group.has_even_target = self._assignor == UNIFORM and self._subscriptions.are_alike
        changed: dict[str, Target] = {}
        for candidate in candidates:
            member_id, target = candidate.member_id, targets[candidate.member_id]
            if (target is not candidate.target and target != candidate.target) or member_id not in group.target:
                changed[member_id] = target
        return changed

    @property
    def _assignor(self) -> str:
        known = self._group.members.get(self._found.replaces or self.updated.member_id)
        wanted = self._group.assignors_after([known] if known is not None else [], self.updated)
        return most_wanted(wanted) or self._rules.settings.default_assignor

    def _members(self) -> Mapping[str, ConsumerMember]:
        """The group's, with this one as it is now."""
        replaces, updated = self._found.replaces, self.updated
        others = {id: member for id, member in self._group.members.items() if id != replaces}
        return {**others, updated.member_id: updated}

    def _may_assign(self) -> bool:
        """An assignment from the future was made before somebody set the clock back: nobody waits for that hour."""
        last_ms = self._group.assignment_timestamp_ms
        interval_ms = self._rules.assignment_interval_ms(self._group.group_id)
        return last_ms == 0 or not last_ms <= self._now_ms < last_ms + interval_ms

    def _known_target(self, member_id: str) -> Target:
        return self._group.target_of(self._target_ids.get(member_id, member_id))

    def reconcile(self, owned: Owned | None) -> ConsumerMember | None:
        """The third step: the member after it; None if it must begin anew."""
        reads = self._subscriptions.topic_ids(self.updated)
        stepped = reconciled(
            self.updated,
            self._target,
            self._target_epoch,
            owned,
            self._group.owner_epoch,
            reads=reads.__contains__,
        )
        if stepped is not None and stepped != self.updated:
            self._records.append(current_written(self._group.group_id, stepped))
        return stepped

    def hand_over(self, effects: Effects) -> None:
        """What the turn has led to is to be written; with that the group has been looked at again."""
        effects.records += self._records
        self._group.is_metadata_stale = self._group.are_regexes_stale = False
