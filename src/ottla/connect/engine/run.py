"""One start of a connector, as every process that has a part in it knows it.

A start has a directory of its own in `ottla.connect.state.dir`: the description of the start (which holds secrets, so
only its owner may read it), Spark's checkpoint, a file that appears when the connector runs, and one that says which
topics went through it. All of it may be lost: the directory of a start is of no use to the next, which begins with what
the offsets topic or the target says.
"""

import json
import logging
import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from secrets import token_hex
from time import time
from typing import Any, Final, Literal
from urllib.parse import quote

from ottla.config.scopes import Scope
from ottla.config.scopes import settings as settings_of
from ottla.config.values import HIDDEN, Type
from ottla.connect.class_names import class_name_of
from ottla.connect.connector import SinkContext, Source, SourceContext
from ottla.connect.plugins import ConnectorClass, find_connector

STATE_DIRECTORY: Final = "ottla.connect.state.dir"
DIRECT: Final = "ottla.connect.direct"
"""Of a worker or a connector."""
_DEFAULT_STATE: Final = "ottla-connect-state"
_SPEC: Final = "start.json"
_RUNNING: Final = "running"
_TOPICS: Final = "topics"
_CHECKPOINT: Final = "checkpoint"


@dataclass(frozen=True, slots=True)
class Run:
    """One start of a connector. `id` tells it from all others."""

    id: str
    name: str
    type: Literal["source", "sink"]
    config: Mapping[str, str]
    worker: Mapping[str, str]
    directory: str

    def __repr__(self) -> str:
        """Without the configuration, which may hold secrets."""
        return f"Run({self.id!r}, {self.name!r})"

    # --- names in Kafka ---

    @property
    def transactional_id(self) -> str:
        """As Kafka Connect names it (KIP-618), so that a Java worker's task is fenced too."""
        return f"{self.worker.get('group.id') or 'connect-standalone'}-{self.name}-0"

    @property
    def offsets_topic(self) -> str:
        return self.worker.get("offset.storage.topic") or "connect-offsets"

    @property
    def is_direct(self) -> bool:
        """Whether a source's process writes to Kafka itself, and Spark carries no rows. Of sources; the default."""
        return (self.config.get(DIRECT) or self.worker.get(DIRECT) or "true").strip().lower() != "false"

    @property
    def group(self) -> str:
        """The group whose commits show how far a sink is."""
        return self.config.get("consumer.override.group.id") or f"connect-{self.name}"

    # --- settings of clients ---

    def producer_settings(self) -> dict[str, str]:
        """As Kafka Connect makes them: the worker's brokers, its `producer.…`, and the connector's own."""
        return self._client(Scope.PRODUCER, "producer.")

    def consumer_settings(self) -> dict[str, str]:
        return self._client(Scope.CONSUMER, "consumer.")

    def worker_settings(self) -> dict[str, str]:
        """For the worker's own topics: what the worker itself connects with."""
        known = settings_of(Scope.ADMIN)
        return {key: value for key, value in self.worker.items() if key in known}

    def _client(self, scope: Scope, prefix: str) -> dict[str, str]:
        known = settings_of(scope)
        found = {"bootstrap.servers": self.worker.get("bootstrap.servers", "")}
        for given, before in ((self.worker, prefix), (self.config, f"{prefix}override.")):
            found |= {key.removeprefix(before): value for key, value in given.items() if key.startswith(before)}
        left_to_us = ("serializer", "deserializer", "transactional.id", "interceptor.classes", "group.id")
        return {key: value for key, value in found.items() if key in known and not key.endswith(left_to_us)}

    # --- the connector itself ---

    def connector(self) -> ConnectorClass:
        return find_connector(class_name_of(self.config) or "").load()

    def source(self, offset: Any) -> Source:
        made = self.connector()
        assert issubclass(made, Source), "a source runs as a source"
        return made(self.config, SourceContext(self.name, self.log(), offset, _now_ms, worker=self.worker))

    def sink_context(self, **of_put: Any) -> SinkContext:
        """`of_put`: what the writer knows of the put under way, `places` and `refuse`."""
        return SinkContext(self.name, self.log(), _now_ms, self.worker, **of_put)

    def log(self) -> logging.Logger:
        return logging.getLogger(f"ottla.connect.{self.name}")

    # --- its directory ---

    @property
    def spec_path(self) -> Path:
        return Path(self.directory) / _SPEC

    @property
    def checkpoint(self) -> str:
        return (Path(self.directory) / _CHECKPOINT).absolute().as_uri()

    @property
    def kept_checkpoint(self) -> str:
        """For those few connectors whose checkpoint the next start needs."""
        directory = Path(self.directory).parent.parent / f"checkpoint-{quote(self.name, safe='')}"
        return directory.absolute().as_uri()

    def mark_running(self) -> None:
        """To be called where the connector has started."""
        (Path(self.directory) / _RUNNING).touch()

    @property
    def is_marked_running(self) -> bool:
        return (Path(self.directory) / _RUNNING).exists()

    def note_topics(self, topics: Iterable[str]) -> None:
        """Records of these topics went through the connector; all that did in this start."""
        unfinished = Path(self.directory) / f"{_TOPICS}.unfinished"
        unfinished.write_text(json.dumps(sorted(topics)))
        os.replace(unfinished, Path(self.directory) / _TOPICS)

    def noted_topics(self) -> frozenset[str]:
        try:
            return frozenset(json.loads((Path(self.directory) / _TOPICS).read_text()))
        except FileNotFoundError:
            return frozenset()

    def forget(self) -> None:
        shutil.rmtree(self.directory, ignore_errors=True)

    def without_secrets(self, text: str) -> str:
        """The text with the values of passwords hidden, wherever they stand in it."""
        for value in sorted(self._secrets(), key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return text

    def _secrets(self) -> set[str]:
        names = {row.name for row in self._connector_settings() if row.type is Type.PASSWORD}
        for scope in (Scope.PRODUCER, Scope.CONSUMER, Scope.ADMIN):
            names |= {row.name for row in settings_of(scope).values() if row.type is Type.PASSWORD}
        return {
            value
            for given in (self.config, self.worker)
            for key, value in given.items()
            if value and (key in names or any(key.endswith(f".{name}") for name in names))
        }

    def _connector_settings(self) -> Any:
        try:
            return self.connector().settings
        except Exception:  # that is what is being told about
            return ()


def new_run(name: str, type: Literal["source", "sink"], config: Mapping[str, str], worker: Mapping[str, str]) -> Run:
    """A new start, with a directory in which nothing of older starts is left."""
    state = Path(worker.get(STATE_DIRECTORY) or _DEFAULT_STATE).absolute()
    of_connector = state / f"connector-{quote(name, safe='')}"  # a connector may be called `..`
    shutil.rmtree(of_connector, ignore_errors=True)
    run_id = token_hex(6)
    directory = of_connector / run_id
    directory.mkdir(parents=True, mode=0o700)
    run = Run(run_id, name, type, dict(config), dict(worker), str(directory))
    with open(os.open(run.spec_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(run), file)
    return run


def load_run(path: str) -> Run:
    """The start that is described there."""
    return Run(**json.loads(Path(path).read_text()))


def log_to_stderr() -> None:
    """For processes of Spark's, whose standard error is the worker's."""
    root = logging.getLogger("ottla.connect")
    if not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
        root.setLevel(logging.INFO)
        root.propagate = False


def _now_ms() -> int:
    return int(time() * 1000)
