"""`kafka-consumer-groups`: lists, describes and deletes consumer groups, resets and deletes their offsets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.cli.failures import FAILURES, error_text
from ottla.cli.groups.describing import Describing
from ottla.cli.groups.group_options import PROGRAM, check
from ottla.cli.groups.group_tables import ListRow, ResetRow, deleted_offset_lines, listing_lines, reset_csv, reset_lines
from ottla.cli.groups.reset_offsets import Reset, parse_partitions
from ottla.cli.java_names import java_text
from ottla.cli.json_output import print_json
from ottla.cli.options.checks import UsageError, run_program
from ottla.cli.options.reading import Given, OptionError
from ottla.cli.sessions import admin_of
from ottla.client.errors import KafkaError

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    """Like Kafka's tool, it ends with 0 also when a broker refused what was asked."""
    action = check(given)
    if action == "validate-regex":
        return _validate_regex(given.text("validate-regex"))
    with admin_of(given, given.integer("timeout") / 1000) as admin:
        try:
            _ACTIONS[action](admin, given)
        except (UsageError, OptionError, BrokenPipeError):
            raise
        except KafkaError as problem:
            print(f"\nError: Executing consumer group command failed due to {java_text(problem)}")
        except FAILURES as problem:
            print(f"\nError: Executing consumer group command failed due to {problem}")
    return 0


def _validate_regex(text: str) -> int:
    from ottla.machines.patterns import ClientPattern, InvalidPattern

    try:
        ClientPattern(text)
    except InvalidPattern as problem:
        print(f"The regular expression `{text}` is invalid: {problem}.")
    else:
        print(f"The regular expression `{text}` is valid.")
    return 0


def _list(admin: Admin, given: Given) -> None:
    from ottla.client.admin.groups.listing import GroupState, GroupType

    timeout_s = given.integer("timeout") / 1000
    if "state" not in given and "type" not in given and "json" not in given:
        for group in admin.list_consumer_groups(timeout=timeout_s):
            print(group.group_id)
        return
    states = [GroupState(name) for name in _chosen("state", given.get("state"), _STATES)]
    types = [GroupType(name) for name in _chosen("types", given.get("type"), _TYPES)]
    listed = admin.list_consumer_groups(states=states, types=types, timeout=timeout_s)
    rows = [ListRow(group.group_id, group.type.value, group.state.value) for group in listed]
    if "json" in given:
        print_json([row._asdict() for row in rows])
        return
    for line in listing_lines(rows, with_type="type" in given, with_state="state" in given):
        print(line)


_STATES = ("PreparingRebalance", "Assigning", "Reconciling", "Stable", "Dead", "Empty", "CompletingRebalance")
_TYPES = ("Consumer", "Classic")


def _chosen(what: str, text: str | None, valid: tuple[str, ...]) -> Iterator[str]:
    by_lower_case = {name.lower(): name for name in valid}
    for word in text.split(",") if text else ():
        name = by_lower_case.get(word.strip().lower())
        if name is None:
            singular = "states" if what == "state" else what
            raise UsageError(f"Invalid {what} list '{text}'. Valid {singular} are: {', '.join(valid)}")
        yield name


def _groups(admin: Admin, given: Given) -> list[str]:
    if "all-groups" in given:
        return [group.group_id for group in admin.list_consumer_groups(timeout=given.integer("timeout") / 1000)]
    return list(dict.fromkeys(given.all("group")))


def _describe(admin: Admin, given: Given) -> None:
    describing = Describing(admin, given.integer("timeout") / 1000, verbose="verbose" in given)
    groups = _groups(admin, given)
    if "json" in given:
        ways = {"members": describing.members_json, "state": describing.states_json}
        chosen = next((way for option, way in ways.items() if option in given), describing.offsets_json)
        print_json(chosen(groups))
    elif "members" in given:
        describing.members(groups)
    elif "state" in given:
        describing.states(groups)
    else:
        describing.offsets(groups)


def _delete(admin: Admin, given: Given) -> None:
    groups = _groups(admin, given)
    results = admin.delete_groups(groups, timeout=given.integer("timeout") / 1000)
    deleted = ", ".join(f"'{group}'" for group in results.succeeded)
    if not results.errors:
        print(f"Deletion of requested consumer groups ({deleted}) was successful.")
        return
    print("\nError: Deletion of some consumer groups failed:")
    for group, error in results.errors.items():
        print(f"* Group '{group}' could not be deleted due to: {java_text(error)}")
    if deleted:
        print(f"\nThese consumer groups were deleted successfully: {deleted}")


def _delete_offsets(admin: Admin, given: Given) -> None:
    group, timeout_s = given.text("group"), given.integer("timeout") / 1000
    partitions, statuses = _named_partitions(admin, given.all("topic"), timeout_s)
    top, errors = _deleted(admin, group, partitions, timeout_s)
    if top is None and not statuses:
        print(f"Request succeeded for deleting offsets from group {group}.")
    elif top is None or isinstance(top, _PartitionLevel):
        print("\nError: Encountered some partition-level error, see the follow-up details.")
    else:
        print(f"\nError: {top}")
    for partition in partitions:
        error = errors.get(partition)
        statuses[partition] = "Successful" if error is None else f"Error: {java_text(error)}"
    for line in deleted_offset_lines(statuses):
        print(line)


class _PartitionLevel(NamedTuple):
    """The group is fine, some of the partitions are not."""


def _deleted(
    admin: Admin, group: str, partitions: list[TopicPartition], timeout_s: float
) -> tuple[str | _PartitionLevel | None, dict[TopicPartition, KafkaError]]:
    """What is wrong with all of it, and with each partition."""
    if not partitions:
        return None, {}
    try:
        errors = admin.delete_consumer_group_offsets(group, partitions, timeout=timeout_s).errors
    except KafkaError as problem:
        return error_text(problem), dict.fromkeys(partitions, problem)
    if not errors:
        return None, {}
    first = next(iter(errors.values()))
    if len(errors) == len(partitions) and first.code in _OF_THE_GROUP:
        return error_text(first), errors
    return _PartitionLevel(), errors


_OF_THE_GROUP = (24, 30, 68, 69)  # INVALID_GROUP_ID, GROUP_AUTHORIZATION_FAILED, NON_EMPTY_GROUP, GROUP_ID_NOT_FOUND


def _named_partitions(
    admin: Admin, topics: list[str], timeout_s: float
) -> tuple[list[TopicPartition], dict[tuple[str, int], str]]:
    """The partitions that were meant, and topics of which they cannot be determined."""
    found = [partition for text in topics if ":" in text for partition in parse_partitions(text)]
    unknown: dict[tuple[str, int], str] = {}
    whole = [text for text in topics if ":" not in text]
    described = admin.describe_topics(whole, timeout=timeout_s)
    for topic, error in described.errors.items():
        unknown[topic, -1] = f"Error: {java_text(error)}"
    for topic, description in described.succeeded.items():
        found += [TopicPartition(topic, one.partition) for one in description.partitions]
    return list(dict.fromkeys(found)), unknown


def _reset(admin: Admin, given: Given) -> None:
    from ottla.client.errors import GroupIdNotFound

    reset = Reset(admin, given)
    rows = []
    for group in _groups(admin, given):
        try:
            state = admin.describe_consumer_groups([group], timeout=given.integer("timeout") / 1000)[group].state.value
        except GroupIdNotFound:
            state = "Dead"  # a group comes to be with its first offsets
        if state not in ("Empty", "Dead"):
            print(
                f"\nError: Assignments can only be reset if the group '{group}' is inactive, "
                f"but the current state is {state}."
            )
            continue
        offsets = reset.offsets_of(group)
        if "execute" in given and offsets:
            admin.alter_consumer_group_offsets(group, offsets, timeout=given.integer("timeout") / 1000).raise_first()
        rows += [ResetRow(group, one.topic, one.partition, offset) for one, offset in offsets.items()]
    if "export" in given:
        print(reset_csv(rows, with_group=len(given.all("group")) != 1))
        return
    for line in reset_lines(rows):
        print(line)


_ACTIONS = {
    "list": _list,
    "describe": _describe,
    "delete": _delete,
    "reset-offsets": _reset,
    "delete-offsets": _delete_offsets,
}
