"""A whole worker in a thread, with an engine that moves no data and says what it was told.

with WorkerInAThread(bootstrap, "group") as worker:
    worker.ask("POST", "/connectors", {...})
    worker.engine.fail("orders", "no disk")
"""

import http.client
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from ottla.config.setting import ANY, HIGH, LOW, REQUIRED, Int, Secret, Text
from ottla.connect.engine_port import ConnectorSpec, EngineListener, Measured, Progress
from ottla.connect.options import InvalidOption
from ottla.connect.worker.plugins import ConnectorPlugin, LoadedPlugin
from ottla.connect.worker.process import _Run
from ottla.connect.worker.service import WorkerService
from ottla.connect.worker.settings import read_worker_settings
from ottla.connect.worker.worker import Worker
from ottla.runtime.loop import NodeLoop

VERSION = "4.3.1"
WAIT_S = 30.0
FILE_SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
FILE_SINK = "org.apache.kafka.connect.file.FileStreamSinkConnector"
SECRET_SOURCE = "com.example.SecretSourceConnector"
_FILE = Text("file", None, ANY, HIGH, "The file.")


validating = threading.Event()
"""Set when the source's settings are looked at with `file=/slow`, which lasts until `may_go_on` is set."""
may_go_on = threading.Event()


def check_source(config: Mapping[str, str]) -> Sequence[tuple[str, str]]:
    if config.get("file") == "/slow" and not validating.is_set():
        validating.set()
        assert may_go_on.wait(WAIT_S)
    return [("file", f"cannot open {config['file']}")] if config.get("file") == "/missing" else []


class TestPlugins:
    """Kafka's two connectors of files, by their settings, and one that has a password."""

    __test__ = False

    def __init__(self) -> None:
        source = (_FILE, Text("topic", REQUIRED, ANY, HIGH, "The topic."), Int("batch.size", 2000, ANY, LOW, "Lines."))
        secret = Secret("database.password", HIGH, "A secret.")
        self._rows = [
            ConnectorPlugin(FILE_SINK, "sink", VERSION, lambda: LoadedPlugin((_FILE,), lambda config: ())),
            ConnectorPlugin(FILE_SOURCE, "source", VERSION, lambda: LoadedPlugin(source, check_source)),
            ConnectorPlugin(SECRET_SOURCE, "source", "1.0", lambda: LoadedPlugin((*source, secret), check_source)),
        ]

    def connectors(self) -> Sequence[ConnectorPlugin]:
        return self._rows

    def find(self, name: str) -> ConnectorPlugin:
        for row in self._rows:
            simple = row.class_name.rpartition(".")[2]
            if name.strip() in (row.class_name, simple, simple.removesuffix("Connector")):
                return row
        raise InvalidOption(
            f"Failed to find any class that implements Connector and which name matches {name}, available connectors "
            f"are: {', '.join(row.class_name for row in self._rows)}"
        )


class Started(NamedTuple):
    spec: ConnectorSpec
    listener: EngineListener


class ScriptedEngine:
    """Runs everything at once, and stops it at once, from a thread of its own; unless it is told to fail something."""

    def __init__(self) -> None:
        self.running: dict[str, Started] = {}
        self.starts: list[ConnectorSpec] = []
        self.failing: dict[str, tuple[str, float | None]] = {}
        self.is_closed = False
        self.progresses: dict[str, Progress] = {}
        self.silent: set[str] = set()
        """Connectors of which nothing is said: neither that they run, nor that they have stopped."""
        self._lock = threading.Lock()

    def _aside(self, call: Callable[[], None]) -> None:
        threading.Thread(target=call, daemon=True).start()

    def start(self, spec: ConnectorSpec, listener: EngineListener) -> None:
        with self._lock:
            assert spec.name not in self.running, f"{spec.name} is started while it runs"
            self.running[spec.name] = Started(spec, listener)
            self.starts.append(spec)
            problem = self.failing.get(spec.name)
        if spec.name in self.silent:
            return
        if problem is None:
            self._aside(lambda: listener.on_running(spec.name))
        else:
            self._aside(lambda: listener.on_failed(spec.name, problem[0], retry_in_s=problem[1]))

    def stop(self, name: str) -> None:
        if name in self.silent:
            return
        with self._lock:
            started = self.running.pop(name, None)
        if started is not None:
            self._aside(lambda: started.listener.on_stopped(name))

    def fail(self, name: str, trace: str, retry_in_s: float | None = None) -> None:
        self.running[name].listener.on_failed(name, trace, retry_in_s=retry_in_s)

    def progress(self, name: str) -> Measured | None:
        found = self.progresses.get(name)
        return None if found is None else Measured(found, 2.5, 2.0)

    def close(self) -> None:
        assert not self.running, f"still running: {list(self.running)}"
        self.is_closed = True


class Reply(NamedTuple):
    status: int
    body: Any
    headers: Mapping[str, str]


def ask(base: str, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Reply:
    """Text goes as it is, everything else as JSON."""
    parts = urlsplit(base)
    assert parts.hostname is not None
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=90)
    data = body if isinstance(body, str) or body is None else json.dumps(body)
    connection.request(
        method, path, data, {**({"Content-Type": "application/json"} if data is not None else {}), **(headers or {})}
    )
    response = connection.getresponse()
    content = response.read().decode()
    connection.close()
    is_json = (response.getheader("Content-Type") or "").startswith("application/json") or content[:1] in ("{", "[")
    return Reply(response.status, json.loads(content) if is_json and content else content, dict(response.getheaders()))


class WorkerInAThread:
    """`kill` leaves it as a crash would; leaving the block stops it in good order."""

    def __init__(
        self,
        bootstrap: str,
        group: str = "connect",
        *,
        standalone: bool = False,
        properties: Mapping[str, str] | None = None,
        environment: Mapping[str, str] | None = None,
        on_loaded: Callable[[Worker], None] = lambda worker: None,
    ) -> None:
        given = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
            "listeners": "http://127.0.0.1:0",
            "offset.storage.topic": f"{group}-offsets",
            "offset.storage.partitions": "3",
            "offset.storage.replication.factor": "1",
        }
        if not standalone:
            given |= {
                "config.storage.topic": f"{group}-configs",
                "config.storage.replication.factor": "1",
                "status.storage.topic": f"{group}-status",
                "status.storage.partitions": "2",
                "status.storage.replication.factor": "1",
            }
        self.settings = read_worker_settings({**given, **(properties or {})}, standalone=standalone)
        self.engine = ScriptedEngine()
        self._environment = environment or {}
        self._on_loaded = on_loaded
        self._ready = threading.Event()
        self._problem: BaseException | None = None
        self._loop = NodeLoop(0)
        self._stop: Callable[[str], None] = lambda name: None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self.url = ""

    def __enter__(self) -> "WorkerInAThread":
        self.start()
        return self

    def start(self) -> None:
        self._thread.start()
        assert self._ready.wait(60), "the worker does not start"
        if self._problem is not None:
            raise self._problem

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _run(self) -> None:
        try:
            _Run(
                self._loop,
                self.settings,
                TestPlugins(),
                self.engine,
                VERSION,
                self._environment,
                self._on_ready,
                self._signals,
                self._on_loaded,
            ).run()
        except BaseException as problem:
            self._problem = problem
            self._ready.set()
        finally:
            self._loop.close()

    @contextmanager
    def _signals(self, loop: NodeLoop, on_signal: Callable[[str], None]) -> Iterator[None]:
        self._stop = on_signal
        yield

    def _on_ready(self, service: WorkerService) -> None:
        self.service = service
        self.url = str(service.addresses[0])
        self._ready.set()

    def stop(self) -> None:
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._stop, "TERM")
            self._thread.join(60)
            assert not self._thread.is_alive(), "the worker does not stop"

    def on_loop(self, call: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(call)

    def freeze(self, seconds: float) -> None:
        """Does nothing for so long, as a process that is suspended or swapped out."""
        self._loop.call_soon_threadsafe(time.sleep, seconds)

    def kill(self) -> None:
        """Nothing more is said to anybody: sockets just close."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(30)

    def ask(self, method: str, path: str, body: object = None, headers: Mapping[str, str] | None = None) -> Reply:
        return ask(self.url, method, path, body, headers)

    def state_of(self, name: str) -> tuple[str, list[str]]:
        """Of the connector, and of its tasks; ("", []) if nothing is known."""
        reply = self.ask("GET", f"/connectors/{name}/status")
        if reply.status != 200:
            return "", []
        return reply.body["connector"]["state"], [task["state"] for task in reply.body["tasks"]]

    def wait_for(self, look: Callable[[], object], what: str, wait_s: float = WAIT_S) -> Any:
        return wait_for(look, what, wait_s)


def wait_for(look: Callable[[], object], what: str, wait_s: float = WAIT_S) -> Any:
    ends_s = time.monotonic() + wait_s
    while not (found := look()):
        assert time.monotonic() < ends_s, f"not after {wait_s:.0f} s: {what}"
        time.sleep(0.02)
    return found
