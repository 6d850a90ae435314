"""A connector without Spark: its reader and writer as Spark would call them, killed where a test says."""

import os
import threading
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import ottla
from ottla.connect.engine.offsets_log import OffsetsLog
from ottla.connect.engine.run import Run, new_run
from ottla.connect.engine.source_reader import Control, DirectReader, SourceReader
from ottla.connect.engine.source_writer import BatchWriter, write_batch
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.testing import Broker
from tests.spark.sink_scene import die, records

STRINGS = "org.apache.kafka.connect.storage.StringConverter"


class Listener:
    """Hears an engine."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.traces: list[str] = []
        self.topics: list[str] = []
        self.retries: list[float | None] = []
        self._changed = threading.Condition()

    def on_running(self, name: str) -> None:
        self._note("running")

    def on_failed(self, name: str, trace: str, *, retry_in_s: float | None) -> None:
        self.traces.append(trace)
        self.retries.append(retry_in_s)
        self._note("failed" if retry_in_s is None else "retried")

    def on_topics(self, name: str, topics: Iterable[str]) -> None:
        self.topics += topics

    def on_stopped(self, name: str) -> None:
        self._note("stopped")

    def _note(self, event: str) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def wait_for(self, event: str, count: int = 1, timeout_s: float = 120) -> None:
        with self._changed:
            happened = self._changed.wait_for(
                lambda: self.events.count(event) >= count or ("failed" in self.events and event != "stopped"), timeout_s
            )
        said = f"{event}: {self.events}\n{''.join(self.traces)}"
        assert happened, said
        assert self.events.count(event) >= count, said


class SourceScene:
    """A FileStreamSource from `in.txt`."""

    def __init__(self, broker: Broker, topic: str, directory: Path, **config: str) -> None:
        self.broker = broker
        self.topic = topic
        self.directory = directory
        self.file = directory / "in.txt"
        self.name = f"files-{topic}"
        self.worker: Mapping[str, str] = {
            "bootstrap.servers": broker.bootstrap,
            "group.id": "workers",
            "offset.storage.topic": f"offsets-{topic}",
            "offset.storage.partitions": "3",
            "key.converter": STRINGS,
            "value.converter": STRINGS,
            "file.allowed.paths": str(directory),
            "ottla.connect.state.dir": str(directory / "state"),
        }
        self.config = {
            "name": self.name,
            "connector.class": "FileStreamSource",
            "file": str(self.file),
            "topic": topic,
            **config,
        }

    def append(self, *lines: str) -> None:
        with open(self.file, "a") as file:
            file.writelines(f"{line}\n" for line in lines)

    def new_run(self) -> Run:
        return new_run(self.name, "source", self.config, self.worker)

    def start(self) -> "Start":
        """Whose rows go through Spark."""
        return Start(self.new_run())

    def start_direct(self) -> "DirectStart":
        return DirectStart(self.new_run())

    def run_and_be_killed(self, where: Any, start: "Callable[[], Start | DirectStart] | None" = None) -> None:
        """A start in a process of its own, which is killed there, as `kill -9` does it."""

        def work() -> None:
            with where.armed():
                (start or self.start)().all()
            os._exit(0)  # the test fails: it was not killed

        die(work)

    def lines(self) -> list[str]:
        """What a read-committed reader sees."""
        return [record.value.decode() for record in records(self.broker, self.topic)]

    def offsets(self) -> dict[str, Any] | None:
        with ClusterAccess({"bootstrap.servers": self.broker.bootstrap}) as access:
            log = OffsetsLog(access, self.worker["offset.storage.topic"], self.name)
            log.catch_up()
            stored = log.get({"filename": str(self.file)})
            return None if stored is None else stored.offset


class Start:
    """One start: what Spark does with the two halves."""

    def __init__(self, run: Run, patience_s: float = 0.5) -> None:
        import ottla.connect.engine.source_reader as module

        module._WAIT_S = patience_s
        module._POLL_S = 0.05
        self.run = run
        self.reader = SourceReader(run)
        self._offset = self.reader.initialOffset()

    def plan(self) -> tuple[Control, list[Any]] | None:
        """The next batch, if there is one."""
        rows, end = self.reader.read(self._offset)
        if end == self._offset:
            return None
        self._offset = end
        control, *batches = rows
        return Control.of(control.column("value")[0].as_py()), batches

    def batch(self) -> bool:
        """Plans and writes one."""
        planned = self.plan()
        if planned is not None:
            write_batch(self.run, *planned)
        return planned is not None

    def end(self, tries: int = 20) -> None:
        """On and on, for what must fail."""
        for _ in range(tries):
            self.batch()

    def all(self) -> "Start":
        """Until the source has nothing more: it was asked twice, after the last batch."""
        empty = self.reader.empty_polls
        while self.batch() or self.reader.empty_polls < empty + 2:
            pass
        return self

    def stop(self) -> None:
        self.reader.stop()


class DirectStart:
    """One start of a reader that writes itself, as Spark calls it."""

    def __init__(self, run: Run) -> None:
        import ottla.connect.engine.source_reader as module

        module._POLL_S = 0.05
        self.run = run
        self.reader = DirectReader(run)
        self.reader.initialOffset()

    def batch(self) -> bool:
        return self.reader.write(0.5)

    def all(self) -> "DirectStart":
        empty = self.reader.reader.empty_polls
        while self.batch() or self.reader.reader.empty_polls < empty + 2:
            pass
        return self

    def stop(self) -> None:
        self.reader.stop()


def make_topic(broker: Broker, topic: str, partitions: int = 1) -> None:
    with ottla.Admin(bootstrap_servers=broker.bootstrap) as admin:
        from ottla.admin import NewTopic

        admin.create_topics([NewTopic(topic, partitions)]).raise_first()


def commit_late(writer: BatchWriter, control: Control) -> None:
    """The end of a batch whose rows were sent long ago."""
    writer._send_offsets(control.steps)
    writer._producer.commit()
