"""What both nodes hold before they are asked: topics, groups with offsets, transactional ids."""

from collections.abc import Callable
from typing import Any

from ottla.wire import messages as m
from tests.golden.access.access_requests import MINE, OTHER, TopicIds

Send = Callable[[Any, int], Any]


def prepare(send: Send) -> TopicIds:
    """`send` speaks as a super user; and waits for nothing, so it is asked again until it is done."""
    topic = m.CreateTopicsRequest.CreatableTopic
    topics = [topic(name=name, num_partitions=1, replication_factor=1) for name in (MINE, OTHER)]
    reply = send(m.CreateTopicsRequest(topics=topics, timeout_ms=5000), 7)
    ids = {one.name: one.topic_id for one in reply.topics}
    for name in (MINE, OTHER):
        for key_type in (0, 1):
            until(
                lambda key_type=key_type, name=name: send(
                    m.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[name]), 4
                ),
                lambda found: not found.coordinators[0].error_code,
            )
        until(
            lambda name=name: send(_committing(name), 8),
            lambda reply: not any(one.error_code for topic in reply.topics for one in topic.partitions),
        )
        until(
            lambda name=name: send(m.InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4),
            lambda reply: not reply.error_code,
        )
    return ids


def _committing(group: str) -> m.OffsetCommitRequest:
    partition = m.OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=0)
    topic = m.OffsetCommitRequest.OffsetCommitRequestTopic
    return m.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        topics=[topic(name=name, partitions=[partition]) for name in (MINE, OTHER)],
    )


def until(ask: Callable[[], Any], is_done: Callable[[Any], bool], attempts: int = 600) -> Any:
    from time import sleep

    for _ in range(attempts):
        reply = ask()
        if not isinstance(reply, str) and is_done(reply):
            return reply
        sleep(0.05)
    raise AssertionError(f"still {reply}")
