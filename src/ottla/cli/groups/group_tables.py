"""What kafka-consumer-groups prints: tables with as wide columns as they need, and fifteen characters at least."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

MISSING = "-"


class OffsetRow(NamedTuple):
    """A partition: where the group is, where the log ends, who reads it. None is a dash."""

    group: str
    topic: str | None
    partition: int | None
    leader_epoch: int | None
    offset: int | None
    end_offset: int | None
    consumer_id: str | None
    host: str | None
    client_id: str | None

    @property
    def lag(self) -> int | None:
        if self.offset is None or self.offset == -1 or self.end_offset is None:
            return None
        return self.end_offset - self.offset


class MemberRow(NamedTuple):
    group: str
    consumer_id: str
    host: str
    client_id: str
    instance_id: str
    partitions: int
    current: Mapping[str, Sequence[int]]
    target: Mapping[str, Sequence[int]] | None
    current_epoch: int | None
    target_epoch: int | None
    was_upgraded: bool | None = None
    """Whether the member speaks the consumer protocol, of a group in which some do not."""


class StateRow(NamedTuple):
    group: str
    coordinator: str
    assignor: str
    state: str
    members: int
    group_epoch: int | None = None
    target_epoch: int | None = None


class ResetRow(NamedTuple):
    group: str
    topic: str
    partition: int
    offset: int


class ListRow(NamedTuple):
    group: str
    type: str
    state: str


def listing_lines(rows: Sequence[ListRow], *, with_type: bool, with_state: bool) -> Iterator[str]:
    width = max((len(row.group) for row in rows), default=0)
    width = max(width, 15) + 10
    for row in (ListRow("GROUP", "TYPE", "STATE"), *rows):
        cells = [f"{row.group:{width}}"]
        if with_type:
            cells.append(f"{row.type:20}")
        if with_state:
            cells.append(f"{row.state:20}")
        yield " ".join(cells)


def offset_lines(rows: Sequence[OffsetRow], *, verbose: bool) -> Iterator[str]:
    head = [
        "GROUP",
        "TOPIC",
        "PARTITION",
        "CURRENT-OFFSET",
        "LOG-END-OFFSET",
        "LAG",
        "CONSUMER-ID",
        "HOST",
        "CLIENT-ID",
    ]
    table = [head] + [
        [
            row.group,
            _or_missing(row.topic),
            _or_missing(row.partition),
            _or_missing(row.offset),
            _or_missing(row.end_offset),
            _or_missing(row.lag),
            _or_missing(row.consumer_id),
            _or_missing(row.host),
            _or_missing(row.client_id),
        ]
        for row in rows
    ]
    widths = [15, 15, 10, 15, 15, 15, 15, 15, 0]
    if verbose:
        for cells, epoch in zip(table, ["LEADER-EPOCH", *(_or_missing(row.leader_epoch) for row in rows)], strict=True):
            cells.insert(3, epoch)
        widths.insert(3, 15)
    fixed = {2, *range(3, len(widths) - 3), len(widths) - 1}  # numbers do not widen a column
    yield ""
    yield from _table(table, widths, fixed)


def member_lines(rows: Sequence[MemberRow], *, verbose: bool) -> Iterator[str]:
    """With a column of instance ids if any member has one."""
    with_instances = any(row.instance_id for row in rows)
    with_upgrades = verbose and any(row.was_upgraded is not None for row in rows)
    head = ["GROUP", "CONSUMER-ID", "GROUP-INSTANCE-ID", "HOST", "CLIENT-ID", "#PARTITIONS"]
    widths = [15, 15, 17, 15, 15, 15]
    fixed = {5}
    if verbose:
        head += ["CURRENT-EPOCH", "CURRENT-ASSIGNMENT", "TARGET-EPOCH", "TARGET-ASSIGNMENT"]
        widths += [15, 20, 15, 20]
        fixed |= {6, 8}
    table = [head]
    for row in rows:
        cells = [row.group, row.consumer_id, row.instance_id, row.host, row.client_id, str(row.partitions)]
        if verbose:
            cells += [
                _or_missing(row.current_epoch),
                _assignment(row.current),
                _or_missing(row.target_epoch),
                MISSING if row.target is None else _assignment(row.target),
            ]
        table.append(cells)
    if with_upgrades:
        for cells, upgraded in zip(table, ["UPGRADED", *(_upgraded(row.was_upgraded) for row in rows)], strict=True):
            cells.append(upgraded)
        widths.append(0)
        fixed.add(len(widths) - 1)
    if not with_instances:
        for cells in table:
            del cells[2]
        del widths[2]
        fixed = {number - 1 for number in fixed}
    yield ""
    # Each cell has a space after it, the last one only if more columns might have followed.
    for line in _table(table, widths, fixed):
        yield line if verbose else f"{line} "


def state_lines(row: StateRow, *, verbose: bool) -> Iterator[str]:
    head = ["GROUP", "COORDINATOR (ID)", "ASSIGNMENT-STRATEGY", "STATE", "#MEMBERS"]
    cells = [row.group, row.coordinator, row.assignor or MISSING, row.state, str(row.members)]
    widths = [15, 25, 20, 20, 0]
    if verbose:
        head[4:4] = ["GROUP-EPOCH", "TARGET-ASSIGNMENT-EPOCH"]
        cells[4:4] = [_or_missing(row.group_epoch), _or_missing(row.target_epoch)]
        widths[4:4] = [15, 25]
    yield ""
    yield from _table([head, cells], widths, set(range(2, len(widths))))


def reset_lines(rows: Sequence[ResetRow]) -> Iterator[str]:
    table = [["GROUP", "TOPIC", "PARTITION", "NEW-OFFSET"]]
    table += [[row.group, row.topic, str(row.partition), str(row.offset)] for row in rows]
    yield ""
    yield from _table(table, [15, 15, 10, 0], {2, 3})


def reset_csv(rows: Iterable[ResetRow], *, with_group: bool) -> str:
    lines = []
    for row in rows:
        cells = [_quoted(row.topic), str(row.partition), str(row.offset)]
        lines.append(",".join([_quoted(row.group), *cells] if with_group else cells) + "\n")
    return "".join(lines)


def deleted_offset_lines(statuses: Mapping[tuple[str, int], str]) -> Iterator[str]:
    """By topic and partition; -1 stands for a topic whose partitions are not known."""
    table = [["TOPIC", "PARTITION", "STATUS"]]
    for (topic, partition), status in sorted(statuses.items(), key=lambda item: f"{item[0][0]}{item[0][1]}"):
        table.append([topic, "Not Provided" if partition < 0 else str(partition), status])
    yield ""
    yield from _table(table, [15, 10, 15], {1, 2})


def _table(rows: Sequence[Sequence[str]], widths: Sequence[int], fixed: set[int]) -> Iterator[str]:
    wide = [
        width if number in fixed else max(width, *(len(row[number]) for row in rows))
        for number, width in enumerate(widths)
    ]
    for row in rows:
        yield " ".join(f"{cell:{width}}" if width else cell for cell, width in zip(row, wide, strict=True))


def _assignment(partitions: Mapping[str, Sequence[int]]) -> str:
    """`clicks:0,1;orders:2`."""
    if not partitions:
        return MISSING
    return ";".join(f"{topic}:{','.join(map(str, sorted(ids)))}" for topic, ids in sorted(partitions.items()))


def _upgraded(value: bool | None) -> str:
    return MISSING if value is None else str(value).lower()


def _or_missing(value: object) -> str:
    return MISSING if value is None else str(value)


def _quoted(text: str) -> str:
    return f'"{text}"' if "," in text or '"' in text else text
