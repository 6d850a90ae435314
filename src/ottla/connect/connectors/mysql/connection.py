"""PyMySQL: connections, the stream of the binary log, and errors in plain words.

PyMySQL opens the connection and logs in. The stream and the rows of a snapshot are read from its socket here: it has no
public way to get at packets, and an object for each row would cost more than the row.
"""

import contextlib
import re
import socket
import ssl
import struct
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import pymysql
from pymysql.constants import COMMAND

from ottla.config.parse import Values
from ottla.connect.connectors.mysql import catalogue
from ottla.connect.connectors.mysql.catalogue import ColumnFacts, TableFacts
from ottla.connect.connectors.mysql.gtids import MariaDbGtids, MySqlGtids
from ottla.connect.connectors.mysql.offsets import Position
from ottla.connect.connectors.mysql.tables import Known
from ottla.connect.errors import ConnectError, Retriable

_LARGEST: Final = 0xFFFFFF
_RECEIVE: Final = 1 << 20
_REGISTER_SLAVE: Final = 0x15
_BINLOG_DUMP: Final = 0x12
_BINLOG_DUMP_GTID: Final = 0x1E
_THROUGH_GTID: Final = 4
_DENIED: Final = (1044, 1045, 1698)
_NO_RIGHT: Final = (1142, 1143, 1227, 1370)
_PURGED: Final = 1236


class BinlogLost(ConnectError):
    """The server does not have the binary log any more that the offset is in."""


class Database:
    """How a connector's options say to connect, and what goes wrong in plain words."""

    def __init__(self, options: Values, connector: str) -> None:
        self.options = options
        self.host, self.port = options.text("database.hostname"), options.integer("database.port")
        self.user = options.text("database.user")
        given = options["database.server.id"]
        name = f"{connector}\0{options.text('topic.prefix')}".encode()
        self.server_id = given if isinstance(given, int) else (zlib.crc32(name) | 1 << 30) & 0x7FFFFFFF

    @property
    def where(self) -> str:
        return f"the server at {self.host}:{self.port}"

    def connect(self) -> Any:
        """A connection for queries. Raises `Retriable` if the server cannot be reached, else `ConnectError`."""
        secret = self.options.secret("database.password")
        limit_ms = self.options.integer("database.query.timeout.ms")
        with self.plainly():
            connection: Any = pymysql.connect(
                host=self.host,
                port=self.port,
                user=self.user,
                password="" if secret is None else secret.secret,
                charset="utf8mb4",
                autocommit=True,
                connect_timeout=max(1, self.options.integer("connect.timeout.ms") / 1000),
                read_timeout=limit_ms / 1000 if limit_ms else None,
                init_command="SET time_zone = '+00:00', sql_mode = '', wait_timeout = 86400",
                program_name=f"ottla {self.options.text('topic.prefix')}",
                **self._ssl(),
            )
        return connection

    def _ssl(self) -> dict[str, Any]:
        """PyMySQL's own way encrypts if the server can, and checks nobody. The others have a context of ours."""
        mode = self.options.text("database.ssl.mode").replace("_", "-")
        ca, cert, key = (self.options.optional_text(f"ottla.database.ssl.{name}") for name in ("ca", "cert", "key"))
        if mode in ("disable", "disabled"):
            return {"ssl_disabled": True}
        if mode in ("prefer", "preferred"):
            return {}
        try:
            context = ssl.create_default_context(cafile=ca)
            if cert is not None:
                context.load_cert_chain(cert, key)
        except (OSError, ssl.SSLError) as error:
            raise ConnectError(f"the files of ottla.database.ssl.ca, cert and key cannot be used: {error}") from None
        context.check_hostname = mode in ("verify-full", "verify-identity")
        if mode in ("required", "trust"):
            context.verify_mode = ssl.CERT_NONE
        return {"ssl": context}

    @contextmanager
    def plainly(self) -> Iterator[None]:
        """Errors of PyMySQL and of the socket become ours."""
        try:
            yield
        except pymysql.err.MySQLError as error:
            number = error.args[0] if error.args and isinstance(error.args[0], int) else 0
            raise self.plain(number, str(error.args[1] if len(error.args) > 1 else error)) from None
        except OSError as error:
            raise Retriable(f"{self.where}: {error}. Is database.hostname right, and does the server run?") from None

    def plain(self, number: int, said: str) -> ConnectError:
        """What happened, to what, and what to do. Never with the password: the server's words do not have it."""
        said = " ".join(said.split())
        if number in _DENIED:
            return ConnectError(
                f"{self.where} refuses the user {self.user}: {said}. Set database.user and database.password"
            )
        if number in _NO_RIGHT:
            return ConnectError(
                f"{self.where}: the user {self.user} may not do this: {said}. Run GRANT SELECT, REPLICATION SLAVE, "
                f"REPLICATION CLIENT ON *.* TO {self.user} (MariaDB also calls the last one BINLOG MONITOR)"
            )
        if number == _PURGED:
            if "same server_uuid" in said or "same server_id" in said or "server_id as this" in said:
                return Retriable(
                    f"{self.where}: another replica or connector has the server id {self.server_id}: {said}. Set "
                    "database.server.id to a number of its own"
                )
            if "checksum" in said:
                return ConnectError(f"{self.where}: {said}")
            return self.lost(said)
        if 2000 <= number < 3000 or number in (
            1040,
            1053,
            1077,
            1158,
            1159,
            1160,
            1161,
            1184,
            1203,
            1205,
            1213,
            1927,
            0,
        ):
            return Retriable(f"{self.where}: {said}. Is database.hostname right, and does the server run?")
        return ConnectError(f"{self.where}: {said}")

    def lost(self, why: str) -> BinlogLost:
        return BinlogLost(
            f"{self.where} does not have the binary log any more at which the connector stopped: {why}. Changes since "
            "the last offset are gone: set snapshot.mode to when_needed to read the tables again, or reset the "
            "connector's offsets; a longer binlog_expire_logs_seconds keeps the log"
        )


class Server:
    """Asks a server of itself and its tables."""

    def __init__(self, database: Database, connection: Any) -> None:
        self._database = database
        self._connection = connection
        ((version,),) = self.rows("SELECT VERSION()")
        self.version: str = version
        self.is_mariadb = "mariadb" in version.lower()

    def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        with self._database.plainly(), self._connection.cursor() as cursor:
            cursor.execute(query, parameters or None)
            return list(cursor.fetchall())

    def run(self, query: str) -> None:
        self.rows(query)

    def variable(self, name: str) -> str:
        """A global variable; nothing if the server does not have it."""
        found = self.rows("SHOW GLOBAL VARIABLES LIKE %s", name)
        return str(found[0][1]) if found else ""

    def hold_settings(self) -> None:
        """Raises `ConnectError` if the server does not log rows."""
        where = self._database.where
        if self.variable("log_bin").upper() != "ON":
            raise ConnectError(
                f"{where}: log_bin is OFF, so there is no binary log. Set log_bin, server_id and binlog_format=ROW in "
                "its configuration, and restart it"
            )
        if self.variable("binlog_format").upper() not in ("ROW", ""):
            raise ConnectError(
                f"{where}: binlog_format is {self.variable('binlog_format')} and must be ROW. Run SET GLOBAL "
                "binlog_format = 'ROW', set it in the server's configuration, and open new connections"
            )
        if self.variable("binlog_row_image").upper() not in ("FULL", ""):
            raise ConnectError(
                f"{where}: binlog_row_image is {self.variable('binlog_row_image')} and must be FULL. Run SET GLOBAL "
                "binlog_row_image = 'FULL', and set it in the server's configuration"
            )

    @property
    def has_gtids(self) -> bool:
        return self.is_mariadb or self.variable("gtid_mode").upper() == "ON"

    def codecs(self) -> dict[int, str]:
        """Python's names of the encodings, by the number of a collation."""
        # MariaDB has collations for several character sets since 10.10; their numbers are elsewhere.
        is_apart = bool(self.is_mariadb and self.rows(catalogue.HAS_NUMBERS)[0][0])
        found = self.rows(catalogue.MARIADB_COLLATIONS if is_apart else catalogue.COLLATIONS)
        return {int(number): catalogue.CODECS.get(charset, "utf-8") for number, charset in found}

    def status(self) -> Position:
        """The end of the binary log."""
        numbers = re.findall(r"\d+", self.version)
        is_renamed = not self.is_mariadb and [int(one) for one in numbers[:2]] >= [8, 4]
        found = self.rows("SHOW BINARY LOG STATUS" if is_renamed else "SHOW MASTER STATUS")
        if not found:
            raise ConnectError(f"{self._database.where}: log_bin is OFF, so there is no binary log. Set log_bin")
        return self.at(found[0][0], int(found[0][1]), executed=str(found[0][4]) if len(found[0]) > 4 else "")

    def at(self, file: str, position: int, *, executed: str = "") -> Position:
        """A place with its GTIDs."""
        if not self.is_mariadb:
            # Without a set of GTIDs, the file and the position say where to go on.
            gtids = None if MySqlGtids.has_tags(executed) else str(MySqlGtids(executed)) or None
            return Position(file, position, gtids)
        ((gtids,),) = self.rows("SELECT BINLOG_GTID_POS(%s, %s)", file, position)
        return Position(file, position, str(MariaDbGtids(gtids or "")) or None)

    def has_file(self, file: str) -> bool:
        return any(row[0] == file for row in self.rows("SHOW BINARY LOGS"))

    def consistent(self) -> Position:
        """Begins a transaction that sees one state of all tables, and says at which place of the log: on MariaDB
        exactly, on MySQL one that is not before it."""
        self.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        if not self.is_mariadb:
            return self.status()
        said = dict(self.rows("SHOW STATUS LIKE 'binlog_snapshot_%%'"))
        return Position(said["Binlog_snapshot_file"], int(said["Binlog_snapshot_position"]))

    def tables(self) -> list[tuple[str, str]]:
        return [(row[0], row[1]) for row in self.rows(catalogue.TABLES)]

    def table(self, database: str, name: str) -> Known | None:
        """What the catalogue has of a table now; None if it is gone."""
        full = f"{database}.{name}"
        columns: tuple[ColumnFacts, ...] = tuple(
            catalogue.column_of(row, full, is_mariadb=self.is_mariadb)
            for row in self.rows(catalogue.COLUMNS, database, name)
        )
        if not columns:
            return None
        partial = [row[0] for row in self.rows(catalogue.PARTS, database, name)]
        key, is_primary = catalogue.key_of(self.rows(catalogue.KEYS, database, name), partial, columns)
        altered = self.rows(catalogue.ALTERED, database, name)
        altered_s = int(altered[0][0]) if altered and altered[0][0] is not None else None
        return Known(TableFacts(database, name, columns, key, is_primary), altered_s)

    def query(self, query: str) -> Iterator[bytes]:
        """The rows of a query, as the protocol sends them, one by one. An iterator that is not read to its end leaves a
        connection that can only be closed."""
        connection = self._connection
        with self._database.plainly():
            connection._execute_command(COMMAND.COM_QUERY, query)
            width = connection._read_packet().read_length_encoded_integer()
            for _ in range(width + 1):  # the columns, and the end of them
                connection._read_packet()
            read = connection._rfile.read
            while True:
                payload = _packet(read)
                mark = payload[0] if payload else 0
                if mark == 0xFE and len(payload) < 9:
                    return
                if mark == 0xFF:
                    raise self._database.plain(*_error(payload))
                yield payload


def _packet(read: Any) -> bytes:
    parts: list[bytes] = []
    while True:
        head = read(4)
        if len(head) < 4:
            raise OSError("the server closed the connection")
        size = int.from_bytes(head[:3], "little")
        body = read(size)
        if len(body) < size:
            raise OSError("the server closed the connection")
        if size < _LARGEST and not parts:
            return bytes(body)
        parts.append(body)
        if size < _LARGEST:
            return b"".join(parts)


def _error(payload: bytes) -> tuple[int, str]:
    """The number and the words of an error packet, which may have a state of six letters in between."""
    number = int.from_bytes(payload[1:3], "little")
    said = payload[9:] if payload[3:4] == b"#" else payload[3:]
    return number, said.decode("utf-8", "replace")


class BinlogStream:
    """The events of the binary log from a position. `read` gives those that are there; the rest stays on the server.

    A connection that says nothing for twice the keep-alive interval is dead: the server sends heartbeats, so silence is
    never taken for a quiet database.
    """

    def __init__(self, database: Database, position: Position) -> None:
        self._database = database
        self._connection = database.connect()
        self._buffer = bytearray()
        self._at = 0
        self._parts: list[bytes] = []
        self._silence_s = database.options.integer("connect.keep.alive.interval.ms") / 1000 * 2
        self._heard_s = time.monotonic()
        try:
            server = Server(database, self._connection)
            with database.plainly():
                self._ask(server, position)
        except BaseException:
            self.close()
            raise
        self._socket: socket.socket = self._connection._sock

    def _ask(self, server: Server, position: Position) -> None:
        database, connection = self._database, self._connection
        period_ns = int(self._silence_s / 2 * 0.8 * 1e9)
        server.run(f"SET @master_heartbeat_period = {period_ns}, @source_heartbeat_period = {period_ns}")
        server.run(
            "SET @master_binlog_checksum = @@global.binlog_checksum, @source_binlog_checksum = @@global.binlog_checksum"
        )
        server.run("SET net_write_timeout = 600")
        identity = database.server_id.to_bytes(4, "little")
        if server.is_mariadb:
            server.run("SET @mariadb_slave_capability = 4")
            if position.gtids:
                server.rows(
                    "SET @slave_connect_state = %s, @slave_gtid_strict_mode = 0, @slave_gtid_ignore_duplicates = 0",
                    position.gtids,
                )
        else:
            server.run("SET @slave_uuid = UUID(), @replica_uuid = @slave_uuid")
        connection._execute_command(_REGISTER_SLAVE, identity + bytes(3) + struct.pack("<HII", 0, 0, 0))
        connection._read_packet()
        if not server.is_mariadb and position.gtids and server.has_gtids:
            content = MySqlGtids(position.gtids).encoded()
            ask = (
                struct.pack("<HII", _THROUGH_GTID, database.server_id, 0)
                + struct.pack("<QI", 4, len(content))
                + content
            )
            connection._execute_command(_BINLOG_DUMP_GTID, ask)
            return
        if (not server.is_mariadb or not position.gtids) and not server.has_file(position.file):
            raise database.lost(f"{position.file} was purged")
        file = b"" if server.is_mariadb and position.gtids else position.file.encode()
        start = 4 if server.is_mariadb and position.gtids else position.pos
        connection._execute_command(_BINLOG_DUMP, struct.pack("<IHI", start, 0, database.server_id) + file)

    def read(self) -> bytes | None:
        """The next event; None if none is here now. Raises `Retriable` for a lost connection, and `BinlogLost`."""
        while True:
            buffer, at = self._buffer, self._at
            if len(buffer) - at < 4:
                return None
            size = buffer[at] | buffer[at + 1] << 8 | buffer[at + 2] << 16
            end = at + 4 + size
            if len(buffer) < end:
                return None
            self._at = end
            payload = bytes(memoryview(buffer)[at + 4 : end])
            if self._parts or size == _LARGEST:
                self._parts.append(payload)
                if size == _LARGEST:
                    continue
                payload = b"".join(self._parts)
                self._parts = []
            mark = payload[0] if payload else 0xFE
            if mark == 0:
                return payload[1:]
            if mark == 0xFF:
                raise self._database.plain(*_error(payload))
            raise Retriable(f"{self._database.where} ended the stream of its binary log")

    def receive(self, wait_s: float) -> bool:
        """Waits for bytes, so long at most, and takes them in. Whether some came."""
        if self._at:
            del self._buffer[: self._at]
            self._at = 0
        self._socket.settimeout(max(wait_s, 0.001))
        try:
            data = self._socket.recv(_RECEIVE)
        except (TimeoutError, BlockingIOError, ssl.SSLWantReadError):
            if time.monotonic() - self._heard_s > self._silence_s:
                raise Retriable(
                    f"{self._database.where} said nothing for {self._silence_s:.0f} s: the connection is lost"
                ) from None
            return False
        except OSError as error:
            raise Retriable(f"{self._database.where}: {error}: the stream of its binary log is lost") from None
        if not data:
            raise Retriable(
                f"{self._database.where} closed the stream of its binary log; if another connector or replica has the "
                f"server id {self._database.server_id}, set database.server.id to a number of its own"
            )
        self._heard_s = time.monotonic()
        self._buffer += data
        return True

    def close(self) -> None:
        with contextlib.suppress(pymysql.err.MySQLError, OSError):
            self._connection._force_close()
