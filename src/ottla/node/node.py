"""One node, wired together: directories, metadata, partitions, connections.

How it comes up, in this order:

1. The directories are found to be this node's (or formatted, where nobody configured anything), and locked.
2. The listeners are bound, so that the node can say where it is; nothing is answered yet.
3. The metadata log is loaded, and this node, the only voter, takes the lead.
4. The logs are opened, on a worker: after a crash that is when they are recovered.
5. The broker takes up its partitions, registers with the controller and is unfenced. Requests are answered.

It goes down in the other order: no more connections, waiting requests answered, what the broker led given up, logs
closed, the metadata log closed, and last the markers of a clean stop.
"""

import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import TypeVar

from ottla.base.errors import StorageError
from ottla.base.ids import TopicPartition, random_uuid
from ottla.base.ports import Lock
from ottla.broker.admin.settings.node_settings import NodeSettings
from ottla.broker.cluster.api_versions import handle_unsupported
from ottla.broker.context import Broker
from ottla.broker.dispatch import dispatcher
from ottla.broker.partitions.background import Background
from ottla.broker.partitions.cleaning.cleaner import LogCleaner
from ottla.config.parse import Values
from ottla.controller.controller_apis import find_handler
from ottla.controller.controller_server import ControllerServer
from ottla.log.directory import lock_directory
from ottla.log.log_config import LogConfig
from ottla.log.log_dirs import LogDirs
from ottla.machines.metadata.controller.controller import Controller
from ottla.node.config import NodeConfig
from ottla.node.connection_limits import connection_limits, protected_listeners
from ottla.node.listeners import Endpoint, advertised
from ottla.node.metadata_quorum import open_metadata
from ottla.node.registration import Membership
from ottla.node.storage.data_directories import find_storage
from ottla.node.storage.meta_properties import Storage
from ottla.runtime.admission import Admission
from ottla.runtime.metadata.metadata_log import MetadataLog, MetadataLogFailed
from ottla.runtime.metadata.quorum_view import RaftQuorum
from ottla.runtime.procedure import wait_for, wait_until
from ottla.runtime.request_metrics import RequestMetrics
from ottla.runtime.server import Limits, Server
from ottla.runtime.world import World

_log = logging.getLogger(__name__)
_ANSWER_WAITING_S = 5.0
_LOOK_AGAIN_S = 0.005
_METADATA_MAINTENANCE_S = 1.0

ResultT = TypeVar("ResultT")


class Node:
    """A broker and controller in one process. `failed` is told when it cannot go on.

    `start` and `stop` are run as a `Procedure`. What is in `also_close` goes down with the connections.
    """

    def __init__(self, world: World, config: NodeConfig, *, may_format: bool, failed: Callable[[], None]) -> None:
        self.config = config
        self.also_close: list[Callable[[], None]] = []
        self.metrics_address = ""
        self._may_format = may_format
        self._failed = failed
        self._world = world
        self._workers = world.workers
        self._timers = world.timers
        self._requests = RequestMetrics(world.timers.now_s)
        self._logs: LogDirs | None = None
        self._metadata_lock: Lock | None = None
        self._server: Server | None = None
        self._metadata: MetadataLog[Controller] | None = None
        self._endpoints: list[Endpoint] = []
        self.broker: Broker | None = None

    # Coming up

    async def start(self) -> None:
        """Raises `OttlaError` or `OSError` in one clear line when it cannot."""
        config = self.config
        for warning in config.warnings:
            _log.warning("%s", warning)
        storage = find_storage(self._world, config, may_format=self._may_format)
        randbytes = self._world.entropy.randbytes
        self._logs = LogDirs(
            self._world.disk,
            [path for path in config.log_dirs if path not in storage.failed],
            self._world.clock,
            config_of=self._log_config_of,
            producer_expiration_ms=config.values.integer("producer.id.expiration.ms"),
            unique_name=lambda: randbytes(16).hex(),
        )
        self._logs.offline.update(storage.failed)
        if config.metadata_log_dir not in config.log_dirs:
            self._metadata_lock = lock_directory(self._world.disk, config.metadata_log_dir)
        self._server = self._make_server()
        self._bind()
        self._metadata = await self._on_worker(partial(self._open_metadata, storage))
        await wait_until(self._metadata.start)
        controller = self._make_controller(storage)
        self.broker = self._make_broker(storage, controller)
        await self._on_worker(partial(self._logs.open_all, self._on_opened))
        self._report_directories()
        self.broker.identity.directory_ids = {path: storage.directory_ids[path] for path in self._logs.online}
        await self._join(self.broker)
        self._server.handle = dispatcher(self.broker, partial(find_handler, controller))
        self._server.start_accepting()
        self._background = Background(self.broker)
        self._background.start()
        self.broker.cleaner = LogCleaner(self.broker)
        self.broker.cleaner.start()
        self._timers.every(_METADATA_MAINTENANCE_S, self._metadata.maintain)

    def _make_server(self) -> Server:
        config = self.config
        protected = protected_listeners(config.listeners, config.inter_broker_listener)
        limits = connection_limits(config.values, config.listeners, self._world.host_names)
        admission = Admission(limits, protected)
        server = Server(
            self._world.network,
            self._timers,
            self._workers,
            _not_ready,
            handle_unsupported,
            self._limits(),
            self._requests,
            admission,
        )
        self._requests.unanswered = lambda: server.unanswered
        return server

    def _bind(self) -> None:
        assert self._server is not None
        bound = []
        for listener in self.config.listeners:
            try:
                bound.append((listener, self._server.listen(listener.bind_host, listener.port, listener.name)))
            except OSError as problem:
                raise OSError(problem.errno, f"cannot listen on {listener}: {problem.strerror}") from problem
        self._endpoints = advertised(self.config.values, bound, self._world.host_names)

    def _log_config_of(self, topic: str) -> LogConfig:
        """Recovery goes by a topic's settings: whether it is compacted tells what a gap in its log means."""
        assert self.broker is not None, "logs are opened when the metadata is known"
        return self.broker.metadata.topic_settings(topic).log

    def _on_opened(self, partition: TopicPartition, count: int, total: int) -> None:
        if count % 1000 == 0 or count == total:
            _log.info("opened %s of %s partitions (%s)", f"{count:,}", f"{total:,}", partition)

    def _report_directories(self) -> None:
        assert self._logs is not None
        for directory in self._logs.online.values():
            for warning in directory.warnings:
                _log.warning("%s", warning)
        for path, problem in self._logs.offline.items():
            _log.error("%s is offline: %s", path, problem)
        if self.config.metadata_log_dir in self._logs.offline or not self._logs.online:
            path, problem = next(iter(self._logs.offline.items()))
            raise StorageError(f"{path} cannot be used: {problem}")

    def _open_metadata(self, storage: Storage) -> MetadataLog[Controller]:
        return open_metadata(self.config, storage, self._endpoints, world=self._world, failed=self._on_metadata_failed)

    def _make_controller(self, storage: Storage) -> ControllerServer:
        assert self._metadata is not None
        return ControllerServer(
            node_id=self.config.node_id,
            cluster_id=storage.cluster_id,
            node_settings=NodeSettings(self.config.node_id, self.config.values),
            image=self._metadata.image,
            log=self._metadata,
            quorum=RaftQuorum(self._metadata.raft),
            world=self._world,
        )

    def _make_broker(self, storage: Storage, controller: ControllerServer) -> Broker:
        assert self._metadata is not None
        assert self._logs is not None
        broker = Broker(
            node_id=self.config.node_id,
            cluster_id=storage.cluster_id,
            config=self.config.values,
            image=self._metadata.image,
            logs=self._logs,
            world=self._world,
            controller=controller,
            directory_ids={path: storage.directory_ids[path] for path in self._logs.online},
            node_settings=controller.node_settings,
        )
        broker.node_settings.watch(self._on_settings)
        broker.node_settings.apply(self._metadata.image.configs)
        broker.metadata.quorum = controller.quorum
        broker.at_end_of_turn = self._world.network.at_end_of_turn
        self._metadata.listen(broker.on_metadata)
        return broker

    async def _join(self, broker: Broker) -> None:
        assert self._metadata is not None
        assert self._logs is not None
        metadata = self._metadata
        epochs = {directory.broker_epoch for directory in self._logs.online.values() if directory.was_clean}
        self._membership = Membership(
            broker,
            [
                endpoint
                for endpoint, listener in zip(self._endpoints, self.config.listeners, strict=True)
                if not listener.for_controllers
            ],
            incarnation_id=random_uuid(self._world.entropy.randbytes),
            previous_broker_epoch=epochs.pop() if len(epochs) == 1 else -1,
            committed_offset=lambda: metadata.committed_offset,
        )
        broker.partitions.on_directory_failed = self._on_directory_failed
        broker.start()
        await wait_for(self._membership.join)

    def metrics_page(self) -> Iterable[str]:
        """The metrics as they are now, piece by piece."""
        from ottla.node.metrics.node_metrics import metrics_page

        assert self.broker is not None
        assert self._metadata is not None
        return metrics_page(self.broker, self._requests, self._metadata)

    def _on_settings(self, values: Values, changed: frozenset[str]) -> None:
        assert self._server is not None
        if any("max.connections" in key for key in changed):
            limits = connection_limits(values, self.config.listeners, self._world.host_names)
            self._server.set_connection_limits(limits)

    def _limits(self) -> Limits:
        values = self.config.values
        return Limits(
            max_request_bytes=values.integer("socket.request.max.bytes"),
            max_idle_ms=values.integer("connections.max.idle.ms"),
            max_queued_bytes=values.integer("queued.max.request.bytes"),
            send_buffer_bytes=values.integer("socket.send.buffer.bytes"),
            receive_buffer_bytes=values.integer("socket.receive.buffer.bytes"),
            listen_backlog=values.integer("socket.listen.backlog.size"),
        )

    def summary(self) -> dict[str, str]:
        """What a person wants to know once the node is up."""
        assert self.broker is not None
        first = next(endpoint for endpoint in self._endpoints if endpoint.listener == self.config.inter_broker_listener)
        shown = {
            "address": f"{first.host}:{first.port}",
            "data": ", ".join(self.config.log_dirs),
            "cluster": self.broker.identity.cluster_id,
            "node": str(self.config.node_id),
        }
        if self.metrics_address:
            shown["metrics"] = self.metrics_address
        return shown

    # When something breaks

    def on_fault(self, what: str, problem: BaseException | None) -> None:
        """An exception that was no request's, no partition's and no coordinator's: it is told of, and that is all."""
        self._requests.on_fault("background")
        _log.error("%s", what, exc_info=problem)

    def _on_metadata_failed(self, problem: MetadataLogFailed) -> None:
        _log.critical("stopping: %s", problem)
        self._failed()

    def _on_directory_failed(self, path: str, problem: OSError) -> None:
        assert self._logs is not None
        if path == self.config.metadata_log_dir or not self._logs.online:
            _log.critical("stopping: %s has failed: %s", path, problem)
            self._failed()
        else:
            self._membership.on_directory_failed(path)

    # Going down

    async def stop(self) -> None:
        """A clean stop: what was acknowledged is on the disk, and the next start has nothing to recover."""
        assert self.broker is not None
        assert self._server is not None
        assert self._logs is not None
        assert self._metadata is not None
        _log.info("stopping")
        self._server.stop_listening()
        self._background.stop()
        if self.broker.cleaner is not None:
            self.broker.cleaner.stop()
        self.broker.replica_moves.stop()
        self.broker.coordinators.close()
        self.broker.partitions.purgatory.release_all()
        await self._drain()
        await wait_until(self._membership.leave)
        self._server.close()
        self._close_others()
        self._timers.close()
        await wait_until(self._workers.when_idle)
        await wait_until(self._metadata.stop)
        self._metadata = None
        await self._on_worker(partial(self._logs.close, self.broker.identity.broker_epoch))
        self._logs = None

    async def _drain(self) -> None:
        """Gives replies that are on their way a moment to leave."""
        assert self._server is not None
        timers, server = self._timers, self._server
        deadline_s = timers.now_s() + _ANSWER_WAITING_S
        while timers.now_s() < deadline_s and not all(connection.is_idle for connection in server.connections):
            await wait_until(partial(timers.after, _LOOK_AGAIN_S))

    def abandon(self) -> None:
        """Lets go of everything at once, after a clean stop or instead of one. Writes nothing."""
        self._timers.close()
        if self.broker is not None and self.broker.cleaner is not None:
            self.broker.cleaner.stop()
        if self._server is not None:
            self._server.close()
        self._world.network.close()
        self._close_others()
        if self._logs is not None:
            self._logs.abandon()
        if self._metadata_lock is not None:
            self._metadata_lock.release()
        self._workers.close()

    async def _on_worker(self, function: Callable[[], ResultT]) -> ResultT:
        return await wait_for(partial(self._workers.run, function))

    def _close_others(self) -> None:
        while self.also_close:
            self.also_close.pop()()


def _not_ready(_context: object, _message: object, _respond: object) -> None:
    raise AssertionError("a request before the node is ready: connections wait until it accepts them")
