"""The worker's topics: created if they are not there, compacted, and looked at before they are used."""

import logging
from typing import Final, NamedTuple

from ottla.client.admin.asking import Asking
from ottla.client.admin.topics import NewTopic, create_topics
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import KafkaError, TopicAlreadyExists
from ottla.connect.errors import ConnectError
from ottla.wire.messages import DescribeConfigsRequest

_log = logging.getLogger(__name__)

_TOPIC_RESOURCE: Final = 2


class UnusableTopic(ConnectError):
    """A topic is there and cannot hold what a worker must remember."""


class WantedTopic(NamedTuple):
    setting: str
    name: str
    partitions: int
    replicas: int
    is_single: bool = False
    """Whether it must have one partition."""


async def prepare_topic(cluster: Cluster, wanted: WantedTopic, timeout_s: float) -> int:
    """How many partitions it has. Raises `UnusableTopic`, or `KafkaError` if brokers cannot be asked in time."""
    world = cluster.world
    deadline_s = world.now_s() + timeout_s
    cluster.add_topics([wanted.name])
    failures = 0
    while True:
        left_ms = max(deadline_s - world.now_s(), 0.001) * 1000
        view = await world.within(cluster.refresh(), left_ms, cluster.no_metadata)
        known = view.topics.get(wanted.name)
        if known is not None and known.partitions and not known.error:
            if wanted.is_single and len(known.partitions) != 1:
                raise UnusableTopic(
                    f"the topic {wanted.name} ({wanted.setting}) must have one partition, and has "
                    f"{len(known.partitions)}; name another with {wanted.setting}"
                )
            await _check_policy(cluster, wanted)
            return len(known.partitions)
        if world.now_s() > deadline_s:
            raise UnusableTopic(f"the topic {wanted.name} ({wanted.setting}) is not there after {timeout_s:.0f} s")
        count = len([one for one in view.brokers if one >= 0]) or 1
        replicas = min(wanted.replicas, count)
        if replicas < wanted.replicas and failures == 0:
            _log.warning("%s is created with %d replicas: there are no more brokers", wanted.name, replicas)
        new = NewTopic(wanted.name, wanted.partitions, replicas, config={"cleanup.policy": "compact"})
        try:
            (await create_topics(Asking(cluster), [new], timeout=min(timeout_s, 30.0))).raise_first()
            _log.info("created the topic %s (%s)", wanted.name, wanted.setting)
        except TopicAlreadyExists:
            pass
        except KafkaError as problem:
            if not problem.retriable:
                raise
        await world.sleep(cluster.backoff.after(failures, world.entropy))
        failures += 1


async def _check_policy(cluster: Cluster, wanted: WantedTopic) -> None:
    """Raises `UnusableTopic` if records would be deleted with time."""
    resource = DescribeConfigsRequest.DescribeConfigsResource(
        resource_type=_TOPIC_RESOURCE, resource_name=wanted.name, configuration_keys=["cleanup.policy"]
    )
    try:
        response = await cluster.ask_any(DescribeConfigsRequest(resources=[resource]))
    except KafkaError as problem:
        _log.warning("cannot see the settings of %s: %s", wanted.name, problem)
        return
    for result in response.results:
        for config in result.configs:
            if config.name == "cleanup.policy" and config.value != "compact":
                raise UnusableTopic(
                    f"the topic {wanted.name} ({wanted.setting}) has cleanup.policy={config.value}, and would lose "
                    f"what a worker must remember: it must be compact (kafka-configs --alter --entity-type topics "
                    f"--entity-name {wanted.name} --add-config cleanup.policy=compact)"
                )
