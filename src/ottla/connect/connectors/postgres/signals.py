"""Debezium's signals: rows of a table that tell a running connector what to do, and the snapshot that they ask for.

    INSERT INTO debezium_signal VALUES ('ad-hoc-1', 'execute-snapshot', '{"data-collections": ["public.orders"]}');

A signal is read from the stream of changes, where it stands among them, and what it changes is in the offset of the
records around it: it is done once, whatever crashes. A signal that cannot be understood is logged and passed over, as
Debezium does; it never stops the connector.

| type | data |
| --- | --- |
| `execute-snapshot` | `data-collections`: patterns of tables; `additional-conditions`: `data-collection`, `filter` |
| `stop-snapshot` | `data-collections`, or nothing for all |
| `pause-snapshot`, `resume-snapshot` | |
| `log` | `message` |
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from ottla.connect.errors import ConnectError
from ottla.connect.transforms.java_patterns import compiled

EXECUTE, STOP, PAUSE, RESUME, LOG = "execute-snapshot", "stop-snapshot", "pause-snapshot", "resume-snapshot", "log"
_TYPES: Final = (EXECUTE, STOP, PAUSE, RESUME, LOG)


class InvalidSignal(ConnectError):
    """A signal says something that cannot be done."""


@dataclass(frozen=True, slots=True)
class Signal:
    id: str
    type: str
    tables: tuple[re.Pattern[str], ...] = ()
    conditions: tuple[tuple[re.Pattern[str], str], ...] = ()
    message: str = ""

    @classmethod
    def of(cls, row: Sequence[str | None]) -> "Signal":
        """A row of the signal table: by its columns' places, as their names are free. Raises `InvalidSignal`."""
        if len(row) < 3:
            raise InvalidSignal("the signal table must have three columns: id, type and data")
        id, type, text = (one or "" for one in row[:3])
        if type not in _TYPES:
            raise InvalidSignal(f"its type is {type!r}; it must be one of {', '.join(_TYPES)}")
        try:
            data = json.loads(text) if text.strip() else {}
        except ValueError as error:
            raise InvalidSignal(f"its data is not JSON: {error}") from None
        if not isinstance(data, dict):
            raise InvalidSignal("its data is not a JSON object")
        if str(data.get("type", "incremental")).lower() != "incremental":
            raise InvalidSignal(
                f"a snapshot of type {data['type']!r} is not here; leave type out, for an incremental one"
            )
        if data.get("surrogate-key"):
            raise InvalidSignal("surrogate-key is not here: tables are read by their primary key")
        tables = _patterns(data.get("data-collections"))
        if type == EXECUTE and not tables:
            raise InvalidSignal("data-collections is missing or empty")
        return cls(id, type, tables, _conditions(data), str(data.get("message", "")))

    def filter_of(self, table: str) -> str | None:
        return next((condition for pattern, condition in self.conditions if pattern.fullmatch(table)), None)


def _patterns(listed: Any) -> tuple[re.Pattern[str], ...]:
    if listed is None:
        return ()
    if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
        raise InvalidSignal("data-collections must be a list of texts")
    return tuple(_pattern(one.strip()) for one in listed)


def _pattern(text: str) -> re.Pattern[str]:
    try:
        return re.compile(compiled(text).pattern, re.IGNORECASE)
    except re.error as error:
        raise InvalidSignal(f"{text!r} is no regular expression: {error}") from None


def _conditions(data: Mapping[str, Any]) -> tuple[tuple[re.Pattern[str], str], ...]:
    old = data.get("additional-condition")
    if isinstance(old, str) and old.strip():
        return ((_pattern(".*"), old),)
    listed = data.get("additional-conditions") or []
    if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
        raise InvalidSignal("additional-conditions must be a list of objects")
    found: list[tuple[re.Pattern[str], str]] = []
    for one in listed:
        table, condition = one.get("data-collection"), one.get("filter")
        if not isinstance(table, str) or not isinstance(condition, str):
            raise InvalidSignal("each of additional-conditions must have the texts data-collection and filter")
        found.append((_pattern(table.strip()), condition))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A table that an incremental snapshot reads; of its rows those that `filter` chooses."""

    table: str
    filter: str | None = None


@dataclass(frozen=True, slots=True)
class Incremental:
    """An incremental snapshot: tables that are not read whole yet, the first of them up to the key `after`."""

    tables: tuple[Wanted, ...] = ()
    after: tuple[str, ...] | None = None
    is_paused: bool = False
    rows: int = 0
    not_before: int = 0
    """A transaction's number: nothing is read before all older transactions have ended, of which the publication may
    not have had these tables when they began."""

    def as_json(self) -> dict[str, Any]:
        return {
            "tables": [[one.table, one.filter] for one in self.tables],
            "after": None if self.after is None else list(self.after),
            "paused": self.is_paused,
            "rows": self.rows,
            "not_before": self.not_before,
        }

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "Incremental":
        after = said.get("after")
        return cls(
            tuple(Wanted(table, condition) for table, condition in said.get("tables", ())),
            None if after is None else tuple(after),
            bool(said.get("paused")),
            int(said.get("rows", 0)),
            int(said.get("not_before", 0)),
        )

    def more(self, tables: Sequence[Wanted]) -> "Incremental":
        """With these tables too. One that is being read, or waits, under the same filter is not read twice."""
        new = [one for one in tables if one not in self.tables]
        return replace(self, tables=(*self.tables, *new))

    def without(self, patterns: Sequence[re.Pattern[str]]) -> "Incremental | None":
        """Without the tables of these patterns, all for none; None if no table is left."""
        left = tuple(
            one for one in self.tables if patterns and not any(pattern.fullmatch(one.table) for pattern in patterns)
        )
        if not left:
            return None
        is_first = left[0] == self.tables[0]
        return replace(self, tables=left, after=self.after if is_first else None)

    def moved(self, after: tuple[str, ...] | None, rows: int, *, is_last: bool) -> "Incremental | None":
        """Behind a chunk of the first table; None if it was the last of the last."""
        if not is_last:
            return replace(self, after=after, rows=self.rows + rows)
        if len(self.tables) == 1:
            return None
        return replace(self, tables=self.tables[1:], after=None, rows=self.rows + rows)


def of_debezium(text: str) -> Incremental | None:
    """Tables that Debezium had not read to their end: they are read from their beginning, since Debezium's key is an
    object of Java."""
    try:
        listed = json.loads(text)
        key = "incremental_snapshot_collections"
        tables = [Wanted(one[f"{key}_id"], one.get(f"{key}_additional_condition") or None) for one in listed]
    except (ValueError, TypeError, KeyError, AttributeError):
        return None
    return Incremental(tuple(tables)) if tables else None
