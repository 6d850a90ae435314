"""A worker, put together: the topics, the lead, the connectors that run, and what the REST interface asks.

Theory of operation. Workers of one `group.id` elect a leader in a group of the type `connect`, which workers of Kafka
Connect's are members of too: the protocols differ, so a broker lets only one of the two kinds in. The leader decides on
changes and runs all connectors; the others follow the topics, answer what only reads, and pass changes on. A leader
begins its term by fencing the one before and reading the topics to their ends; then it starts what is to run.

Changes are decided on one after the other: a decision is written, and read back, before the next one is made. So each
rests on all before it, and a reply tells only of what is committed. Looking at the outside world (a database, a file
with a secret) is done before, aside from the loop.

The engine calls back from its own threads; `post` brings that to the loop.
"""

import logging
import traceback
from collections.abc import Callable, Coroutine, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar

from ottla.base.errors import OttlaError
from ottla.client.admin.asking import Asking
from ottla.client.admin.transaction_states import fence_producers
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.errors import ClientClosed, KafkaError
from ottla.client.promise import Promise
from ottla.client.world import ClientWorld
from ottla.config.scopes import Scope
from ottla.connect.engine_port import ConnectorSpec, Engine, Measured
from ottla.connect.options import InvalidOption
from ottla.connect.worker import decisions, sink_offsets
from ottla.connect.worker.config_providers import ConfigProviders
from ottla.connect.worker.decisions import Decision, OffsetChange, RestartPlan
from ottla.connect.worker.log_levels import LEVELS, LogLevels
from ottla.connect.worker.plugins import ConnectorPlugin, Plugins, task_class_of
from ottla.connect.worker.records import (
    ConnectorConfig,
    Fact,
    LoggerLevel,
    Target,
    TargetState,
    Topic,
    logger_record,
)
from ottla.connect.worker.refusals import Refused, bad_request, no_leader, no_status, not_stopped, timed_out
from ottla.connect.worker.runs import TASK, Phase, Prepared, Runs, Start, Step, Stop, Unusable
from ottla.connect.worker.secrets import Secrets, secrets_of
from ottla.connect.worker.settings import WorkerSettings
from ottla.connect.worker.shared_log import LeadLost, SharedLog
from ottla.connect.worker.state import Config, Connector, State
from ottla.connect.worker.topics import WantedTopic, prepare_topic
from ottla.connect.worker.validation import Report, find_plugin, require_valid, validate
from ottla.registry.election import Election, ElectionSettings, Identity

_log = logging.getLogger(__name__)

PROTOCOL_TYPE: Final = "connect"
PROTOCOL: Final = "ottla"
REQUEST_MS: Final = 90_000
MOST_BYTES: Final = 900_000
"""Of a record: less than brokers take unless they are told otherwise (`message.max.bytes`)."""
_TRACE_HEAD: Final = 8_000
_TRACE_TAIL: Final = 24_000
_TOPICS_S: Final = 60.0
_FENCE_S: Final = 20.0
_TAKE_OVER_MS: Final = 10_000
_STOPPING_MS: Final = 30_000
_LOOK_MS: Final = 50

ResultT = TypeVar("ResultT")


class NotLeader(OttlaError):
    """Another worker has to decide: the request is passed on to it."""


class Change(NamedTuple):
    """A connector after it was created or changed."""

    connector: Connector
    is_new: bool


@dataclass(slots=True)
class Starts:
    """How often this worker has started connectors. A connector has one task, which starts with it."""

    attempts: int = 0
    successes: int = 0
    failures: int = 0


class Worker:
    """`identity` is how others reach its REST interface. Everything happens on one loop."""

    def __init__(
        self,
        world: ClientWorld,
        post: Callable[[Callable[[], None]], None],
        settings: WorkerSettings,
        plugins: Plugins,
        engine: Engine,
        providers: ConfigProviders,
        levels: LogLevels,
        identity: Identity,
        version: str,
    ) -> None:
        self.world = world
        self.settings = settings
        self.plugins = plugins
        self.version = version
        self.levels = levels
        self.providers = providers
        self.identity = identity
        self.worker_id = f"{identity.host}:{identity.port}"
        self.state = State()
        self.starts = Starts()
        self.is_loaded = False
        self.why_not_ready = "Worker is still starting up."
        self._post = post
        self._engine = engine
        self._cluster = Cluster(world, settings.client_settings(Scope.ADMIN))
        self._asking = Asking(self._cluster)
        self._log = SharedLog(
            world,
            settings.client_settings(Scope.CONSUMER),
            settings.client_settings(Scope.PRODUCER),
            settings.topics,
            self.state,
            self._on_fact,
        )
        self._log.on_lost = self._on_lost
        self._runs = Runs(self.state, self.worker_id, self._prepare)
        self._secrets: dict[str, Secrets] = {}
        self._changed: dict[str, None] = {}
        self._leader: Identity | None = None
        self._leads = False
        self._term = 0
        self._leading: Promise[None] = Promise.resolved(None)
        self._last_change: Promise[None] = Promise.resolved(None)
        self._is_closed = False
        self.election: Election | None = None
        if not settings.is_standalone:
            self.election = Election(
                self._cluster, Coordinators(self._cluster), self._election_settings(), identity, self._on_leader
            )

    def _election_settings(self) -> ElectionSettings:
        values = self.settings.values
        return ElectionSettings(
            values.text("group.id"),
            values.integer("session.timeout.ms"),
            values.integer("rebalance.timeout.ms"),
            values.integer("heartbeat.interval.ms"),
            PROTOCOL_TYPE,
            PROTOCOL,
            "worker",
        )

    # --- the beginning and the end ---

    async def load(self) -> None:
        """Reads the topics. Raises `KafkaError`, `TimeoutError` or `UnusableTopic`."""
        counts: dict[Topic, int] = {}
        for topic, name in self.settings.topics.items():
            if name is not None:
                self.why_not_ready = f"Worker is still starting up: the topic {name} is looked for."
                counts[topic] = await prepare_topic(self._cluster, self._wanted_topic(topic, name), _TOPICS_S)
        self.why_not_ready = "Worker is still starting up: its topics are read."
        await self._log.load(counts)
        self.is_loaded = True
        self.why_not_ready = ""

    def _wanted_topic(self, topic: Topic, name: str) -> WantedTopic:
        prefix = topic.value.removesuffix(".topic")
        values = self.settings.values
        is_single = topic is Topic.CONFIGS
        partitions = 1 if is_single else values.integer(f"{prefix}.partitions")
        return WantedTopic(
            topic.value, name, partitions, values.integer(f"{prefix}.replication.factor"), is_single=is_single
        )

    def start(self) -> None:
        """Takes part in the election from now on, or leads at once if it stands alone."""
        if self.election is not None:
            self.election.start()
        else:
            self._begin_term()

    async def stop(self) -> None:
        """Stops the connectors, says so, and gives the lead up. The engine is closed by its owner after that."""
        step = self._runs.on_closing()
        self._do(Step([], step.effects))
        ends_s = self.world.now_s() + _STOPPING_MS / 1000
        while self._runs.is_busy() and self.world.now_s() < ends_s:
            await self.world.sleep(_LOOK_MS)
        if step.records and self._log.may_write:
            try:
                await self._log.write(step.records)
            except (LeadLost, KafkaError) as problem:
                _log.warning("the states of connectors could not be written at the end: %s", problem)
        self._end_term("the worker stops")
        if self.election is not None:
            await self.election.stop()
        self.close()

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._term += 1
            self._log.close()
            self._cluster.close()

    # --- leading ---

    @property
    def leads(self) -> bool:
        return self._leads

    @property
    def leader(self) -> Identity | None:
        return self._leader

    @property
    def cluster_id(self) -> str | None:
        return self._cluster.view.cluster_id

    def _on_leader(self, leader: Identity | None, is_self: bool) -> None:
        before, self._leader = self._leader, leader
        if is_self:
            if not self._leads and self._leading.is_done:
                self._begin_term()
            return
        if (leader and leader.url) != (before and before.url):
            _log.info("%s leads", "no worker" if leader is None else f"the worker at {leader.url}")
        self._end_term("another worker leads")

    def _begin_term(self) -> None:
        if self._leading.is_done:
            self._leading = Promise()
        self._leads = False
        self._term += 1
        self.world.start(self._take_over(self._term))

    async def _take_over(self, term: int) -> None:
        failures = 0
        while term == self._term:
            try:
                await self._log.lead()
                await self._log.to_end()
            except ClientClosed:
                return
            except (KafkaError, TimeoutError) as problem:
                if term == self._term:
                    _log.warning("cannot take the lead: %s; trying again", problem)
                await self.world.sleep(self._cluster.backoff.after(failures, self.world.entropy))
                failures += 1
                continue
            if term != self._term:
                return
            self._leads = True
            _log.info("this worker leads and runs the connectors: %d", len(self.state.connectors))
            self._leading.resolve_if_waiting(None)
            self._changed.clear()
            self._do(self._runs.on_leading())
            return

    def _end_term(self, why: str) -> None:
        if self._leads:
            _log.info("this worker does not lead any more: %s", why)
        self._term += 1
        self._leads = False
        self._do(Step([], self._runs.on_closing().effects))
        self._log.give_up(why)
        self._leading.resolve_if_waiting(None)

    def _on_lost(self, why: str) -> None:
        """A transaction has failed for good. If this worker is still the elected one, it takes the next epoch, and its
        connectors run on meanwhile."""
        _log.warning("writing to the worker's topics failed: %s", why)
        if self._is_closed:
            return
        if self.election is None or self.election.leads:
            self._begin_term()
        else:
            self._end_term(why)

    # --- connectors ---

    def _on_fact(self, fact: Fact) -> None:
        if isinstance(fact, LoggerLevel):
            level = fact.level.upper()
            if self.is_loaded and level in LEVELS:
                self.levels.set(fact.logger, level, self.world.clock.now_ms())
        elif isinstance(fact, ConnectorConfig | Target):
            if not self._changed:
                self.world.timers.after(0, self._look_at_changed)  # What is replayed in one turn is looked at once.
            self._changed[fact.name] = None

    def _look_at_changed(self) -> None:
        changed, self._changed = self._changed, {}
        if self._leads:
            for name in changed:
                self._do(self._runs.on_wanted(name))

    def _prepare(self, name: str, config: Config) -> Prepared | Unusable:
        values: dict[str, str] = {}
        try:
            plugin = find_plugin(self.plugins, config)
            resolved = self.providers.resolved(config, values)
            rows = plugin.load().settings
        except (Refused, InvalidOption) as problem:
            return Unusable(shortened(f"connector {name} cannot be started: {problem}"))
        except Exception:
            return Unusable(shortened(f"connector {name} cannot be started:\n{traceback.format_exc()}"))
        self._secrets[name] = secrets_of(config, resolved, rows, values)
        resolved["name"] = name
        return Prepared(resolved, task_class_of(plugin.class_name), plugin.type == "source", plugin.version)

    def _do(self, step: Step) -> None:
        if step.records:
            self._log.write(step.records).on_done(self._on_states_written)
        for effect in step.effects:
            if isinstance(effect, Start):
                spec = ConnectorSpec(effect.name, effect.config, self.settings.properties, effect.generation)
                _log.info("starting connector %s (start %d)", effect.name, effect.generation)
                listening = _Listening(self, effect.generation)
                self.starts.attempts += 1
                try:
                    self._engine.start(spec, listening)
                except Exception:
                    _log.exception("connector %s could not be given to the engine", effect.name)
                    listening.on_failed(effect.name, traceback.format_exc(), retry_in_s=None)
            else:
                assert isinstance(effect, Stop)
                _log.info("stopping connector %s", effect.name)
                self._engine.stop(effect.name)

    def _on_states_written(self, done: "Promise[Any]") -> None:
        if done.error is not None and not isinstance(done.error, LeadLost | ClientClosed):
            _log.warning("the state of a connector could not be written: %s", done.error)

    def from_engine(self, name: str, event: Callable[[], Step]) -> None:
        """Called from any thread."""

        def happen() -> None:
            if not self._is_closed:
                self._do(event())

        with suppress(RuntimeError):  # The loop is closed: the worker has ended, and the engine with it.
            self._post(happen)

    def hidden(self, name: str, text: str) -> str:
        """Without the connector's secrets."""
        secrets = self._secrets.get(name)
        return text if secrets is None else secrets.hidden_in(text)

    @property
    def runs(self) -> Runs:
        return self._runs

    # --- changes ---

    async def change(self, decide: Callable[[], Decision]) -> Decision:
        """Decides after all decisions before, writes, and reads back. Raises `Refused` or `NotLeader`."""

        async def decided() -> Decision:
            decision = decide()
            if any(len(record.key) + len(record.value or b"") > MOST_BYTES for record in decision.records):
                raise bad_request(f"The request makes a record of more than {MOST_BYTES} bytes, which topics refuse")
            try:
                if decision.records:
                    await self._log.reached(await self._log.write(decision.records))
                    self._look_at_changed()
            except LeadLost:
                raise no_leader() from None
            except (KafkaError, TimeoutError) as problem:
                raise Refused(500, f"Error writing connector configuration to Kafka: {problem}") from None
            return decision

        return await self._in_turn(decided)

    async def _in_turn(self, work: Callable[[], Coroutine[Any, Any, ResultT]]) -> ResultT:
        """After all changes before, and before all that come."""
        await self._must_lead()
        before, mine = self._last_change, Promise[None]()
        self._last_change = mine
        try:
            await before
            if not self._leads:
                raise NotLeader
            return await work()
        finally:
            mine.resolve(None)

    async def _must_lead(self) -> None:
        """Raises `NotLeader`. Waits while this worker takes over."""
        if not self._leads and not self._leading.is_done:
            await self.world.within(self._leading, _TAKE_OVER_MS, no_leader)
        if not self._leads:
            raise NotLeader

    async def _aside(self, work: Callable[[], ResultT]) -> ResultT:
        late = timed_out("looking at a configuration")
        return await self.world.within(self.world.aside(work), REQUEST_MS, lambda: late)

    async def validated(self, config: Config, *, asks_world: bool = True) -> Report:
        """Raises `Refused`."""
        return await self._aside(lambda: self._validate(config, asks_world))

    def _validate(self, config: Config, asks_world: bool) -> Report:
        find_plugin(self.plugins, config)
        values: dict[str, str] = {}
        try:
            resolved = self.providers.resolved(config, values)
        except InvalidOption as problem:
            raise bad_request(str(problem)) from None
        report = validate(self.plugins, self.settings.properties, resolved, self.version, asks_world=asks_world)
        secrets = secrets_of(config, resolved, report.plugin.load().settings, values)
        return report._replace(
            checked=[
                one._replace(
                    value=config.get(one.row.name)
                    if one.value is not None and _refers(config, one.row.name)
                    else one.value,
                    errors=[secrets.hidden_in(error) for error in one.errors],
                )
                for one in report.checked
            ]
        )

    async def create(self, name: str, config: Config, target: TargetState | None) -> Change:
        """Raises `Refused`."""
        await self._must_lead()
        require_valid(await self.validated(config))
        await self.change(lambda: decisions.create(self.state, name, config, target))
        return Change(self._known(name), True)

    async def put_config(self, name: str, config: Config) -> Change:
        """Raises `Refused`."""
        await self._must_lead()
        require_valid(await self.validated(config))
        decision = await self.change(lambda: decisions.put_config(self.state, name, config))
        return Change(self._known(name), decision.is_new)

    async def patch_config(self, name: str, changes: Config) -> Change:
        """Raises `Refused`. Another change may come while the patched configuration is validated: then that one is
        patched, so that neither is lost, and a connector that was deleted is not made again."""
        await self._must_lead()
        while True:
            merged = decisions.patched(self.state, name, changes)
            require_valid(await self.validated(merged))
            decided = partial(decisions.patch_config, self.state, name, changes, merged)
            if (await self.change(decided)).records:
                return Change(self._known(name), False)

    async def delete(self, name: str) -> None:
        await self.change(lambda: decisions.delete(self.state, name))

    async def set_target(self, name: str, target: TargetState) -> None:
        await self.change(lambda: decisions.set_target(self.state, name, target))

    async def reset_topics(self, name: str) -> None:
        await self.change(lambda: decisions.reset_topics(self.state, name))

    async def set_logger(self, logger: str, level: str) -> None:
        """For all workers."""
        await self.change(lambda: Decision([logger_record(logger, level)]))

    def _known(self, name: str) -> Connector:
        connector = self.state.connectors.get(name)
        if connector is None:
            raise no_status(name)  # Deleted in the same moment.
        return connector

    # --- restarts ---

    async def restart(self, name: str, *, include_tasks: bool, only_failed: bool) -> RestartPlan:
        await self._must_lead()
        plan = decisions.plan_restart(self.state, name, include_tasks=include_tasks, only_failed=only_failed)
        self._do(self._runs.restart(name, connector=plan.restarts_connector, task=bool(plan.tasks)))
        return plan

    async def restart_task(self, name: str, task: int) -> None:
        await self._must_lead()
        decisions.check_task(self.state, name, task)
        self._do(self._runs.restart(name, connector=False, task=True))

    # --- offsets ---

    async def offsets(self, name: str) -> list[dict[str, Any]]:
        """Raises `Refused`."""
        connector = decisions.known(self.state, name)
        if self.type_of_config(connector.config) == "sink":
            group = sink_offsets.group_of(name, connector.config)
            found: list[dict[str, Any]] = await self._asked(sink_offsets.listed(self._asking, group))
            return found
        await self._asked(self._log.to_end(Topic.OFFSETS))
        from json import loads

        known = self.state.offsets.get(name, {})
        return [{"partition": loads(partition), "offset": offset} for partition, offset in known.items()]

    async def alter_offsets(self, name: str, changes: Sequence[OffsetChange]) -> None:
        connector = await self._stopped(name)
        if self.type_of_config(connector.config) == "sink":
            read = sink_offsets.read_changes(changes)
            await self._change_group(name, lambda group: sink_offsets.alter(self._asking, name, group, read))
        else:
            await self._change_offsets(name, lambda: decisions.alter_source_offsets(self.state, name, changes))

    async def reset_offsets(self, name: str) -> None:
        connector = await self._stopped(name)
        if self.type_of_config(connector.config) == "sink":
            await self._change_group(name, lambda group: sink_offsets.reset(self._asking, name, group))
        else:
            await self._change_offsets(name, lambda: decisions.reset_source_offsets(self.state, name))

    async def _stopped(self, name: str) -> Connector:
        """The connector, if nothing of it runs. Raises `Refused`."""
        await self._must_lead()
        await self._asked(self._log.to_end())
        return self._check_stopped(name)

    def _check_stopped(self, name: str) -> Connector:
        """States say what was written of it, and runs what the engine has, which may not have said anything yet."""
        connector = decisions.check_stopped(self.state, name)
        if self._runs.phase_of(name) in (Phase.STARTED, Phase.STOPPING):
            raise not_stopped(name)
        return connector

    async def _change_group(self, name: str, change: Callable[[str], Coroutine[Any, Any, None]]) -> None:
        """In its turn, so that nobody resumes the sink meanwhile."""

        async def changed() -> None:
            group = sink_offsets.group_of(name, self._check_stopped(name).config)
            await self._asked(change(group))

        await self._in_turn(changed)

    async def _change_offsets(self, name: str, decide: Callable[[], Decision]) -> None:
        """Of a source. Whoever still writes for it, on a worker that was taken for dead, is fenced before (KIP-875),
        and what it committed is read."""
        writer = f"{self.settings.values.text('group.id')}-{name}-{TASK}"
        await self._asked(self._fence(writer))
        await self._asked(self._log.to_end())

        def stopped() -> Decision:
            self._check_stopped(name)
            return decide()

        await self.change(stopped)

    async def _fence(self, writer: str) -> None:
        (await fence_producers(self._asking, [writer], timeout=_FENCE_S)).raise_first()

    async def _asked(self, asking: Any) -> Any:
        try:
            return await asking
        except (KafkaError, TimeoutError) as problem:
            raise Refused(500, f"Kafka could not be asked: {problem}") from None

    # --- asking ---

    def type_of(self, name: str) -> str:
        """`source`, `sink`, or `unknown` for a class that is not here."""
        connector = self.state.connectors.get(name)
        return "unknown" if connector is None else self.type_of_config(connector.config)

    def progress(self, name: str) -> Measured | None:
        """How far a connector is that runs here; None where nobody knows."""
        return self._engine.progress(name)

    def type_of_config(self, config: Config) -> str:
        plugin = self._plugin_of(config)
        return "unknown" if plugin is None else plugin.type

    def _plugin_of(self, config: Config) -> ConnectorPlugin | None:
        try:
            return find_plugin(self.plugins, config)
        except Refused:
            return None


def _refers(config: Config, name: str) -> bool:
    return "${" in (config.get(name) or "")


def shortened(trace: str) -> str:
    """Its beginning and its end: a record that no topic takes would cost the lead, again and again. Half of a surrogate
    pair, as in the name of a file that is not UTF-8, is written as an escape: no topic takes it either."""
    trace = trace.encode(errors="backslashreplace").decode()
    if len(trace) <= _TRACE_HEAD + _TRACE_TAIL:
        return trace
    left_out = len(trace) - _TRACE_HEAD - _TRACE_TAIL
    return f"{trace[:_TRACE_HEAD]}\n… {left_out} characters are left out …\n{trace[-_TRACE_TAIL:]}"


class _Listening:
    """The port `EngineListener`, of one start."""

    def __init__(self, worker: Worker, generation: int) -> None:
        self._worker = worker
        self._generation = generation
        self._is_counted = False
        """Whether it is known how the start went."""

    def _count(self, *, has_failed: bool) -> None:
        if not self._is_counted:
            self._is_counted = True
            self._worker.starts.failures += has_failed
            self._worker.starts.successes += not has_failed

    def on_running(self, name: str) -> None:
        runs = self._worker.runs

        def running() -> Step:
            self._count(has_failed=False)
            return runs.on_running(name, self._generation)

        self._worker.from_engine(name, running)

    def on_failed(self, name: str, trace: str, *, retry_in_s: float | None) -> None:
        runs = self._worker.runs

        def failed() -> Step:
            self._count(has_failed=True)
            shown = shortened(self._worker.hidden(name, trace))
            last = shown.strip().rpartition("\n")[2]
            if retry_in_s is None:
                _log.error("connector %s failed: %s", name, last)
            else:
                _log.warning("connector %s failed: %s; next try in %.1f s", name, last, retry_in_s)
            return runs.on_failed(name, self._generation, shown, is_retried=retry_in_s is not None)

        self._worker.from_engine(name, failed)

    def on_stopped(self, name: str) -> None:
        runs = self._worker.runs
        self._worker.from_engine(name, lambda: runs.on_stopped(name, self._generation))

    def on_topics(self, name: str, topics: Iterable[str]) -> None:
        worker, given = self._worker, tuple(topics)
        worker.from_engine(
            name, lambda: worker.runs.on_topics(name, self._generation, given, worker.world.clock.now_ms())
        )
