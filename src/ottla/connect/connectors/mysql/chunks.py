"""A snapshot of tables in chunks by primary key, while the changes go on: DBLog's method, without locks.

A chunk is read in a transaction of its own: the next rows behind the last key. Its place in the binary log is known
(exactly on MariaDB, which says at which place a consistent snapshot was taken; as an upper bound on MySQL). The chunk
is written when the stream has reached that place: all that it shows has been streamed by then. Rows whose keys were
streamed since shortly before the chunk was begun are dropped: their changes have whole rows, and newer ones. So each
key's records stay in order, nothing waits, and nothing is written to the database.

Shortly before: a transaction is in the log, and sent to us, a moment before others see it. So a change that was
streamed may be missing in a chunk that was read later, and its key must still be remembered then.

Tables without a primary key, or with one that cannot be compared, are read whole before the first change is streamed.
"""

import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.connectors.mysql.catalogue import ColumnFacts, Kind, TableFacts
from ottla.connect.connectors.mysql.envelopes import TableShape, key_texts
from ottla.connect.connectors.mysql.offsets import Place
from ottla.connect.connectors.postgres.columns import slices
from ottla.connect.connectors.postgres.pgoutput import Rows
from ottla.connect.errors import ConnectError

KEPT_S: Final = 60.0
"""How long keys are remembered where the server does not say what a chunk shows: longer than a commit can take, also
one that waits for a semi-synchronous replica (10 seconds)."""
_NUMBERS: Final = frozenset(["tinyint", "smallint", "mediumint", "int", "bigint", "decimal", "year"])
_QUOTED: Final = frozenset(["date", "datetime", "timestamp", "time", "uuid", "inet4", "inet6"])
_TEXTS: Final = frozenset(["char", "varchar", "tinytext", "text", "mediumtext", "longtext"])
_BYTES: Final = frozenset(["binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"])


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def table_sql(facts: TableFacts) -> str:
    return f"{quoted(facts.schema)}.{quoted(facts.name)}"


def can_be_chunked(facts: TableFacts) -> bool:
    """Whether the table has a primary key whose order and comparison agree: an enum is ordered by number and compared
    by text, and a float is not what its text says."""
    kinds = [facts.by_name[name].kind.name for name in facts.key]
    return facts.has_primary_key and all(kind in _NUMBERS | _QUOTED | _TEXTS | _BYTES for kind in kinds)


def _selected(column: ColumnFacts) -> str:
    # The text of a float has six digits, that of a double all it needs.
    return f"{quoted(column.name)} + 0e0" if column.kind.name == "float" else quoted(column.name)


def chunk_sql(facts: TableFacts, after: Sequence[str] | None, rows: int | None) -> str:
    """The query of a chunk: so many rows behind a key, in the key's order; without a number the whole table."""
    query = f"SELECT {', '.join(map(_selected, facts.columns))} FROM {table_sql(facts)}"
    if rows is None:
        return query
    if after is not None:
        query += f" WHERE {_behind(facts, after)}"
    return query + f" ORDER BY {', '.join(map(quoted, facts.key))} LIMIT {rows}"


def _behind(facts: TableFacts, after: Sequence[str]) -> str:
    """`(a, b) > (1, 2)`, in the form for which the server uses its index."""
    if len(after) != len(facts.key):
        raise ConnectError(
            f"the snapshot of {facts.full_name} stopped behind a key of {len(after)} columns, and the table's key has "
            f"{len(facts.key)} now: reset the connector's offsets to begin anew"
        )
    names = [quoted(name) for name in facts.key]
    values = [literal(facts.by_name[name].kind, text) for name, text in zip(facts.key, after, strict=True)]
    options = [
        " AND ".join([*(f"{names[one]} = {values[one]}" for one in range(place)), f"{names[place]} > {values[place]}"])
        for place in range(len(names))
    ]
    return f"{names[0]} >= {values[0]} AND ({' OR '.join(f'({one})' for one in options)})"


def literal(kind: Kind, text: str) -> str:
    """A value of a key in SQL. Raises `ConnectError` for one that is none, from an offset that was changed by hand."""
    if kind.name in _NUMBERS:
        if not text.lstrip("-").replace(".", "", 1).isdigit():
            raise ConnectError(
                f"the stored offset has the key {text!r}, which is no number: reset the connector's offsets"
            )
        return text
    if kind.name in _BYTES:
        return f"x'{bytes.fromhex(text).hex()}'"
    return f"_utf8mb4 x'{text.encode().hex()}'"


def last_key(facts: TableFacts, found: Sequence[Any]) -> tuple[str, ...]:
    """The key of the last row of a query's columns, as an offset has it."""
    places = {column.name: place for place, column in enumerate(facts.columns)}
    values = [(facts.by_name[name].kind.name, found[places[name]][-1].as_py()) for name in facts.key]
    return tuple(value.hex() if kind in _BYTES else value.decode() for kind, value in values)


def text_columns(payloads: Sequence[bytes], width: int) -> list[Any]:
    """The columns of rows of a query, as the protocol sends them: each value is its length and its text."""
    count = len(payloads)
    if not count:
        return [pa.array([], pa.binary()) for _ in range(width)]
    sizes = np.fromiter(map(len, payloads), dtype=np.int64, count=count)
    joined = b"".join([*payloads, bytes(16)])
    if len(joined) >= 1 << 31:
        raise ConnectError("rows of one chunk are 2 GiB at once: lower ottla.snapshot.chunk.rows")
    data = np.frombuffer(joined, dtype=np.uint8)
    at = np.cumsum(sizes) - sizes
    buffer = pa.py_buffer(joined)
    found: list[Any] = []
    for _ in range(width):
        first = data[at].astype(np.int64)
        length, prefix = first.copy(), np.ones(count, np.int64)
        for mark, size in ((252, 2), (253, 3), (254, 8)):
            chosen = np.flatnonzero(first == mark)
            if len(chosen):
                number = np.zeros(len(chosen), np.int64)
                for byte in range(size):
                    number |= data[at[chosen] + 1 + byte].astype(np.int64) << (8 * byte)
                length[chosen], prefix[chosen] = number, size + 1
        is_null = first == 251
        length[is_null] = 0
        start = at + prefix
        found.append(slices(buffer, start, start + length, ~is_null if is_null.any() else None))
        at = start + length
    return found


@dataclass(slots=True)
class _Window:
    since: Place
    began_s: float
    keys: dict[str, set[bytes]] = field(default_factory=dict)
    """Of each table."""
    truncated: set[str] = field(default_factory=set)
    """Tables of which all rows are meant."""


class Touched:
    """Keys of the table under way that were streamed in this window, the one before, and for `kept_s` seconds.

    With `kept_s` those of all tables: a change may be streamed while another table is under way, and be missing in
    the first chunk of its own."""

    def __init__(self, kept_s: float = 0.0) -> None:
        self._kept_s = kept_s
        self.table: str | None = None
        self._windows: deque[_Window] = deque()

    def begin(self, table: str, place: Place) -> None:
        """A window begins, before a chunk is read; the stream is at this place, between transactions."""
        now_s = time.monotonic()
        if table != self.table:
            self.table = table
            if not self._kept_s:
                self._windows.clear()
        while len(self._windows) > 1 and self._windows[1].began_s < now_s - self._kept_s:
            self._windows.popleft()
        self._windows.append(_Window(place, now_s))

    @property
    def since(self) -> Place:
        """From here on all keys are known."""
        return self._windows[0].since

    def add(self, shape: TableShape, changes: Rows | None) -> None:
        """Changes that were streamed."""
        name = shape.facts.full_name
        if not (self._kept_s or name == self.table) or not self._windows or not shape.facts.key:
            return
        window = self._windows[-1]
        if changes is None:
            window.truncated.add(name)
            return
        keys = window.keys.setdefault(name, set())
        for sent in (changes.before, changes.after):
            if sent:
                keys.update(key_texts(sent, shape.key_places()).to_pylist())

    def kept(self, keys: Any) -> Any:
        """Which rows of a chunk, by their keys' texts, are written; None is all."""
        table = self.table or ""
        if any(table in window.truncated for window in self._windows):
            return pa.array(np.zeros(len(keys), bool))
        gone = set[bytes]().union(*(window.keys.get(table, ()) for window in self._windows))
        return pc.invert(pc.is_in(keys, pa.array(list(gone), pa.binary()))) if gone else None
