"""The names of topics that the coordinator names by their ids."""

from collections.abc import Iterable

from ottla.base.ids import Uuid
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError, UnsupportedVersion
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import MetadataRequest

_FIRST_BY_ID = 12


class TopicNames:
    """What metadata tells of the topics that the client wants to know of, and what is asked for on top of that.

    With a pattern that the coordinator matches, the client does not know which topics there are (KIP-848).
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._learned: dict[Uuid, str] = {}

    def get(self, topic_id: Uuid) -> str | None:
        return self._cluster.view.names.get(topic_id) or self._learned.get(topic_id)

    def keep_only(self, topic_ids: Iterable[Uuid]) -> None:
        self._learned = {one: name for one in topic_ids if (name := self._learned.get(one)) is not None}

    async def learn(self, topic_ids: Iterable[Uuid]) -> bool:
        """Asks once for those that are not known; returns whether all are known then.

        The client wants to know of these topics from then on. A broker that has not heard of a new topic yet, or no
        longer has it, does not name it.
        """
        unknown = [topic_id for topic_id in topic_ids if self.get(topic_id) is None]
        if not unknown:
            return True
        try:
            response = await self._cluster.ask_any(lambda version: _request(version, unknown), api_key=ApiKey.METADATA)
        except KafkaError as problem:
            if not problem.retriable:
                raise
            return False
        found = {topic.topic_id: topic.name for topic in response.topics if topic.error_code == ErrorCode.NONE}
        self._learned.update((topic_id, found[topic_id]) for topic_id in unknown if found.get(topic_id))
        if self._cluster.add_topics(name for name in found.values() if name):
            self._cluster.refresh()
        return all(topic_id in self._learned for topic_id in unknown)


def _request(version: int, topic_ids: Iterable[Uuid]) -> MetadataRequest:
    if version < _FIRST_BY_ID:
        raise UnsupportedVersion("the broker does not find topics by their ids: it is older than Kafka 3.1")
    topics = [MetadataRequest.MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in topic_ids]
    return MetadataRequest(topics=topics, allow_auto_topic_creation=False)
