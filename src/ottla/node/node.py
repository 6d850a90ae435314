"""One node, wired together: directories, metadata, a controller, a broker (`broker_server`), connections.

How it comes up, in this order:

1. The directories are found to be this node's (or formatted, where nobody configured anything), and locked.
2. The listeners are bound, so that the node can say where it is; nothing is answered yet.
3. The metadata log is loaded, and the node takes its place in the quorum: the listeners of controllers are served from
   here on. It waits until it leads, which a sole voter does at once, or has caught up with the leader.
4. The broker opens its logs, applies the metadata of its partitions and joins the cluster. A node that is a controller
alone
   (`process.roles`) has none.
5. The other requests are answered.

It goes down in the other order: no more connections, waiting requests answered, what the broker led given up, the lead
of the quorum given up, the metadata log closed, the broker's logs closed, and last the markers of a clean stop.
"""

import logging
from collections.abc import Callable, Iterable
from errno import EADDRINUSE
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from ottla import __version__
from ottla.base.ports import Lock
from ottla.broker.broker import Broker
from ottla.broker.dispatch import dispatcher
from ottla.broker.quotas.client_quotas import windows_of
from ottla.config.parse import Values
from ottla.controller.broker_tethers import BrokerTethers
from ottla.controller.controller_apis import dispatcher as controllers_dispatcher
from ottla.controller.controller_apis import find_handler
from ottla.controller.controller_server import ControllerServer
from ottla.controller.timed_decisions import TimedDecisions
from ottla.log.directory import lock_directory
from ottla.machines.metadata.controller.controller import Controller
from ottla.node.authorization import follow_rules, make_gate
from ottla.node.broker_server import BrokerServer
from ottla.node.cluster_log import ClusterLog
from ottla.node.config import NodeConfig
from ottla.node.limits.connection_limits import connection_limits, protected_listeners, server_limits
from ottla.node.limits.quotas import hold_quotas
from ottla.node.listeners import Endpoint, advertised
from ottla.node.membership.controller_registration import ControllerRegistration
from ottla.node.membership.taken_node_id import take_place
from ottla.node.membership.waiting_for_quorum import tell_of_waiting
from ottla.node.metadata_quorum import open_metadata
from ottla.node.node_sasl import NodeSasl
from ottla.node.node_tls import NodeTls
from ottla.node.storage.data_directories import find_storage
from ottla.node.storage.meta_properties import Storage
from ottla.runtime.admission import Admission
from ottla.runtime.channels import ControllerChannel
from ottla.runtime.metadata.metadata_log import MetadataLog, MetadataLogFailed
from ottla.runtime.metadata.quorum.quorum_view import RaftQuorum
from ottla.runtime.peers.node_connections import NodeConnections, PeerSettings
from ottla.runtime.peers.remote_controller import RemoteController
from ottla.runtime.procedure import wait_for, wait_until
from ottla.runtime.rate_limited_log import FaultLog
from ottla.runtime.request import Handler
from ottla.runtime.request_metrics import RequestMetrics
from ottla.runtime.server import Server
from ottla.runtime.world import World
from ottla.serving.api_versions import handle_unsupported
from ottla.serving.node_settings import NodeSettings

if TYPE_CHECKING:
    from ottla.node.metrics.node_watch import NodeWatch
    from ottla.runtime.loop import LoopTimes

_log = logging.getLogger(__name__)
_ANSWER_WAITING_S = 5.0
_LOOK_AGAIN_S = 0.005
RUNNING = "running"
_METADATA_MAINTENANCE_S = 1.0

ResultT = TypeVar("ResultT")


class Node:
    """A controller and, where it is asked for, a broker in one process. `failed` is called when it cannot continue.

    `start` and `stop` are run as a `Procedure`. What is in `also_close` goes down with the connections. `around` may
    put something between connections and what handles their requests: see `ottla.node.faults`. `on_opened` is called,
    by other threads, how many of how many logs are open while it starts.
    """

    def __init__(
        self,
        world: World,
        config: NodeConfig,
        *,
        may_format: bool,
        failed: Callable[[], None],
        around: Callable[[Handler, Broker | None], Handler] | None = None,
        on_opened: Callable[[int, int], None] | None = None,
    ) -> None:
        self.config = config
        self._on_opened = on_opened
        self.also_close: list[Callable[[], None]] = []
        self.metrics_address = ""
        self.loop_times: LoopTimes | None = None
        """Of the loop that the node is on, where there is one."""
        self.phase = "starting"
        """What the node does, for who asks whether it is ready; `RUNNING` when it serves."""
        self.watch: NodeWatch | None = None
        self.faults_address = ""
        self.registry_address = ""
        self._may_format = may_format
        self._failed = failed
        self._around = around
        self._world = world
        self._workers = world.workers
        self._timers = world.timers
        self._requests = RequestMetrics(world.timers.now_s)
        self._faults = FaultLog(_log, world.timers.now_s)
        self._cluster_id = ""
        self._broker_server: BrokerServer | None = None
        self._metadata_lock: Lock | None = None
        self._server: Server | None = None
        self._metadata: MetadataLog[Controller] | None = None
        self._controller: ControllerServer | None = None
        self._connections: NodeConnections | None = None
        self._tls: NodeTls | None = None
        self._tethers: BrokerTethers | None = None
        self._cluster_log: ClusterLog | None = None
        self._sasl = NodeSasl(world, config)
        self._endpoints: list[Endpoint] = []
        self._bound_ports: list[int] = []
        self._bound_metrics = config.metrics

    # Coming up

    async def start(self) -> None:
        """Raises `OttlaError` or `OSError` in one clear line when it cannot."""
        config = self.config
        roles = ",".join(config.values.list("process.roles"))
        _log.info("starting node %s (%s), ottla %s", config.node_id, roles, __version__)
        for warning in config.warnings:
            _log.warning("%s", warning)
        storage = find_storage(self._world, config, may_format=self._may_format)
        self._cluster_id = storage.cluster_id
        _log.info("cluster %s, log directories %s", storage.cluster_id, ", ".join(config.log_dirs))
        if config.is_broker:
            self._broker_server = BrokerServer(self._world, config, storage, failed=self._on_broken)
            self._broker_server.on_opened = self._on_opened
        if not config.is_broker or config.metadata_log_dir not in config.log_dirs:
            self._metadata_lock = lock_directory(self._world.disk, config.metadata_log_dir)
        self._server = self._make_server()
        self._tls = NodeTls(self._world, config)
        self._bind()
        if config.metrics is not None:
            self._serve_metrics()
        self._sasl.guard(self._server, config.values)
        dialers = self._tls.dialers()
        self._connections = NodeConnections(
            self._world,
            str(config.node_id),
            self._connection_settings(),
            logins=self._sasl.logins(config.values),
            dialers=dialers,
        )
        metadata = await wait_for(partial(self._workers.run, partial(self._open_metadata, storage)))
        self._metadata = metadata
        self._sasl.on_loaded(metadata.image)
        controller = self._controller = self._make_controller(metadata)
        self._server.handle = controllers_dispatcher(controller)
        self._server.start_accepting({listener.name for listener in config.listeners if listener.for_controllers})
        self.phase = "waiting for the metadata quorum"
        waiting = tell_of_waiting(self._timers, metadata.raft)
        await take_place(config, metadata, self._endpoints_for(controllers=True), self._world.entropy)
        waiting.cancel()
        if controller.gate is not None:
            follow_rules(controller.gate.authorizer, metadata, lambda: self.broker)
        self._cluster_log = ClusterLog(
            self._timers,
            metadata.image,
            config.node_id,
            is_broker=config.is_broker,
            is_controller=config.is_controller,
        )
        metadata.listen(self._cluster_log.on_metadata)
        if self.watch is not None:
            self.watch.follow(metadata, self._connections)
        channel = self._make_channel(metadata, controller)
        if self._broker_server is not None:
            self.phase = "opening its logs and registering with the controller"
            broker = await self._broker_server.start(
                metadata, controller, channel, self._connections, self._endpoints_for(controllers=False)
            )
            self._server.handle = dispatcher(broker, partial(find_handler, controller), controller.gate)
            if self.watch is not None:
                self.watch.watch_broker(broker)
        else:
            self._follow_settings(metadata, controller.node_settings)
        hold_quotas(self._server, self._world, config.values, metadata, self.broker)
        if self._around is not None:
            self._server.handle = self._around(self._server.handle, self.broker)
        self._server.start_accepting()
        if self._broker_server is not None:
            self._broker_server.start_background()
        self._timers.every(_METADATA_MAINTENANCE_S, metadata.maintain)
        self._tls.start()
        if config.is_controller:
            timed_decisions = TimedDecisions(controller)
            timed_decisions.start()
            metadata.listen(timed_decisions.on_metadata)
            self._tethers = BrokerTethers(controller, config.inter_broker_listener, dialers)
            self._tethers.start()
            endpoints = self._endpoints_for(controllers=True)
            ControllerRegistration(self._world, config.node_id, endpoints, metadata, channel).start()
            assert metadata.voter_changes is not None
            joins = bool(config.values["controller.quorum.auto.join.enable"])
            metadata.voter_changes.keep_place(self._timers, joins=joins)
        self.phase = RUNNING

    @property
    def broker(self) -> Broker | None:
        """None on a node that is a controller alone, and before the metadata is loaded."""
        return self._broker_server.broker if self._broker_server is not None else None

    def _endpoints_for(self, *, controllers: bool) -> list[Endpoint]:
        listeners = zip(self._endpoints, self.config.listeners, strict=True)
        return [endpoint for endpoint, listener in listeners if listener.for_controllers is controllers]

    def _connection_settings(self) -> PeerSettings:
        values = self.config.values
        return PeerSettings(
            setup_timeout_ms=values.integer("socket.connection.setup.timeout.ms"),
            request_timeout_ms=values.integer("request.timeout.ms"),
        )

    def _make_channel(self, metadata: MetadataLog[Controller], controller: ControllerServer) -> ControllerChannel:
        """The way to the active controller, which may be this node's."""
        assert self._connections is not None
        return RemoteController(
            self._world,
            self._connections,
            node_id=self.config.node_id,
            own=controller if self.config.is_controller else None,
            find=metadata.active_controller,
        )

    def _make_server(self) -> Server:
        config = self.config
        protected = protected_listeners(config.listeners, config.inter_broker_listener)
        limits = connection_limits(config.values, config.listeners, self._world.host_names)
        admission = Admission(limits, protected, windows_of(config.values))
        server = Server(
            self._world.network,
            self._timers,
            self._workers,
            _not_ready,
            handle_unsupported,
            server_limits(config.values),
            self._requests,
            admission,
        )
        self._requests.unanswered = lambda: server.unanswered
        self._requests.connection_rates = server.connection_rates
        return server

    def _bind(self) -> None:
        assert self._server is not None
        assert self._tls is not None
        bound = []
        for listener in self.config.listeners:
            try:
                address = self._server.listen(
                    listener.bind_host,
                    listener.port,
                    listener.name,
                    is_gated=listener.has_sasl,
                    secure=self._tls.secure(listener.name, self._server.turned_away),
                )
                bound.append((listener, address))
            except OSError as problem:
                more = "; another process listens there: choose another port" if problem.errno == EADDRINUSE else ""
                raise OSError(problem.errno, f"cannot listen on {listener}: {problem.strerror}{more}") from problem
        self._bound_ports = [address[1] for _, address in bound]
        _log.info("listening on %s", ", ".join(f"{one.name}://{host}:{port}" for one, (host, port, *_) in bound))
        self._endpoints = advertised(self.config.values, bound, self._world.host_names)

    def bound_config(self) -> NodeConfig:
        """The settings with the ports that the node got in place of those that it was to choose."""
        listeners = zip(self.config.listeners, self._bound_ports, strict=True)
        return self.config._replace(
            listeners=[listener._replace(port=port) for listener, port in listeners], metrics=self._bound_metrics
        )

    def _serve_metrics(self) -> None:
        """From here on, so that who probes the node hears what it waits for."""
        from ottla.node.metrics.metrics_listener import serve_node

        assert self.config.metrics is not None
        assert self._tls is not None
        self.watch, port = serve_node(self, self._world, self._tls)
        self.metrics_address = self.config.metrics.url(port)
        self._bound_metrics = self.config.metrics._replace(port=port)
        _log.info("metrics are at %s", self.metrics_address)

    def not_ready(self) -> str | None:
        """Why clients should not be sent here; None if they may be."""
        metadata = self._metadata
        if self.phase != RUNNING or metadata is None:
            return self.phase
        if metadata.raft.leader_id < 0:
            return "no leader of the metadata quorum is known"
        if self._broker_server is None:
            return None
        membership = self._broker_server.membership
        assert membership is not None
        silent_s = self._timers.now_s() - membership.answered_s
        if silent_s > self.config.values.integer("broker.session.timeout.ms") / 1000:
            return f"the controller has not answered a heartbeat for {silent_s:.0f} s"
        known = metadata.image.brokers.by_id.get(self.config.node_id)
        if known is None:
            return "not registered: the broker was unregistered, or another process has its node.id"
        if known.fenced or membership.is_fenced:
            return "fenced by the controller"
        return None

    def _open_metadata(self, storage: Storage) -> MetadataLog[Controller]:
        assert self._connections is not None
        return open_metadata(
            self.config,
            storage,
            self._endpoints,
            world=self._world,
            connections=self._connections,
            failed=self._on_broken,
        )

    def _make_controller(self, metadata: MetadataLog[Controller]) -> ControllerServer:
        node_settings = NodeSettings(self.config.node_id, self.config.values, self._workers)
        node_settings.watch(self._on_settings)
        assert self._tls is not None
        node_settings.checks.append(self._tls.check)
        return ControllerServer(
            node_id=self.config.node_id,
            cluster_id=self._cluster_id,
            node_settings=node_settings,
            image=metadata.image,
            log=metadata,
            quorum=RaftQuorum(metadata.raft),
            world=self._world,
            replica=metadata,
            gate=make_gate(self._world, metadata.image, node_settings),
        )

    def _follow_settings(self, metadata: MetadataLog[Controller], node_settings: NodeSettings) -> None:
        """What a broker does on a node that has one: settings that are given at run time count (KIP-226)."""
        image = metadata.image
        node_settings.apply(image.configs)
        metadata.listen(lambda delta: node_settings.on_metadata(image.configs, delta))

    def metrics_page(self) -> Iterable[str]:
        """The metrics as they are now, piece by piece."""
        from ottla.node.metrics.node_metrics import controller_metrics_page, metrics_page, process_page

        if self._metadata is None or self._controller is None:
            return process_page()
        mutations = self._controller.mutation_buckets
        if self.broker is None:
            return controller_metrics_page(self._metadata.image, self._requests, self._metadata, mutations, self.watch)
        is_controller = self.config.is_controller
        return metrics_page(
            self.broker, self._requests, self._metadata, mutations, self.watch, is_controller=is_controller
        )

    def _on_settings(self, values: Values, changed: frozenset[str]) -> None:
        assert self._server is not None
        assert self._tls is not None
        self._tls.on_settings(values, changed)
        if any("max.connection" in key for key in changed):
            limits = connection_limits(values, self.config.listeners, self._world.host_names)
            self._server.set_connection_limits(limits)
        assert self._connections is not None
        self._sasl.on_settings(self._server, self._connections, values, changed)

    def summary(self) -> dict[str, str]:
        """What a person wants to know once the node is up."""
        named = {endpoint.listener: endpoint for endpoint in self._endpoints}
        first = named.get(self.config.inter_broker_listener) or self._endpoints[0]
        shown = {
            "address": f"{first.host}:{first.port}",
            "data": ", ".join(self.config.log_dirs),
            "cluster": self._cluster_id,
            "node": str(self.config.node_id),
        }
        if self.metrics_address:
            shown["metrics"] = self.metrics_address
        if self.faults_address:
            shown["faults"] = self.faults_address
        if self.registry_address:
            shown["registry"] = self.registry_address
        return shown

    # When something breaks

    def on_fault(self, what: str, problem: BaseException | None) -> None:
        """An exception that was no request's, no partition's and no coordinator's: it is logged, and that is all."""
        self._requests.on_fault("background")
        self._faults.error(what, problem)

    def _on_broken(self, problem: MetadataLogFailed | str) -> None:
        _log.critical("stopping: %s", problem)
        self._failed()

    # Going down

    async def stop(self) -> None:
        """A clean stop: what was acknowledged is on the disk, and the next start has nothing to recover."""
        assert self._server is not None
        assert self._metadata is not None
        _log.info("stopping node %s", self.config.node_id)
        self.phase = "stopping"
        if self._cluster_log is not None:
            self._cluster_log.flush()
            self._cluster_log.is_stopping = True
        self._server.stop_listening()
        if self._broker_server is not None:
            if not self._broker_server.is_alone:
                await self._broker_server.leave()  # While it serves and follows: others take over what it leads.
            self._broker_server.stop_serving()
        await self._drain()
        if self._broker_server is not None:
            await self._broker_server.leave()
        if self._cluster_log is not None:
            self._cluster_log.flush()
        self._metadata.resign()
        self._server.close()
        self._close_others()
        self._timers.close()
        await wait_until(self._workers.when_idle)
        await wait_until(self._metadata.stop)
        self._metadata = None
        self._close_connections()
        if self._broker_server is not None:
            await self._broker_server.close()

    async def _drain(self) -> None:
        """Gives replies that are on their way a moment to leave, and takes no more requests.

        But of the other controllers: this node may lead the quorum, and needs them to commit.
        """
        assert self._server is not None
        timers, server = self._timers, self._server
        controllers = {listener.name for listener in self.config.listeners if listener.for_controllers}
        deadline_s = timers.now_s() + _ANSWER_WAITING_S
        clients = [one for one in server.connections if one.session.client.listener not in controllers]
        for connection in clients:
            connection.session.client.pause()
        while timers.now_s() < deadline_s and not all(one.is_idle for one in clients if one in server.connections):
            await wait_until(partial(timers.after, _LOOK_AGAIN_S))

    def abandon(self) -> None:
        """Lets go of everything at once, after a clean stop or instead of one. Writes nothing."""
        self._timers.close()
        if self._server is not None:
            self._server.close()
        self._close_connections()
        self._world.network.close()
        self._close_others()
        if self._broker_server is not None:
            self._broker_server.abandon()
        if self._metadata_lock is not None:
            self._metadata_lock.release()
        self._workers.close()

    def _close_connections(self) -> None:
        if self._tethers is not None:
            self._tethers.close()
        if self._connections is not None:
            self._connections.close()

    def _close_others(self) -> None:
        while self.also_close:
            self.also_close.pop()()


def _not_ready(_context: object, _message: object, _respond: object) -> None:
    raise AssertionError("a request before the node is ready: connections wait until it accepts them")
