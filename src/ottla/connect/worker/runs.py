"""Which connectors run on this worker: what the topics want on one side, what the engine says on the other.

Theory of operation. A worker that leads runs all connectors; one that stands by runs none. For each connector there is
a `_Run`, which is in one of these phases:

    IDLE       nothing of it is in the engine
    STARTED    the engine has it: it starts, runs, or starts again by itself after a failure
    FAILED     it has ended by a failure, and stays so until it is restarted or its configuration changes; what the
               engine has of it is stopped before that
    STOPPING   the engine was told to stop it, and has not said yet that it has

`on_wanted` compares what a connector is to do with its phase, and takes one step; the engine's `on_stopped` brings the
next one. So a connector is never started before its last run has ended, however fast its configuration changes.
Each start has a generation, and events of an older one change nothing.

A connector has one task here, number 0: how wide it is spread is Spark's matter. As in Kafka Connect, the connector
itself is FAILED if it cannot be started at all (its class is not here, a secret cannot be read), and RUNNING while its
task is FAILED. A task that the engine restarts by itself is RESTARTING meanwhile, with the trace of the failure.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, NamedTuple

from ottla.connect.worker.records import (
    LogRecord,
    RunState,
    Status,
    TargetState,
    connector_status_record,
    task_status_record,
    tasks_records,
    topic_record,
)
from ottla.connect.worker.state import Config, State

TASK: Final = 0


class Prepared(NamedTuple):
    """A connector that can be started: what the driver made of its configuration."""

    config: Mapping[str, str]
    """With the values of config providers. Goes to the engine, and nowhere else."""
    task_class: str
    is_source: bool
    version: str | None


class Unusable(NamedTuple):
    """A connector that cannot be started, and why."""

    trace: str


class Start(NamedTuple):
    """An effect: the engine is to start it. The records are written at the same time; neither waits for the other."""

    name: str
    config: Mapping[str, str]
    generation: int


class Stop(NamedTuple):
    """An effect: the engine is to stop it."""

    name: str


Effect = Start | Stop


class Step(NamedTuple):
    """What one event comes to."""

    records: list[LogRecord]
    effects: list[Effect]


class Phase(Enum):
    IDLE = "idle"
    STARTED = "started"
    FAILED = "failed"
    STOPPING = "stopping"


@dataclass(slots=True)
class _Run:
    phase: Phase = Phase.IDLE
    generation: int = 0
    revision: int = -1
    """Of the configuration that it was last started with, or that it failed with."""
    config: Config | None = None
    """The one that it was last started with: a record that says the same again disturbs no run."""
    version: str | None = None
    shown: RunState | None = None
    """What was last written of the task."""
    told: dict[bytes, LogRecord] = field(default_factory=dict)
    """The last records of its states, by key."""

    @property
    def is_in_engine(self) -> bool:
        """Whether the engine has it, or what is left of it after a failure: it must be stopped before it is started."""
        return self.phase is Phase.STARTED or (self.phase is Phase.FAILED and self.shown is not None)


Prepare = Callable[[str, Config], Prepared | Unusable]
"""What a run needs of the world: plug-ins, and config providers."""


class Runs:
    """Of a worker that leads. `state` is replayed by somebody else. Each method returns what is to be done."""

    def __init__(self, state: State, worker_id: str, prepare: Prepare, first_generation: int = 0) -> None:
        self._state = state
        self._worker_id = worker_id
        self._prepare = prepare
        self._runs: dict[str, _Run] = {}
        self._generation = first_generation
        self.leads = False

    def phase_of(self, name: str) -> Phase:
        run = self._runs.get(name)
        return Phase.IDLE if run is None else run.phase

    def is_busy(self) -> bool:
        """Whether the engine has any connector."""
        return any(run.is_in_engine or run.phase is Phase.STOPPING for run in self._runs.values())

    # --- what the topics say ---

    def on_leading(self) -> Step:
        """This worker leads from now on: every connector is looked at, and what is left of deleted ones is cleared. If
        it led before, what it said of states is said again: some of it may not have been written."""
        self.leads = True
        again = [record for run in self._runs.values() for record in run.told.values()]
        gone = {*self._state.connector_statuses, *self._state.task_statuses} - set(self._state.connectors)
        step = self._joined(self.on_wanted(name) for name in [*self._state.connectors, *sorted(gone)])
        return Step([*again, *step.records], step.effects)

    def on_wanted(self, name: str) -> Step:
        """The connector's record, or its target state, was replayed."""
        if not self.leads:
            return Step([], [])
        run = self._runs.setdefault(name, _Run())
        connector = self._state.connectors.get(name)
        if run.phase is Phase.STOPPING:
            return Step([], [])
        if connector is None:
            return self._stop(name, run) if run.is_in_engine else self._forget(name, run)
        is_same = run.revision == connector.revision
        if connector.target is not TargetState.STARTED:
            return self._stop(name, run) if run.is_in_engine else self._rest(name, run)
        if run.phase is Phase.STARTED:
            return Step([], []) if is_same or run.config == connector.config else self._stop(name, run)
        if run.phase is Phase.FAILED and is_same:
            return Step([], [])
        return self._stop(name, run) if run.is_in_engine else self._start(name, run)

    def restart(self, name: str, *, connector: bool, task: bool) -> Step:
        """On request. A connector that could not start is started by either; one that runs, only by its task's."""
        run = self._runs.setdefault(name, _Run())
        if run.is_in_engine and task:
            step = self._stop(name, run)
            return Step([self._task(name, run, RunState.RESTARTING)], step.effects)
        if run.phase is Phase.FAILED and not run.is_in_engine and (connector or task):
            run.phase = Phase.IDLE
            return self.on_wanted(name)
        return Step([], [])

    # --- what the engine says ---

    def on_running(self, name: str, generation: int) -> Step:
        run = self._current(name, generation)
        if run is None or run.phase is not Phase.STARTED:
            return Step([], [])
        return Step([self._connector(name, run, RunState.RUNNING), self._task(name, run, RunState.RUNNING)], [])

    def on_failed(self, name: str, generation: int, trace: str, *, is_retried: bool) -> Step:
        run = self._current(name, generation)
        if run is None or run.phase is not Phase.STARTED:
            return Step([], [])
        if is_retried:
            return Step([self._task(name, run, RunState.RESTARTING, trace)], [])
        run.phase = Phase.FAILED
        return Step([self._task(name, run, RunState.FAILED, trace)], [])

    def on_stopped(self, name: str, generation: int) -> Step:
        """What it is to do by now decides what comes next."""
        run = self._current(name, generation)
        if run is None or run.phase is not Phase.STOPPING:
            return Step([], [])
        run.phase = Phase.IDLE
        return self.on_wanted(name)

    def on_topics(self, name: str, generation: int, topics: Iterable[str], now_ms: int) -> Step:
        """Records of these topics went through the connector."""
        if self._current(name, generation) is None:
            return Step([], [])
        known = self._state.topics.get(name, {})
        return Step([topic_record(name, topic, TASK, now_ms) for topic in topics if topic not in known], [])

    # --- the end ---

    def on_closing(self) -> Step:
        """The worker stops, or leads no more: everything is stopped, and nobody runs it."""
        self.leads = False
        records: list[LogRecord] = []
        effects: list[Effect] = []
        for name, run in self._runs.items():
            is_in_engine = run.is_in_engine
            if is_in_engine:
                effects.append(Stop(name))
            if run.phase is not Phase.IDLE:
                records.append(self._connector(name, run, RunState.UNASSIGNED))
                if run.shown is not None:
                    records.append(self._task(name, run, RunState.UNASSIGNED))
            run.told.clear()
            run.shown, run.revision = None, -1
            run.phase = Phase.STOPPING if is_in_engine or run.phase is Phase.STOPPING else Phase.IDLE
        return Step(records, effects)

    # --- steps ---

    def _start(self, name: str, run: _Run) -> Step:
        connector = self._state.connectors[name]
        run.revision, run.config = connector.revision, connector.config
        self._generation += 1
        run.generation = self._generation
        prepared = self._prepare(name, connector.config)
        if isinstance(prepared, Unusable):
            cleared = self._no_tasks(name, run)
            run.phase, run.version, run.shown = Phase.FAILED, None, None
            return Step([self._connector(name, run, RunState.FAILED, prepared.trace), *cleared], [])
        run.phase, run.version = Phase.STARTED, prepared.version
        task = {**connector.config, "task.class": prepared.task_class}
        records: list[LogRecord] = []
        if connector.tasks != (task,):
            records += tasks_records(name, [task], is_source=prepared.is_source)
        records += [
            task_status_record(name, number, None) for number, _ in self._state.tasks_of(name) if number != TASK
        ]
        records.append(self._connector(name, run, RunState.RUNNING))
        if run.shown is not RunState.RESTARTING:
            records.append(self._task(name, run, RunState.UNASSIGNED))
        return Step(records, [Start(name, prepared.config, run.generation)])

    def _stop(self, name: str, run: _Run) -> Step:
        run.phase = Phase.STOPPING
        return Step([], [Stop(name)])

    def _rest(self, name: str, run: _Run) -> Step:
        """Paused or stopped, and nothing of it runs."""
        connector = self._state.connectors[name]
        run.phase, run.revision = Phase.IDLE, -1
        if run.version is None:
            prepared = self._prepare(name, connector.config)
            run.version = None if isinstance(prepared, Unusable) else prepared.version
        if connector.target is TargetState.STOPPED:
            cleared = self._no_tasks(name, run)
            run.shown = None
            return Step([self._connector(name, run, RunState.STOPPED), *cleared], [])
        records = [self._connector(name, run, RunState.PAUSED)]
        if connector.tasks:
            records.append(self._task(name, run, RunState.PAUSED))
        else:
            records += self._no_tasks(name, run)
            run.shown = None
        return Step(records, [])

    def _forget(self, name: str, run: _Run) -> Step:
        self._runs.pop(name, None)
        records = self._no_tasks(name, run)
        records.append(connector_status_record(name, None))
        records += (topic_record(name, topic, TASK, None) for topic in self._state.topics.get(name, {}))
        return Step(records, [])

    def _no_tasks(self, name: str, run: _Run) -> list[LogRecord]:
        """Also of the task whose state is written and not yet read."""
        run.told.pop(task_status_record(name, TASK, None).key, None)
        numbers = {number for number, _ in self._state.tasks_of(name)} | ({TASK} if run.shown is not None else set())
        return [task_status_record(name, number, None) for number in sorted(numbers)]

    # --- records ---

    def _connector(self, name: str, run: _Run, state: RunState, trace: str | None = None) -> LogRecord:
        return self._tell(run, connector_status_record(name, self._status(run, state, trace)))

    def _task(self, name: str, run: _Run, state: RunState, trace: str | None = None) -> LogRecord:
        run.shown = state
        return self._tell(run, task_status_record(name, TASK, self._status(run, state, trace)))

    @staticmethod
    def _tell(run: _Run, record: LogRecord) -> LogRecord:
        run.told[record.key] = record
        return record

    def _status(self, run: _Run, state: RunState, trace: str | None) -> Status:
        return Status(state, self._worker_id, run.generation, trace, run.version)

    def _current(self, name: str, generation: int) -> _Run | None:
        run = self._runs.get(name)
        return run if run is not None and run.generation == generation else None

    @staticmethod
    def _joined(steps: Iterable[Step]) -> Step:
        records: list[LogRecord] = []
        effects: list[Effect] = []
        for step in steps:
            records += step.records
            effects += step.effects
        return Step(records, effects)
