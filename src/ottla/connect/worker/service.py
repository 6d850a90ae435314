"""A worker at its address: listeners, the REST interface, and its start and stop, in a world that it is given.

`start` and `stop` are run as a `Procedure`. The engine is closed last, aside from the loop: it waits for Spark.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from ottla.base.ports import Dialer
from ottla.client.http.http_client import HttpClient, HttpLimits
from ottla.client.promise import Promise, spawn
from ottla.client.protection import Protection
from ottla.client.settings import ClientSettings
from ottla.client.world import ClientWorld
from ottla.config.parse import parse
from ottla.config.scopes import Scope, settings
from ottla.config.values import Value
from ottla.connect.engine_port import Engine
from ottla.connect.rest.front import Front, bad_http
from ottla.connect.rest.login import make_login
from ottla.connect.worker.config_providers import ConfigProviders
from ottla.connect.worker.log_levels import LogLevels
from ottla.connect.worker.os_files import OsFiles
from ottla.connect.worker.plugins import Plugins
from ottla.connect.worker.settings import Listener, WorkerSettings
from ottla.connect.worker.worker import Worker
from ottla.registry.election import Identity
from ottla.registry.listener_tls import ListenerTls, tls_dialer
from ottla.registry.registry import kept
from ottla.runtime.http.http_server import Caller, HttpServer, Respond
from ottla.runtime.procedure import wait_for, wait_until
from ottla.runtime.world import World
from ottla.security.sasl.jwt import FindKey
from ottla.wire.http import HttpRequest

_log = logging.getLogger(__name__)

_ANY_HOST: Final = ("0.0.0.0", "::", "")
_DRAIN_S: Final = 2.0
_LOOK_AGAIN_S: Final = 0.05
_HTTPS: Final = "listeners.https."

ResultT = TypeVar("ResultT")


def no_keys(url: str) -> FindKey:
    raise ValueError("tokens cannot be checked here")


class WorkerService:
    """`post` calls on the loop from any thread. `on_loaded` is called when the topics are read, before it leads."""

    def __init__(
        self,
        world: World,
        post: Callable[[Callable[[], None]], None],
        worker_settings: WorkerSettings,
        plugins: Plugins,
        engine: Engine,
        version: str,
        environment: Mapping[str, str],
        on_loaded: Callable[[Worker], None] = lambda worker: None,
        make_keys: Callable[[str], FindKey] = no_keys,
    ) -> None:
        """`make_keys` gives the keys of tokens that are at a URL. Raises `InvalidOption` or `ConfigError`."""
        self._world = world
        self._post = post
        self._settings = worker_settings
        self._plugins = plugins
        self._engine = engine
        self._version = version
        self._on_loaded = on_loaded
        self._login = make_login(world, worker_settings.properties, self._asks_for_certificates(), make_keys)
        self._providers = ConfigProviders(worker_settings.properties, OsFiles(), environment)
        self._client_world = _client_world(world, self._kafka_dialer(worker_settings.client_settings(Scope.CONSUMER)))
        self._server = HttpServer(world.network, world.timers, self._handle, on_bad=bad_http)
        self.addresses: list[Listener] = []
        self._worker: Worker | None = None
        self._front: Front | None = None
        self._client: HttpClient | None = None

    @property
    def worker(self) -> Worker:
        assert self._worker is not None, "there is a worker once its listeners are bound"
        return self._worker

    async def start(self) -> None:
        """Raises `OttlaError`, `OSError` or `TimeoutError` in one clear line when it cannot."""
        self._bind()
        worker = self._worker = Worker(
            self._client_world,
            self._post,
            self._settings,
            self._plugins,
            self._engine,
            self._providers,
            LogLevels(),
            self._identity(),
            self._version,
        )
        https = tls_dialer(self._world.network, self._tls_values()) if self._has_https else None
        self._client = HttpClient(_client_world(self._world, self._world.network), HttpLimits(), https)
        self._front = Front(worker, self._client, self._login)
        self._server.start_accepting()
        await kept(spawn(worker.load()))
        self._on_loaded(worker)
        worker.start()

    @property
    def _has_https(self) -> bool:
        return any(one.scheme == "https" for one in self._settings.listeners)

    def _bind(self) -> None:
        tls = ListenerTls(self._world, self._tls_values(), self._server) if self._has_https else None
        for listener in self._settings.listeners:
            secure = tls.secure(str(listener)) if tls is not None and listener.scheme == "https" else None
            try:
                host, port = self._server.listen(listener.host, listener.port, str(listener), secure)
            except OSError as problem:
                raise OSError(problem.errno, f"cannot listen on {listener}: {problem.strerror}") from problem
            self.addresses.append(Listener(listener.scheme, host, port))

    def _tls_values(self) -> Mapping[str, Value]:
        """`ssl.…`, and before it `listeners.https.ssl.…`, as Kafka Connect has them."""
        table = settings(Scope.REGISTRY)
        given = self._settings.properties
        ssl = {name: value for name, value in given.items() if name.startswith("ssl.") and name in table}
        ssl |= {name.removeprefix(_HTTPS): value for name, value in given.items() if name.startswith(f"{_HTTPS}ssl.")}
        values, _ = parse(Scope.REGISTRY, {"kafkastore.bootstrap.servers": "localhost:9092", **ssl})
        return values

    def _asks_for_certificates(self) -> bool:
        return self._has_https and self._tls_values().get("ssl.client.auth") != "none"

    def _identity(self) -> Identity:
        values = self._settings.values
        listener = self.addresses[0]
        host = values.optional_text("rest.advertised.host.name")
        if not host:
            host = self._world.host_names.own_name() if listener.host in _ANY_HOST else listener.host
        port = values["rest.advertised.port"]
        return Identity(host, port if isinstance(port, int) else listener.port, listener.scheme)

    def _kafka_dialer(self, client: ClientSettings) -> Dialer:
        return self._world.network if not Protection.of(client).has_tls else tls_dialer(self._world.network, client)

    def _handle(self, request: HttpRequest, caller: Caller, respond: Respond) -> None:
        assert self._front is not None, "nobody is let in before"
        self._front.handle(request, caller, respond)

    async def stop(self) -> None:
        """Stops connectors, and lets another worker lead at once."""
        _log.info("stopping")
        self._server.stop_listening()
        timers = self._world.timers
        deadline_s = timers.now_s() + _DRAIN_S
        while not self._server.drain() and timers.now_s() < deadline_s:
            await wait_until(lambda done: timers.after(_LOOK_AGAIN_S, done))
        if self._worker is not None:
            await kept(spawn(self._worker.stop()))

        def close(done: Callable[[None], None], failed: Callable[[Exception], None]) -> None:
            self._world.workers.run(self._engine.close, done, failed)

        await wait_for(close)
        self.abandon()

    def abandon(self) -> None:
        """Lets go of everything at once."""
        self._server.close()
        if self._worker is not None:
            self._worker.close()
        if self._client is not None:
            self._client.close()


def _client_world(world: World, dialer: Dialer) -> ClientWorld:
    def aside(work: Callable[[], ResultT]) -> Promise[ResultT]:
        promise: Promise[ResultT] = Promise()
        world.workers.run(work, promise.resolve, promise.reject)
        return promise

    def report(problem: Exception) -> None:
        _log.error("a client of the worker failed", exc_info=problem)

    return ClientWorld(world.clock, world.timers, world.entropy, dialer, report, aside)
