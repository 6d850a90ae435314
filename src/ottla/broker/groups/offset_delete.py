"""OffsetDelete 0: forgets offsets of a group, in topics that it does not read (KIP-496)."""

from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.coordination.coordinators import Groups
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetDeleteRequest, OffsetDeleteResponse

_AnsweredTopic = OffsetDeleteResponse.OffsetDeleteResponseTopic
_AnsweredPartition = OffsetDeleteResponse.OffsetDeleteResponsePartition
_Topic = OffsetDeleteRequest.OffsetDeleteRequestTopic


def handle_offset_delete(
    groups: Groups, metadata: ClusterMetadata, _context: RequestContext, request: OffsetDeleteRequest, respond: Respond
) -> None:
    refused: list[_AnsweredTopic] = []
    taken: list[_Topic] = []
    for topic in request.topics:
        known = metadata.image.topics.by_name.get(topic.name)
        partitions = known.partitions if known is not None else {}
        missing = [part.partition_index for part in topic.partitions if part.partition_index not in partitions]
        if missing or known is None:
            refused.append(_refused(topic.name, missing))
        topic.partitions = [part for part in topic.partitions if part.partition_index in partitions]
        if topic.partitions:
            taken.append(topic)
    request.topics = taken

    def reply(response: OffsetDeleteResponse) -> None:
        if not response.error_code:
            response.topics = _joined(refused, response.topics)
        respond(response)

    if not taken and refused:
        reply(OffsetDeleteResponse())
        return
    if not request.group_id:
        respond(OffsetDeleteResponse(error_code=ErrorCode.INVALID_GROUP_ID))
        return
    groups.submit(
        request.group_id,
        lambda machine, now_ms: machine.delete_offsets(request, now_ms),
        reply,
        lambda error: respond(OffsetDeleteResponse(error_code=error)),
        only_reads=True,
    )


def _refused(name: str, indexes: list[int]) -> _AnsweredTopic:
    error = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partitions = [_AnsweredPartition(partition_index=index, error_code=error) for index in indexes]
    return _AnsweredTopic(name=name, partitions=partitions)


def _joined(refused: list[_AnsweredTopic], answered: list[_AnsweredTopic]) -> list[_AnsweredTopic]:
    topics: dict[str, _AnsweredTopic] = {}
    for topic in (*refused, *answered):
        known = topics.setdefault(topic.name, topic)
        if known is not topic:
            known.partitions += topic.partitions
    return list(topics.values())
