"""Committers that a driver's Python processes keep. Spark lets any of these commit any batch of any query."""

from collections.abc import Iterator

import pytest

from ottla.spark.options import Options, Use
from ottla.spark.sink import decided_writes
from ottla.spark.sink.committer import Committer, NewerDriver
from ottla.spark.sink.decided_writes import Written, commit_decided
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.sink_options import Delivery, SinkOptions, read_sink_options
from ottla.spark.sink.task_writer import Task
from ottla.testing import Broker
from tests.spark.sink_scene import COLUMNS, SinkScene

Process = dict[str, tuple[str, Committer]]
VALUES = list(range(12))


class Driver:
    """A driver's Python processes, each with the committers that it keeps."""

    def __init__(self, scene: SinkScene, monkeypatch: pytest.MonkeyPatch) -> None:
        self._scene = scene
        self._monkeypatch = monkeypatch
        self._options: SinkOptions = read_sink_options(
            Options({"kafka.bootstrap.servers": scene.broker.bootstrap}, Use.STREAM_WRITE), Delivery.EXACTLY_ONCE
        )

    def commit(self, process: Process, batch_id: int, run_id: str = "run-1") -> None:
        task = Task(self._scene.query_id, run_id, batch_id, 0, 0)
        result = self._scene.task(batch_id, 0, [batch_id])
        self._monkeypatch.setattr(decided_writes, "_committers", process)
        commit_decided(self._options, Routing(COLUMNS, self._scene.topic), [Written(task, result)])


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str) -> SinkScene:
    return SinkScene(ottla_broker, ottla_topic)


@pytest.fixture
def processes() -> Iterator[list[Process]]:
    made: list[Process] = [{}, {}]
    yield made
    for process in made:
        for _, committer in process.values():
            committer.close()


def test_two_processes_may_commit_the_batches_of_a_query_in_turns(
    scene: SinkScene, processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(scene, monkeypatch)
    for batch_id, index in enumerate([0, 1, 0, 0, 1, 1, 1, 0]):
        driver.commit(processes[index], batch_id)
    assert scene.committed() == list(range(8))
    assert scene.open_transactions() == []


def test_a_process_that_committed_the_batch_before_uses_its_connections_again(
    scene: SinkScene, processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(scene, monkeypatch)
    driver.commit(processes[0], 0)
    _, kept = processes[0][scene.query_id]
    driver.commit(processes[0], 1)
    assert processes[0][scene.query_id][1] is kept


def test_a_driver_does_not_take_over_from_a_newer_one(
    scene: SinkScene, processes: list[Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    driver = Driver(scene, monkeypatch)
    driver.commit(processes[0], 0, "run-1")
    driver.commit(processes[1], 1, "run-2")
    with pytest.raises(NewerDriver):
        driver.commit(processes[0], 1, "run-1")
    driver.commit(processes[1], 2, "run-2")
    assert scene.committed() == [0, 1, 2]
