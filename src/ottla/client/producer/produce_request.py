"""One Produce request: made of batches for the version that a broker speaks, and its answers brought back to them.

Versions 3 to 12 name topics, 13 and later their ids (KIP-516). Up to version 11 a transaction's partitions have to be
added to it before (KIP-890).
"""

from collections.abc import Iterator
from typing import Any, Final

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.client.cluster.view import ClusterView, Leader
from ottla.client.producer.batch import ProducerBatch
from ottla.client.producer.producer_settings import ProducerSettings
from ottla.client.topic_partition import Broker
from ottla.wire.messages import ProduceRequest
from ottla.wire.request_forms import Filled, RecordsForm

LAST_WITH_EXPLICIT_PARTITIONS: Final = 11
_LAST_WITH_NAMES: Final = 12
_partition_data = ProduceRequest.PartitionProduceData
_topic_data = ProduceRequest.TopicProduceData


class ProduceAttempt:
    """The batches are of different partitions. One that is alone takes the form of the request before it, if it can."""

    __slots__ = ("_client_id", "_settings", "_topics", "batches")

    def __init__(
        self, batches: list[ProducerBatch], view: ClusterView, settings: ProducerSettings, client_id: str | None
    ) -> None:
        self.batches = batches
        self._settings = settings
        self._client_id = client_id
        topics: dict[str, tuple[Uuid, dict[int, ProducerBatch]]] = {}
        for batch in batches:
            entry = topics.get(batch.topic)
            if entry is None:
                known = view.topics.get(batch.topic)
                entry = topics[batch.topic] = (ZERO_UUID if known is None else known.topic_id, {})
            entry[1][batch.partition] = batch
        self._topics = topics

    def newest_version(self, newest: int | None) -> int | None:
        """At most this version can be sent: the ids of all topics may not be known."""
        if all(topic_id != ZERO_UUID for topic_id, _ in self._topics.values()):
            return newest
        return _LAST_WITH_NAMES if newest is None else min(newest, _LAST_WITH_NAMES)

    def request(self, version: int) -> ProduceRequest | Filled:
        if len(self.batches) == 1 and (records := self.batches[0].encoded) is not None:
            [(topic_id, _)] = self._topics.values()
            queue = self.batches[0].queue
            if queue.form is None or queue.form[:2] != (version, topic_id):
                queue.form = version, topic_id, RecordsForm.of(self._message(version), version, self._client_id)
            if (form := queue.form[2]) is not None:
                return Filled(form, records)
        return self._message(version)

    def _message(self, version: int) -> ProduceRequest:
        by_name = version <= _LAST_WITH_NAMES
        topics = []
        for name, (topic_id, batches) in self._topics.items():
            data = [
                _partition_data(index=index, records=batch.encoded)
                for index, batch in batches.items()
                if batch.encoded is not None  # It grew too old while the request waited.
            ]
            if by_name:
                topics.append(_topic_data(name=name, partition_data=data))
            else:
                topics.append(_topic_data(topic_id=topic_id, partition_data=data))
        return ProduceRequest(
            transactional_id=self._settings.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=topics,
        )

    def answers(self, response: Any) -> Iterator[tuple[ProducerBatch, Any]]:
        """Each batch that was answered, with its answer. What was not asked about is passed over."""
        by_id = dict(self._topics.values())
        for topic in response.responses:
            named = self._topics.get(topic.name)
            batches = by_id.get(topic.topic_id, {}) if named is None else named[1]
            for answer in topic.partition_responses:
                batch = batches.get(answer.index)
                if batch is not None:
                    yield batch, answer


def new_leader(answer: Any, response: Any) -> tuple[Leader, Broker | None] | None:
    """Who leads the partition of an answer now, and where that broker is, if the response tells (KIP-951)."""
    leader = answer.current_leader
    if leader is None or leader.leader_id < 0:
        return None
    at = next((one for one in response.node_endpoints if one.node_id == leader.leader_id), None)
    broker = None if at is None else Broker(at.node_id, at.host, at.port, at.rack)
    return Leader(leader.leader_id, leader.leader_epoch), broker
