"""The topic `_schemas`: created if it is not there, and looked at before it is used."""

import logging
from typing import Final

from ottla.base.errors import OttlaError
from ottla.client.admin.asking import Asking
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError, TopicAlreadyExists
from ottla.wire.messages import DescribeConfigsRequest

_log = logging.getLogger(__name__)

_TOPIC_RESOURCE: Final = 2


class UnusableTopic(OttlaError):
    """The topic is there and cannot hold schemas."""


async def prepare_topic(cluster: Cluster, topic: str, replicas: int, timeout_s: float) -> None:
    """Raises `UnusableTopic`, or `KafkaError` if brokers cannot be asked in time."""
    world = cluster.world
    deadline_s = world.now_s() + timeout_s
    cluster.add_topics([topic])
    failures = 0
    while True:
        view = await world.within(cluster.refresh(), max(deadline_s - world.now_s(), 0.001) * 1000, cluster.no_metadata)
        known = view.topics.get(topic)
        if known is not None and known.partitions and not known.error:
            if len(known.partitions) != 1:
                raise UnusableTopic(
                    f"the topic {topic} must have one partition, and has {len(known.partitions)}; "
                    "name another with kafkastore.topic"
                )
            if len(known.partitions[0].replicas) < min(replicas, len(view.brokers)):
                _log.warning(
                    "%s has %d replicas, and kafkastore.topic.replication.factor is %d",
                    topic,
                    len(known.partitions[0].replicas),
                    replicas,
                )
            await _check_policy(cluster, topic)
            return
        if world.now_s() > deadline_s:
            raise UnusableTopic(f"the topic {topic} is not there after {timeout_s:.0f} s")
        count = len([one for one in view.brokers if one >= 0]) or 1
        if 1 < count < replicas and failures == 0:
            _log.warning("%s is created with %d replicas: there are no more brokers", topic, min(replicas, count))
        new = NewTopic(topic, 1, min(replicas, count), config={"cleanup.policy": "compact"})
        try:
            created = await create_topics(Asking(cluster), [new], timeout=min(timeout_s, 30.0))
            created.raise_first()
            _log.info("created the topic %s", topic)
        except TopicAlreadyExists:
            pass
        except KafkaError as problem:
            if not problem.retriable:
                raise
        await world.sleep(cluster.backoff.after(failures, world.entropy))
        failures += 1


async def _check_policy(cluster: Cluster, topic: str) -> None:
    """Raises `UnusableTopic` if records would be deleted with time: schemas are to be kept."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=topic, configuration_keys=["cleanup.policy"]
    )
    try:
        response = await cluster.ask_any(DescribeConfigsRequest(resources=[resource]))
    except KafkaError as problem:
        _log.warning("cannot see the settings of %s: %s", topic, problem)
        return
    for result in response.results:
        for config in result.configs:
            if config.name == "cleanup.policy" and config.value != "compact":
                raise UnusableTopic(
                    f"the topic {topic} has cleanup.policy={config.value}, and would lose schemas: it must be compact "
                    f"(kafka-configs --alter --entity-type topics --entity-name {topic} --add-config "
                    "cleanup.policy=compact)"
                )
