"""Databases behind JDBC addresses: PostgreSQL (psycopg) and SQLite (the standard library), one class each.

    database = open_database("jdbc:postgresql://db:5432/shop?sslmode=require", user, password, …)
    with database.transaction():
        database.write(table, columns, rows)

Each knows its types, which are those that Confluent's dialects choose, its way to write many rows at once, and which of
its errors a new try may mend.
"""

import io
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.csv as pcsv  # type: ignore[import-untyped]

from ottla.connect.connectors.allowed_paths import allowed_path
from ottla.connect.data.schema import DATE, DECIMAL, PRECISION, TIME, TIMESTAMP, Schema, Type, scale_of
from ottla.connect.errors import ConnectError, Retriable

_DEBEZIUM: Final = "io.debezium."
_EPOCH: Final = datetime(1970, 1, 1)
_QUESTION: Final = "\0"
_DAY: Final = {"s": 86_400, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
_FILES: Final = ("sslrootcert", "sslcert", "sslkey")
_AS_WRITTEN: Final = ("json", "jsonb", "interval")
"""Types whose texts say more than what Python makes of them: the digits of numbers, null, months."""
_PASSED_ON: Final = ("sslmode", *_FILES, "options")


@dataclass(frozen=True, slots=True)
class Table:
    """A table by its name, with the schema before it if there is one."""

    name: str
    schema: str | None = None

    @staticmethod
    def of(text: str) -> "Table":
        """`shop.orders`; quotes around a part are taken off."""
        parts = [part.strip('"`') for part in text.split(".")]
        if not all(parts):
            raise ConnectError(f"{text!r} is no name of a table")
        return Table(parts[-1], ".".join(parts[:-1]) or None)

    def __str__(self) -> str:
        return self.name if self.schema is None else f"{self.schema}.{self.name}"


@dataclass(frozen=True, slots=True)
class ColumnFacts:
    """A column as the database has it."""

    name: str
    type: str
    is_nullable: bool
    is_key: bool


@dataclass(frozen=True, slots=True)
class NewColumn:
    """A column to make: from a field."""

    name: str
    schema: Schema
    is_key: bool = False


class Database(ABC):
    """A connection. One transaction at a time; what is done outside of one commits at once."""

    place: str
    """For messages: which database that is, without secrets."""
    catalogue: str | None = None
    """What JDBC puts before the schemas' names, if anything."""

    # What differs.

    @abstractmethod
    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """One statement, with `?` for parameters, and its rows."""

    @abstractmethod
    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing. A failure is raised as `ConnectError`, or `Retriable` where a new try may help."""

    @abstractmethod
    def columns(self, table: Table) -> list[ColumnFacts]:
        """The table's columns; none if there is no such table."""

    @abstractmethod
    def type_of(self, schema: Schema, *, is_key: bool) -> str:
        """The type of a column for values of this schema. Raises `ConnectError` if there is none."""

    @abstractmethod
    def insert(self, table: Table, batch: Any) -> None:
        """Adds the rows of a record batch of Arrow's."""

    @abstractmethod
    def upsert(self, table: Table, batch: Any, keys: Sequence[str]) -> None:
        """Adds rows, or changes those with the same key. No key is there twice."""

    @abstractmethod
    def update(self, table: Table, batch: Any, keys: Sequence[str]) -> None:
        """Changes rows with these keys, and adds none."""

    @abstractmethod
    def delete(self, table: Table, batch: Any) -> None:
        """Removes rows whose columns are as in a row of the batch."""

    @abstractmethod
    def stream(
        self, statement: str, parameters: Sequence[Any], size: int
    ) -> Iterator[tuple[list[ColumnFacts], list[tuple[Any, ...]]]]:
        """Columns of a query, and its rows, so many at a time: as much is in memory. The first piece may be empty."""

    @abstractmethod
    def moment_text(self, column: str, type: str) -> tuple[str, str]:
        """How a column of times is compared, and the mark of what it is compared with: `(column, "?")`."""

    @abstractmethod
    def moment_parameter(self, us: int, type: str) -> Any:
        """What stands for the mark: microseconds since 1970."""

    @abstractmethod
    def tables(self) -> list[Table]: ...

    @abstractmethod
    def now_ms(self) -> int:
        """The database's own clock."""

    @abstractmethod
    def close(self) -> None: ...

    # What is the same.

    def quoted(self, name: str) -> str:
        return '"' + name.replace('"', '""') + '"'

    def quoted_table(self, table: Table) -> str:
        return ".".join(self.quoted(part) for part in (*(table.schema.split(".") if table.schema else ()), table.name))

    def create(self, table: Table, columns: Sequence[NewColumn]) -> None:
        lines = [self._column_line(column) for column in columns]
        keys = [self.quoted(column.name) for column in columns if column.is_key]
        if keys:
            lines.append(f"PRIMARY KEY ({', '.join(keys)})")
        self.execute(f"CREATE TABLE {self.quoted_table(table)} ({', '.join(lines)})")

    def add_columns(self, table: Table, columns: Sequence[NewColumn]) -> None:
        for column in columns:
            self.execute(f"ALTER TABLE {self.quoted_table(table)} ADD COLUMN {self._column_line(column)}")

    def _column_line(self, column: NewColumn) -> str:
        schema = column.schema
        line = f"{self.quoted(column.name)} {self.type_of(schema, is_key=column.is_key)}"
        if schema.default is not None and isinstance(schema.default, str | int | float) and schema.logical is None:
            line += f" DEFAULT {self.literal(schema.default)}"
        return line if schema.optional and not column.is_key else f"{line} NOT NULL"

    def literal(self, value: Any) -> str:
        if isinstance(value, bool):
            return ("TRUE" if value else "FALSE") if self._has_booleans else str(int(value))
        return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)

    _has_booleans = True


def check_database(url: str, user: str | None, password: str | None, setting: str = "connection.url") -> None:
    """Whether it can be opened, for a configuration that is not used yet. Files are not looked at: which of them a
    connector may use is the worker's to say, and it is not known here. Raises as `open_database`."""
    if _kind(url) != "sqlite" and not any(f"{name}=" in url for name in _FILES):
        open_database(url, user, password, {}, setting).close()


def _kind(url: str) -> str:
    return url.removeprefix("jdbc:").partition(":")[0].lower()


def open_database(
    url: str, user: str | None, password: str | None, worker: Mapping[str, str], setting: str = "connection.url"
) -> Database:
    """Connects. Raises `Retriable` if the database cannot be reached, `ConnectError` if it refuses, both naming the
    setting and the remedy."""
    kind = _kind(url)
    if kind in ("postgresql", "postgres"):
        return PostgreSQL(url, user, password, worker, setting)
    if kind == "sqlite":
        return SQLite(url, worker, setting)
    raise ConnectError(
        f"{setting}: there is no database for {kind!r} here; there are jdbc:postgresql://HOST:PORT/DATABASE and "
        "jdbc:sqlite:FILE"
    )


class SQLite(Database):
    """A file, or memory (`jdbc:sqlite::memory:`). Dates and times are texts of ISO 8601."""

    _has_booleans = False

    def __init__(self, url: str, worker: Mapping[str, str], setting: str) -> None:
        name = url.removeprefix("jdbc:").partition(":")[2].partition("?")[0].removeprefix("file:")
        self.place = f"SQLite {name}"
        if name not in (":memory:", ""):
            path = allowed_path(name, worker, setting)
            if not Path(path).parent.is_dir():
                raise ConnectError(f"{setting}: there is no directory {Path(path).parent}; create it")
            name = str(path)
        try:
            self._connection = sqlite3.connect(name or ":memory:", isolation_level=None, timeout=10)
            # A query of somebody else's may otherwise open and write any file: ATTACH, VACUUM INTO.
            self._connection.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self._connection.execute("PRAGMA schema_version")  # reads the file: it may be none of SQLite's
        except sqlite3.Error as error:
            raise ConnectError(f"{setting}: {self.place} cannot be opened: {error}") from error

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection.execute(statement, parameters).fetchall()
        except sqlite3.Error as error:
            raise self._raised(error) from error

    def _raised(self, error: sqlite3.Error) -> ConnectError:
        busy = isinstance(error, sqlite3.OperationalError) and ("locked" in str(error) or "busy" in str(error))
        return (Retriable if busy else ConnectError)(f"{self.place}: {error}")

    @contextmanager
    def transaction(self) -> Iterator[None]:
        self.execute("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            self._connection.rollback()
            raise
        self.execute("COMMIT")

    def columns(self, table: Table) -> list[ColumnFacts]:
        rows = self.execute(f"PRAGMA table_info({self.quoted(table.name)})")
        return [ColumnFacts(row[1], _wide(str(row[2])), not row[3], bool(row[5])) for row in rows]

    def tables(self) -> list[Table]:
        rows = self.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ORDER BY 1"
        )
        return [Table(row[0]) for row in rows]

    def type_of(self, schema: Schema, *, is_key: bool) -> str:
        if schema.logical is not None or (schema.name or "").startswith(f"{_DEBEZIUM}time."):
            return "NUMERIC" if schema.logical == DECIMAL else "TEXT"
        types = {Type.FLOAT32: "REAL", Type.FLOAT64: "REAL", Type.STRING: "TEXT", Type.BYTES: "BLOB"}
        if schema.type in (Type.ARRAY, Type.MAP, Type.STRUCT):
            raise no_column(schema)
        return types.get(schema.type, "INTEGER")

    def _many(self, statement: str, batch: Any) -> int:
        columns = [_python(*one) for one in zip(batch.schema.names, batch.columns, strict=True)]
        try:
            return self._connection.executemany(statement, zip(*columns, strict=True)).rowcount
        except sqlite3.Error as error:
            raise self._raised(error) from error

    def insert(self, table: Table, batch: Any) -> None:
        self._many(self._inserting(table, batch), batch)

    def _inserting(self, table: Table, batch: Any) -> str:
        names = ", ".join(map(self.quoted, batch.schema.names))
        marks = ", ".join("?" * batch.num_columns)
        return f"INSERT INTO {self.quoted_table(table)} ({names}) VALUES ({marks})"

    def upsert(self, table: Table, batch: Any, keys: Sequence[str]) -> None:
        changed = [name for name in batch.schema.names if name not in keys]
        sets = ", ".join(f"{self.quoted(name)} = excluded.{self.quoted(name)}" for name in changed)
        action = f"DO UPDATE SET {sets}" if changed else "DO NOTHING"
        conflict = ", ".join(map(self.quoted, keys))
        self._many(f"{self._inserting(table, batch)} ON CONFLICT ({conflict}) {action}", batch)

    def update(self, table: Table, batch: Any, keys: Sequence[str]) -> None:
        changed = [name for name in batch.schema.names if name not in keys]
        sets = ", ".join(f"{self.quoted(name)} = ?" for name in changed)
        where = " AND ".join(f"{self.quoted(name)} = ?" for name in keys)
        self._many(f"UPDATE {self.quoted_table(table)} SET {sets} WHERE {where}", batch.select([*changed, *keys]))

    def delete(self, table: Table, batch: Any) -> None:
        where = " AND ".join(f"{self.quoted(name)} = ?" for name in batch.schema.names)
        self._many(f"DELETE FROM {self.quoted_table(table)} WHERE {where}", batch)

    def stream(
        self, statement: str, parameters: Sequence[Any], size: int
    ) -> Iterator[tuple[list[ColumnFacts], list[tuple[Any, ...]]]]:
        try:
            cursor = self._connection.execute(statement.replace(_QUESTION, "?"), parameters)
            facts = [ColumnFacts(one[0], "", True, False) for one in cursor.description or ()]
            rows = cursor.fetchmany(size)
            yield facts, rows
            while rows := cursor.fetchmany(size):
                yield facts, rows
        except sqlite3.Error as error:
            raise self._raised(error) from error

    def moment_text(self, column: str, type: str) -> tuple[str, str]:
        """Milliseconds: SQLite reads no more of a time. What is a number in a column of times is what JDBC writes
        there."""
        if "INT" in type.upper():
            return column, "?"
        of_number = f"strftime('%Y-%m-%d %H:%M:%f', {column} / 1000.0, 'unixepoch')"
        of_text = f"strftime('%Y-%m-%d %H:%M:%f', {column})"
        return f"CASE typeof({column}) WHEN 'integer' THEN {of_number} ELSE {of_text} END", "?"

    def moment_parameter(self, us: int, type: str) -> Any:
        if "INT" in type.upper():
            return us // 1_000
        when = _EPOCH + timedelta(microseconds=us)
        return f"{when:%Y-%m-%d %H:%M:%S}.{when.microsecond // 1_000:03}"

    def now_ms(self) -> int:
        return int(self.execute("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)")[0][0])

    def close(self) -> None:
        self._connection.close()


def _wide(type: str) -> str:
    """A declared type in the words of the others: SQLite's numbers have 64 bits, whatever their name."""
    kind = type.lower()
    if "int" in kind:
        return "bigint"
    return "double precision" if kind.startswith(("real", "float", "double")) else kind


def _python(name: str, column: Any) -> list[Any]:
    """Values as sqlite3 takes them. Raises `ConnectError` for a date or a time that ISO 8601 does not have."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        if pa.types.is_time(kind) and any(
            not 0 <= one < _DAY[kind.unit] for one in comparable(column) if one is not None
        ):
            raise ConnectError(f"column {name}: a time is not within a day")
        try:
            return [None if one is None else one.isoformat() for one in column.to_pylist()]
        except (OverflowError, ValueError) as error:
            raise ConnectError(f"column {name}: a date is not within the years 1 to 9999: {error}") from None
    if pa.types.is_decimal(kind):
        return [None if one is None else str(one) for one in column.to_pylist()]
    return column.to_pylist()  # type: ignore[no-any-return]  # pyarrow ships no types


def comparable(column: Any) -> list[Any]:
    """Values that are the same if they are: of dates and times the numbers, which may be beyond Python's years."""
    kind = column.type
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    return column.to_pylist()  # type: ignore[no-any-return]  # pyarrow ships no types


def no_column(schema: Schema) -> ConnectError:
    return ConnectError(
        f"{schema} has no type of a column; take it apart with the transform Flatten, or leave the field out"
    )


class PostgreSQL(Database):
    """Many rows go by COPY into a temporary table, and from there by one statement into their own."""

    def __init__(
        self, url: str, user: str | None, password: str | None, worker: Mapping[str, str], setting: str
    ) -> None:
        try:
            import psycopg  # needed by whoever has such a database
        except ImportError as error:
            raise ConnectError(
                f"{setting}: PostgreSQL needs psycopg: pip install 'psycopg[binary]' ({error})"
            ) from error
        self._psycopg = psycopg
        try:
            parts = urlsplit(url.removeprefix("jdbc:"))
            port = parts.port or 5432
        except ValueError as error:
            raise ConnectError(f"{setting}: it must be jdbc:postgresql://HOST:PORT/DATABASE: {error}") from None
        if not parts.hostname or len(parts.path) < 2:
            raise ConnectError(f"{setting}: it must be jdbc:postgresql://HOST:PORT/DATABASE")
        given = dict(parse_qsl(parts.query))
        self.catalogue = unquote(parts.path[1:])
        self.place = f"PostgreSQL {parts.hostname}:{port}/{self.catalogue}"
        known: dict[str, Any] = {name: given[name] for name in _PASSED_ON if name in given}
        for name in _FILES:
            if known.get(name, "system") != "system":  # the system's certificates are no file
                allowed_path(known[name], worker, f"{setting}: {name}")
        try:
            self._connection = psycopg.connect(
                host=parts.hostname,
                port=port,
                dbname=self.catalogue,
                user=user or given.get("user"),
                password=password or given.get("password"),
                connect_timeout=10,
                autocommit=True,
                application_name="ottla-connect",
                **known,
            )
            self._connection.execute("SET TIME ZONE 'UTC'")
            for name in _AS_WRITTEN:
                self._connection.adapters.register_loader(name, psycopg.types.string.TextLoader)
        except psycopg.OperationalError as error:
            raise self._refused(error, setting) from None
        self._staged = 0
        if given.get("currentSchema"):
            self.execute("SELECT set_config('search_path', ?, false)", (given["currentSchema"],))

    def _refused(self, error: Any, setting: str) -> ConnectError:
        text = " ".join(str(error).split())
        state = getattr(error, "sqlstate", None) or ""
        if state.startswith("28") or "authentication failed" in text or "no password supplied" in text:
            return ConnectError(f"{self.place} refuses the user: {text}; see connection.user and connection.password")
        if state == "3D000" or "does not exist" in text:
            return ConnectError(f"{setting}: {self.place}: {text}")
        return Retriable(f"{setting}: {self.place} cannot be reached: {text}")

    def _raised(self, error: Any) -> ConnectError:
        """Lost connections, deadlocks and full disks may pass; what the data or the statement is guilty of does not."""
        state = getattr(error, "sqlstate", None) or ""
        gone = isinstance(error, self._psycopg.OperationalError) or self._connection.closed
        passing = gone or state[:2] in ("08", "40", "53", "57", "55")
        return (Retriable if passing else ConnectError)(f"{self.place}: {' '.join(str(error).split())}")

    def execute(self, statement: str, parameters: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        try:
            # Without parameters there are no marks: a name or a default may have a question mark in it.
            asked = _marked(statement) if parameters else statement.replace(_QUESTION, "?")
            cursor = self._connection.execute(asked, parameters or None)
            return cursor.fetchall() if cursor.description else []
        except self._psycopg.Error as error:
            raise self._raised(error) from error

    @contextmanager
    def transaction(self) -> Iterator[None]:
        try:
            with self._connection.transaction():
                yield
        except self._psycopg.Error as error:
            raise self._raised(error) from error

    def columns(self, table: Table) -> list[ColumnFacts]:
        rows = self.execute(
            """
            SELECT a.attname, format_type(a.atttypid, a.atttypmod), NOT a.attnotnull, coalesce(i.indisprimary, false)
            FROM pg_attribute a
            LEFT JOIN pg_index i ON i.indrelid = a.attrelid AND i.indisprimary AND a.attnum = ANY (i.indkey)
            WHERE a.attrelid = to_regclass(?) AND a.attnum > 0 AND NOT a.attisdropped ORDER BY a.attnum
            """,
            (self.quoted_table(table),),
        )
        return [ColumnFacts(*row) for row in rows]

    def tables(self) -> list[Table]:
        rows = self.execute(
            "SELECT table_schema, table_name FROM information_schema.tables WHERE table_type = 'BASE TABLE' "
            "AND table_schema NOT IN ('pg_catalog', 'information_schema') ORDER BY 1, 2"
        )
        return [Table(name, schema) for schema, name in rows]

    def type_of(self, schema: Schema, *, is_key: bool) -> str:
        if schema.logical == DECIMAL:
            text = (schema.parameters or {}).get(PRECISION, "")
            return f"DECIMAL({text},{scale_of(schema)})" if text.isdecimal() else "DECIMAL"
        named = _POSTGRES_NAMED.get(schema.name or "")
        if named is not None:
            return named
        if schema.type in (Type.ARRAY, Type.MAP, Type.STRUCT):
            raise no_column(schema)
        return _POSTGRES[schema.type]

    def _staging(self, table: Table, batch: Any) -> str:
        """A temporary table of these columns, with the rows in it; it is gone with the transaction."""
        self._staged += 1
        name = f"ottla_rows_{self._staged}"
        names = ", ".join(map(self.quoted, batch.schema.names))
        self.execute(
            f"CREATE TEMPORARY TABLE {name} ON COMMIT DROP AS "
            f"SELECT {names} FROM {self.quoted_table(table)} WITH NO DATA"
        )
        self._copy(name, names, batch)
        return name

    def _copy(self, target: str, names: str, batch: Any) -> None:
        content = io.BytesIO()
        options = pcsv.WriteOptions(include_header=False)
        pcsv.write_csv(
            pa.RecordBatch.from_arrays([_copied(one) for one in batch.columns], batch.schema.names), content, options
        )
        try:
            with self._connection.cursor().copy(f"COPY {target} ({names}) FROM STDIN (FORMAT csv)") as copy:
                copy.write(content.getbuffer())
        except self._psycopg.Error as error:
            raise self._raised(error) from error

    def insert(self, table: Table, batch: Any) -> None:
        self._copy(self.quoted_table(table), ", ".join(map(self.quoted, batch.schema.names)), batch)

    def upsert(self, table: Table, batch: Any, keys: Sequence[str]) -> None:
        rows = self._staging(table, batch)
        names = ", ".join(map(self.quoted, batch.schema.names))
        changed = [self.quoted(name) for name in batch.schema.names if name not in keys]
        action = (
            f"DO UPDATE SET {', '.join(f'{name} = excluded.{name}' for name in changed)}" if changed else "DO NOTHING"
        )
        self.execute(
            f"INSERT INTO {self.quoted_table(table)} ({names}) SELECT {names} FROM {rows} "
            f"ON CONFLICT ({', '.join(map(self.quoted, keys))}) {action}"
        )

    def update(self, table: Table, batch: Any, keys: Sequence[str]) -> None:
        rows = self._staging(table, batch)
        sets = ", ".join(
            f"{name} = r.{name}" for name in map(self.quoted, batch.schema.names) if name not in map(self.quoted, keys)
        )
        where = " AND ".join(f"t.{name} = r.{name}" for name in map(self.quoted, keys))
        self.execute(f"UPDATE {self.quoted_table(table)} t SET {sets} FROM {rows} r WHERE {where}")

    def delete(self, table: Table, batch: Any) -> None:
        rows = self._staging(table, batch)
        where = " AND ".join(f"t.{name} = r.{name}" for name in map(self.quoted, batch.schema.names))
        self.execute(f"DELETE FROM {self.quoted_table(table)} t USING {rows} r WHERE {where}")

    def stream(
        self, statement: str, parameters: Sequence[Any], size: int
    ) -> Iterator[tuple[list[ColumnFacts], list[tuple[Any, ...]]]]:
        self._staged += 1
        try:
            # The server keeps the rows (WITH HOLD): no transaction stays open from one poll to the next.
            with self._connection.cursor(f"ottla_poll_{self._staged}", withhold=True) as cursor:
                cursor.execute(_marked(statement), parameters or None)
                facts = [ColumnFacts(one.name, self._type_name(one), True, False) for one in cursor.description or ()]
                rows = cursor.fetchmany(size)
                yield facts, rows
                while rows := cursor.fetchmany(size):
                    yield facts, rows
        except self._psycopg.Error as error:
            raise self._raised(error) from error

    def _type_name(self, column: Any) -> str:
        found = self._psycopg.adapters.types.get(column.type_code)
        if found is None:
            return "text"
        if found.name == "numeric" and column.precision is not None:
            return f"numeric({column.precision},{column.scale or 0})"
        return str(found.name)

    def moment_text(self, column: str, type: str) -> tuple[str, str]:
        return column, "?::timestamptz" if "with time zone" in type or type == "timestamptz" else "?::timestamp"

    def moment_parameter(self, us: int, type: str) -> Any:
        when = _EPOCH + timedelta(microseconds=us)
        return when.replace(tzinfo=UTC) if "with time zone" in type or type == "timestamptz" else when

    def now_ms(self) -> int:
        return int(self.execute("SELECT (extract(epoch FROM clock_timestamp()) * 1000)::bigint")[0][0])

    def close(self) -> None:
        self._connection.close()


_POSTGRES: Final = {
    Type.INT8: "SMALLINT",
    Type.INT16: "SMALLINT",
    Type.INT32: "INTEGER",
    Type.INT64: "BIGINT",
    Type.FLOAT32: "REAL",
    Type.FLOAT64: "DOUBLE PRECISION",
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "TEXT",
    Type.BYTES: "BYTEA",
}
_POSTGRES_NAMED: Final = {
    DATE: "DATE",
    TIME: "TIME",
    TIMESTAMP: "TIMESTAMP",
    f"{_DEBEZIUM}time.Date": "DATE",
    f"{_DEBEZIUM}time.Time": "TIME",
    f"{_DEBEZIUM}time.MicroTime": "TIME",
    f"{_DEBEZIUM}time.NanoTime": "TIME",
    f"{_DEBEZIUM}time.Timestamp": "TIMESTAMP",
    f"{_DEBEZIUM}time.MicroTimestamp": "TIMESTAMP",
    f"{_DEBEZIUM}time.NanoTimestamp": "TIMESTAMP",
    f"{_DEBEZIUM}time.ZonedTimestamp": "TIMESTAMPTZ",
    f"{_DEBEZIUM}time.ZonedTime": "TIMETZ",
    f"{_DEBEZIUM}data.Uuid": "UUID",
    f"{_DEBEZIUM}data.Json": "JSON",
}


def literally(statement: str) -> str:
    """Somebody else's statement, in which a question mark is no mark of ours (PostgreSQL has operators with it)."""
    return statement.replace("?", _QUESTION)


def _marked(statement: str) -> str:
    """psycopg's marks for ours."""
    marked = statement.replace("%", "%%").replace("?", "%s") if "?" in statement else statement
    return marked.replace(_QUESTION, "?")


def _copied(column: Any) -> Any:
    """A column as CSV can have it: bytes in hexadecimal, moments without the zone, which is UTC."""
    kind = column.type
    if pa.types.is_binary(kind):
        return pa.array([None if one is None else "\\x" + one.hex() for one in column.to_pylist()], pa.string())
    if pa.types.is_timestamp(kind):
        unit = "us" if kind.unit == "ns" else kind.unit
        return column.cast(pa.timestamp(kind.unit)).cast(pa.timestamp(unit), safe=False)
    if pa.types.is_time64(kind) and kind.unit == "ns":
        return column.cast(pa.time64("us"), safe=False)
    return column
