"""A broker: its services, wired together. The node holds it; handlers and rooms are given the services they name.

A plain object on the loop's thread.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ottla.base.ids import Uuid
from ottla.broker.admin.topic_creation import TopicCreation
from ottla.broker.cluster.cluster_metadata import ClusterMetadata, NodeIdentity
from ottla.broker.cluster.local_peers import LocalPeers
from ottla.broker.coordination.coordinators import Coordinators, Groups
from ottla.broker.data.fetch_sessions import FetchSessions
from ottla.broker.partitions.directory_assignments import DirectoryAssignments
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.partitions.moves.replica_moves import ReplicaMoves
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.partitions.removing import DiscardedLogs
from ottla.broker.partitions.replicas import Replicas
from ottla.broker.partitions.topic_settings import SettingsOfTopics
from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.broker.replication.fetchers import Fetchers
from ottla.broker.replication.isr_changes import IsrChanges
from ottla.broker.replication.leader_connections import LeaderConnections, NoLeaders
from ottla.broker.telemetry.client_metrics import ClientMetrics
from ottla.broker.transactions.coordinator_questions import CoordinatorQuestions
from ottla.broker.transactions.producer_ids import ProducerIds
from ottla.broker.transactions.transaction_coordinators import Transactions
from ottla.broker.transactions.transaction_verification import Verifications
from ottla.config.parse import Values
from ottla.log.log_dirs import LogDirs
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.apart import apart
from ottla.runtime.channels import ControllerChannel, PeerChannel
from ottla.runtime.world import World
from ottla.serving.node_settings import NodeSettings

if TYPE_CHECKING:
    from ottla.broker.partitions.cleaning.cleaner import LogCleaner


class Broker:
    """See the module. Its attributes are the services that handlers name."""

    def __init__(
        self,
        *,
        node_id: int,
        cluster_id: str,
        config: Values,
        image: MetadataImage,
        logs: LogDirs,
        world: World,
        controller: ControllerChannel,
        peers: PeerChannel | None = None,
        make_peers: Callable[[PeerChannel], PeerChannel] | None = None,
        leaders: LeaderConnections | None = None,
        settings: SettingsOfTopics | None = None,
        directory_ids: dict[str, Uuid] | None = None,
        node_settings: NodeSettings | None = None,
        has_authorizer: bool = False,
    ) -> None:
        self.identity = NodeIdentity(node_id, cluster_id, directory_ids)
        self.node_settings = node_settings or NodeSettings(node_id, config)
        self.metadata = ClusterMetadata(image, settings or SettingsOfTopics(config))
        self.has_authorizer = has_authorizer
        self.world = world
        self.clock = world.clock
        self.controller = controller
        own = LocalPeers(self)
        self.peers: PeerChannel = peers or (make_peers(own) if make_peers is not None else own)
        self.partition_events = events = PartitionEvents()
        self.partitions = Partitions(self.identity, self.node_settings, self.metadata, logs, world, events)
        self.client_quotas = ClientQuotas(world.timers, config)
        questions = CoordinatorQuestions(self.metadata, self.peers, self.node_settings, world)
        self.verifications = Verifications(questions, self.node_settings)
        self.producer_ids = ProducerIds(self.identity, controller, world.timers)
        self.coordinators = Coordinators(self.partitions, world, self.peers, self.producer_ids)
        discarded_logs = DiscardedLogs(self.partitions, world)
        self.directory_assignments = DirectoryAssignments(self.partitions, world.timers, controller)
        self.replica_moves = ReplicaMoves(self.partitions, world, discarded_logs, self.directory_assignments)
        self.replicas = Replicas(
            self.partitions, world, events, discarded_logs, self.directory_assignments, self.replica_moves
        )
        self.fetch_sessions = FetchSessions(
            config.integer("max.incremental.fetch.session.cache.slots"), world.entropy.randrange
        )
        self.client_metrics = ClientMetrics()
        self.topic_creation = TopicCreation(self.node_settings, controller, world.clock)
        self.cleaner: LogCleaner | None = None
        self._is_started = False
        self.node_settings.watch(lambda config, _changed: self.on_settings(config))
        self.fetchers = Fetchers(self.partitions, world.timers, events, leaders or NoLeaders())
        self.isr_changes = IsrChanges(self.partitions, world, controller)
        events.on_leadership = self._on_leadership
        events.on_flushed = self.fetchers.on_flushed
        events.on_fetched = self.isr_changes.on_fetched
        events.on_lost = self.directory_assignments.lose
        events.on_directory_failing = self.replica_moves.on_directory_failed
        events.on_broken = self.replica_moves.on_broken
        events.on_truncated = self.replica_moves.on_truncated

    def start(self) -> None:
        """Takes up the partitions that the metadata gives to this node. The logs have been opened."""
        self._is_started = True
        self.metadata.note_offset()
        self.node_settings.apply(self.image.configs)
        self.client_quotas.apply(self.image.quotas)
        self.replicas.start()

    def start_cleaner(self) -> None:
        from ottla.broker.partitions.cleaning.cleaner import LogCleaner

        self.cleaner = LogCleaner(self.partitions, self.world, self.replica_moves)
        self.replica_moves.leave_alone = self.cleaner.leave_alone
        self.cleaner.start()

    def on_metadata(self, delta: MetadataDelta) -> None:
        """`image` has been changed by committed records, and `delta` says where."""
        timers = self.world.timers
        self.metadata.on_metadata(delta)
        # One after the other, each whatever those before it have raised: they are about different things.
        apart(timers, self.node_settings.on_metadata, self.image.configs, delta)
        if delta.quotas:
            apart(timers, self.client_quotas.apply, self.image.quotas)
        if not self._is_started:
            return  # What has been decided by then is applied at the start, as a whole.
        apart(timers, self.replicas.on_metadata, delta)
        if delta.brokers:
            apart(timers, self.isr_changes.on_brokers_changed)
        apart(timers, self.coordinators.on_metadata, delta)

    def _on_leadership(self, partition: Partition) -> None:
        """A partition that this node holds has a new leader, or is gone."""
        self.fetchers.on_leadership(partition)
        self.verifications.on_leadership(partition)
        self.coordinators.on_leadership(partition)

    def on_settings(self, config: Values) -> None:
        """Settings of this node have been changed while it runs (KIP-226)."""
        self.metadata.on_node_settings(config)
        self.replicas.on_broker_settings()
        self.fetchers.on_settings()

    @property
    def config(self) -> Values:
        return self.node_settings.effective

    @property
    def image(self) -> MetadataImage:
        return self.metadata.image

    @property
    def groups(self) -> Groups:
        return self.coordinators.groups

    @property
    def transactions(self) -> Transactions:
        return self.coordinators.transactions
