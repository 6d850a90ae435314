"""`ottla group list|describe|seek|delete`."""

from argparse import ArgumentTypeError, Namespace
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.cli.records.moments import moment
from ottla.cli.records.record_filter import pattern
from ottla.cli.short.subcommands import NotThere, ShortCommand, print_json, print_table, require_names
from ottla.cli.text_tables import counted

if TYPE_CHECKING:
    from ottla.client.blocking.admin import Admin

LATEST, EARLIEST = -1, -2


class Target(NamedTuple):
    """Where to: an offset, a number of records from where the group is, or a time; -1 and -2 are the ends."""

    offset: int | None = None
    shift: int | None = None
    time_ms: int | None = None


def main(arguments: list[str] | None = None) -> int:
    return short_command().run(arguments)


def short_command() -> ShortCommand:
    group = ShortCommand("group", "Consumer groups, in few words. `kafka-consumer-groups` does the rest.")
    listing = group.add("list", _list, "list groups", prints=True)
    listing.add_argument("pattern", nargs="?", type=pattern, metavar="PATTERN", help="only names that it matches")
    describe = group.add("describe", _describe, "print where groups are, and how far behind", prints=True)
    describe.add_argument("groups", nargs="+", metavar="GROUP")
    seek = group.add("seek", _seek, "give a group without members other offsets")
    seek.add_argument("group", metavar="GROUP")
    seek.add_argument(
        "--to",
        type=target,
        required=True,
        metavar="WHERE",
        help="earliest, latest, an offset, +N or -N records from where it is, or a TIME, as 2026-03-01T12:00 or 10m",
    )
    seek.add_argument(
        "-t", "--topic", action="append", default=[], metavar="TOPIC[:PARTITION]", help="only there; may be repeated"
    )
    seek.add_argument("-n", "--dry-run", action="store_true", help="only print what would be done")
    delete = group.add("delete", _delete, "delete groups without members, with their offsets")
    delete.add_argument("groups", nargs="+", metavar="GROUP")
    return group


def target(text: str) -> Target:
    if text in ("earliest", "latest"):
        return Target(time_ms=EARLIEST if text == "earliest" else LATEST)
    if text[:1] in "+-" and text[1:].isdecimal():
        return Target(shift=int(text))
    if text.isdecimal() and len(text) < 12:  # what is longer is a time in milliseconds
        return Target(offset=int(text))
    try:
        return Target(time_ms=moment(text))
    except ArgumentTypeError:
        raise ArgumentTypeError(f"{text!r}: it must be earliest, latest, an offset, +N, -N or a time") from None


def _list(admin: "Admin", options: Namespace) -> None:
    listed = [one for one in admin.list_groups() if options.pattern is None or options.pattern.search(one.group_id)]
    rows = [(one.group_id, one.type.value, one.state.value) for one in sorted(listed, key=lambda one: one.group_id)]
    if options.json:
        print_json([dict(zip(("group", "type", "state"), row, strict=True)) for row in rows])
    else:
        print_table(("GROUP", "TYPE", "STATE"), rows)


def _describe(admin: "Admin", options: Namespace) -> None:
    require_names("group", options.groups, (one.group_id for one in admin.list_consumer_groups()))
    described = admin.describe_consumer_groups(options.groups).raise_first()
    committed = admin.list_consumer_group_offsets(options.groups).raise_first()
    partitions = {partition for offsets in committed.values() for partition in offsets}
    partitions |= {one for group in described.values() for member in group.members for one in member.assignment}
    ends = admin.list_offsets(dict.fromkeys(sorted(partitions), LATEST)).succeeded if partitions else {}
    shown = []
    for group_id, group in described.items():
        owners = {one: member for member in group.members for one in member.assignment}
        places = {one: place.offset for one, place in committed[group_id].items() if place is not None}
        rows = []
        for one in sorted(places.keys() | owners.keys()):
            offset, end = places.get(one), ends[one].offset if one in ends else None
            lag = None if offset is None or end is None else max(end - offset, 0)
            owner = owners.get(one)
            rows.append((one.topic, one.partition, offset, end, lag, None if owner is None else owner.client_id))
        shown.append((group_id, group.state.value, len(group.members), group.assignor, rows))
    columns = ("topic", "partition", "offset", "end", "lag", "client")
    if options.json:
        print_json(
            [
                {
                    "group": group_id,
                    "state": state,
                    "members": members,
                    "assignor": assignor,
                    "partitions": [dict(zip(columns, row, strict=True)) for row in rows],
                }
                for group_id, state, members, assignor, rows in shown
            ]
        )
        return
    for number, (group_id, state, members, _, rows) in enumerate(shown):
        if number:
            print()
        lags = [row[4] for row in rows if row[4] is not None]
        behind = f", lag {sum(lags):,}" if lags else ""
        print(f"{group_id}  {state}, {counted(members, 'member')}{behind}")
        print_table([name.upper() for name in columns], rows)


def _seek(admin: "Admin", options: Namespace) -> None:
    committed = _committed(admin, options.group)
    partitions = _partitions(admin, options.topic) if options.topic else sorted(committed)
    if not partitions:
        raise NotThere(f"group {options.group} has committed nothing: name topics with --topic")
    wanted: Target = options.to
    begins = admin.list_offsets(dict.fromkeys(partitions, EARLIEST)).raise_first()
    ends = admin.list_offsets(dict.fromkeys(partitions, LATEST)).raise_first()
    if wanted.time_ms is not None:
        found = admin.list_offsets(dict.fromkeys(partitions, wanted.time_ms)).raise_first()
        offsets = {one: ends[one].offset if at.offset is None else at.offset for one, at in found.items()}
    else:
        offsets = {}
        for one in partitions:
            if wanted.shift is not None and one not in committed:
                raise NotThere(f"group {options.group} has no offset of {one} that could be moved")
            offset = committed[one] + wanted.shift if wanted.shift is not None else wanted.offset
            offsets[one] = min(max(offset or 0, begins[one].offset or 0), ends[one].offset or 0)
    new = {one: offset or 0 for one, offset in offsets.items()}
    if not options.dry_run:
        admin.alter_consumer_group_offsets(options.group, new).raise_first()
    rows = [(one.topic, one.partition, committed.get(one), offset) for one, offset in new.items()]
    print_table(("TOPIC", "PARTITION", "FROM", "TO"), rows)


def _committed(admin: "Admin", group: str) -> dict[TopicPartition, int]:
    found = admin.list_consumer_group_offsets(group)[group]
    return {one: place.offset for one, place in found.items() if place is not None}


def _partitions(admin: "Admin", texts: Iterable[str]) -> list[TopicPartition]:
    existing = {topic.name for topic in admin.list_topics(include_internal=True)}
    found: list[TopicPartition] = []
    for text in texts:
        topic, colon, number = text.rpartition(":")
        if not colon or not number.isdecimal():
            topic, number = text, ""
        require_names("topic", [topic], existing)
        [described] = admin.describe_topics([topic]).raise_first().values()
        numbers = [one.partition for one in described.partitions]
        if number and int(number) not in numbers:
            raise NotThere(f"topic {topic} has no partition {number}; it has {len(numbers)}")
        found += [TopicPartition(topic, one) for one in ([int(number)] if number else numbers)]
    return list(dict.fromkeys(found))


def _delete(admin: "Admin", options: Namespace) -> None:
    require_names("group", options.groups, (one.group_id for one in admin.list_groups()))
    admin.delete_groups(options.groups).raise_first()
    for group in options.groups:
        print(f"deleted {group}")
