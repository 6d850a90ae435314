"""The version of a table that a change has: what the log says of its columns, completed by the catalogue.

The log is right for the change, the catalogue for now; between them the table may have been altered. With
`binlog_row_metadata=FULL` the log has names, signs, character sets, labels and the primary key: the catalogue only adds
defaults, and what bytes mean (UUIDs, addresses, points), for columns that are still there with the same type. Nothing
needs to be remembered then, and a connector may be behind by any number of ALTER TABLEs.

Without it the log has types and no names. The catalogue's columns stand for the log's if they agree in number, order
and type, and if the table was not altered since the change; else nobody knows what a value is, and the change is
refused.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from ottla.connect.connectors.mysql.binlog import TableMap
from ottla.connect.connectors.mysql.catalogue import ColumnFacts, TableFacts
from ottla.connect.connectors.mysql.types import agree, kind_of
from ottla.connect.errors import ConnectError


class HistoryLost(ConnectError):
    """The table was altered after a change, and the log does not have its columns' names."""


@dataclass(frozen=True, slots=True)
class Known:
    """What the catalogue has of a table now, and when it was altered last, in seconds since 1970."""

    facts: TableFacts
    altered_s: int | None = None


def version_of(logged: TableMap, known: Known | None, codecs: Mapping[int, str], seconds: int) -> TableFacts:
    """The facts of a table for a change of that second, in the order of the log's columns. Raises `HistoryLost`."""
    if logged.has_names:
        return _named(logged, known, codecs)
    return _by_place(logged, known, codecs, seconds)


def _named(logged: TableMap, known: Known | None, codecs: Mapping[int, str]) -> TableFacts:
    catalogue = {} if known is None else known.facts.by_name
    columns: list[ColumnFacts] = []
    for column in logged.columns:
        assert column.name is not None
        kind = kind_of(column, codecs)
        now = catalogue.get(column.name)
        if now is not None and agree(kind, now.kind, is_full=True):
            columns.append(ColumnFacts(column.name, now.kind, not column.nullable, now.default))
        else:
            columns.append(ColumnFacts(column.name, kind, not column.nullable))
    if logged.key:
        names = tuple(columns[place].name for place in logged.key)
        return TableFacts(logged.database, logged.table, tuple(columns), names, True)
    # Without a primary key, a unique index will do: of it only the catalogue knows.
    required = {column.name for column in columns if column.required}
    key = known.facts.key if known is not None and not known.facts.has_primary_key else ()
    return TableFacts(logged.database, logged.table, tuple(columns), key if set(key) <= required else ())


def _by_place(logged: TableMap, known: Known | None, codecs: Mapping[int, str], seconds: int) -> TableFacts:
    name = f"{logged.database}.{logged.table}"
    if known is None:
        raise _lost(name, "it is not there any more")
    if known.altered_s is not None and known.altered_s > seconds:
        raise _lost(name, "it was altered or made anew after the change")
    facts = known.facts
    if len(facts.columns) != len(logged.columns):
        raise _lost(name, f"it has {len(facts.columns)} columns now, and {len(logged.columns)} in the change")
    columns: list[ColumnFacts] = []
    for column, now in zip(logged.columns, facts.columns, strict=True):
        if not agree(kind_of(column, codecs), now.kind, is_full=False):
            raise _lost(name, f"its column {now.name} is of another type now")
        columns.append(ColumnFacts(now.name, now.kind, not column.nullable, now.default))
    return TableFacts(logged.database, logged.table, tuple(columns), facts.key, facts.has_primary_key)


def _lost(name: str, why: str) -> HistoryLost:
    return HistoryLost(
        f"the columns of a change of {name} are not known: {why}, and the binary log has no names. Run SET GLOBAL "
        "binlog_row_metadata = FULL, so that this does not happen again; set snapshot.mode to when_needed to read the "
        "tables again, or reset the connector's offsets"
    )
