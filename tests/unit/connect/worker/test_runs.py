"""Which connectors run: one step at a time, whatever the order in which topics and engine speak."""

from random import Random
from typing import Any

import pytest

from ottla.connect.worker import records
from ottla.connect.worker.records import LogRecord, RunState, TargetState
from ottla.connect.worker.runs import Phase, Prepared, Runs, Start, Step, Stop, Unusable
from ottla.connect.worker.state import Config, State


class Scene:
    """A worker that leads, whose records are replayed at once."""

    def __init__(self) -> None:
        self.state = State()
        self.runs = Runs(self.state, "host:8083", self.prepare)
        self.effects: list[Any] = []
        self.in_engine: dict[str, int] = {}
        self.unusable = ""

    def prepare(self, name: str, config: Config) -> Prepared | Unusable:
        if self.unusable:
            return Unusable(self.unusable)
        return Prepared({key: value for key, value in config.items() if value}, "Task", True, "1.0")

    def do(self, step: Step) -> None:
        for record in step.records:
            self.state.replay(record)
        for effect in step.effects:
            self.effects.append(effect)
            if isinstance(effect, Start):
                assert effect.name not in self.in_engine, "started while it is in the engine"
                self.in_engine[effect.name] = effect.generation

    def write(self, *written: LogRecord) -> None:
        for record in written:
            self.state.replay(record)
        self.do(self.runs.on_wanted("x"))

    def stopped(self) -> None:
        self.do(self.runs.on_stopped("x", self.in_engine.pop("x")))

    def running(self) -> None:
        self.do(self.runs.on_running("x", self.in_engine["x"]))

    def states(self) -> tuple[RunState | None, list[RunState]]:
        status = self.state.connector_statuses.get("x")
        return status and status.state, [one.state for _, one in self.state.tasks_of("x")]


@pytest.fixture
def scene() -> Scene:
    scene = Scene()
    scene.do(scene.runs.on_leading())
    return scene


def test_a_connector_is_started_with_its_task_written(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    assert scene.effects == [Start("x", {"a": "1"}, 1)]
    assert scene.state.connectors["x"].tasks == ({"a": "1", "task.class": "Task"},)
    assert scene.state.connectors["x"].fencing_count == 1
    assert scene.states() == (RunState.RUNNING, [RunState.UNASSIGNED])
    scene.running()
    assert scene.states() == (RunState.RUNNING, [RunState.RUNNING])


def test_tasks_that_another_worker_left_beyond_ours_are_forgotten(scene: Scene) -> None:
    scene.runs.on_closing()
    scene.state.replay(records.connector_record("x", {"a": "1"}))
    for record in records.tasks_records("x", [{"n": "0"}, {"n": "1"}], is_source=True):
        scene.state.replay(record)
    for task in (0, 1):
        status = records.Status(RunState.RUNNING, "java:8083", 3)
        scene.state.replay(records.task_status_record("x", task, status))
    scene.do(scene.runs.on_leading())
    scene.running()
    assert scene.states() == (RunState.RUNNING, [RunState.RUNNING])
    assert len(scene.state.connectors["x"].tasks) == 1


def test_another_configuration_waits_for_the_end_of_the_run(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.running()
    scene.write(records.connector_record("x", {"a": "2"}))
    scene.write(records.connector_record("x", {"a": "3"}))
    assert scene.effects[1:] == [Stop("x")]
    scene.stopped()
    assert scene.effects[2:] == [Start("x", {"a": "3"}, 2)]


def test_the_same_configuration_again_disturbs_no_run_and_restarts_one_that_failed(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.running()
    scene.write(records.connector_record("x", {"a": "1"}))
    assert [type(effect) for effect in scene.effects] == [Start]
    scene.do(scene.runs.on_failed("x", 1, "no disk", is_retried=False))
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.stopped()
    assert [type(effect) for effect in scene.effects] == [Start, Stop, Start]


def test_events_of_an_older_start_change_nothing(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.write(records.connector_record("x", {"a": "2"}))
    scene.stopped()
    scene.do(scene.runs.on_failed("x", 1, "late", is_retried=False))
    scene.do(scene.runs.on_stopped("x", 1))
    assert scene.runs.phase_of("x") is Phase.STARTED
    assert scene.states() == (RunState.RUNNING, [RunState.UNASSIGNED])


def test_a_failed_connector_stays_so_until_its_configuration_changes(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.do(scene.runs.on_failed("x", 1, "no disk", is_retried=False))
    assert scene.states() == (RunState.RUNNING, [RunState.FAILED])
    scene.write(records.target_record("x", TargetState.STARTED))
    assert scene.states() == (RunState.RUNNING, [RunState.FAILED])
    scene.write(records.connector_record("x", {"a": "2"}))
    scene.stopped()
    scene.running()
    assert scene.states() == (RunState.RUNNING, [RunState.RUNNING])


def test_one_that_cannot_be_started_is_failed_and_restarted_on_request(scene: Scene) -> None:
    scene.unusable = "no such class"
    scene.write(records.connector_record("x", {"a": "1"}))
    assert scene.states() == (RunState.FAILED, [])
    assert scene.state.connector_statuses["x"].trace == "no such class"
    assert not scene.effects
    scene.unusable = ""
    scene.do(scene.runs.restart("x", connector=True, task=False))
    assert [type(effect) for effect in scene.effects] == [Start]


def test_a_task_that_is_restarted_shows_it(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.running()
    scene.do(scene.runs.restart("x", connector=True, task=True))
    assert scene.states() == (RunState.RUNNING, [RunState.RESTARTING])
    scene.stopped()
    assert scene.states() == (RunState.RUNNING, [RunState.RESTARTING])
    scene.running()
    assert scene.states() == (RunState.RUNNING, [RunState.RUNNING])


def test_a_deleted_connector_is_forgotten_when_it_has_ended(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.running()
    scene.do(scene.runs.on_topics("x", 1, ["t"], 1234))
    scene.write(records.connector_record("x", None), records.target_record("x", None))
    assert scene.states() == (RunState.RUNNING, [RunState.RUNNING])
    scene.stopped()
    assert scene.states() == (None, [])
    assert not scene.state.topics


def test_one_that_leads_no_more_starts_nothing_until_it_leads_again(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.do(Step([], scene.runs.on_closing().effects))
    scene.stopped()
    scene.write(records.connector_record("x", {"a": "2"}))
    assert [type(effect) for effect in scene.effects] == [Start, Stop]
    scene.do(scene.runs.on_leading())
    assert scene.effects[-1] == Start("x", {"a": "2"}, 2)


def test_what_was_said_is_said_again_after_a_lost_transaction(scene: Scene) -> None:
    scene.write(records.connector_record("x", {"a": "1"}))
    scene.runs.on_running("x", 1)  # Its records are lost.
    assert scene.states() == (RunState.RUNNING, [RunState.UNASSIGNED])
    scene.do(scene.runs.on_leading())
    assert scene.states() == (RunState.RUNNING, [RunState.RUNNING])
    assert len(scene.effects) == 1


@pytest.mark.parametrize("seed", range(300))
def test_any_order_of_events_ends_where_the_topics_say(seed: int) -> None:
    """Random changes, failures and answers; then everything is answered."""
    random = Random(seed)
    scene = Scene()
    scene.do(scene.runs.on_leading())
    stopping = False
    for number in range(60):
        match random.randrange(9):
            case 0:
                scene.write(records.connector_record("x", {"a": str(number)}))
            case 1:
                scene.write(records.connector_record("x", None), records.target_record("x", None))
            case 2 | 3:
                if "x" in scene.state.connectors:
                    scene.write(records.target_record("x", random.choice(list(TargetState))))
            case 4 if "x" in scene.in_engine:
                scene.running()
            case 5 if "x" in scene.in_engine:
                retried = random.random() < 0.5
                scene.do(scene.runs.on_failed("x", scene.in_engine["x"], "trace", is_retried=retried))
            case 6:
                scene.do(scene.runs.restart("x", connector=random.random() < 0.5, task=random.random() < 0.5))
            case 7:
                scene.do(Step([], scene.runs.on_closing().effects))
                scene.do(scene.runs.on_leading())
            case _ if scene.runs.phase_of("x") is Phase.STOPPING:
                scene.stopped()
    while scene.runs.phase_of("x") is Phase.STOPPING:
        assert not stopping, "it is stopped again and again"
        stopping = True
        scene.stopped()
    connector = scene.state.connectors.get("x")
    state, tasks = scene.states()
    if connector is None:
        assert (state, tasks, scene.in_engine) == (None, [], {})
    elif connector.target is TargetState.STARTED:
        assert scene.in_engine
        assert state is RunState.RUNNING
        assert len(tasks) == 1
    else:
        assert scene.in_engine == {}
        assert state is RunState(connector.target.value)
        assert set(tasks) <= {RunState.PAUSED}
