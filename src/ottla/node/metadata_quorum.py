"""Opening a node's metadata log: its store, its place in the quorum, and the controller that decides when it leads."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.base.ids import random_uuid
from ottla.base.ports import Entropy
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.machine import Timeouts
from ottla.machines.raft.voters import Endpoint as VoterEndpoint
from ottla.machines.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.node.config import NodeConfig
from ottla.node.listeners import Endpoint
from ottla.node.storage.bootstrap import read_bootstrap
from ottla.node.storage.meta_properties import Storage
from ottla.runtime.metadata.metadata_log import MetadataLog, MetadataLogFailed
from ottla.runtime.metadata.quorum.quorum_network import QuorumConfig, QuorumNetwork
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.store import MetadataStore, StoreConfig
from ottla.runtime.peers.node_connections import NodeAddress, NodeConnections
from ottla.runtime.world import World

_log = logging.getLogger(__name__)
_LOOPBACK = {"localhost", "127.0.0.1", "::1"}


def open_metadata(
    config: NodeConfig,
    storage: Storage,
    endpoints: Sequence[Endpoint],
    *,
    world: World,
    connections: NodeConnections,
    failed: Callable[[MetadataLogFailed], None],
) -> MetadataLog[Controller]:
    """Reads the directory, which may take a while. Raises a `StorageError` when it is not this quorum's."""
    values = config.values
    store = MetadataStore(
        world.disk,
        config.metadata_log_dir,
        world.clock,
        StoreConfig(
            segment_bytes=values.integer("metadata.log.segment.bytes"),
            segment_ms=values.integer("metadata.log.segment.ms"),
            retention_bytes=values.integer("metadata.max.retention.bytes"),
            retention_ms=values.integer("metadata.max.retention.ms"),
        ),
    )
    for warning in store.warnings:
        _log.warning("%s", warning)
    me = Voter(
        ReplicaKey(config.node_id, storage.directory_ids[config.metadata_log_dir]),
        tuple(
            VoterEndpoint(endpoint.listener, endpoint.host, endpoint.port)
            for endpoint, listener in zip(endpoints, config.listeners, strict=True)
            if listener.for_controllers
        ),
    )
    network = QuorumNetwork(
        connections,
        me,
        storage.cluster_id,
        listener=values.list("controller.listener.names")[0],
        bootstrap=_bootstrap_servers(config, me),
        config=QuorumConfig(
            request_timeout_ms=values.integer("controller.quorum.request.timeout.ms"),
            retry_ms=max(values.integer("controller.quorum.retry.backoff.ms"), 1),
            fetch_max_bytes=values.integer("controller.quorum.fetch.max.bytes"),
            fetch_snapshot_max_bytes=values.integer("controller.quorum.fetch.snapshot.max.bytes"),
            place_period_ms=max(values.integer("controller.quorum.fetch.timeout.ms"), 1),
        ),
    )
    return MetadataLog(
        store,
        me,
        _static_voters(config, me),
        timers=world.timers,
        entropy=world.entropy,
        network=network,
        timeouts=Timeouts(
            election_ms=values.integer("controller.quorum.election.timeout.ms"),
            election_backoff_max_ms=values.integer("controller.quorum.election.backoff.max.ms"),
            fetch_ms=values.integer("controller.quorum.fetch.timeout.ms"),
        ),
        linger_ms=_linger_ms(config),
        bootstrap=read_bootstrap(world.disk, config.metadata_log_dir),
        make_controller=partial(_make_controller, config, storage.cluster_id, store.kraft_version, world.entropy),
        workers=world.workers,
        clock=world.clock,
        failed=failed,
        snapshots=SnapshotConfig(
            max_bytes=values.integer("metadata.log.max.record.bytes.between.snapshots"),
            max_interval_ms=values.integer("metadata.log.max.snapshot.interval.ms"),
        ),
    )


def _linger_ms(config: NodeConfig) -> int:
    """Kafka's default of 25 ms is for a disk that syncs each append: ours is synced for all that came meanwhile."""
    name = "controller.quorum.append.linger.ms"
    return config.values.integer(name) if name in config.values.given else 0


def _static_voters(config: NodeConfig, me: Voter) -> VoterSet | None:
    """The voters of `controller.quorum.voters`, known by id alone; this node listens where it says itself."""
    texts = config.values.list("controller.quorum.voters")
    if not texts:
        return None
    listener = config.values.list("controller.listener.names")[0]
    voters = []
    for text in texts:
        node_id, _, address = text.partition("@")
        known_at = _address(address)
        endpoints = (VoterEndpoint(listener, known_at.host, known_at.port),)
        is_me = config.is_controller and int(node_id) == me.key.id
        voters.append(Voter(ReplicaKey(int(node_id)), me.endpoints if is_me else endpoints))
    return VoterSet(voters)


def _bootstrap_servers(config: NodeConfig, me: Voter) -> list[NodeAddress]:
    """Those to ask who leads; a node does not ask itself."""
    servers = [_address(text) for text in config.values.list("controller.quorum.bootstrap.servers")]
    own_ports = {endpoint.port for endpoint in me.endpoints}
    own_hosts = {endpoint.host for endpoint in me.endpoints} | _LOOPBACK
    return [server for server in servers if not (server.port in own_ports and server.host in own_hosts)]


def _address(text: str) -> NodeAddress:
    host, _, port = text.rpartition(":")
    return NodeAddress(host.strip("[]"), int(port))


def _make_controller(
    config: NodeConfig, cluster_id: str, kraft_version: int, entropy: Entropy, image: MetadataImage
) -> Controller:
    return Controller(
        image,
        node_id=config.node_id,
        cluster_id=cluster_id,
        config=config.values,
        new_uuid=lambda: random_uuid(entropy.randbytes),
        random=entropy,
        kraft_version=kraft_version,
    )
