"""OffsetCommit 2-10: how far a group has come; topics by id from version 10 (KIP-848).

Partitions that the cluster does not have are refused one by one; the others go to the group's coordinator together. A
commit that differs from an earlier one in its offsets alone never comes here: see `repeated_commit`.
"""

from ottla.base.ids import ZERO_UUID
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.coordination.coordinators import Groups
from ottla.broker.groups.repeated_commit import FIRST_WITH_TOPIC_IDS, learn
from ottla.broker.partitions.held_partitions import Partitions
from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.machines.group.offset_commands import commit_error
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetCommitRequest, OffsetCommitResponse

_AnsweredTopic = OffsetCommitResponse.OffsetCommitResponseTopic
_AnsweredPartition = OffsetCommitResponse.OffsetCommitResponsePartition
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic


def handle_offset_commit(
    partitions: Partitions,
    groups: Groups,
    metadata: ClusterMetadata,
    client_quotas: ClientQuotas,
    context: RequestContext,
    request: OffsetCommitRequest,
    respond: Respond,
) -> None:
    by_id = context.api_version >= FIRST_WITH_TOPIC_IDS
    may_learn = not client_quotas.counts_requests(context)
    allowed_at = partitions.repeated_requests.age
    refused: list[_AnsweredTopic] = []
    taken: list[_Topic] = []
    for topic in request.topics:
        _sort_out(metadata.image, topic, taken, refused, by_id=by_id)
    request.topics = taken

    def reply(outcome: OffsetCommitResponse | ErrorCode) -> None:
        if isinstance(outcome, ErrorCode):
            outcome = OffsetCommitResponse(topics=[_answered(topic, outcome) for topic in taken])
        outcome.topics = _joined(outcome.topics, refused, by_id=by_id)
        if may_learn and not refused and allowed_at == partitions.repeated_requests.age:
            learn(partitions.repeated_requests, groups, context, request, outcome)
        respond(outcome)

    if not taken:
        reply(ErrorCode.NONE)
        return
    groups.submit(
        request.group_id,
        lambda machine, now_ms: machine.commit_offsets(request, context.api_version, now_ms),
        reply,
        lambda error: reply(commit_error(error)),
        only_reads=True,
    )


def _sort_out(
    image: MetadataImage, topic: _Topic, taken: list[_Topic], refused: list[_AnsweredTopic], *, by_id: bool
) -> None:
    known = image.topics.by_id.get(topic.topic_id) if by_id else image.topics.by_name.get(topic.name)
    if known is None:
        error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        refused.append(_answered(topic, error))
        return
    topic.name, topic.topic_id = known.name, known.id
    there = [partition for partition in topic.partitions if partition.partition_index in known.partitions]
    if len(there) < len(topic.partitions):
        missing = [partition for partition in topic.partitions if partition.partition_index not in known.partitions]
        of_missing = _Topic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
        refused.append(_answered(of_missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        topic.partitions = there
    if there:
        taken.append(topic)


def _answered(topic: _Topic, error: ErrorCode) -> _AnsweredTopic:
    return _AnsweredTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        partitions=[
            _AnsweredPartition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        ],
    )


def _joined(answered: list[_AnsweredTopic], refused: list[_AnsweredTopic], *, by_id: bool) -> list[_AnsweredTopic]:
    """One answer a topic: refused partitions first, as in Kafka."""
    if len(answered) == 1 and not refused:
        (topic,) = answered
        if by_id:
            topic.name = ""
        else:
            topic.topic_id = ZERO_UUID
        return answered
    topics: dict[object, _AnsweredTopic] = {}
    for topic in (*refused, *answered):
        known = topics.setdefault(topic.topic_id if by_id else topic.name, topic)
        if known is not topic:
            known.partitions += topic.partitions
    for topic in topics.values():
        if by_id:
            topic.name = ""
        else:
            topic.topic_id = ZERO_UUID
    return list(topics.values())
