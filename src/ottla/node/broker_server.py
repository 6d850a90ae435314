"""The broker's side of a node: log directories, partitions, its place in the cluster, its work in the background.

How it comes up, once the metadata is there: the logs are opened, on a worker (after a crash that is when they are
recovered); the broker registers with the controller, opens its partitions when it has heard of that, and is
unfenced. It goes down in the other order, and leaves the markers of a clean stop last.

It must not open its partitions before: by the metadata of its last life it may lead, in an epoch in which it has
lost records since, and would write others in their place.
"""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.base.errors import StorageError
from ottla.base.ids import TopicPartition, random_uuid
from ottla.broker.broker import Broker
from ottla.broker.partitions.background import Background
from ottla.broker.replication.leader_connections import RemoteLeaders
from ottla.controller.controller_server import ControllerServer
from ottla.log.log_config import LogConfig
from ottla.log.log_dirs import LogDirs
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.node.config import NodeConfig
from ottla.node.listeners import Endpoint
from ottla.node.membership.registration import Membership
from ottla.node.storage.meta_properties import Storage
from ottla.runtime.channels import ControllerChannel
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.peers.node_connections import NodeAddress, NodeConnections
from ottla.runtime.peers.remote_peers import RemotePeers
from ottla.runtime.procedure import wait_for, wait_until
from ottla.runtime.world import World

_log = logging.getLogger(__name__)

_TELL_S = 5.0
"""How often the log says how far the opening of logs is."""


class BrokerServer:
    """Locks the directories when it is made. `failed` is called with the reason why the broker cannot continue."""

    def __init__(self, world: World, config: NodeConfig, storage: Storage, *, failed: Callable[[str], None]) -> None:
        randbytes = world.entropy.randbytes
        self._world = world
        self._config = config
        self._storage = storage
        self._failed = failed
        self._logs: LogDirs | None = LogDirs(
            world.disk,
            [path for path in config.log_dirs if path not in storage.failed],
            world.clock,
            config_of=self._log_config_of,
            producer_expiration_ms=config.values.integer("producer.id.expiration.ms"),
            unique_name=lambda: randbytes(16).hex(),
        )
        self._logs.offline.update(storage.failed)
        self.broker: Broker | None = None
        self.on_opened: Callable[[int, int], None] | None = None
        """Is called with how many of how many logs are open, by other threads than the loop's."""
        self._logged_s = world.clock.elapsed_s()

    # Coming up

    async def start(
        self,
        metadata: MetadataLog[Controller],
        controller: ControllerServer,
        channel: ControllerChannel,
        connections: NodeConnections,
        endpoints: Sequence[Endpoint],
    ) -> Broker:
        """Comes back when clients may be sent here. Raises `StorageError` when the disks or the controller say no."""
        assert self._logs is not None
        broker = self.broker = self._make_broker(metadata, controller, channel, connections)
        await wait_for(partial(self._world.workers.run, partial(self._logs.open_all, self._on_opened)))
        self._report_directories()
        broker.identity.directory_ids = {path: self._storage.directory_ids[path] for path in self._logs.online}
        self._membership = Membership(
            broker,
            endpoints,
            incarnation_id=random_uuid(self._world.entropy.randbytes),
            previous_broker_epoch=self._logs.epoch_of_clean_stop(),
            committed_offset=lambda: metadata.committed_offset,
            failed=self._failed,
        )
        broker.partition_events.on_directory_failed = self._on_directory_failed
        await wait_for(self._membership.register)
        broker.start()
        await wait_for(self._membership.unfence)
        return broker

    def _make_broker(
        self,
        metadata: MetadataLog[Controller],
        controller: ControllerServer,
        channel: ControllerChannel,
        connections: NodeConnections,
    ) -> Broker:
        assert self._logs is not None
        find_broker = partial(_address_of, metadata.image, self._config.inter_broker_listener)
        node_id = self._config.node_id
        broker = Broker(
            node_id=self._config.node_id,
            cluster_id=self._storage.cluster_id,
            config=self._config.values,
            image=metadata.image,
            logs=self._logs,
            world=self._world,
            controller=channel,
            make_peers=lambda own: RemotePeers(node_id, own, connections, find_broker),
            leaders=RemoteLeaders(connections, find_broker),
            directory_ids={path: self._storage.directory_ids[path] for path in self._logs.online},
            node_settings=controller.node_settings,
            has_authorizer=controller.gate is not None,
        )
        broker.node_settings.apply(metadata.image.configs)
        broker.metadata.quorum = controller.quorum
        metadata.listen(broker.on_metadata)
        return broker

    def _log_config_of(self, topic: str) -> LogConfig:
        """Recovery goes by a topic's settings: whether it is compacted tells what a gap in its log means."""
        assert self.broker is not None, "logs are opened when the metadata is known"
        return self.broker.metadata.topic_settings(topic).log

    def _on_opened(self, partition: TopicPartition, count: int, total: int) -> None:
        """Called by the threads that open logs."""
        now_s = self._world.clock.elapsed_s()
        if count == total or now_s - self._logged_s >= _TELL_S:
            self._logged_s = now_s
            _log.info("opened %s of %s partitions (%s)", f"{count:,}", f"{total:,}", partition)
        if self.on_opened is not None:
            self.on_opened(count, total)

    def _report_directories(self) -> None:
        assert self._logs is not None
        for directory in self._logs.online.values():
            for warning in directory.warnings:
                _log.warning("%s", warning)
        for path, problem in self._logs.offline.items():
            _log.error("%s is offline: %s", path, problem)
        if self._config.metadata_log_dir in self._logs.offline or not self._logs.online:
            path, problem = next(iter(self._logs.offline.items()))
            raise StorageError(f"{path} cannot be used: {problem}")

    def start_background(self) -> None:
        """Requests are answered by now."""
        assert self.broker is not None
        self._background = Background(self.broker.partitions, self._world)
        self._background.start()
        self.broker.start_cleaner()
        self.broker.isr_changes.start()

    def _on_directory_failed(self, path: str, problem: OSError) -> None:
        assert self._logs is not None
        if path == self._config.metadata_log_dir or not self._logs.online:
            self._failed(f"{path} has failed: {problem}")
        else:
            self._membership.on_directory_failed(path)

    # Going down

    def stop_serving(self) -> None:
        """Answers the requests that wait, and begins nothing new."""
        assert self.broker is not None
        self._background.stop()
        if self.broker.cleaner is not None:
            self.broker.cleaner.stop()
        self.broker.replica_moves.stop()
        self.broker.replicas.stop()
        self.broker.isr_changes.stop()
        self.broker.fetchers.stop()
        self.broker.coordinators.close()
        self.broker.partitions.purgatory.release_all()

    @property
    def membership(self) -> Membership | None:
        """None before the broker registers."""
        return getattr(self, "_membership", None)

    @property
    def is_alone(self) -> bool:
        """Whether there is no other broker that could take over."""
        assert self.broker is not None
        brokers = self.broker.image.brokers.by_id.values()
        return not any(broker.is_active and broker.id != self._config.node_id for broker in brokers)

    async def leave(self) -> None:
        """The controller has moved what this broker led."""
        await wait_until(self._membership.leave)

    async def close(self) -> None:
        """The logs, with the markers of a clean stop. Nothing works on them any more."""
        assert self._logs is not None
        assert self.broker is not None
        logs, self._logs = self._logs, None
        await wait_for(partial(self._world.workers.run, partial(logs.close, self.broker.identity.broker_epoch)))

    def abandon(self) -> None:
        """Lets go of everything at once. Writes nothing."""
        if self.broker is not None and self.broker.cleaner is not None:
            self.broker.cleaner.stop()
        if self._logs is not None:
            self._logs.abandon()


def _address_of(image: MetadataImage, listener: str, node_id: int) -> NodeAddress | None:
    """Where a broker listens for the others, as the metadata has it."""
    broker = image.brokers.by_id.get(node_id)
    endpoint = broker.endpoint(listener) if broker is not None else None
    return NodeAddress(endpoint.host, endpoint.port, listener) if endpoint is not None else None
