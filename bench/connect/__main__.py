"""Connectors beside Debezium on Kafka Connect, with the same PostgreSQL and the same broker, in alternating rounds.

    python bench/connect                            all of it, in about an hour
    python bench/connect --only changes delay
    python bench/connect --only snapshot --rows 500000 --rounds 2
    python bench/connect --only idle restart first  ours alone: what many connectors cost

Needs Java and Maven, which fetches Kafka Connect and Debezium once. Both workers run all the time, with one connector
at a time between them. A rate is taken between the first records that
are seen in the topic (or rows in the table) and the last: no worker's start is in it. A ratio is ours over theirs
within a round; the median over rounds is shown, with its quartiles.
"""

import argparse
import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory

_ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(_ROOT / "bench" / "broker"), str(_ROOT / "bench"), str(_ROOT)]

from report import Row, compared, limited, print_rows, summed_up  # noqa: E402  (what is shared lies beside)
from tests.clients.connect.postgres_server import PostgresServer  # noqa: E402
from workers import JDBC_SINK, KafkaConnect, Ottla, Worker  # noqa: E402

import ottla  # noqa: E402
from ottla import TopicPartition  # noqa: E402
from ottla.admin import IsolationLevel, OffsetSpec  # noqa: E402
from ottla.testing import Broker  # noqa: E402

PARTS = ["changes", "snapshot", "delay", "sink", "idle", "restart", "first"]
BESIDE = ("changes", "snapshot", "delay", "sink")
_LOOK_S = 0.02
_MOST_S = 1800.0


class Scene:
    """A database, a broker, and the workers that are measured."""

    def __init__(self, directory: Path, broker: Broker, database: PostgresServer, workers: Sequence[Worker]) -> None:
        self.directory = directory
        self.broker = broker
        self.database = database
        self.workers = workers
        self._admin = ottla.Admin(bootstrap_servers=broker.bootstrap)
        self._number = 0

    def fresh(self, word: str) -> str:
        self._number += 1
        return f"{word}{self._number}"

    def end_of(self, topic: str) -> int:
        """How many records a reader of what is committed could read."""
        place = TopicPartition(topic, 0)
        found = self._admin.list_offsets({place: OffsetSpec.LATEST}, isolation_level=IsolationLevel.READ_COMMITTED)
        try:
            return int(found[place].offset or 0)
        except ottla.errors.KafkaError:
            return 0

    def rate_to(self, worker: Worker, count: Callable[[], int], goal: int, pause_s: float = _LOOK_S) -> float:
        """Things a second, from the first that are seen to the last."""
        seen = 0
        first_s = last_s = time.monotonic()
        first = 0
        ends_s = time.monotonic() + _MOST_S
        while seen < goal:
            now = count()
            if now > seen:
                seen, last_s = now, time.monotonic()
                if not first:
                    first, first_s = now, last_s
            if time.monotonic() > ends_s:
                raise SystemExit(f"{worker.name}: {seen} of {goal} after {_MOST_S:.0f} s\n{worker.end_of_log()}")
            time.sleep(pause_s)
        if first >= goal:
            return float("nan")  # All at once: too few for a rate.
        return (goal - first) / (last_s - first_s)

    def source(self, table: str, prefix: str, **config: str) -> dict[str, str]:
        found = self.database.config(
            **{
                "topic.prefix": prefix,
                "table.include.list": f"public.{table}",
                "slot.name": prefix,
                "publication.name": prefix,
                "publication.autocreate.mode": "filtered",
                "tombstones.on.delete": "false",
                **config,
            }
        )
        return {key: value for key, value in found.items() if key != "name"}

    def end(self, worker: Worker, connector: str, prefix: str) -> None:
        """Deletes a source and its slot."""
        worker.delete(connector)
        slot = f"FROM pg_replication_slots WHERE slot_name = '{prefix}'"
        drop, is_left = f"SELECT pg_drop_replication_slot(slot_name) {slot} AND NOT active", f"SELECT 1 {slot}"
        worker.wait(lambda: (self.database.run(drop), not self.database.run(is_left))[1], "its slot is gone")
        self.database.run(f"DROP PUBLICATION IF EXISTS {prefix}")

    def table(self) -> str:
        """An empty one."""
        name = self.fresh("t")
        self.database.run(f"CREATE TABLE {name} (id bigint PRIMARY KEY, at double precision, text text)")
        return name

    def fill(self, table: str, rows: int, size: int, first: int = 0, piece: int = 20_000) -> None:
        """In transactions of some thousand rows."""
        for begin in range(first, first + rows, piece):
            end = min(begin + piece, first + rows)
            text = f"rpad(md5(i::text), {max(size - 16, 1)}, md5((i*7)::text))"
            now = "extract(epoch from clock_timestamp())"
            self.database.run(f"INSERT INTO {table} SELECT i, {now}, {text} FROM generate_series({begin}, {end - 1}) i")


def changes(scene: Scene, options: argparse.Namespace) -> list[Row]:
    """Rows that were inserted while a connector was paused: how fast it catches up."""
    rows = []
    for size in (200, 1000):
        count = options.rows or 400_000
        found: dict[str, list[float]] = {}
        for number in range(options.rounds + 1):
            for worker in scene.workers:
                table, prefix = scene.table(), scene.fresh(f"changes_{worker.name}_")
                topic, few = f"{prefix}.public.{table}", count if number else count // 4
                worker.create("changes", scene.source(table, prefix, **{"snapshot.mode": "no_data"}))
                scene.fill(table, 1, size)
                worker.wait(lambda topic=topic: scene.end_of(topic) == 1, "it streams")
                worker.ask("PUT", "/connectors/changes/pause")
                worker.wait(lambda worker=worker: _state(worker, "changes") == "PAUSED", "it is paused")
                scene.fill(table, few, size, 1)
                worker.ask("PUT", "/connectors/changes/resume")
                rate = scene.rate_to(worker, lambda topic=topic: max(scene.end_of(topic) - 1, 0), few)
                if number:
                    found.setdefault(worker.name, []).append(rate)
                scene.end(worker, "changes", prefix)
                scene.database.run(f"DROP TABLE {table}")
        rows.append(compared(f"changes of {size} B, {count:,}", found, _per_second, at_least=2))
    return rows


def _state(worker: Worker, connector: str) -> str:
    status, found = worker.ask("GET", f"/connectors/{connector}/status")
    if status != 200 or not found["tasks"]:
        return ""
    return str(found["tasks"][0]["state"])


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}/s"


def snapshot(scene: Scene, options: argparse.Namespace) -> list[Row]:
    """A table that is there when the connector is made."""
    count = options.rows or 5_000_000
    table = scene.table()
    scene.fill(table, count, 200, piece=200_000)
    found: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for worker in scene.workers:
            prefix = scene.fresh(f"snapshot_{worker.name}_")
            topic = f"{prefix}.public.{table}"
            worker.put("snapshot", scene.source(table, prefix, **{"snapshot.mode": "initial"}))
            rate = scene.rate_to(worker, lambda topic=topic: scene.end_of(topic), count)
            found.setdefault(worker.name, []).append(rate)
            scene.end(worker, "snapshot", prefix)
            scene.broker.delete_topic(topic)
    scene.database.run(f"DROP TABLE {table}")
    return [compared(f"snapshot of {count:,} rows", found, _per_second, at_least=4)]


def delay(scene: Scene, options: argparse.Namespace) -> list[Row]:
    """1,000 changes a second: how old a change is when a consumer has it."""
    rows = []
    p50s: dict[str, list[float]] = {}
    p99s: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for worker in scene.workers:
            table, prefix = scene.table(), scene.fresh(f"delay_{worker.name}_")
            topic = f"{prefix}.public.{table}"
            worker.create("delay", scene.source(table, prefix, **{"snapshot.mode": "no_data"}))
            scene.fill(table, 1, 200)
            worker.wait(lambda topic=topic: scene.end_of(topic) == 1, "it streams")
            delays = _delays(scene, table, topic, options.seconds)
            scene.end(worker, "delay", prefix)
            cuts = quantiles(delays, n=100)
            p50s.setdefault(worker.name, []).append(cuts[49])
            p99s.setdefault(worker.name, []).append(cuts[98])
    for word, values, most in (("p50", p50s, 0.5), ("p99", p99s, 1.0)):
        kafka = f"{median(values['kafka']):.3f} s" if "kafka" in values else ""
        ours = median(values["ottla"])
        rows.append(
            limited(f"delay at 1,000 changes/s, {word}", f"{ours:.3f} s", ours, at_most=most, unit=" s", kafka=kafka)
        )
    return rows


def _delays(scene: Scene, table: str, topic: str, seconds: float) -> list[float]:
    """Ten transactions of one hundred rows a second. The first two seconds are for warming up."""
    import json

    delays: list[float] = []
    total = int(seconds * 1000)

    def read() -> None:
        seen = 0
        settings = {"auto.offset.reset": "earliest", "isolation.level": "read_committed", "fetch.max.wait.ms": 50}
        with ottla.Consumer(bootstrap_servers=scene.broker.bootstrap, **_underscored(settings)) as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            ends_s = time.monotonic() + seconds + 120
            while seen < total + 1 and time.monotonic() < ends_s:
                for record in consumer.poll(0.2):
                    seen += 1
                    after = json.loads(record.value)["after"]
                    if after["id"] > 2000:
                        delays.append(time.time() - after["at"])

    reader = threading.Thread(target=read)
    reader.start()
    import psycopg

    with closing(psycopg.connect(scene.database.conninfo(), autocommit=True)) as connection:
        began_s = time.monotonic()
        for number in range(int(seconds * 10)):
            due_s = began_s + number / 10
            time.sleep(max(due_s - time.monotonic(), 0))
            first = 1 + number * 100
            connection.execute(
                f"INSERT INTO {table} SELECT i, extract(epoch from clock_timestamp()), rpad('', 180, 'x') "
                f"FROM generate_series({first}, {first + 99}) i"
            )
    reader.join()
    if len(delays) < total * 0.5:
        raise SystemExit(f"{len(delays)} of {total} changes of {topic} were read")
    return delays


def _underscored(settings: dict[str, object]) -> dict[str, object]:
    return {key.replace(".", "_"): value for key, value in settings.items()}


def sink(scene: Scene, options: argparse.Namespace) -> list[Row]:
    """Records with schemas into a table of PostgreSQL, by key: beside Debezium's JDBC sink."""
    import json

    count = options.rows or 500_000
    topic = scene.fresh("orders")
    scene.broker.create_topic(topic)
    schema = {
        "type": "struct",
        "optional": False,
        "fields": [
            {"field": "id", "type": "int64"},
            {"field": "text", "type": "string"},
            {"field": "n", "type": "double"},
        ],
    }
    key_schema = {"type": "struct", "optional": False, "fields": [{"field": "id", "type": "int64"}]}
    shown, key_shown = json.dumps(schema), json.dumps(key_schema)
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap, linger_ms=20) as producer:
        for number in range(count):
            payload = f'{{"id":{number},"text":"{number:0180}","n":{number}.5}}'
            key = f'{{"schema":{key_shown},"payload":{{"id":{number}}}}}'
            producer.send(topic, f'{{"schema":{shown},"payload":{payload}}}'.encode(), key=key.encode())
    found: dict[str, list[float]] = {}
    for _ in range(options.rounds):
        for worker in scene.workers:
            table, name = scene.fresh("sunk"), scene.fresh("sink")
            port = scene.database.port
            common = {
                "topics": topic,
                "insert.mode": "upsert",
                "key.converter.schemas.enable": "true",
                "value.converter.schemas.enable": "true",
                "key.converter": "org.apache.kafka.connect.json.JsonConverter",
                "value.converter": "org.apache.kafka.connect.json.JsonConverter",
                "consumer.override.auto.offset.reset": "earliest",
            }
            if worker.name == "ottla":
                config = {
                    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
                    "connection.url": f"jdbc:postgresql://127.0.0.1:{port}/postgres",
                    "connection.user": "postgres",
                    "connection.password": "secret",
                    "table.name.format": table,
                    "pk.mode": "record_key",
                    "auto.create": "true",
                }
            else:
                config = {
                    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
                    "connection.url": f"jdbc:postgresql://127.0.0.1:{port}/postgres",
                    "connection.username": "postgres",
                    "connection.password": "secret",
                    "collection.name.format": table,
                    "primary.key.mode": "record_key",
                    "schema.evolution": "basic",
                    "batch.size": "5000",
                    "consumer.override.max.poll.records": "5000",
                }
            scene.database.run(f"CREATE TABLE {table} (id bigint PRIMARY KEY, text text, n double precision)")
            worker.put(name, {**common, **config})
            count_rows = f"SELECT count(*) FROM {table}"
            rate = scene.rate_to(worker, lambda sql=count_rows: scene.database.run(sql)[0][0], count, pause_s=0.3)
            found.setdefault(worker.name, []).append(rate)
            worker.delete(name)
            scene.database.run(f"DROP TABLE {table}")
    return [compared(f"table sink, {count:,} records (Debezium {JDBC_SINK})", found, _per_second, at_least=3)]


# --- many connectors: ours alone ---


def _many(scene: Scene, worker: Worker, first: int, last: int) -> None:
    """File sources that have nothing to read."""
    for number in range(first, last):
        path = scene.directory / f"quiet-{number}.txt"
        path.touch()
        config = {"connector.class": "FileStreamSource", "file": str(path), "topic": "quiet"}
        worker.put(f"quiet-{number}", config)


def _all_run(worker: Worker, count: int) -> bool:
    status, found = worker.ask("GET", "/connectors?expand=status")
    if status != 200:
        return False
    states = [task["state"] for one in found.values() if "status" in one for task in one["status"]["tasks"]]
    return states.count("RUNNING") >= count


def idle(scene: Scene, options: argparse.Namespace) -> list[Row]:
    """Memory of each connector beyond the first, and the processors' time of them all."""
    worker, count = scene.workers[-1], options.connectors
    _many(scene, worker, 0, 1)
    worker.wait(lambda: _all_run(worker, 1), "one runs", _MOST_S)
    time.sleep(10)
    one_mb = worker.memory_mb()
    _many(scene, worker, 1, count)
    worker.wait(lambda: _all_run(worker, count), f"{count} run", _MOST_S, 0.5)
    time.sleep(20)
    each_mb = (worker.memory_mb() - one_mb) / (count - 1)
    before_s, began_s = worker.processor_s(), time.monotonic()
    time.sleep(options.seconds)
    cores = (worker.processor_s() - before_s) / (time.monotonic() - began_s)
    return [
        limited(f"memory of a connector, of {count}", f"{each_mb:.0f} MB", each_mb, at_most=80, unit=" MB"),
        Row("  session with one connector", "", f"{one_mb:.0f} MB"),
        limited(f"{count} idle connectors", f"{cores:.3f} cores", cores, at_most=0.1, unit=" cores"),
    ]


def restart(scene: Scene, options: argparse.Namespace) -> list[Row]:
    """The worker is killed and started again: until all its connectors run."""
    worker, count = scene.workers[-1], options.connectors
    _many(scene, worker, 0, count)
    worker.wait(lambda: _all_run(worker, count), f"{count} run", _MOST_S, 0.5)
    times = []
    for _ in range(options.rounds):
        worker.stop(signal.SIGTERM)
        began_s = time.monotonic()
        worker.start()
        worker.wait(lambda: _all_run(worker, count), f"{count} run again", _MOST_S, 0.2)
        times.append(time.monotonic() - began_s)
    shown = ", ".join(f"{one:.0f}" for one in times) + " s"
    return [limited(f"{count} connectors run after a restart", shown, median(times), at_most=60, unit=" s")]


def first(scene: Scene, options: argparse.Namespace) -> list[Row]:
    """From the POST of a connector to its first record, while another one writes all the time."""
    worker = scene.workers[-1]
    steady = {"connector.class": "GeneratorSource", "topic": "steady", "rate": "200"}
    scene.broker.create_topic("steady")
    worker.create("steady", steady)
    worker.wait(lambda: scene.end_of("steady") > 200, "it writes")
    times, pauses = [], []
    for _ in range(options.rounds + 1):
        name = scene.fresh("first")
        scene.broker.create_topic(name)
        with _longest_pause(scene, "steady") as pause:
            began_s = time.monotonic()
            config = {"connector.class": "GeneratorSource", "topic": name, "count": "10"}
            worker.ask("POST", "/connectors", {"name": name, "config": config})
            worker.wait(lambda name=name: scene.end_of(name) > 0, "its first record", pause_s=0.02)
            times.append(time.monotonic() - began_s)
        pauses.append(pause())
        worker.delete(name)
    worker.delete("steady")
    shown = ", ".join(f"{one:.1f}" for one in times[1:]) + " s"
    longest = ", ".join(f"{one:.2f}" for one in pauses[1:]) + " s"
    return [
        limited("first record after POST", shown, median(times[1:]), at_most=3, unit=" s"),
        limited("longest pause of another connector meanwhile", longest, max(pauses[1:]), at_most=1, unit=" s"),
    ]


@contextmanager
def _longest_pause(scene: Scene, topic: str) -> Iterator[Callable[[], float]]:
    ends, longest = threading.Event(), [0.0]
    with closing(ottla.Admin(bootstrap_servers=scene.broker.bootstrap)) as admin:
        place = TopicPartition(topic, 0)

        def watch() -> None:
            last, last_s = -1, time.monotonic()
            while not ends.is_set():
                now = admin.list_offsets({place: OffsetSpec.LATEST})[place].offset or 0
                if now != last:
                    longest[0] = max(longest[0], time.monotonic() - last_s)
                    last, last_s = now, time.monotonic()
                time.sleep(0.02)
            longest[0] = max(longest[0], time.monotonic() - last_s)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield lambda: longest[0]
        finally:
            ends.set()
            watcher.join()


def main() -> int:
    options = _parser().parse_args()
    rows: list[Row] = []
    print(
        f"load before: {', '.join(f'{one:.1f}' for one in os.getloadavg())}; processors: {os.cpu_count()}", flush=True
    )
    measured = {
        "changes": changes, "snapshot": snapshot, "delay": delay, "sink": sink,
        "idle": idle, "restart": restart, "first": first,
    }  # fmt: skip
    for part in options.only:
        with (
            TemporaryDirectory(prefix="ottla-bench-") as directory,
            Broker({"auto.create.topics.enable": "true"}) as broker,
            PostgresServer(settings={"shared_buffers": "256MB", "max_wal_size": "4GB"}, durable=False) as database,
        ):
            place = Path(directory)
            workers: list[Worker] = [Ottla(broker.bootstrap, place)]
            if part in BESIDE and not options.alone:
                workers.insert(0, KafkaConnect(broker.bootstrap, place))
            try:
                for worker in workers:
                    worker.start()
                found = measured[part](Scene(place, broker, database, workers), options)
            finally:
                for worker in workers:
                    worker.stop()
        print_rows(f"{part} (kafka is Debezium on Kafka Connect 4.3.1)" if part in BESIDE else part, found)
        rows += found
        print(f"load: {', '.join(f'{one:.1f}' for one in os.getloadavg())}", flush=True)
    return summed_up(rows)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python bench/connect", description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, help="parts to run")
    parser.add_argument("--rounds", type=int, default=3, help="how often each is measured (default: %(default)s)")
    parser.add_argument("--rows", type=int, help="rows of a part (default: 400,000, 5,000,000, 500,000)")
    parser.add_argument("--seconds", type=float, default=20.0, help="of delay and idle (default: %(default)s)")
    parser.add_argument("--connectors", type=int, default=50, help="of idle and restart (default: %(default)s)")
    parser.add_argument("--alone", action="store_true", help="ours alone, without Debezium beside it")
    return parser


if __name__ == "__main__":
    sys.exit(main())
