"""A worker as people start it: a table of PostgreSQL goes through a topic into SQLite, by its REST interface alone."""

import json
import os
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.request import Request, urlopen

import pytest

from ottla.testing import Broker
from ottla.testing.free_ports import free_ports
from tests.clients.connect.postgres_server import PostgresServer

PATIENCE_S = 240.0
UNAVAILABLE = 503


class Worker:
    """`ottla connect start`, in a process of its own."""

    def __init__(self, broker: Broker, directory: Path) -> None:
        (port,) = free_ports(1)
        self.url = f"http://127.0.0.1:{port}"
        self.log = directory / "worker.log"
        properties = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "with-spark",
            "config.storage.topic": "with-spark-configs",
            "offset.storage.topic": "with-spark-offsets",
            "status.storage.topic": "with-spark-status",
            "key.converter": "JsonConverter",
            "value.converter": "JsonConverter",
            "listeners": self.url,
            "ottla.connect.state.dir": str(directory / "state"),
            "file.allowed.paths": str(directory),
            "spark.master": "local[2]",
        }
        file = directory / "worker.properties"
        file.write_text("".join(f"{key}={value}\n" for key, value in properties.items()))
        words = [sys.executable, "-m", "ottla.cli.main", "connect", "start", "--config", str(file)]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(words, stdout=log, stderr=log, cwd=directory, env=os.environ)

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        content = None if body is None else json.dumps(body).encode()
        request = Request(self.url + path, content, {"Content-Type": "application/json"}, method=method)
        try:
            with urlopen(request, timeout=60) as answer:
                return answer.status, json.loads(answer.read() or b"null")
        except HTTPError as error:
            return error.code, json.loads(error.read() or b"null")
        except URLError:
            return UNAVAILABLE, None

    def make(self, name: str, config: dict[str, str]) -> None:
        answered: tuple[int, Any] = (UNAVAILABLE, None)

        def is_made() -> bool:
            nonlocal answered
            answered = self.ask("PUT", f"/connectors/{name}/config", config)
            return answered[0] != UNAVAILABLE

        self.until(is_made)
        assert answered[0] == 201, answered

    def until(self, holds: Callable[[], bool]) -> None:
        deadline_s = time.monotonic() + PATIENCE_S
        while not holds():
            assert self._process.poll() is None, self.log.read_text()
            assert time.monotonic() < deadline_s, (self.ask("GET", "/connectors?expand=status"), self.log.read_text())
            time.sleep(0.5)

    def stop(self) -> int:
        self._process.terminate()
        try:
            return self._process.wait(90)
        finally:
            self._process.kill()


@pytest.fixture
def worker(ottla_broker: Broker, tmp_path: Path) -> Iterator[Worker]:
    made = Worker(ottla_broker, tmp_path)
    yield made
    made.stop()


@pytest.fixture
def postgres() -> Iterator[PostgresServer]:
    with closing(PostgresServer()) as server:
        server.start()
        yield server


def rows_of(path: Path) -> list[tuple[Any, ...]]:
    if not path.exists():
        return []
    with closing(sqlite3.connect(path)) as database:
        try:
            return database.execute("SELECT id, what, CAST(price AS REAL) FROM orders ORDER BY id").fetchall()
        except sqlite3.OperationalError:
            return []  # The table is made with its first row.


def test_a_table_and_its_changes_go_from_one_database_to_another(
    worker: Worker, postgres: PostgresServer, tmp_path: Path
) -> None:
    postgres.run(
        "CREATE TABLE orders (id int PRIMARY KEY, what text, price numeric(10,2))",
        "INSERT INTO orders SELECT i, 'thing ' || i, i * 1.5 FROM generate_series(1, 300) i",
    )
    source = postgres.config(**{"topic.prefix": "shop", "table.include.list": "public.orders"})
    worker.make("changes", {key: value for key, value in source.items() if key != "name"})
    target = tmp_path / "copy.db"
    worker.make(
        "copy",
        {
            "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
            "topics": "shop.public.orders",
            "connection.url": f"jdbc:sqlite:{target}",
            "table.name.format": "orders",
            "insert.mode": "upsert",
            "pk.mode": "record_key",
            "delete.enabled": "true",
            "auto.create": "true",
            "transforms": "unwrap",
            "transforms.unwrap.type": "io.debezium.transforms.ExtractNewRecordState",
        },
    )

    def is_copied() -> bool:
        there = postgres.run("SELECT id, what, price::float8 FROM orders ORDER BY id")
        return rows_of(target) == there

    worker.until(is_copied)
    postgres.run(
        "UPDATE orders SET price = 0 WHERE id <= 10",
        "DELETE FROM orders WHERE id > 290",
        "INSERT INTO orders VALUES (1000, NULL, 7)",
    )
    worker.until(is_copied)
    _, status = worker.ask("GET", "/connectors?expand=status")
    assert {name: one["status"]["tasks"][0]["state"] for name, one in status.items()} == {
        "changes": "RUNNING",
        "copy": "RUNNING",
    }
    assert worker.stop() == 0
    assert "secret" not in worker.log.read_text()


@pytest.mark.slow
def test_run_once_moves_all_that_there_is_and_ends_without_waiting(
    ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    out = tmp_path / "out.txt"
    made = {
        "connector.class": "GeneratorSource",
        "topic": ottla_topic,
        "count": "1000",
        "value.converter.schemas.enable": "false",
        "value.converter": "JsonConverter",
    }
    sunk = {
        "connector.class": "FileStreamSink",
        "topics": ottla_topic,
        "file": str(out),
        "value.converter": "StringConverter",
        "key.converter": "ByteArrayConverter",
    }
    words = [sys.executable, "-m", "ottla.cli.main", "connect", "run", "--once", "--idle", "86400"]
    words += ["-b", ottla_broker.bootstrap, "--set", f"file.allowed.paths={tmp_path}", "--set", "spark.master=local[2]"]
    for name, config in (("sunk", sunk), ("made", made)):
        file = tmp_path / f"{name}-{ottla_topic}.json"
        file.write_text(json.dumps(config))
        words.append(str(file))
    ended = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=480, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr[-4000:]
    assert len(out.read_text().splitlines()) == 1000
