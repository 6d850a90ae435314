"""From tables by polling: Confluent's JdbcSourceConnector, without jars.

| mode | which rows | offset |
| --- | --- | --- |
| bulk | all, each time | none that matters |
| incrementing | those with a larger number than the last | `incrementing` |
| timestamp | newer ones than the last, up to the database's time less `timestamp.delay.interval.ms` | `timestamp` |
| timestamp+incrementing | both: newer, or as new with a larger number | both |

Partitions and offsets are Confluent's: a connector that ran there goes on here. Rows are read so many at a time
(`batch.max.rows`), each time with the offset behind them. Where only a time says what is new, rows of one moment are
never separated: a poll that ends within them would lose the others.

Rows that are changed without a new time, and rows that are deleted, are not seen: nothing that polls can. A row that is
committed late with an early time is seen if the delay is longer than the transaction was.
"""

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from datetime import time as time_of_day
from decimal import Context, Decimal, InvalidOperation
from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.bounds import OneOf, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, Int, List, Long, Secret, Text
from ottla.connect.connector import Problem, Source, SourceRecords
from ottla.connect.connectors.known_options import refuse_unknown, setting_of
from ottla.connect.connectors.tables.databases import (
    ColumnFacts,
    Database,
    Table,
    check_database,
    literally,
    open_database,
)
from ottla.connect.connectors.tables.sink import POSITIONS
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import AnyColumn, nothing
from ottla.connect.data.records import Records
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import DATE, DECIMAL, TIME, TIMESTAMP, Field, Schema, Type, scale_of
from ottla.connect.errors import ConnectError, DataError
from ottla.connect.options import InvalidOption, read_options

_CLASS: Final = "io.confluent.connect.jdbc.JdbcSourceConnector"
_SHORTEST_PAUSE_S: Final = 0.005
_DIGITS: Final = Context(prec=100_000)
"""More than a number of a database has: none is rounded off."""
_EPOCH: Final = datetime(1970, 1, 1)
_DAY: Final = date(1970, 1, 1)
_TYPES: Final = {
    "smallint": Type.INT16,
    "int2": Type.INT16,
    "integer": Type.INT32,
    "int4": Type.INT32,
    "bigint": Type.INT64,
    "int8": Type.INT64,
    "real": Type.FLOAT32,
    "float4": Type.FLOAT32,
    "double precision": Type.FLOAT64,
    "float8": Type.FLOAT64,
    "boolean": Type.BOOLEAN,
    "bool": Type.BOOLEAN,
    "bytea": Type.BYTES,
    "blob": Type.BYTES,
}
_MOMENTS: Final = {
    "date": schemas.date(),
    "time": schemas.time(),
    "time without time zone": schemas.time(),
    "timestamp": schemas.timestamp(),
    "timestamptz": schemas.timestamp(),
    "timestamp without time zone": schemas.timestamp(),
    "timestamp with time zone": schemas.timestamp(),
    "datetime": schemas.timestamp(),
}


@dataclass
class _Polled:
    """A table or query, and where it is."""

    table: Table | None
    statement: str
    partition: dict[str, str]
    topic: str
    due_s: float = 0.0
    number: int | None = None
    moment_us: int | None = None
    is_read: bool = False
    """Whether it was read to its end, once."""
    bulk: Iterator[tuple[list[ColumnFacts], list[tuple[Any, ...]]]] | None = None


class _Page(NamedTuple):
    """Rows that were read at once, and of each the moment by which the database has compared it, if it has."""

    facts: list[ColumnFacts]
    rows: list[tuple[Any, ...]]
    moments_us: list[int]


class TablesSource(Source):
    """io.confluent.connect.jdbc.JdbcSourceConnector"""

    settings = (
        Text(
            "connection.url",
            REQUIRED,
            ANY,
            HIGH,
            "jdbc:postgresql://HOST:PORT/DATABASE or jdbc:sqlite:FILE.",
            acted_on=True,
        ),
        Text("connection.user", None, ANY, HIGH, "The user.", acted_on=True),
        Secret("connection.password", HIGH, "Their password.", acted_on=True),
        Text(
            "mode",
            REQUIRED,
            OneOf(("bulk", "incrementing", "timestamp", "timestamp+incrementing")),
            HIGH,
            "How new rows are known.",
            acted_on=True,
        ),
        Text("incrementing.column.name", "", ANY, MEDIUM, "The column that grows with each row.", acted_on=True),
        List(
            "timestamp.column.name",
            (),
            ANY,
            MEDIUM,
            "The column of the last change; of several the first that is set.",
            acted_on=True,
        ),
        Long("timestamp.initial", None, ANY, LOW, "Where to begin: milliseconds since 1970; -1 is now.", acted_on=True),
        Long(
            "timestamp.delay.interval.ms",
            0,
            at_least(0),
            HIGH,
            "How old rows must be, for transactions to end.",
            acted_on=True,
        ),
        Flag("validate.non.null", True, ANY, LOW, "Whether these columns must be declared NOT NULL.", acted_on=True),
        Text(
            "query",
            "",
            ANY,
            MEDIUM,
            "A query instead of tables; its records go to the topic `topic.prefix`.",
            acted_on=True,
        ),
        List("table.whitelist", (), ANY, MEDIUM, "The tables; all if none are named.", acted_on=True),
        List("table.blacklist", (), ANY, MEDIUM, "Tables not to read.", acted_on=True),
        Text(
            "schema.pattern", None, ANY, MEDIUM, "The schema whose tables are read, if none are named.", acted_on=True
        ),
        Text("topic.prefix", REQUIRED, ANY, HIGH, "What topics begin with; the table's name follows.", acted_on=True),
        Int("poll.interval.ms", 5000, at_least(0), HIGH, "How often a table is asked.", acted_on=True),
        Int("batch.max.rows", 100, at_least(1), LOW, "How many rows are read at a time.", acted_on=True),
        Long("table.poll.interval.ms", 60_000, at_least(0), LOW, "How often new tables are looked for.", acted_on=True),
        Text("dialect.name", "", ANY, LOW, "Accepted; the address says it."),
    )

    _database: Database | None = None

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            options = cls._checked(config)
            password = options.secret("connection.password")
            url, user = options.text("connection.url"), options.optional_text("connection.user")
            check_database(url, user, None if password is None else password.secret)
        except (ConnectError, ImportError) as problem:
            return [(setting_of(str(problem), cls.settings, "connection.url"), str(problem))]
        return []

    @classmethod
    def _checked(cls, config: Mapping[str, str]) -> Any:
        refuse_unknown(_CLASS, cls.settings, config)
        options = read_options(cls.settings, config)
        mode = options.text("mode")
        if "incrementing" in mode and not options.text("incrementing.column.name"):
            raise InvalidOption(f"incrementing.column.name: mode={mode} needs the column that grows")
        if "timestamp" in mode and not options.list("timestamp.column.name"):
            raise InvalidOption(f"timestamp.column.name: mode={mode} needs the column of the last change")
        if options.text("query") and (options.list("table.whitelist") or options.list("table.blacklist")):
            raise InvalidOption("query: it stands instead of tables; take table.whitelist and table.blacklist away")
        if options.list("table.whitelist") and options.list("table.blacklist"):
            raise InvalidOption("table.blacklist: name tables to read or tables not to read, and not both")
        return options

    def start(self) -> None:
        self._given = self._checked(self.config)
        password = self._given.secret("connection.password")
        self._mode = self._given.text("mode")
        self._size = self._given.integer("batch.max.rows")
        self._numbers = self._given.text("incrementing.column.name") if "incrementing" in self._mode else ""
        self._times = self._given.list("timestamp.column.name") if "timestamp" in self._mode else ()
        self._polled: dict[str, _Polled] = {}
        self._facts: dict[str, list[ColumnFacts]] = {}
        self._looked_s = float("-inf")
        self._database = open_database(
            self._given.text("connection.url"),
            self._given.optional_text("connection.user"),
            None if password is None else password.secret,
            self.context.worker,
        )
        self._look()

    def stop(self) -> None:
        for one in getattr(self, "_polled", {}).values():
            if one.bulk is not None:
                one.bulk.close()
        if self._database is not None:
            self._database.close()
            self._database = None

    def _open(self) -> Database:
        assert self._database is not None, "the source is not started"
        return self._database

    # Which tables.

    def _look(self) -> None:
        database = self._open()
        self._looked_s = time.monotonic()
        query = literally(self._given.text("query"))
        prefix = self._given.text("topic.prefix")
        if query:
            if "query" not in self._polled:
                self._add("query", _Polled(None, query, {"query": "query"}, prefix))
            return
        wanted = self._wanted(database)
        _refuse_one_topic_for_two(wanted)
        for gone in self._polled.keys() - {str(table) for table in wanted}:
            self.context.log.warning("table %s is not there any more, and is not read", gone)
            del self._polled[gone]
        for table in wanted:
            if str(table) not in self._polled:
                partition = {"protocol": "1", "table": str(table)}
                statement = f"SELECT * FROM {literally(database.quoted_table(table))}"
                self._add(str(table), _Polled(table, statement, partition, prefix + table.name))

    def _wanted(self, database: Database) -> list[Table]:
        named = [Table.of(one) for one in self._given.list("table.whitelist")]
        there = [table for table in database.tables() if table.name != POSITIONS.name]
        if named:
            missing = [one for one in named if not any(_is(one, table) for table in there)]
            if missing:
                raise ConnectError(f"table.whitelist: there is no table {missing[0]} in {database.place}")
            return [table for table in there if any(_is(one, table) for one in named)]
        schema = self._given.optional_text("schema.pattern")
        unwanted = [Table.of(one) for one in self._given.list("table.blacklist")]
        return [
            table
            for table in there
            if (schema is None or table.schema == schema) and not any(_is(one, table) for one in unwanted)
        ]

    def _add(self, name: str, polled: _Polled) -> None:
        if polled.table is not None:
            self._facts[name] = self._open().columns(polled.table)
            self._check_columns(polled.table, self._facts[name])
        stored = self._stored(polled)
        if self._numbers and stored.get("incrementing") is not None:
            polled.number = int(stored["incrementing"])
        if self._times:
            polled.moment_us = self._first_moment_us(stored)
        self._polled[name] = polled

    def _stored(self, polled: _Polled) -> Mapping[str, Any]:
        """By our name of the table, or one that an older version used."""
        partitions: list[Mapping[str, Any]] = [polled.partition]
        if polled.table is not None:
            catalogue = self._open().catalogue
            names = [polled.table.name] if catalogue is None else [f"{catalogue}.{polled.table}", polled.table.name]
            partitions += [{"protocol": "1", "table": name} for name in names]
            partitions.append({"table": polled.table.name})
        return next((found for one in partitions if (found := self.context.offset(one))), {})

    def _first_moment_us(self, stored: Mapping[str, Any]) -> int | None:
        """None: from the first row on, however old it is."""
        if stored.get("timestamp") is not None:
            nanoseconds = int(stored.get("timestamp_nanos") or int(stored["timestamp"]) % 1_000 * 1_000_000)
            return int(stored["timestamp"]) // 1_000 * 1_000_000 + nanoseconds // 1_000
        initial = self._given["timestamp.initial"]
        if initial == -1:
            return self._open().now_ms() * 1_000
        return int(initial) * 1_000 if isinstance(initial, int) else None

    def _check_columns(self, table: Table, facts: list[ColumnFacts]) -> None:
        known = {one.name: one for one in facts}
        for name in (*([self._numbers] if self._numbers else []), *self._times):
            setting = "incrementing.column.name" if name == self._numbers else "timestamp.column.name"
            if name not in known:
                raise ConnectError(f"{setting}: table {table} has no column {name}; it has {', '.join(known)}")
            alone = (name,) if name == self._numbers else self._times
            nullable = all(known[one].is_nullable and not known[one].is_key for one in alone if one in known)
            if self._given.flag("validate.non.null") and nullable:
                raise ConnectError(
                    f"{setting}: column {name} of {table} may be null, and such rows are not seen: declare it NOT "
                    "NULL, or set validate.non.null=false"
                )

    # Rows.

    def is_at_end(self) -> bool:
        """Every table was read to its end, whole or to its newest row, and rests until it is polled again."""
        return all(one.is_read for one in self._polled.values())

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        deadline_s = time.monotonic() + timeout_s
        while True:
            interval_s = self._given.integer("table.poll.interval.ms") / 1_000
            if time.monotonic() - self._looked_s >= interval_s:
                self._look()
            found: list[SourceRecords] = []
            size = 0
            for name, polled in list(self._polled.items()):
                if polled.due_s > time.monotonic() or size >= self.context.max_bytes:
                    continue
                try:
                    made = self._bulk(name, polled) if self._mode == "bulk" else self._new_rows(name, polled)
                except ConnectError:
                    self._look()
                    if name in self._polled:
                        raise
                    continue
                if made is not None:
                    found.append(made)
                    value = made.records.value
                    size += value.array.nbytes if value.schema is not None else 0
            if found:
                return found
            due_s = min((one.due_s for one in self._polled.values()), default=deadline_s)
            left_s = min(deadline_s, due_s, self._looked_s + max(interval_s, 0.01)) - time.monotonic()
            if time.monotonic() >= deadline_s:
                return []
            time.sleep(max(left_s, _SHORTEST_PAUSE_S))

    def _rest(self, polled: _Polled) -> None:
        polled.is_read = True
        polled.due_s = time.monotonic() + self._given.integer("poll.interval.ms") / 1_000

    def _bulk(self, name: str, polled: _Polled) -> SourceRecords | None:
        if polled.bulk is None:
            polled.bulk = self._open().stream(polled.statement, (), self._size)
        facts, rows = next(polled.bulk, ([], []))
        if not rows:
            polled.bulk = None
            self._rest(polled)
            return None
        return self._made(name, polled, facts, rows, {"polled": self.context.now_ms()})

    def _new_rows(self, name: str, polled: _Polled) -> SourceRecords | None:
        page = self._page(name, polled, f" LIMIT {self._size}")
        if len(page.rows) < self._size:
            self._rest(polled)
        elif self._times and not self._numbers:
            page = self._whole_moments(name, polled, page)
        facts, rows = page.facts, page.rows
        if not rows:
            return None
        last = dict(zip((one.name for one in facts), rows[-1], strict=True))
        offset: dict[str, Any] = {}
        if self._numbers:
            polled.number = _number(name, last[self._numbers])
            offset["incrementing"] = polled.number
        if self._times:
            polled.moment_us = page.moments_us[-1]
            offset["timestamp"] = polled.moment_us // 1_000
            offset["timestamp_nanos"] = polled.moment_us % 1_000_000 * 1_000
        return self._made(name, polled, facts, rows, offset)

    def _whole_moments(self, name: str, polled: _Polled, page: _Page) -> _Page:
        """A page that is full may end within rows of one moment: these come with the next, or all at once if they are
        all that there is."""
        last_us = page.moments_us[-1]
        if page.moments_us[0] == last_us:
            return self._page(name, polled, "", exactly_us=last_us)
        kept = page.moments_us.index(last_us)
        return _Page(page.facts, page.rows[:kept], page.moments_us[:kept])

    def _page(self, name: str, polled: _Polled, limit: str, exactly_us: int | None = None) -> _Page:
        database = self._open()
        selected = "*"
        where: list[str] = []
        parameters: list[Any] = []
        order: list[str] = []
        number = _column(database, self._numbers) if self._numbers else ""
        if self._times:
            type = next((one.type for one in self._facts.get(name, ()) if one.name == self._times[0]), "timestamp")
            columns = ", ".join(_column(database, one) for one in self._times)
            first_set = f"COALESCE({columns})" if len(self._times) > 1 else columns
            column, mark = database.moment_text(first_set, type)
            selected += f", {column}"
            order.append(column)
            if exactly_us is not None:
                where.append(f"{column} = {mark}")
                parameters.append(database.moment_parameter(exactly_us, type))
            else:
                before_us = (database.now_ms() - self._given.integer("timestamp.delay.interval.ms")) * 1_000
                where.append(f"{column} < {mark}")
                parameters.append(database.moment_parameter(before_us, type))
                since = None if polled.moment_us is None else database.moment_parameter(polled.moment_us, type)
                if number and polled.number is not None and since is not None:
                    where.append(f"({column} > {mark} OR ({column} = {mark} AND {number} > ?))")
                    parameters += [since, since, polled.number]
                elif since is not None:
                    where.append(f"{column} > {mark}")
                    parameters.append(since)
                if number:
                    where.append(f"{number} IS NOT NULL")
        elif polled.number is not None:
            where.append(f"{number} > ?")
            parameters.append(polled.number)
        else:
            where.append(f"{number} IS NOT NULL")
        if number:
            order.append(number)
        clause = f" WHERE {' AND '.join(where)}" if where else ""
        if self._times and exactly_us is None and column != first_set:
            clause += f" OR ({first_set} IS NOT NULL AND {column} IS NULL)"  # no time: it is refused, not passed over
        statement = f"SELECT {selected} FROM ({polled.statement}) AS polled{clause} ORDER BY {', '.join(order)}{limit}"
        pieces = list(database.stream(statement, parameters, self._size))
        facts, rows = pieces[0][0], [row for _, piece in pieces for row in piece]
        if not self._times:
            return _Page(facts, rows, [])
        moments_us = [self._moment_us(name, facts, row) for row in rows]
        return _Page(facts[:-1], [row[:-1] for row in rows], moments_us)

    def _moment_us(self, name: str, facts: list[ColumnFacts], row: tuple[Any, ...]) -> int:
        """The moment that the database has compared, which is a row's last column."""
        value = row[-1]
        if isinstance(value, int):
            return value * 1_000
        if isinstance(value, str):
            value = datetime.fromisoformat(value)
        if not isinstance(value, datetime):
            there = dict(zip((one.name for one in facts), row, strict=True))
            shown = next((there[one] for one in self._times if there.get(one) is not None), value)
            raise ConnectError(f"timestamp.column.name: {shown!r} in {name} is no time")
        return _microseconds(value)

    def _made(
        self, name: str, polled: _Polled, facts: list[ColumnFacts], rows: list[tuple[Any, ...]], offset: dict[str, Any]
    ) -> SourceRecords:
        known = {one.name for one in self._facts.get(name, ())}
        if polled.table is not None and any(one.name not in known for one in facts):
            self._facts[name] = self._open().columns(polled.table)  # a column came meanwhile
        if polled.table is None and not known:
            self._facts[name] = [_told(one, place, rows) for place, one in enumerate(facts)]
        try:
            column = self._column_of(name, polled, facts, rows)
        except ConnectError:
            fresh = None if polled.table is None else self._open().columns(polled.table)
            if fresh is None or fresh == self._facts[name]:
                raise
            self._facts[name] = fresh  # a column's type is another one now
            column = self._column_of(name, polled, facts, rows)
        length = len(rows)
        records = Records(
            polled.topic,
            nothing(length),
            column,
            pa.array(range(length), pa.int64()),
            pa.nulls(length, pa.int64()),
            pa.nulls(length, pa.int32()),
        )
        return SourceRecords(records, polled.partition, offset)

    def _column_of(
        self, name: str, polled: _Polled, facts: list[ColumnFacts], rows: list[tuple[Any, ...]]
    ) -> AnyColumn:
        """Rows as structs, by what is known of the columns. Raises `ConnectError`."""
        declared = {one.name: one for one in self._facts.get(name, ())}
        fields = [(one.name, _schema(declared.get(one.name, one))) for one in facts]
        title = polled.table.name if polled.table is not None else None
        try:
            schema = Schema(Type.STRUCT, name=title, fields=tuple(Field(*one) for one in fields))
            values = [
                {one: _value(kind, value) for (one, kind), value in zip(fields, row, strict=True)} for row in rows
            ]
            return column_of(schema, values)
        except (DataError, ValueError, TypeError, AttributeError, InvalidOperation) as error:
            raise ConnectError(f"a row of {name} in {self._open().place} cannot be read: {error}") from error


def _column(database: Database, name: str) -> str:
    """With the table before it: SQLite takes a name in quotes that is no column's for a text."""
    return f"polled.{literally(database.quoted(name))}"


def _number(name: str, value: Any) -> int:
    """What an offset can say of a column that grows. A fraction would be cut off, and its row come again and again; a
    text has another order than its number."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, Decimal) and value.is_finite() and value == value.to_integral_value():
        return int(value)
    raise ConnectError(f"incrementing.column.name: {value!r} in {name} is no whole number")


def _is(named: Table, table: Table) -> bool:
    """A name without a schema is any schema's; one with a catalogue before it counts without."""
    if named.name != table.name:
        return False
    return named.schema is None or named.schema.rpartition(".")[2] == table.schema


def _refuse_one_topic_for_two(tables: list[Table]) -> None:
    """As Confluent's connector does: nothing in a record says which of two tables its row is of."""
    seen: dict[str, Table] = {}
    for table in tables:
        other = seen.setdefault(table.name, table)
        if other != table:
            raise ConnectError(
                f"table.whitelist: {other} and {table} would go to one topic, which is named after the table; choose "
                "one of them with table.whitelist, table.blacklist or schema.pattern, and give the other a connector "
                "with another topic.prefix"
            )


def _told(facts: ColumnFacts, place: int, rows: list[tuple[Any, ...]]) -> ColumnFacts:
    """A column of a query whose type the database does not say: by the first value that is there."""
    if facts.type:
        return facts
    value = next((row[place] for row in rows if row[place] is not None), None)
    kinds = {int: "bigint", float: "double precision", bytes: "bytea"}
    return ColumnFacts(facts.name, kinds.get(type(value), "text"), True, False)


def _schema(facts: ColumnFacts) -> Schema:
    """The schema of a column by its declared type. What is not known is text."""
    kind = facts.type.lower().strip()
    optional = facts.is_nullable and not facts.is_key
    base, _, within = kind.partition("(")
    base = (base + kind.partition(")")[2]).strip() if within else kind
    if base in ("numeric", "decimal"):
        digits = within.rstrip(")").split(",")
        if not within or not digits[0].strip().isdecimal():
            return Schema(Type.STRING, optional)  # any number of digits: as text none is lost
        scale = int(digits[1]) if len(digits) > 1 else 0
        return schemas.decimal(scale, optional=optional, precision=int(digits[0]))
    if base in _MOMENTS:
        return _MOMENTS[base].but(optional=optional)
    if base in _TYPES:
        return Schema(_TYPES[base], optional)
    return Schema(Type.STRING, optional)


def _value(schema: Schema, value: Any) -> Any:
    """A value of the driver's as rows have them."""
    if value is None:
        return None
    if schema.logical == DECIMAL:
        return Decimal(str(value)).quantize(Decimal(1).scaleb(-scale_of(schema)), context=_DIGITS)
    if schema.logical == DATE:
        day = date.fromisoformat(value[:10]) if isinstance(value, str) else value
        return (day - _DAY).days
    if schema.logical == TIME:
        of_day = time_of_day.fromisoformat(value) if isinstance(value, str) else value
        seconds = (of_day.hour * 60 + of_day.minute) * 60 + of_day.second
        return seconds * 1_000 + of_day.microsecond // 1_000
    if schema.logical == TIMESTAMP:
        if isinstance(value, int):
            return value
        return _microseconds(datetime.fromisoformat(value) if isinstance(value, str) else value) // 1_000
    if schema.type is Type.STRING and not isinstance(value, str):
        return _text(value)
    if schema.type is Type.BYTES:
        if not isinstance(value, bytes | bytearray | memoryview | str):
            raise DataError(f"{value!r} is no bytes")
        return value.encode() if isinstance(value, str) else bytes(value)
    if schema.type is Type.BOOLEAN:
        if value not in (0, 1):  # SQLite keeps what it is given: a text "false" too
            raise DataError(f"{value!r} is no boolean")
        return bool(value)
    return value


def _text(value: Any) -> str:
    """A value whose type of the database has none here."""
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, default=str)
    return value.decode() if isinstance(value, bytes) else str(value)


def _microseconds(when: datetime) -> int:
    if when.tzinfo is not None:
        when = when.astimezone(UTC).replace(tzinfo=None)
    return (when - _EPOCH) // timedelta(microseconds=1)
