"""`ottla connect run --once`: it ends when its connectors say that they are through, sources before sinks."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.cli.connect.connector_files import FileConnector
from ottla.cli.connect.starting import _Given
from ottla.connect.engine_port import Progress
from ottla.connect.worker.refusals import Refused
from ottla.connect.worker.worker import Worker
from ottla.testing.node import RunningNode
from tests.unit.connect.worker.worker_in_a_thread import FILE_SINK, FILE_SOURCE, WorkerInAThread, wait_for

pytestmark = pytest.mark.slow

LONG_S = 3600.0


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    with RunningNode(config={"group.initial.rebalance.delay.ms": 0}) as node:
        yield node


@pytest.fixture
def worker(node: RunningNode, request: pytest.FixtureRequest) -> Iterator[WorkerInAThread]:
    with WorkerInAThread(node.bootstrap, f"once-{request.node.name}"[:60], standalone=True) as worker:
        yield worker


def connector(name: str, **config: str) -> FileConnector:
    return FileConnector(name, {"name": name, **config}, None, Path(f"{name}.json"))


SOURCE = connector("in", **{"connector.class": FILE_SOURCE, "file": "/in", "topic": "t"})
SINK = connector("out", **{"connector.class": FILE_SINK, "file": "/out", "topics": "t"})


class Once(_Given):
    """Notes that it has ended, and leaves the worker running."""

    def __init__(self, worker: WorkerInAThread, connectors: list[FileConnector], idle_s: float) -> None:
        super().__init__(connectors, idle_s)
        self.has_ended = False
        self.stop = self._end
        worker.on_loop(lambda: self.begin(worker.service.worker))

    def _end(self) -> None:
        self.has_ended = True


def test_sinks_begin_when_the_sources_are_through_and_it_ends_with_them(worker: WorkerInAThread) -> None:
    once = Once(worker, [SINK, SOURCE], LONG_S)
    wait_for(lambda: list(worker.engine.running) == ["in"], "the source runs, and the sink does not")
    worker.engine.progresses["in"] = Progress(read=5, written=3, is_at_end=False)
    worker.engine.progresses["out"] = Progress(is_at_end=True)
    wait_for(lambda: worker.state_of("in") == ("RUNNING", ["RUNNING"]), "it runs")
    assert list(worker.engine.running) == ["in"]
    worker.engine.progresses["out"] = Progress()
    worker.engine.progresses["in"] = Progress(read=5, written=5, is_at_end=True)
    wait_for(lambda: sorted(worker.engine.running) == ["in", "out"], "the sink runs")
    assert not once.has_ended
    worker.engine.progresses["out"] = Progress(read=5, written=5, is_at_end=True)
    wait_for(lambda: once.has_ended, "it ends, and does not wait an hour")
    assert once.status == 0


def test_a_connector_that_cannot_say_is_through_when_nothing_has_moved_for_a_while(worker: WorkerInAThread) -> None:
    once = Once(worker, [SOURCE], 0.2)
    wait_for(lambda: once.has_ended, "it ends")
    assert once.status == 0


def test_a_source_that_says_not_yet_is_waited_for_however_long_nothing_moves(worker: WorkerInAThread) -> None:
    looks: list[str] = []
    progress = worker.engine.progress
    worker.engine.progress = lambda name: looks.append(name) or progress(name)  # type: ignore[method-assign,func-returns-value]
    worker.engine.progresses["in"] = Progress(read=5, written=3, is_at_end=False)
    once = Once(worker, [SOURCE], 0.0)
    wait_for(lambda: len(looks) > 4, "it was looked at")
    assert not once.has_ended
    worker.engine.progresses["in"] = Progress(read=5, written=5, is_at_end=True)
    wait_for(lambda: once.has_ended, "it ends")


def test_offsets_that_cannot_be_asked_for_a_moment_do_not_keep_it_for_ever(
    worker: WorkerInAThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    offsets = Worker.offsets

    async def failing(self: Worker, name: str) -> list[dict[str, Any]]:
        asked.append(name)
        if len(asked) == 1:
            raise Refused(500, "Kafka could not be asked: the brokers are away")
        return await offsets(self, name)

    monkeypatch.setattr(Worker, "offsets", failing)
    once = Once(worker, [SOURCE], 0.0)
    wait_for(lambda: once.has_ended, "it ends")


def test_a_connector_that_fails_ends_it_with_its_trace(
    worker: WorkerInAThread, capsys: pytest.CaptureFixture[str]
) -> None:
    worker.engine.failing["in"] = ("Traceback: no such disk", None)
    once = Once(worker, [SOURCE, SINK], LONG_S)
    wait_for(lambda: once.has_ended, "it ends")
    assert once.status == 1
    assert "no such disk" in capsys.readouterr().err
    assert "out" not in worker.engine.running
