"""A registry, put together: the driver on the cluster, the API on its state, and the front at its listeners.

It is given its world, as a node is: network, timers, clock, workers and chance. So it runs in a process of its own,
inside a node, and in the simulator, by the same lines. `start` and `stop` are run as a `Procedure`.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ottla.base.ports import Dialer
from ottla.client.http.http_client import HttpClient, HttpLimits
from ottla.client.promise import Promise, spawn
from ottla.client.protection import Protection
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld
from ottla.config.scopes import Scope
from ottla.registry.api import ApiSettings
from ottla.registry.decisions import Command
from ottla.registry.driver import Driver
from ottla.registry.election import Identity
from ottla.registry.forwarding import LeaderForwarder
from ottla.registry.front import Front, Gate, bad_http, error_body
from ottla.registry.metrics import metrics_page
from ottla.registry.settings import Listener, RegistrySettings
from ottla.registry.state import State
from ottla.registry.texts import Texts
from ottla.registry.topic import prepare_topic
from ottla.runtime.exposition import CONTENT_TYPE
from ottla.runtime.http.http_server import Caller, HttpServer, Respond
from ottla.runtime.http.pages import in_pieces
from ottla.runtime.procedure import wait_for, wait_until
from ottla.runtime.world import World
from ottla.security.sasl.jwt import FindKey
from ottla.wire.http import HttpRequest, response_bytes, response_head

_log = logging.getLogger(__name__)

PLATFORM: Final = "8.1.0"
"""The version of Confluent's API that is served."""
_DRAIN_S: Final = 5.0
_LOOK_AGAIN_S: Final = 0.05
_ANY_HOST: Final = ("0.0.0.0", "::", "")

ResultT = TypeVar("ResultT")


async def kept(promise: Promise[ResultT]) -> ResultT:
    """Waits for a promise, in a `Procedure`."""

    def begin(done: Callable[[ResultT], None], failed: Callable[[Exception], None]) -> None:
        def settle(settled: Promise[Any]) -> None:
            if settled.error is not None:
                failed(settled.error)
            else:
                done(settled.value())

        promise.on_done(settle)

    return await wait_for(begin)


class Registry:
    """`version` is the program's. `make_keys` gives the keys of tokens that are at a URL."""

    def __init__(
        self,
        world: World,
        settings: RegistrySettings,
        *,
        version: str = "",
        make_keys: Callable[[str], FindKey] | None = None,
    ) -> None:
        self._world = world
        self._settings = settings
        self._version = version
        self._make_keys = make_keys
        self.addresses: list[Listener] = []
        self._texts = Texts(world.workers, most_kept=settings.values.integer("schema.cache.size"))
        self._api_settings = settings.api
        consumer = settings.client_settings(Scope.CONSUMER)
        self._client_world = _client_world(world, self._kafka_dialer(consumer))
        self._plain_world = _client_world(world, world.network)
        self._server = HttpServer(
            world.network, world.timers, self._handle, settings.http, lambda status, reason: bad_http(status, reason)
        )
        self._began_s = world.timers.now_s()
        self._driver: Driver | None = None
        self._front: Front | None = None
        self._http: HttpClient | None = None
        self._gate: Gate | None = None
        self._stopping: str = ""
        self.why_not_ready = "the registry starts"

    # --- what the API asks ---

    @property
    def driver(self) -> Driver:
        assert self._driver is not None, "there is a driver once the registry is bound"
        return self._driver

    @property
    def state(self) -> State:
        return self.driver.state

    @property
    def texts(self) -> Texts:
        return self._texts

    @property
    def settings(self) -> ApiSettings:
        return self._api_settings

    def change(self, command: Command[Any]) -> Promise[Any]:
        return self.driver.change(command)

    def about(self, what: str) -> Any:
        driver = self.driver
        if what == "id":
            clusters = {
                "kafka-cluster": driver.cluster.view.cluster_id or "",
                "schema-registry-cluster": self._settings.values.text("schema.registry.group.id"),
            }
            return {"scope": {"path": [], "clusters": clusters}, "id": ""}
        if what == "version":
            return {"version": PLATFORM, "commitId": f"ottla-{self._version}" if self._version else "ottla"}
        if what == "deployment":
            return {"attributes": []}
        if what == "master_available":
            return {"master_available": driver.leads or driver.leader is not None}
        assert what == "_health"
        return self._health()

    def _health(self) -> dict[str, Any]:
        """As Karapace tells it."""
        driver = self.driver
        leader = driver.leader
        return {
            "karapace_version": f"ottla {self._version}".strip(),
            "status": {
                "schema_registry_ready": driver.is_loaded,
                "schema_registry_startup_time_sec": driver.loading_s,
                "schema_registry_reader_current_offset": driver.next_offset - 1,
                "schema_registry_reader_highest_offset": max(driver.end_offset, driver.next_offset) - 1,
                "schema_registry_is_primary": driver.leads,
                "schema_registry_is_primary_eligible": self._settings.is_eligible,
                "schema_registry_primary_url": None if leader is None else leader.url,
                "schema_registry_coordinator_running": driver.election.generation >= 0,
                "schema_registry_coordinator_generation_id": driver.election.generation,
            },
            "healthy": driver.is_loaded,
        }

    # --- the beginning ---

    async def start(self) -> None:
        """Raises `OttlaError`, `OSError` or `TimeoutError` in one clear line when it cannot."""
        for warning in self._settings.warnings:
            _log.warning("%s", warning)
        self._bind()
        driver = self._driver = self._make_driver()
        self._gate = self._make_gate(driver)
        plain_client = self._http = HttpClient(self._plain_world, self._forwarding_limits(), self._https_dialer())
        forwarder = LeaderForwarder(
            self._plain_world,
            plain_client,
            leader=lambda: driver.leader,
            leads=lambda: driver.election.leads,
            own_url=lambda: driver.election.identity.url,
        )
        self._front = Front(
            self,
            forwarder,
            self._gate,
            {
                "/metrics": lambda request, respond: self._metrics(forwarder, request, respond),
                "/healthz": self._healthz,
                "/readyz": self._readyz,
            },
            self._world.timers.now_s,
        )
        self._server.start_accepting()
        await kept(spawn(self._load(driver)))
        self.why_not_ready = ""
        driver.start()

    def _bind(self) -> None:
        for listener in self._settings.listeners:
            try:
                host, port = self._server.listen(listener.host, listener.port, str(listener), self._secure(listener))
            except OSError as problem:
                raise OSError(problem.errno, f"cannot listen on {listener}: {problem.strerror}") from problem
            self.addresses.append(Listener(listener.scheme, host, port))

    def _secure(self, listener: Listener) -> Any:
        if listener.scheme == "http":
            return None
        from ottla.registry.listener_tls import ListenerTls

        tls = ListenerTls(self._world, self._settings.values, self._server)
        return tls.secure(str(listener))

    def _identity(self) -> Identity:
        values = self._settings.values
        scheme = values.text("inter.instance.protocol")
        listener = next(one for one in reversed(self.addresses) if one.scheme == scheme)
        host = values.text("host.name")
        if not host:
            host = self._world.host_names.own_name() if listener.host in _ANY_HOST else listener.host
        return Identity(host, values.integer("host.port") or listener.port, scheme, self._settings.is_eligible)

    def _make_driver(self) -> Driver:
        settings = self._settings
        return Driver(
            self._client_world,
            settings.client_settings(Scope.CONSUMER),
            settings.client_settings(Scope.ADMIN),
            settings.driver,
            self._identity(),
            self._texts,
            self._on_changed,
        )

    def _make_gate(self, driver: Driver) -> Gate | None:
        values = self._settings.values
        if values.text("authentication.method").upper() == "NONE" and values.text("ssl.client.auth") == "none":
            return None
        from ottla.registry.security import make_gate

        return make_gate(self._world, self._client_world, self._settings, driver.cluster, self._make_keys)

    def _on_changed(self) -> None:
        if self._front is not None:
            self._front.on_state_changed()

    async def _load(self, driver: Driver) -> None:
        values = self._settings.values
        timeout_s = values.integer("kafkastore.init.timeout.ms") / 1000
        topic = values.text("kafkastore.topic")
        if not values.flag("kafkastore.topic.skip.validation"):
            self.why_not_ready = f"the topic {topic} is looked for"
            await prepare_topic(driver.cluster, topic, values.integer("kafkastore.topic.replication.factor"), timeout_s)
        self.why_not_ready = f"the topic {topic} is read"
        await driver.load(timeout_s)

    # --- connecting ---

    def _kafka_dialer(self, settings: ClientSettings) -> Dialer:
        if not Protection.of(settings).has_tls:
            return self._world.network
        from ottla.registry.listener_tls import tls_dialer

        return tls_dialer(self._world.network, settings)

    def _https_dialer(self) -> Dialer | None:
        if not any(one.scheme == "https" for one in self._settings.listeners):
            return None
        from ottla.registry.listener_tls import tls_dialer

        return tls_dialer(self._world.network, self._settings.values)

    def _forwarding_limits(self) -> HttpLimits:
        values = self._settings.values
        return HttpLimits(
            connect_ms=values.integer("leader.connect.timeout.ms"), read_ms=values.integer("leader.read.timeout.ms")
        )

    # --- requests ---

    def _handle(self, request: HttpRequest, caller: Caller, respond: Respond) -> None:
        front = self._front
        assert front is not None, "nobody is let in before"
        if self.why_not_ready and request.path not in ("/healthz", "/readyz", "/metrics"):
            body = error_body(50001, f"The registry is not ready: {self.why_not_ready}")
            respond(response_bytes(503, body, "application/vnd.schemaregistry.v1+json"))
            return
        front.handle(request, caller, respond)

    def _healthz(self, request: HttpRequest, respond: Respond) -> None:
        _plain(request, respond, 200, "ok\n")

    def _readyz(self, request: HttpRequest, respond: Respond) -> None:
        driver = self.driver
        why = self._stopping or self.why_not_ready
        if not why and driver.leader is None and not driver.leads:
            why = "no registry leads: schemas can be read and not registered"
        _plain(request, respond, 503 if why else 200, f"{why or 'ready'}\n")

    def _metrics(self, forwarder: LeaderForwarder, request: HttpRequest, respond: Respond) -> None:
        assert self._front is not None
        page = metrics_page(self.driver, self._front, self._server, self._texts, forwarder)
        is_head = request.method == "HEAD"

        def failed(problem: Exception) -> None:
            self._server.on_fault("the metrics page", problem)
            _plain(request, respond, 500, "the metrics page failed; the log says why\n")

        in_pieces(
            self._world.timers,
            page,
            lambda body: respond(response_head(200, sum(map(len, body)), CONTENT_TYPE), *(() if is_head else body)),
            failed,
        )

    def summary(self) -> dict[str, str]:
        """What a person wants to know once it is up."""
        return {
            "address": ", ".join(map(str, self.addresses)),
            "topic": self._settings.values.text("kafkastore.topic"),
            "group": self._settings.values.text("schema.registry.group.id"),
        }

    # --- the end ---

    async def stop(self) -> None:
        """A clean stop: another leads at once, and replies that are owed are given."""
        _log.info("stopping")
        self._stopping = "the registry stops"
        self._server.stop_listening()
        timers = self._world.timers
        deadline_s = timers.now_s() + _DRAIN_S
        while not self._server.drain() and timers.now_s() < deadline_s:
            await wait_until(lambda done: timers.after(_LOOK_AGAIN_S, done))
        if self._driver is not None:
            await kept(spawn(self._driver.stop()))
        self.abandon()

    def abandon(self) -> None:
        """Lets go of everything at once."""
        self._server.close()
        if self._driver is not None:
            self._driver.close()
        if self._http is not None:
            self._http.close()


def _plain(request: HttpRequest, respond: Respond, status: int, text: str) -> None:
    is_head = request.method == "HEAD"
    respond(response_bytes(status, text.encode(), "text/plain; charset=utf-8", is_head=is_head))


def _client_world(world: World, dialer: Dialer) -> ClientWorld:
    def aside(work: Callable[[], ResultT]) -> Promise[ResultT]:
        promise: Promise[ResultT] = Promise()
        world.workers.run(work, promise.resolve, promise.reject)
        return promise

    def report(problem: Exception) -> None:
        _log.error("a client of the registry failed", exc_info=problem)

    return ClientWorld(world.clock, world.timers, world.entropy, dialer, report, aside)
