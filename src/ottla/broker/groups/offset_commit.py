"""OffsetCommit 2-10: how far a group has come; topics by id from version 10 (KIP-848).

Partitions that the cluster does not have are refused one by one; the others go to the group's coordinator together.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.base.ids import ZERO_UUID
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.coordination.coordinators import Groups
from ottla.machines.group.commits import name_all
from ottla.machines.group.offset_commands import commit_error
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like
from ottla.wire.messages import OffsetCommitRequest, OffsetCommitResponse

if TYPE_CHECKING:  # a node without groups does not load it
    from ottla.machines.coordinator_machine import Timer
    from ottla.machines.group.commits import Commits
    from ottla.machines.group.group_coordinator import GroupCoordinator

_FIRST_WITH_TOPIC_IDS = 10

_AnsweredTopic = OffsetCommitResponse.OffsetCommitResponseTopic
_AnsweredPartition = OffsetCommitResponse.OffsetCommitResponsePartition
_Topic = OffsetCommitRequest.OffsetCommitRequestTopic


def handle_offset_commit(
    groups: Groups,
    metadata: ClusterMetadata,
    context: RequestContext,
    request: OffsetCommitRequest,
    respond: Respond,
) -> None:
    by_id = context.api_version >= _FIRST_WITH_TOPIC_IDS
    topics, refused = metadata.image.topics, list[_AnsweredTopic]()
    if not name_all(request.topics, topics.by_id if by_id else topics.by_name, by_id):
        request.topics = _sort_out(metadata.image, request.topics, refused, by_id=by_id)
    commit = like(_BLANK)
    commit.subject = request.group_id
    commit.request = request
    commit.version = context.api_version
    commit.refused = refused
    commit.respond = respond
    if request.topics:
        groups.submit_encoded(commit)
    else:
        commit.refuse(ErrorCode.NONE)


class _Commit:
    """A commit on its way to the group's coordinator and back: see `EncodedCommand`.

    `refused` are partitions that never get there.
    """

    __slots__ = ("refused", "reply", "request", "respond", "subject", "version")

    subject: str
    request: OffsetCommitRequest
    version: int
    refused: list[_AnsweredTopic]
    respond: Respond
    reply: OffsetCommitResponse | ErrorCode

    def decide(
        self, machine: "GroupCoordinator", now_ms: int
    ) -> "tuple[OffsetCommitResponse | ErrorCode, Commits | None, Sequence[Timer]]":
        return machine.commit_offsets(self.request, self.version, now_ms)

    def tell(self) -> None:
        reply = self.reply
        if isinstance(reply, ErrorCode):
            self.refuse(reply)
        else:
            reply.topics = _joined(reply.topics, self.refused, by_id=self.version >= _FIRST_WITH_TOPIC_IDS)
            self.respond(reply)

    def refuse(self, error: ErrorCode) -> None:
        """The same answer for every partition that was not refused before."""
        error, by_id = commit_error(error), self.version >= _FIRST_WITH_TOPIC_IDS
        answered = [_answered(topic, error) for topic in self.request.topics]
        self.respond(OffsetCommitResponse(topics=_joined(answered, self.refused, by_id=by_id)))


_BLANK = _Commit()


def _sort_out(
    image: MetadataImage, topics: list[_Topic], refused: list[_AnsweredTopic], *, by_id: bool
) -> list[_Topic]:
    """What of these the cluster has, with names and ids; what it does not have is refused."""
    taken: list[_Topic] = []
    for topic in topics:
        known = image.topics.by_id.get(topic.topic_id) if by_id else image.topics.by_name.get(topic.name)
        if known is None:
            error = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            refused.append(_answered(topic, error))
            continue
        topic.name, topic.topic_id = known.name, known.id
        there = [partition for partition in topic.partitions if partition.partition_index in known.partitions]
        if len(there) < len(topic.partitions):
            missing = [partition for partition in topic.partitions if partition.partition_index not in known.partitions]
            of_missing = _Topic(name=topic.name, topic_id=topic.topic_id, partitions=missing)
            refused.append(_answered(of_missing, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic.partitions = there
        if there:
            taken.append(topic)
    return taken


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
