"""OffsetFetch 1-10: what groups have committed; several groups at once from version 8 (KIP-709), topics by id from 10.

With `require_stable` (KIP-447), an offset that an open transaction is about to replace is not reported: the client asks
again. Every reply waits for what it has seen to be committed, so nothing is reported that could be lost.
"""

from ottla.base.ids import ZERO_UUID
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.coordination.coordinators import Groups
from ottla.broker.coordination.waiters import Gathered
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetFetchRequest, OffsetFetchResponse

_FIRST_WITH_ERROR = 2
_FIRST_WITH_SEVERAL = 8
_FIRST_WITH_TOPIC_IDS = 10

_Group = OffsetFetchRequest.OffsetFetchRequestGroup
_Topic = OffsetFetchRequest.OffsetFetchRequestTopics
_FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
_FetchedTopic = OffsetFetchResponse.OffsetFetchResponseTopics
_FetchedPartition = OffsetFetchResponse.OffsetFetchResponsePartitions


def handle_offset_fetch(
    groups: Groups, metadata: ClusterMetadata, context: RequestContext, request: OffsetFetchRequest, respond: Respond
) -> None:
    version = context.api_version
    asked = request.groups if version >= _FIRST_WITH_SEVERAL else [_only_group(request)]

    def reply(fetched: list[_FetchedGroup]) -> None:
        if version >= _FIRST_WITH_SEVERAL:
            respond(OffsetFetchResponse(groups=fetched))
        else:
            respond(_of_one_group(asked[0], fetched[0], version))

    gathered = Gathered(len(asked), reply)
    for index, group in enumerate(asked):
        _fetch(groups, metadata, version, group, gathered, index, require_stable=request.require_stable)


def _only_group(request: OffsetFetchRequest) -> _Group:
    """The one group that older versions ask for, in the form of the newer ones."""
    topics = None
    if request.topics is not None:
        topics = [_Topic(name=topic.name, partition_indexes=topic.partition_indexes) for topic in request.topics]
    return _Group(group_id=request.group_id, topics=topics)


def _fetch(
    groups: Groups,
    metadata: ClusterMetadata,
    version: int,
    group: _Group,
    gathered: Gathered,
    index: int,
    *,
    require_stable: bool,
) -> None:
    by_id = version >= _FIRST_WITH_TOPIC_IDS
    unknown: list[_FetchedTopic] = []
    if by_id and group.topics is not None:
        group.topics, unknown = _by_name(metadata, group.topics)

    def then(fetched: _FetchedGroup) -> None:
        if not fetched.error_code:
            fetched.topics = _by_id(metadata, fetched.topics) + unknown if by_id else fetched.topics
        gathered.put(index, fetched)

    groups.query(
        group.group_id,
        lambda machine, _now_ms: machine.fetch_offsets(group, require_stable=require_stable),
        then,
        lambda error: gathered.put(index, _FetchedGroup(group_id=group.group_id, error_code=_fetch_error(error))),
    )


def _by_name(metadata: ClusterMetadata, topics: list[_Topic]) -> tuple[list[_Topic], list[_FetchedTopic]]:
    """Topics with the names that belong to their ids, and answers about those that do not exist."""
    known: list[_Topic] = []
    unknown: list[_FetchedTopic] = []
    for topic in topics:
        name = metadata.topic_name(topic.topic_id)
        if name is not None:
            topic.name = name
            known.append(topic)
            continue
        unknown.append(
            _FetchedTopic(
                topic_id=topic.topic_id,
                partitions=[_unfetched(index, ErrorCode.UNKNOWN_TOPIC_ID) for index in topic.partition_indexes],
            )
        )
    return known, unknown


def _by_id(metadata: ClusterMetadata, topics: list[_FetchedTopic]) -> list[_FetchedTopic]:
    """What was deleted has no id that a client could use, and is left out."""
    found: list[_FetchedTopic] = []
    for topic in topics:
        known = metadata.image.topics.by_name.get(topic.name)
        if topic.topic_id == ZERO_UUID and known is not None:
            topic.topic_id = known.id
        if topic.topic_id != ZERO_UUID:
            topic.name = ""
            found.append(topic)
    return found


def _unfetched(index: int, error: ErrorCode) -> _FetchedPartition:
    return _FetchedPartition(
        partition_index=index, committed_offset=-1, committed_leader_epoch=-1, metadata="", error_code=error
    )


def _of_one_group(asked: _Group, group: _FetchedGroup, version: int) -> OffsetFetchResponse:
    topics = group.topics
    if group.error_code and version < _FIRST_WITH_ERROR:
        # There is no other place for it.
        error = ErrorCode(group.error_code)
        topics = [
            _FetchedTopic(name=topic.name, partitions=[_unfetched(index, error) for index in topic.partition_indexes])
            for topic in asked.topics or ()
        ]
    return OffsetFetchResponse(
        error_code=group.error_code,
        topics=[
            OffsetFetchResponse.OffsetFetchResponseTopic(
                name=topic.name,
                partitions=[
                    OffsetFetchResponse.OffsetFetchResponsePartition(
                        partition_index=partition.partition_index,
                        committed_offset=partition.committed_offset,
                        committed_leader_epoch=partition.committed_leader_epoch,
                        metadata=partition.metadata,
                        error_code=partition.error_code,
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in topics
        ],
    )


def _fetch_error(error: ErrorCode) -> ErrorCode:
    """Clients do not expect that a coordinator is not available here; they look for another one just the same."""
    return ErrorCode.NOT_COORDINATOR if error == ErrorCode.COORDINATOR_NOT_AVAILABLE else error
