"""What an honest cluster has: topics with records, groups of both protocols with members, offsets, open transactions.

Loading is repeated during a fuzz, which deletes topics, drives members out and ends transactions.
"""

import time
from collections.abc import Callable
from typing import Any

from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ConsumerGroupHeartbeatRequest,
    CreateTopicsRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    JoinGroupRequest,
    MetadataRequest,
    OffsetCommitRequest,
    ProduceRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
    UpdateFeaturesRequest,
)
from tests.property.node.fuzz_known import CLASSIC, CONSUMER, FEATURES, TOPICS, TRANSACTIONAL, Known

_NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}
_TRIES, _PAUSE_S = 600, 0.05


class Load:
    """`connect` gives a connection that is closed at the end of its `with`; `pause` lets so many seconds pass."""

    def __init__(self, connect: Callable[[], Any], known: Known, pause: Callable[[float], None] = time.sleep) -> None:
        self._connect = connect
        self._known = known
        self._pause = pause
        with connect() as connection:
            for type, key in ((0, CLASSIC[0]), (1, TRANSACTIONAL[0])):
                connection.ask(FindCoordinatorRequest(key=key, key_type=type), 3)

    def put(self) -> None:
        """Makes what is missing, and tells what there is. Refusals are no matter: the fuzz may have forbidden it."""
        with self._connect() as connection:
            self._connection = connection
            self._features()
            self._topics()
            for group in CLASSIC[:4]:
                self._classic(group)
            for group in CONSUMER[:4]:
                self._consumer(group)
            for name in TRANSACTIONAL[:6]:
                self._transaction(name)
            scene = self._known.scene()
            for topic in TOPICS[:6]:
                self._connection.ask(_produce(topic, scene.batch(), None), 9)

    def _ask(self, message: Message, version: int) -> Any:
        for _ in range(_TRIES):
            answer = self._connection.ask(message, version)
            if getattr(answer, "error_code", 0) not in _NOT_YET:
                break
            self._pause(_PAUSE_S)
        return answer

    def _features(self) -> None:
        """Those that the fuzz may have changed, as they serve most; one by one, as one that fails fails all."""
        update = UpdateFeaturesRequest.FeatureUpdateKey
        for feature, level in FEATURES.items():
            change = update(feature=feature, max_version_level=level, upgrade_type=2 if level == 0 else 1)
            self._ask(UpdateFeaturesRequest(timeout_ms=10_000, feature_updates=[change]), 1)

    def _topics(self) -> None:
        wanted = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=3, replication_factor=1) for name in TOPICS[:9]
        ]
        self._ask(CreateTopicsRequest(topics=wanted, timeout_ms=10_000), 7)
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in TOPICS]
        self._known.topic_ids.update(
            (topic.name, topic.topic_id)
            for topic in self._ask(MetadataRequest(topics=asked, allow_auto_topic_creation=False), 12).topics
        )

    def _classic(self, group: str) -> None:
        scene = self._known.scene()
        offered = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=scene.subscription())
        request = JoinGroupRequest(
            group_id=group, session_timeout_ms=10_000, rebalance_timeout_ms=300, protocol_type="consumer",
            protocols=[offered],
        )  # fmt: skip
        joined = self._ask(request, 3)
        if joined.error_code:
            return
        given = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=scene.assignment())
        self._ask(
            SyncGroupRequest(
                group_id=group,
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                assignments=[given] if joined.leader == joined.member_id else [],
            ),
            3,
        )
        self._known.members.append((group, joined.member_id, joined.generation_id))
        self._commit(group, joined.member_id, joined.generation_id)

    def _commit(self, group: str, member: str, generation: int) -> None:
        partition = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        topics = [
            OffsetCommitRequest.OffsetCommitRequestTopic(name=name, partitions=[partition]) for name in TOPICS[:3]
        ]
        self._ask(
            OffsetCommitRequest(
                group_id=group, generation_id_or_member_epoch=generation, member_id=member, topics=topics
            ),
            8,
        )

    def _consumer(self, group: str) -> None:
        request = ConsumerGroupHeartbeatRequest(
            group_id=group, member_id=f"honest-{group}", rebalance_timeout_ms=1000, topic_partitions=[],
            subscribed_topic_names=list(TOPICS[:3]), subscribed_topic_regex="fuzzed-[0-3]",
        )  # fmt: skip
        beaten = self._ask(request, 1)
        if not beaten.error_code:
            self._known.members.append((group, beaten.member_id, beaten.member_epoch))
            self._commit(group, beaten.member_id, beaten.member_epoch)

    def _transaction(self, name: str) -> None:
        made = self._ask(InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000), 4)
        if made.error_code:
            return
        self._known.producers.append((name, made.producer_id, made.producer_epoch))
        who = {"transactional_id": name, "producer_id": made.producer_id, "producer_epoch": made.producer_epoch}
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPICS[0], partitions=(0, 1))
        self._ask(
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=made.producer_id,
                v3_and_below_producer_epoch=made.producer_epoch,
                v3_and_below_topics=[topic],
            ),
            3,
        )
        self._ask(AddOffsetsToTxnRequest(group_id=CLASSIC[5], **who), 3)
        partition = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=2)
        offsets = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(name=TOPICS[0], partitions=[partition])
        self._ask(TxnOffsetCommitRequest(group_id=CLASSIC[5], topics=[offsets], **who), 3)


def _produce(topic: str, batch: bytes, transactional_id: str | None) -> ProduceRequest:
    partition = ProduceRequest.PartitionProduceData(index=0, records=batch)
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    return ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1000, topic_data=[data])
