"""`--describe` of kafka-consumer-groups: offsets, members or states of groups, in the order of their names."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from ottla.base.ids import TopicPartition
from ottla.cli.groups.group_tables import MemberRow, OffsetRow, StateRow, member_lines, offset_lines, state_lines
from ottla.cli.groups.reset_offsets import LATEST

if TYPE_CHECKING:
    from ottla.client.admin.groups.describing import ConsumerGroupDescription, GroupMember
    from ottla.client.blocking.admin import Admin
    from ottla.client.topic_partition import OffsetAndMetadata

_REBALANCING = ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling")


class Describing:
    def __init__(self, admin: Admin, timeout_s: float, *, verbose: bool) -> None:
        self._admin = admin
        self._timeout_s = timeout_s
        self._verbose = verbose

    def offsets(self, groups: Iterable[str]) -> None:
        for group in self._described(groups):
            rows = self._offset_rows(group)
            if _tells_state(group, bool(rows)):
                _print(offset_lines(rows, verbose=self._verbose))

    def members(self, groups: Iterable[str]) -> None:
        for group in self._described(groups):
            _tells_state(group, bool(group.members))
            rows = [_member_row(group, member) for member in group.members]
            _print(member_lines(rows, verbose=self._verbose))

    def states(self, groups: Iterable[str]) -> None:
        for group in self._described(groups):
            if _tells_state(group, True):
                _print(state_lines(_state_row(group), verbose=self._verbose))

    def offsets_json(self, groups: Iterable[str]) -> list[dict[str, object]]:
        """For `--json`, the rows of all groups, however they are."""
        rows = (row for group in self._described(groups) for row in self._offset_rows(group))
        return [{**row._asdict(), "lag": row.lag} for row in rows]

    def members_json(self, groups: Iterable[str]) -> list[dict[str, object]]:
        rows = (_member_row(group, member) for group in self._described(groups) for member in group.members)
        return [row._asdict() for row in rows]

    def states_json(self, groups: Iterable[str]) -> list[dict[str, object]]:
        return [_state_row(group)._asdict() for group in self._described(groups)]

    def _described(self, groups: Iterable[str]) -> list[ConsumerGroupDescription]:
        described = self._admin.describe_consumer_groups(sorted(groups), timeout=self._timeout_s)
        return [group for _, group in sorted(described.raise_first().items())]

    def _offset_rows(self, group: ConsumerGroupDescription) -> list[OffsetRow]:
        """First the members with most partitions, then partitions that nobody reads."""
        found = self._admin.list_consumer_group_offsets(group.group_id, timeout=self._timeout_s)
        committed = {partition: place for partition, place in found[group.group_id].items() if place is not None}
        reading = sorted((one for one in group.members if one.assignment), key=lambda one: -len(one.assignment))
        assigned = {partition for member in reading for partition in member.assignment}
        alone = [partition for partition in committed if partition not in assigned]
        ends = self._ends({*assigned, *alone})
        rows = [row for member in reading for row in _rows(group.group_id, member.assignment, committed, ends, member)]
        rows += _rows(group.group_id, alone, committed, ends, None)
        rows += [
            OffsetRow(group.group_id, None, None, None, None, None, member.member_id, member.host, member.client_id)
            for member in group.members
            if not member.assignment
        ]
        return rows

    def _ends(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Of a partition that has no leader now, or is gone, the end is not known."""
        wanted = dict.fromkeys(sorted(partitions), LATEST)
        if not wanted:
            return {}
        listed = self._admin.list_offsets(wanted, timeout=self._timeout_s)
        listed.errors  # noqa: B018 - they have been noticed: their rows have a dash
        return {partition: one.offset for partition, one in listed.succeeded.items() if one.offset is not None}


def _rows(
    group: str,
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, OffsetAndMetadata],
    ends: Mapping[TopicPartition, int],
    member: GroupMember | None,
) -> Iterator[OffsetRow]:
    for partition in sorted(partitions):
        place = committed.get(partition)
        yield OffsetRow(
            group,
            partition.topic,
            partition.partition,
            None if place is None else place.leader_epoch,
            None if place is None else place.offset,
            ends.get(partition),
            None if member is None else member.member_id,
            None if member is None else member.host,
            None if member is None else member.client_id,
        )


def _member_row(group: ConsumerGroupDescription, member: GroupMember) -> MemberRow:
    is_classic = group.type.value == "Classic"
    return MemberRow(
        group.group_id,
        member.member_id,
        member.host,
        member.client_id,
        member.group_instance_id or "",
        len(member.assignment),
        _by_topic(member.assignment),
        None if member.target_assignment is None else _by_topic(member.target_assignment),
        None if is_classic else member.member_epoch,
        None if is_classic else group.target_assignment_epoch,
        None,
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for partition in partitions:
        found.setdefault(partition.topic, []).append(partition.partition)
    return found


def _state_row(group: ConsumerGroupDescription) -> StateRow:
    node = group.coordinator
    return StateRow(
        group.group_id,
        f"{node.host}:{node.port}  ({node.id})",
        group.assignor,
        group.state.value,
        len(group.members),
        group.group_epoch,
        group.target_assignment_epoch,
    )


def _tells_state(group: ConsumerGroupDescription, has_rows: bool) -> bool:
    """Says what is unusual about the group; returns whether there is a table to print."""
    state = group.state.value
    if state == "Dead":
        print(f"\nError: Consumer group '{group.group_id}' does not exist.")
    elif state == "Empty":
        print(f"\nConsumer group '{group.group_id}' has no active members.", file=sys.stderr)
    elif state in _REBALANCING:
        print(f"\nWarning: Consumer group '{group.group_id}' is rebalancing.", file=sys.stderr)
    return state != "Dead" and has_rows


def _print(lines: Iterator[str]) -> None:
    print("\n".join(lines))
