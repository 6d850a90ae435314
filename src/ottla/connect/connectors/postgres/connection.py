"""Connections to PostgreSQL through psycopg, its slot and publication, and its errors in words that name the remedy."""

import select
import struct
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

import psycopg
from psycopg import pq, sql

from ottla.config.parse import Values
from ottla.connect.connectors.postgres import catalogue, chunks
from ottla.connect.connectors.postgres.catalogue import ColumnFacts, TableFacts, Types
from ottla.connect.connectors.postgres.offsets import lsn_of, lsn_text
from ottla.connect.connectors.postgres.pgoutput import EPOCH_US
from ottla.connect.errors import ConnectError, Retriable

_SESSION: Final = {
    "TimeZone": "UTC",
    "DateStyle": "ISO",
    "IntervalStyle": "postgres",
    "bytea_output": "hex",
    "lc_monetary": "C",
    "extra_float_digits": "1",
}
_CONNECT_S: Final = 10
_STATUS: Final = struct.Struct(">cQQQqB")


class Database:
    """A database, by the options of a connector."""

    def __init__(self, options: Values) -> None:
        self.options = options
        self.host = options.text("database.hostname")
        self.port = options.integer("database.port")
        self.name = options.text("database.dbname")
        self.user = options.text("database.user")
        self.slot = options.text("slot.name")
        self.publication = options.text("publication.name")

    @property
    def where(self) -> str:
        return f"{self.host}:{self.port}/{self.name}"

    def _conninfo(self, **more: Any) -> dict[str, Any]:
        options = self.options
        password, of_key = options.secret("database.password"), options.secret("database.sslpassword")
        session = dict(_SESSION)
        if "replication" not in more and options.integer("database.query.timeout.ms"):
            session["statement_timeout"] = str(options.integer("database.query.timeout.ms"))
        found = {
            "host": self.host,
            "port": self.port,
            "dbname": self.name,
            "user": self.user,
            "password": None if password is None else password.secret,
            "sslmode": options.text("database.sslmode"),
            "sslcert": options.optional_text("database.sslcert"),
            "sslkey": options.optional_text("database.sslkey"),
            "sslpassword": None if of_key is None else of_key.secret,
            "sslrootcert": options.optional_text("database.sslrootcert"),
            "keepalives": int(options.flag("database.tcpKeepAlive")),
            "connect_timeout": _CONNECT_S,
            "client_encoding": "UTF8",
            "application_name": f"ottla {options.text('topic.prefix')}",
            "options": " ".join(f"-c {name}={value}" for name, value in session.items()),
        }
        return {key: value for key, value in (found | more).items() if value is not None}

    def connect(self) -> psycopg.Connection[Any]:
        """A connection for queries. Raises `Retriable` if the server cannot be reached, else `ConnectError`."""
        with self.plainly():
            return psycopg.connect(**self._conninfo(), autocommit=True, prepare_threshold=None)

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Errors of psycopg become ours."""
        try:
            yield
        except psycopg.Error as error:
            raise self.plain(error) from None

    def plain(self, error: psycopg.Error) -> ConnectError:
        """What happened, to what, and what to do. Never with the password: the server's words do not have it."""
        said = " ".join(str(error).split())
        state = error.sqlstate or ""
        if state == "28P01" or "password authentication failed" in said or "no password supplied" in said:
            return ConnectError(
                f"{self.where} refuses the user {self.user}: {said}. Set database.user and database.password"
            )
        if state == "3D000" or ("database" in said and "does not exist" in said and "FATAL" in said):
            return ConnectError(f"{self.where}: {said}. Set database.dbname to a database that is there")
        if state == "28000" or "pg_hba.conf" in said:
            return ConnectError(
                f"{self.where} refuses the user {self.user}: {said}. Allow it in pg_hba.conf (replication needs "
                "no line "
                "of its own for a logical slot), or set database.user, database.sslmode"
            )
        if state == "42501":
            return ConnectError(
                f"{self.where}: the user {self.user} may not do this: {said}. Run ALTER ROLE {self.user} "
                "REPLICATION, and "
                "GRANT SELECT on the tables; or make the publication as its owner and set "
                "publication.autocreate.mode to "
                "disabled"
            )
        if state == "55006" or "is active for PID" in said:
            return Retriable(
                f"{self.where}: the replication slot {self.slot} is in use: {said}. Stop what uses it (another "
                "connector, "
                "or this one on another worker), or set slot.name to a slot of its own"
            )
        if "wal_level" in said:
            return ConnectError(f"{self.where}: {said}. {_WAL_LEVEL}")
        if state == "53400":
            return ConnectError(f"{self.where}: {said}. Raise max_replication_slots, or drop slots that nobody uses")
        if "can no longer get changes" in said or "exceeded the maximum reserved size" in said or "invalidat" in said:
            return self.lost(said)
        if state[:2] in ("08", "57", "53", "40") or isinstance(error, psycopg.OperationalError):
            return Retriable(f"{self.where}: {said}. Is database.hostname right, and does the server run?")
        return ConnectError(f"{self.where}: {said}")

    def lost(self, why: str) -> ConnectError:
        return ConnectError(
            f"{self.where}: the replication slot {self.slot} is lost: {why}. Changes since the last offset are "
            "gone: set "
            "snapshot.mode to when_needed to read the tables again, or reset the connector's offsets"
        )


_WAL_LEVEL: Final = "Run ALTER SYSTEM SET wal_level = 'logical' and restart the server"


class Catalogue:
    """Asks the database of itself."""

    def __init__(self, database: Database, connection: psycopg.Connection[Any]) -> None:
        self._database = database
        self._connection = connection

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._database.plainly():
            found: list[tuple[Any, ...]] = self._connection.execute(query, parameters or None).fetchall()
        return found

    def run(self, query: sql.Composable | str) -> None:
        with self._database.plainly():
            self._connection.execute(query)

    def hold_wal_level(self) -> None:
        ((level,),) = self.rows("SHOW wal_level")
        if level != "logical":
            raise ConnectError(f"{self._database.where}: wal_level is {level} and must be logical. {_WAL_LEVEL}")

    def types(self) -> Types:
        return Types.of_rows(self.rows(catalogue.TYPES))

    def tables(self) -> list[tuple[Any, ...]]:
        return self.rows(catalogue.TABLES)

    def table(self, oid: int, schema: str, name: str, identity: str = "d") -> TableFacts | None:
        """What the catalogue has of a table now; None if it is gone."""
        columns = tuple(ColumnFacts.of_row(row) for row in self.rows(catalogue.COLUMNS, oid))
        if not columns:
            return None
        key, is_primary = catalogue.key_of(self.rows(catalogue.KEYS, oid), columns)
        return TableFacts(schema, name, columns, key, is_primary, identity, oid)

    def found(self, full_name: str) -> TableFacts | None:
        """A table by its schema and name; None if it is not there."""
        for schema, name, oid, identity, *_ in self.tables():
            if f"{schema}.{name}" == full_name:
                return self.table(oid, schema, name, identity)
        return None

    # --- publication ---

    def published(self) -> set[str]:
        """The tables that the publication has, partitions under their own and their table's names."""
        query = (
            "SELECT schemaname::text || '.' || tablename::text FROM pg_catalog.pg_publication_tables WHERE pubname = %s"
        )
        return {name for (name,) in self.rows(query, self._database.publication)}

    def next_transaction(self) -> int:
        """All transactions that run now have smaller numbers."""
        query = "SELECT pg_catalog.pg_snapshot_xmax(pg_catalog.pg_current_snapshot())::text::bigint"
        ((found,),) = self.rows(query)
        return int(found)

    def publish(self, is_captured: Callable[[str, str], bool]) -> None:
        """Makes the publication, or changes it, as `publication.autocreate.mode` says."""
        database = self._database
        mode = database.options.text("publication.autocreate.mode")
        found = self.rows("SELECT puballtables FROM pg_catalog.pg_publication WHERE pubname = %s", database.publication)
        name = sql.Identifier(database.publication)
        root = sql.SQL(" WITH (publish_via_partition_root = true)")
        via_root = root if database.options.flag("publish.via.partition.root") else sql.SQL("")
        if mode == "disabled":
            if not found:
                raise ConnectError(
                    f"{database.where} has no publication {database.publication}, and publication.autocreate.mode is "
                    f"disabled. Run CREATE PUBLICATION {chunks.quoted(database.publication)} FOR TABLE …, or set "
                    "publication.name or publication.autocreate.mode"
                )
            return
        if mode == "filtered":
            captured = [
                row for row in self.tables() if is_captured(row[0], row[1]) and not (row[4] == "p" and not via_root)
            ]
            if not captured:
                raise ConnectError(
                    f"{database.where}: no table is captured, so there is nothing to publish. Set "
                    "table.include.list and "
                    "schema.include.list to tables that are there"
                )
            tables = sql.SQL(", ").join(sql.Identifier(row[0], row[1]) for row in captured)
            if not found:
                self.run(sql.SQL("CREATE PUBLICATION {} FOR TABLE {}").format(name, tables) + via_root)
            elif not found[0][0]:
                self.run(sql.SQL("ALTER PUBLICATION {} SET TABLE {}").format(name, tables))
            return
        if not found:
            scope = sql.SQL(" FOR ALL TABLES") if mode == "all_tables" else sql.SQL("")
            self.run(sql.SQL("CREATE PUBLICATION {}").format(name) + scope + via_root)

    # --- slot ---

    def slot(self) -> dict[str, Any] | None:
        """What the server says of the slot; None if it is not there."""
        rows = self.rows(
            "SELECT plugin::text, slot_type, database::text, active, restart_lsn::text, confirmed_flush_lsn::text, "
            "to_jsonb(s) ->> 'wal_status', to_jsonb(s) ->> 'conflicting', "
            "pg_catalog.pg_wal_lsn_diff(pg_catalog.pg_current_wal_lsn(), restart_lsn)::bigint "
            "FROM pg_catalog.pg_replication_slots s WHERE slot_name = %s",
            self._database.slot,
        )
        names = (
            "plugin",
            "type",
            "database",
            "active",
            "restart_lsn",
            "confirmed",
            "wal_status",
            "conflicting",
            "retained",
        )
        return dict(zip(names, rows[0], strict=True)) if rows else None

    def create_slot(self) -> int:
        """Makes the slot, and says where it begins."""
        arguments = "%s, 'pgoutput', false"
        if self._database.options.flag("slot.failover"):
            arguments += ", false, true"
        ((lsn,),) = self.rows(
            f"SELECT lsn::text FROM pg_catalog.pg_create_logical_replication_slot({arguments})", self._database.slot
        )
        return lsn_of(lsn)

    def drop_slot(self) -> None:
        """Drops the slot. The server takes a moment to notice that our stream is closed: until then it is in use."""
        deadline_s = time.monotonic() + _CONNECT_S
        while True:
            try:
                self.rows("SELECT pg_catalog.pg_drop_replication_slot(%s)", self._database.slot)
                return
            except Retriable:
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(0.05)

    def hold_slot(self, slot: dict[str, Any]) -> None:
        """Raises `ConnectError` if the slot is not one that we can use."""
        database = self._database
        if slot["type"] != "logical" or slot["plugin"] != "pgoutput" or slot["database"] != database.name:
            raise ConnectError(
                f"{database.where}: the replication slot {database.slot} is {slot['type']}, of "
                f"{slot['plugin'] or 'no plugin'} "
                f"and of database {slot['database']}; it must be logical, of pgoutput and of this database. Set "
                "slot.name"
            )
        if slot["wal_status"] == "lost" or slot["restart_lsn"] is None:
            raise database.lost("the server removed WAL that it needs (wal_status is lost)")

    def current_lsn(self) -> int:
        ((lsn,),) = self.rows("SELECT pg_catalog.pg_current_wal_insert_lsn()::text")
        return lsn_of(lsn)


class ReplicationStream:
    """The stream of changes from a slot. `read` gives messages that are there; `confirm` lets the server forget."""

    def __init__(self, database: Database, start_lsn: int) -> None:
        self._database = database
        with database.plainly():
            self._connection = psycopg.connect(**database._conninfo(replication="database"), autocommit=True)
        self._pgconn = self._connection.pgconn
        version = self._connection.info.server_version
        parameters = {"proto_version": "1", "publication_names": chunks.quoted(database.publication)}
        if version >= 140_000:
            parameters["messages"] = "true"
        for part in (database.options.optional_text("slot.stream.params") or "").split(";"):
            if part.strip():
                name, _, value = part.partition("=")
                parameters[name.strip()] = value.strip()
        told = ", ".join(
            f"{chunks.quoted(name)} '{value.replace(chr(39), chr(39) * 2)}'" for name, value in parameters.items()
        )
        command = f"START_REPLICATION SLOT {chunks.quoted(database.slot)} LOGICAL {lsn_text(start_lsn)} ({told})"
        try:
            result = self._pgconn.exec_(command.encode())
            if result.status != pq.ExecStatus.COPY_BOTH:
                raise database.plain(psycopg.errors.error_from_result(result))
            self._pgconn.nonblocking = 1
        except BaseException:
            self._connection.close()
            raise
        self.server_lsn = start_lsn
        """How far the server has looked: all transactions that committed below have been sent."""
        self.confirmed = start_lsn
        self._reply_wanted = False

    def fileno(self) -> int:
        return int(self._pgconn.socket)

    def read(self) -> bytes | None:
        """The next change; None if none is here now. Raises `Retriable` when the connection is lost."""
        while True:
            size, data = self._pgconn.get_copy_data(1)
            if size > 0:
                message = bytes(data)
                if message[0] == 0x77:  # w
                    return message
                if message[0] == 0x6B:  # k
                    self.server_lsn = int.from_bytes(message[1:9], "big")
                    self._reply_wanted |= bool(message[17])
                continue
            if size == 0:
                return None
            result = self._pgconn.get_result()
            if result is None:
                raise Retriable(f"{self._database.where}: the server ended the replication stream")
            raise self._database.plain(psycopg.errors.error_from_result(result))

    def receive(self) -> None:
        """Takes in what the socket has."""
        try:
            self._pgconn.consume_input()
        except psycopg.OperationalError as error:
            raise self._database.plain(error) from None

    @property
    def reply_wanted(self) -> bool:
        return self._reply_wanted

    def confirm(self, lsn: int, *, ask: bool = False) -> None:
        """Tells the server that all below `lsn` is written for good. With `ask` it says at once how far it is."""
        self.confirmed = max(self.confirmed, lsn)
        clock_us = time.time_ns() // 1000 - EPOCH_US
        status = _STATUS.pack(
            b"r", max(self.server_lsn, self.confirmed), self.confirmed, self.confirmed, clock_us, int(ask)
        )
        try:
            self._pgconn.put_copy_data(status)
            deadline_s = time.monotonic() + _CONNECT_S
            while self._pgconn.flush() and time.monotonic() < deadline_s:
                time.sleep(0.001)
        except psycopg.OperationalError as error:
            raise self._database.plain(error) from None
        self._reply_wanted = False

    def close(self) -> None:
        self._connection.close()


def copied(database: Database, connection: psycopg.Connection[Any], query: str) -> Iterator[bytes]:
    """The rows of a COPY of a query, as they come: through libpq itself, as psycopg's own way takes longer for each row
    than PostgreSQL does. An iterator that is not read to its end leaves a connection that can only be closed."""
    pgconn = connection.pgconn
    try:
        result = pgconn.exec_(chunks.copied(query).encode())
        if result.status != pq.ExecStatus.COPY_OUT:
            raise psycopg.errors.error_from_result(result)
        # Without waiting in libpq, which would hold up every other thread of the process.
        get = pgconn.get_copy_data
        while True:
            size, data = get(1)
            if size > 0:
                yield bytes(data)
            elif size == 0:
                select.select([pgconn.socket], [], [])
                pgconn.consume_input()
            else:
                break
        while (result := pgconn.get_result()) is not None:
            if result.status != pq.ExecStatus.COMMAND_OK:
                raise psycopg.errors.error_from_result(result)
    except psycopg.Error as error:
        raise database.plain(error) from None
