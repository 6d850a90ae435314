"""`kafka-groups`: lists groups of all types."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from ottla.cli.json_output import JSON, print_json
from ottla.cli.options.checks import UsageError, refuse, run_program
from ottla.cli.options.reading import Given, OptionError
from ottla.cli.options.table import Option, Program
from ottla.cli.sessions import admin_of

if TYPE_CHECKING:
    from ottla.client.admin.groups.listing import GroupListing

_TYPES: Final = ("classic", "consumer", "share", "streams")

PROGRAM: Final = Program(
    "kafka-groups",
    "This tool lists groups of all types.",
    (
        Option(
            "bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "server to connect to", is_required=True
        ),
        Option(
            "command-config", "Properties file with settings of the admin.", "String", "command config property file"
        ),
        Option("list", "List the groups."),
        Option("group-type", "Only groups of a type: classic, consumer, share or streams.", "String", "type"),
        Option("protocol", "Only groups of this protocol.", "String", "protocol"),
        Option("consumer", "Only groups of consumers: of the new type, and classic ones of the protocol consumer."),
        Option("share", "Only share groups."),
        Option("streams", "Only streams groups."),
        JSON,
    ),
)


def main(arguments: list[str]) -> int:
    return run_program(PROGRAM, arguments, run)


def run(given: Given) -> int:
    if "list" not in given:
        raise UsageError("Command must include exactly one action: --list.")
    refuse(given, "consumer", ("group-type", "protocol", "share", "streams"))
    refuse(given, "share", ("group-type", "protocol", "consumer", "streams"))
    refuse(given, "streams", ("group-type", "protocol", "consumer", "share"))
    is_wanted = _filter(given)
    with admin_of(given) as admin:
        groups = [group for group in admin.list_groups() if is_wanted(group)]
    if "json" in given:
        print_json([{"group": one.group_id, "type": one.type.value, "protocol": one.protocol} for one in groups])
        return 0
    for line in group_lines(groups):
        print(line)
    return 0


def _filter(given: Given) -> Callable[[GroupListing], bool]:
    kind, protocol = given.get("group-type"), given.get("protocol")
    if kind is not None and kind.lower() not in _TYPES:
        raise OptionError("--group-type must be a valid group type.")
    if "consumer" in given:
        return is_of_consumers
    if "share" in given:
        kind = "share"
    elif "streams" in given:
        kind = "streams"
    return lambda group: (
        (kind is None or group.type.value.lower() == kind.lower()) and (protocol is None or group.protocol == protocol)
    )


def is_of_consumers(group: GroupListing) -> bool:
    match group.type.value:
        case "Consumer":
            return True
        case "Classic":
            return group.protocol in ("", "consumer")
    return False


def group_lines(groups: Sequence[GroupListing]) -> Iterator[str]:
    """All columns are as wide as the longest name of a group."""
    width = max([20, *(len(group.group_id) for group in groups)])
    yield f"{'GROUP':{width}} {'TYPE':{width}} {'PROTOCOL':{width}}"
    for group in groups:
        yield f"{group.group_id:{width}} {group.type.value:{width}} {group.protocol:{width}} "
