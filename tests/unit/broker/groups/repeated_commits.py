"""Commits as a connection offers them that has seen the like before."""

from typing import Any

from brokers import Reply, TestNode

from ottla.broker.groups.repeated_commit import learn
from ottla.runtime.request import RequestContext
from ottla.wire.codec import decode, encode
from ottla.wire.message import Message
from ottla.wire.messages import OffsetCommitRequest, OffsetCommitResponse

OFFSET_COMMIT = 8
FIRST_KNOWN = 6
ASK = TestNode.ask


def again(node: TestNode, request: OffsetCommitRequest, version: int = 9, client_id: str | None = None) -> Reply | None:
    """The reply to a commit that is not decoded; None if it is not known."""
    return node.ask_again(request, version, client_id)


def ask_undecoded(node: TestNode, request: Message, version: int, client_id: str | None = None) -> Reply:
    """As `TestNode.ask`, of a client that has sent the like before, if there could be the like of it."""
    if isinstance(request, OffsetCommitRequest) and version >= FIRST_KNOWN and teach(node, request, version, client_id):
        reply = again(node, request, version, client_id)
        if reply is not None:
            return reply
    return ASK(node, request, version, client_id)


def teach(node: TestNode, request: OffsetCommitRequest, version: int, client_id: str | None) -> bool:
    """As if such a commit had been taken; False if it never could be."""
    sent: Any = decode(OffsetCommitRequest, encode(request, version), version)
    topics = node.image.topics
    for topic in sent.topics:
        known = topics.by_id.get(topic.topic_id) if version >= 10 else topics.by_name.get(topic.name)
        if known is None or any(part.partition_index not in known.partitions for part in topic.partitions):
            return False
        topic.name, topic.topic_id = known.name, known.id
    answered = [
        OffsetCommitResponse.OffsetCommitResponseTopic(
            name=topic.name if version < 10 else "",
            topic_id=topic.topic_id if version >= 10 else bytes(16),
            partitions=[
                OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=part.partition_index)
                for part in topic.partitions
            ],
        )
        for topic in sent.topics
    ]
    context = RequestContext(OFFSET_COMMIT, version, 7, client_id, node.client, 0.0)
    broker = node.broker
    learn(broker.partitions.repeated_requests, broker.groups, context, sent, OffsetCommitResponse(topics=answered))
    return True
