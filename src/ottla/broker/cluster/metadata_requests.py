"""Metadata 0-13: the cluster's brokers, and the partitions of topics and their leaders.

A topic that is asked for by name and does not exist is created, where both the node and the client allow it; the
client gets UNKNOWN_TOPIC_OR_PARTITION and asks again. The order is Kafka's: topics that exist, then the others.

The partitions of a topic look the same to every client of a listener, so they are kept: see `described_partitions`.
"""

from collections.abc import Callable, Iterable, Iterator

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.broker.admin.topic_creation import TopicCreation
from ottla.broker.cluster.cluster_metadata import ClusterMetadata, NodeIdentity
from ottla.broker.cluster.cluster_view import ClusterView
from ottla.broker.cluster.described_partitions import Form, Partitions
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.image.topics_image import TopicImage, TopicsImage
from ottla.machines.metadata.topic_names import INTERNAL, name_problem
from ottla.runtime.channels import Caller
from ottla.runtime.request import RequestContext, Respond
from ottla.security.authorized_operations import ALL_ON_CLUSTER, ALL_ON_TOPIC, NOT_ASKED
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import MetadataRequest, MetadataResponse

Topic = MetadataResponse.MetadataResponseTopic
Partition = MetadataResponse.MetadataResponsePartition

_FIRST_WITH_TOPIC_IDS_ASKED = 12
_FIRST_WITH_LISTENER_NOT_FOUND = 6
_ALL_TOPICS_IF_EMPTY = 0


def handle_metadata(
    metadata: ClusterMetadata,
    identity: NodeIdentity,
    node_settings: NodeSettings,
    topic_creation: TopicCreation,
    context: RequestContext,
    request: MetadataRequest,
    respond: Respond,
) -> None:
    problem = _problem(context.api_version, request)
    if problem is not None:
        respond(_refused(request, problem))
        return

    def create(names: list[str]) -> None:
        if node_settings.effective["auto.create.topics.enable"]:
            topic_creation.create(names, Caller.of(context.connection, context.client_id))

    view = ClusterView(metadata.image, context.connection.listener)
    form = Form(
        view.listener,
        lists_gone_replicas=context.api_version > 0,
        has_listener_not_found=context.api_version >= _FIRST_WITH_LISTENER_NOT_FOUND,
    )
    described = _Described(
        view,
        form,
        known=metadata.described_partitions.of(form),
        operations=ALL_ON_TOPIC if request.include_topic_authorized_operations else NOT_ASKED,
    )
    respond(
        MetadataResponse(
            brokers=[
                MetadataResponse.MetadataResponseBroker(
                    node_id=member.id, host=endpoint.host, port=endpoint.port, rack=member.rack
                )
                for member, endpoint in view.alive.values()
            ],
            cluster_id=identity.cluster_id,
            controller_id=view.controller_id(identity.node_id),
            topics=_topics(metadata.image.topics, context.api_version, request, described, create),
            cluster_authorized_operations=(
                ALL_ON_CLUSTER if request.include_cluster_authorized_operations else NOT_ASKED
            ),
        )
    )


def _problem(api_version: int, request: MetadataRequest) -> ErrorCode | None:
    """Versions 10 and 11 have ids on paper only; from 12 a topic is named by one or the other."""
    topics = request.topics or ()
    if api_version < _FIRST_WITH_TOPIC_IDS_ASKED:
        named = all(topic.name is not None and topic.topic_id == ZERO_UUID for topic in topics)
        return None if named else ErrorCode.INVALID_REQUEST
    nameless = any(topic.name is None and topic.topic_id == ZERO_UUID for topic in topics)
    return ErrorCode.UNKNOWN_SERVER_ERROR if nameless else None


def _refused(request: MetadataRequest, problem: ErrorCode) -> MetadataResponse:
    """Nothing but the error, on every topic that was asked for."""
    return MetadataResponse(
        topics=[
            Topic(error_code=problem, name=topic.name or "", topic_id=topic.topic_id) for topic in request.topics or ()
        ]
    )


def _topics(
    known: TopicsImage,
    api_version: int,
    request: MetadataRequest,
    described: "_Described",
    create: Callable[[list[str]], None],
) -> list[Topic]:
    if request.topics is None or (api_version == _ALL_TOPICS_IF_EMPTY and not request.topics):
        return [described.topic(topic) for topic in known.by_name.values()]
    ids = [topic.topic_id for topic in request.topics if topic.topic_id != ZERO_UUID]
    if ids:
        return list(_by_id(known.by_id, ids, described))
    names = dict.fromkeys(topic.name or "" for topic in request.topics)
    missing = [name for name in names if name not in known.by_name]
    found = [described.topic(known.by_name[name]) for name in names if name in known.by_name]
    if missing and request.allow_auto_topic_creation:
        create([name for name in missing if name_problem(name) is None])
    return found + [_missing(name) for name in missing]


def _by_id(known: dict[Uuid, TopicImage], ids: Iterable[Uuid], described: "_Described") -> Iterator[Topic]:
    """A client that names one topic by its id names all of them so. Unknown ones come first."""
    asked = dict.fromkeys(ids)
    for topic_id in asked:
        if topic_id not in known:
            yield Topic(error_code=ErrorCode.UNKNOWN_TOPIC_ID, name=None, topic_id=topic_id)
    for topic_id in asked:
        if topic_id in known:
            yield described.topic(known[topic_id])


def _missing(name: str) -> Topic:
    problem = name_problem(name)
    error = ErrorCode.INVALID_TOPIC_EXCEPTION if problem else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return Topic(error_code=error, name=name, is_internal=name in INTERNAL)


class _Described:
    """Topics in one form; `known` are partitions that have it already."""

    def __init__(self, view: ClusterView, form: Form, *, known: dict[Uuid, Partitions], operations: int) -> None:
        self._view = view
        self._form = form
        self._known = known
        self._operations = operations

    def topic(self, topic: TopicImage) -> Topic:
        partitions = self._known.get(topic.id)
        if partitions is None:
            partitions = [self._partition(index, partition) for index, partition in topic.partitions.items()]
            self._known[topic.id] = partitions
        return Topic(
            name=topic.name,
            topic_id=topic.id,
            is_internal=topic.name in INTERNAL,
            partitions=partitions,
            topic_authorized_operations=self._operations,
        )

    def _partition(self, index: int, partition: PartitionImage) -> Partition:
        replicas, isr = self._reachable(partition.replicas), self._reachable(partition.isr)
        return Partition(
            error_code=self._error(partition, replicas, isr),
            partition_index=index,
            leader_id=partition.leader if self._view.has_endpoint(partition.leader) else -1,
            leader_epoch=partition.leader_epoch,
            replica_nodes=replicas,
            isr_nodes=isr,
            offline_replicas=self._view.offline_replicas(partition),
        )

    def _reachable(self, replicas: tuple[int, ...]) -> tuple[int, ...]:
        """The first version has no word for a replica that is offline, and so leaves it out."""
        if self._form.lists_gone_replicas:
            return replicas
        return tuple(replica for replica in replicas if replica in self._view.alive)

    def _error(self, partition: PartitionImage, replicas: tuple[int, ...], isr: tuple[int, ...]) -> ErrorCode:
        if not self._view.has_endpoint(partition.leader):
            if self._form.has_listener_not_found and self._view.is_registered(partition.leader):
                return ErrorCode.LISTENER_NOT_FOUND
            return ErrorCode.LEADER_NOT_AVAILABLE
        gone = len(replicas) < len(partition.replicas) or len(isr) < len(partition.isr)
        return ErrorCode.REPLICA_NOT_AVAILABLE if gone else ErrorCode.NONE
