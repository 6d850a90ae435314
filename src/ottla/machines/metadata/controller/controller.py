"""The controller: requests and the clock in, decisions out.

Theory of operation. A decision is a reply and the records that make it true. It reads the image and changes nothing;
the driver appends the records, replays each at once into the controller's image, so that the next decision builds on
it, and gives the reply out when they are committed. A controller that loses its place throws its image away and takes
a copy of the committed one when it leads again. `next_offset` is the driver's to keep, as is which broker asked.

Families are in `decisions`, one request a function; `sessions` is the only state beside the image.
"""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable, Container, Iterable

from ottla.base.ids import Uuid, uuid_text
from ottla.config.parse import Values
from ottla.machines.decision import Decision
from ottla.machines.metadata import decisions
from ottla.machines.metadata.controller import activation
from ottla.machines.metadata.controller.controller_context import ControllerContext, Random
from ottla.machines.metadata.image.directory_ids import is_reserved
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.wire import messages as m
from ottla.wire.message import Message


class Controller:
    """One controller's view and its decisions. `kraft_version` is the Raft layer's, told by the driver."""

    def __init__(
        self,
        image: MetadataImage,
        *,
        node_id: int,
        cluster_id: str,
        config: Values,
        new_uuid: Callable[[], Uuid],
        random: Random,
        next_offset: int = 0,
        kraft_version: int = 0,
    ) -> None:
        self.context = ControllerContext(
            image, node_id, cluster_id, config, _topic_ids(new_uuid), random, next_offset=next_offset
        )
        self.kraft_version = kraft_version

    @property
    def image(self) -> MetadataImage:
        return self.context.image

    @property
    def next_offset(self) -> int:
        return self.context.next_offset

    @next_offset.setter
    def next_offset(self, offset: int) -> None:
        self.context.next_offset = offset

    def replay(self, record: Message) -> None:
        """The only thing that changes the image."""
        self.context.image.replay(record)

    def activate(self, bootstrap: Iterable[Message]) -> Decision[None]:
        return activation.activate(self.context, bootstrap)

    # What administrators ask

    def create_topics(self, request: m.CreateTopicsRequest, now_ms: int) -> Decision[m.CreateTopicsResponse]:
        return decisions.create_topics.create_topics(self.context, request)

    def create_partitions(
        self, request: m.CreatePartitionsRequest, now_ms: int
    ) -> Decision[m.CreatePartitionsResponse]:
        return decisions.create_partitions.create_partitions(self.context, request)

    def delete_topics(self, request: m.DeleteTopicsRequest, now_ms: int) -> Decision[m.DeleteTopicsResponse]:
        return decisions.delete_topics.delete_topics(self.context, request)

    def alter_configs(self, request: m.AlterConfigsRequest, now_ms: int) -> Decision[m.AlterConfigsResponse]:
        return decisions.alter_configs.alter_configs(self.context, request)

    def incremental_alter_configs(
        self, request: m.IncrementalAlterConfigsRequest, now_ms: int
    ) -> Decision[m.IncrementalAlterConfigsResponse]:
        return decisions.alter_configs.incremental_alter_configs(self.context, request)

    def alter_client_quotas(
        self, request: m.AlterClientQuotasRequest, now_ms: int, *, unknown_hosts: Container[str] = ()
    ) -> Decision[m.AlterClientQuotasResponse]:
        return decisions.alter_quotas.alter_client_quotas(self.context, request, unknown_hosts)

    def alter_user_scram_credentials(
        self, request: m.AlterUserScramCredentialsRequest, now_ms: int
    ) -> Decision[m.AlterUserScramCredentialsResponse]:
        return decisions.alter_scram.alter_user_scram_credentials(self.context, request)

    def update_features(
        self, request: m.UpdateFeaturesRequest, now_ms: int, *, api_version: int
    ) -> Decision[m.UpdateFeaturesResponse]:
        return decisions.update_features.update_features(
            self.context, request, api_version=api_version, kraft_version=self.kraft_version
        )

    def elect_leaders(self, request: m.ElectLeadersRequest, now_ms: int) -> Decision[m.ElectLeadersResponse]:
        return decisions.elect_leaders.elect_leaders(self.context, request)

    def alter_partition_reassignments(
        self, request: m.AlterPartitionReassignmentsRequest, now_ms: int
    ) -> Decision[m.AlterPartitionReassignmentsResponse]:
        return decisions.reassign_partitions.alter_partition_reassignments(self.context, request)

    def list_partition_reassignments(
        self, request: m.ListPartitionReassignmentsRequest, now_ms: int
    ) -> Decision[m.ListPartitionReassignmentsResponse]:
        return decisions.reassign_partitions.list_partition_reassignments(self.context, request)

    def unregister_broker(
        self, request: m.UnregisterBrokerRequest, now_ms: int
    ) -> Decision[m.UnregisterBrokerResponse]:
        return decisions.registration.unregister_broker(self.context, request)

    # What nodes of the cluster ask

    def register_broker(
        self, request: m.BrokerRegistrationRequest, now_ms: int
    ) -> Decision[m.BrokerRegistrationResponse]:
        return decisions.registration.register_broker(self.context, request, now_ms, kraft_version=self.kraft_version)

    def heartbeat(self, request: m.BrokerHeartbeatRequest, now_ms: int) -> Decision[m.BrokerHeartbeatResponse]:
        return decisions.heartbeats.heartbeat(self.context, request, now_ms)

    def register_controller(
        self, request: m.ControllerRegistrationRequest, now_ms: int
    ) -> Decision[m.ControllerRegistrationResponse]:
        return decisions.registration.register_controller(self.context, request)

    def alter_partition(
        self, request: m.AlterPartitionRequest, now_ms: int, *, api_version: int
    ) -> Decision[m.AlterPartitionResponse]:
        return decisions.alter_partition.alter_partition(self.context, request, api_version=api_version)

    def assign_replicas_to_dirs(
        self, request: m.AssignReplicasToDirsRequest, now_ms: int
    ) -> Decision[m.AssignReplicasToDirsResponse]:
        return decisions.assign_directories.assign_replicas_to_dirs(self.context, request)

    def allocate_producer_ids(
        self, request: m.AllocateProducerIdsRequest, now_ms: int
    ) -> Decision[m.AllocateProducerIdsResponse]:
        return decisions.allocate_producer_ids.allocate_producer_ids(self.context, request)

    # What time brings: the driver asks every now and then

    def fence_silent_broker(self, now_ms: int) -> Decision[bool]:
        """One at a time: ask again, once the records are replayed, while the reply is True."""
        return decisions.heartbeats.fence_silent_broker(self.context, now_ms)

    def balance_leaders(self, now_ms: int) -> Decision[bool]:
        return decisions.elect_leaders.balance_leaders(self.context)

    def elect_unclean_leaders(self, now_ms: int) -> Decision[bool]:
        return decisions.elect_leaders.elect_unclean_leaders(self.context)


def _topic_ids(new_uuid: Callable[[], Uuid]) -> Callable[[], Uuid]:
    """Ids that are not reserved, and whose text does not look like an option on a command line."""

    def topic_id() -> Uuid:
        while is_reserved(candidate := new_uuid()) or uuid_text(candidate).startswith("-"):
            pass
        return candidate

    return topic_id
