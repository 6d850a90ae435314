"""Opening a node's metadata log: its store, its quorum, and the controller that decides when this node leads."""

import logging
from collections.abc import Callable, Sequence
from functools import partial

from ottla.base.ids import random_uuid
from ottla.base.ports import Entropy
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.voters import Endpoint as VoterEndpoint
from ottla.machines.raft.voters import ReplicaKey, Voter, VoterSet
from ottla.node.config import NodeConfig
from ottla.node.listeners import Endpoint
from ottla.node.storage.bootstrap import read_bootstrap
from ottla.node.storage.meta_properties import Storage
from ottla.runtime.metadata.metadata_log import MetadataLog, MetadataLogFailed
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.store import MetadataStore, StoreConfig
from ottla.runtime.world import World

_log = logging.getLogger(__name__)


def open_metadata(
    config: NodeConfig,
    storage: Storage,
    endpoints: Sequence[Endpoint],
    *,
    world: World,
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
    for warning in store.log.warnings:
        _log.warning("%s", warning)
    me = Voter(
        ReplicaKey(config.node_id, storage.directory_ids[config.metadata_log_dir]),
        tuple(
            VoterEndpoint(endpoint.listener, endpoint.host, endpoint.port)
            for endpoint, listener in zip(endpoints, config.listeners, strict=True)
            if listener.for_controllers
        ),
    )
    has_static_voters = bool(values.list("controller.quorum.voters"))
    return MetadataLog(
        store,
        me,
        VoterSet([Voter(ReplicaKey(me.key.id), me.endpoints)]) if has_static_voters else None,
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
