"""A snapshot of tables in chunks by primary key, between low and high watermarks, as DBLog does it: without locks.

A chunk is read in a transaction of its own: the next rows behind the last key. Meanwhile the changes go on. The chunk
is written when the stream has come to the high watermark, an LSN that was taken after the chunk's rows were fixed: all
that the chunk shows has been streamed by then. Rows of the chunk whose keys were changed between the watermarks are
dropped: the stream has newer ones, and they are written. So each key's records stay in order, nothing waits, and
nothing is written to the database.

Two moments are different for a transaction: its commit is in the WAL before other transactions see it. A change may
thus have been streamed before the low watermark and still not be in the chunk. So keys of the window before are kept
too, and are dropped if the chunk's snapshot does not show their transaction.

Tables without a key cannot be read this way. They are read whole, before the first change is streamed; changes that
their snapshot shows are not written again (`offsets.SnapshotState.seen`).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]
import pyarrow.csv as csv  # type: ignore[import-untyped]

from ottla.connect.connectors.postgres.catalogue import TableFacts
from ottla.connect.connectors.postgres.envelopes import TableShape
from ottla.connect.connectors.postgres.offsets import Visible
from ottla.connect.connectors.postgres.pgoutput import RelationColumn, Rows, Sent

_SEPARATOR: Final = "\1"
_PAGE: Final = 8192
_PAGE_HEADS: Final = (24, 40)


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def table_sql(facts: TableFacts) -> str:
    return f"{quoted(facts.schema)}.{quoted(facts.name)}"


def relation_columns(facts: TableFacts) -> tuple[RelationColumn, ...]:
    """The columns that a change of the table has; generated ones are not sent."""
    key = set(facts.key)
    return tuple(
        RelationColumn(one.name, one.type_oid, one.modifier, one.name in key)
        for one in facts.columns
        if not one.generated
    )


def chunk_sql(
    facts: TableFacts,
    after: Sequence[str] | None,
    rows: int | None,
    until: Sequence[str] | None = None,
    condition: str | None = None,
) -> str:
    """The query of a chunk: rows behind one key and up to another, in the key's order, so many at most; without a
    number the whole table. `condition` is a part of a WHERE, in words of the one who asked for the rows.

    The key's texts are literals of no type: PostgreSQL reads them as values of the columns that they are compared to.
    """
    listed = ", ".join(quoted(one.name) for one in relation_columns(facts))
    query = f"SELECT {listed} FROM {table_sql(facts)}"
    if rows is None:
        return query
    limit = "" if until is not None else f" LIMIT {rows}"
    return query + _where(facts, after, until, condition) + f" ORDER BY {_keys(facts)}{limit}"


def boundary_sql(facts: TableFacts, after: Sequence[str] | None, rows: int, condition: str | None = None) -> str:
    """The query of the key that so many rows behind another have; none if there are fewer."""
    texts = ", ".join(f"{quoted(name)}::text" for name in facts.key)
    where = _where(facts, after, None, condition)
    return f"SELECT {texts} FROM {table_sql(facts)}{where} ORDER BY {_keys(facts)} OFFSET {rows - 1} LIMIT 1"


def _keys(facts: TableFacts) -> str:
    return ", ".join(quoted(name) for name in facts.key)


def _where(facts: TableFacts, after: Sequence[str] | None, until: Sequence[str] | None, condition: str | None) -> str:
    parts = [
        f"({_keys(facts)}) {sign} ({', '.join(map(literal, key))})"
        for sign, key in ((">", after), ("<=", until))
        if key is not None
    ]
    if condition:
        parts.append(f"({condition})")
    return f" WHERE {' AND '.join(parts)}" if parts else ""


def literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def copied(query: str) -> str:
    """Every value is in quotes, and null is nothing: so no text is taken for null."""
    return f"COPY ({query}) TO STDOUT (FORMAT csv, FORCE_QUOTE *)"


def parsed(content: bytes, width: int) -> list[Sent]:
    """The columns of what `copied` gives."""
    names = [str(place) for place in range(width)]
    if not content:
        return [Sent(pa.array([], pa.string()), None) for _ in names]
    if width == 1 and b"\n\n" in b"\n" + content:
        # A row of one null is an empty line, which Arrow does not count.
        content = b"".join(line[:-1] + b",\n" for line in _lines(content))
        return parsed_columns(content, ["0", "none"])[:1]
    return parsed_columns(content, names)


def _lines(content: bytes) -> Iterable[bytes]:
    start, quotes = 0, 0
    at = 0
    for piece in content.split(b"\n")[:-1]:
        quotes += piece.count(b'"')
        at += len(piece) + 1
        if quotes % 2 == 0:
            yield content[start:at]
            start = at


def parsed_columns(content: bytes, names: list[str]) -> list[Sent]:
    table = csv.read_csv(
        pa.BufferReader(content),
        read_options=csv.ReadOptions(column_names=names, block_size=max(1 << 20, len(content) + 1)),
        parse_options=csv.ParseOptions(newlines_in_values=True),
        convert_options=csv.ConvertOptions(
            column_types={name: pa.string() for name in names},
            strings_can_be_null=True,
            quoted_strings_can_be_null=False,
            null_values=[""],
        ),
    )
    return [Sent(pa.concat_arrays(column.chunks), None) for column in table.columns]


def next_rows(rows: int, read: int, size: int, most_bytes: int) -> int:
    """How many rows the next chunk has, so that it has about `most_bytes`: by the size of those that were read, and at
    most eight times as many as now, since the next ones may be larger."""
    if not read:
        return rows
    return max(1, min(rows * 8, most_bytes * read // max(size, 1)))


def watermark(insert_lsn: int) -> int:
    """What the stream reaches for sure, from where the next record of the WAL will be: in a quiet database nothing
    comes behind the head of a page that was just begun."""
    head = insert_lsn % _PAGE
    return insert_lsn - head if head in _PAGE_HEADS else insert_lsn


@dataclass(slots=True)
class Touched:
    """Keys of a table that were changed in this window and in the one before, each with the last transaction."""

    table: str | None = None
    now: dict[str, int | None] = field(default_factory=dict)
    before: dict[str, int | None] = field(default_factory=dict)
    all_now: list[int | None] = field(default_factory=list)
    """Transactions that truncated the table."""
    all_before: list[int | None] = field(default_factory=list)
    watched: Any = None
    """The keys that matter: those of the chunks that wait. A huge transaction may touch many more."""

    def begin(self, table: str) -> None:
        """A window begins, with the low watermark of a chunk."""
        if table != self.table:
            self.table, self.now, self.all_now = table, {}, []
        self.before, self.all_before = self.now, self.all_now
        self.now, self.all_now, self.watched = {}, [], None

    def watch(self, keys: Iterable[Any]) -> None:
        """The chunks were read, and have these keys. Nothing was streamed since the window began."""
        self.watched = pa.concat_arrays([pa.array([], pa.string()), *keys])

    def add(self, shape: TableShape, rows: Rows | None, xids: list[int | None]) -> None:
        """Changes that were streamed."""
        if shape.facts.full_name != self.table or not shape.facts.key:
            return
        if rows is None:
            self.all_now += xids
            return
        numbers = np.array([-1 if xid is None else xid for xid in xids])
        for sent, chosen in ((rows.before, rows.has_before), (rows.after, rows.has_after)):
            if sent:
                texts, of_rows = key_texts(sent, shape.key_places()), numbers[chosen]
                if self.watched is not None:
                    matters = pc.is_in(texts, self.watched)
                    texts, of_rows = texts.filter(matters), of_rows[np.asarray(matters)]
                self.now.update(zip(texts.to_pylist(), of_rows.tolist(), strict=True))

    def kept(self, keys: Any, visible: Visible) -> Any:
        """Which rows of a chunk, by their keys' texts, are written."""
        hidden = {key for key, xid in self.before.items() if xid is not None and not visible(xid)}
        if self.all_now or any(xid is not None and not visible(xid) for xid in self.all_before):
            return pa.array(np.zeros(len(keys), bool))
        gone = [*self.now, *hidden]
        if not gone:
            return None
        return pc.invert(pc.is_in(keys, pa.array(gone, pa.string())))


def key_texts(sent: Sequence[Sent], places: Sequence[int]) -> Any:
    """Texts that are equal where keys are. The stream and a chunk have the same texts of the same values."""
    parts = [pc.fill_null(sent[place].texts, "\0") for place in places]
    return pc.binary_join_element_wise(*parts, _SEPARATOR) if len(parts) > 1 else parts[0]


def last_key(sent: Sequence[Sent], places: Sequence[int]) -> tuple[str, ...]:
    return tuple(sent[place].texts[-1].as_py() for place in places)


def incremental_markers(count: int) -> Any:
    return pa.repeat(pa.scalar("incremental", pa.string()), count)


def markers(count: int, *, is_first: bool, begins_table: bool, ends_table: bool, is_last: bool) -> Any:
    """`source.snapshot` of each row."""
    found = ["true"] * count
    if count:
        if begins_table:
            found[0] = "first_in_data_collection"
        if is_first:
            found[0] = "first"
        if ends_table:
            found[-1] = "last_in_data_collection"
        if is_last:
            found[-1] = "last"
    return pa.array(found, pa.string())
