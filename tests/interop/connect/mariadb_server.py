"""Runs a MariaDB for a test, from Debian's package `mariadb-server` (no package of PyPI has a server).

    with MariaDbServer() as server:
        server.run("CREATE TABLE t (id int PRIMARY KEY)")
        server.kill()       # as a crash would
        server.start()

The server listens on a free port of the loopback address and has a directory of its own, which goes with it. As root it
runs as `nobody`, to whom the directory belongs.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import pymysql
import pytest

from ottla.testing.free_ports import free_ports

START_S = 120.0
_NOBODY = 65534
_SETTINGS = {
    "log_bin": "binlog",
    "server_id": "1",
    "binlog_format": "ROW",
    "binlog_row_image": "FULL",
    "binlog_row_metadata": "FULL",
    "bind_address": "127.0.0.1",
    "default_time_zone": "+00:00",
    "innodb_buffer_pool_size": "64M",
    "innodb_log_file_size": "32M",
    "character_set_server": "utf8mb4",
    "skip_name_resolve": "ON",
}


def program() -> str | None:
    """Where the server is: it is not in everybody's PATH."""
    return shutil.which("mariadbd", path=f"{os.environ.get('PATH', '')}:/usr/sbin:/usr/local/sbin")


class MariaDbServer:
    """A data directory and at most one server on it. Its user `root` has the password `secret`."""

    class_name = "io.debezium.connector.mariadb.MariaDbConnector"

    def __init__(self, *, settings: Mapping[str, str | None] | None = None, durable: bool = True) -> None:
        found = program()
        if found is None:
            pytest.skip("needs mariadbd: apt-get install mariadb-server")
        self._program = found
        # Not under pytest's tmp_path: only its owner may enter that, and the path of a socket is short.
        self._home = Path(tempfile.mkdtemp(prefix="ottla-mdb-"))
        self.data = self._home / "data"
        (self.port,) = free_ports(1)
        quick = {} if durable else {"innodb_flush_log_at_trx_commit": "0", "sync_binlog": "0"}
        self._settings: dict[str, str | None] = {**_SETTINGS, **quick, **(settings or {})}
        self._process: subprocess.Popen[bytes] | None = None
        self._as = {"user": _NOBODY, "group": _NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}
        if self._as:
            os.chown(self._home, _NOBODY, _NOBODY)
        self._initialize()

    def _initialize(self) -> None:
        words = [
            "mariadb-install-db",
            "--no-defaults",
            f"--datadir={self.data}",
            "--auth-root-authentication-method=normal",
        ]
        words += ["--skip-test-db", f"--tmpdir={self._home}", "--innodb-log-file-size=32M"]
        done = subprocess.run(words, capture_output=True, text=True, cwd="/", **self._as)  # type: ignore[call-overload]
        assert done.returncode == 0, f"mariadb-install-db: {done.stdout}{done.stderr}"
        (self._home / "first.sql").write_text(
            "SET sql_log_bin = 0;\nCREATE OR REPLACE USER root@'127.0.0.1' IDENTIFIED BY 'secret';\n"
            "GRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\nCREATE DATABASE IF NOT EXISTS shop;\n"
        )

    def __enter__(self) -> "MariaDbServer":
        try:
            self.start(init_file=str(self._home / "first.sql"))
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

    def start(self, **settings: str | None) -> None:
        """Starts the server, with these settings too (None leaves one out), and waits until it answers."""
        assert self._process is None, "the server runs already"
        told = {name: value for name, value in (self._settings | settings).items() if value is not None}
        options = [f"--{name.replace('_', '-')}={value}" for name, value in told.items()]
        with (self._home / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._program, "--no-defaults", f"--datadir={self.data}", f"--port={self.port}",
                 f"--socket={self._home}/socket", f"--pid-file={self._home}/pid", f"--tmpdir={self._home}", *options],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", start_new_session=True,
                **self._as,  # type: ignore[arg-type]
            )  # fmt: skip
        deadline_s = time.monotonic() + START_S
        while True:
            try:
                self.connect(database="shop").close()
                return
            except pymysql.err.MySQLError as error:
                if self._process.poll() is not None or time.monotonic() > deadline_s:
                    raise AssertionError(f"MariaDB does not start: {error}\n{self.log()[-3000:]}") from None
                time.sleep(0.05)

    def log(self) -> str:
        return (self._home / "log").read_text(errors="replace")

    def stop(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """Ends the server at once; the next start recovers."""
        self._end(signal.SIGKILL)

    def _end(self, number: int) -> None:
        assert self._process is not None
        self._process.send_signal(number)
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    def connect(self, database: str = "shop", **options: Any) -> "pymysql.connections.Connection[Any]":
        given = {"host": "127.0.0.1", "port": self.port, "user": "root", "password": "secret", "database": database}
        return pymysql.connect(**(given | {"autocommit": True, "charset": "utf8mb4", "connect_timeout": 10} | options))

    def run(self, *statements: str, database: str = "shop") -> list[tuple[Any, ...]]:
        """Runs statements, each in a transaction of its own, and gives the rows of the last."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
            return list(cursor.fetchall())

    def config(self, **options: str) -> dict[str, str]:
        """Options of a connector on this server."""
        return {
            "name": "shop",
            "connector.class": self.class_name,
            "database.hostname": "127.0.0.1",
            "database.port": str(self.port),
            "database.user": "root",
            "database.password": "secret",
            "database.server.id": "5401",
            "topic.prefix": "shop",
            "database.include.list": "shop",
        } | {name.replace("_", "."): value for name, value in options.items()}
