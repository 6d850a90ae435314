"""Settings of brokers, topics, groups and the like: changed, replaced, described."""

from typing import Any

from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.wire.messages import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from tests.interop.compared_nodes import Settle, Step, ask
from tests.interop.requests_to_compare.topics import create

SET, DELETE, APPEND, SUBTRACT = range(4)

TOPIC, BROKER, LOGGER = ResourceType.TOPIC, ResourceType.BROKER, ResourceType.BROKER_LOGGER
CLIENT_METRICS, GROUP = ResourceType.CLIENT_METRICS, ResourceType.GROUP
NO_TYPE = 3

Change = tuple[str, int, str | None]


def change(type: int, name: str, *changes: Change, **fields: Any) -> IncrementalAlterConfigsRequest:
    configs = [
        IncrementalAlterConfigsRequest.AlterableConfig(name=key, config_operation=operation, value=value)
        for key, operation, value in changes
    ]
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=type, resource_name=name, configs=configs
    )
    return IncrementalAlterConfigsRequest(resources=[resource], **fields)


def changed(*changes: tuple[Any, ...]) -> list[Step]:
    return [step for given in changes for step in ask(change(*given), 1)]


def describe(*resources: tuple[Any, ...]) -> DescribeConfigsRequest:
    """Each resource is its type, its name and, where not all are wanted, the keys."""
    return DescribeConfigsRequest(
        include_synonyms=True,
        resources=[
            DescribeConfigsRequest.DescribeConfigsResource(
                resource_type=type, resource_name=name, configuration_keys=keys[0] if keys else None
            )
            for type, name, *keys in resources
        ],
    )


def of_brokers() -> list[Step]:
    threads = "log.cleaner.threads"
    return [
        *ask(change(BROKER, "", ("log.retention.ms", SET, "7000")), 1),
        *ask(change(BROKER, "1", (threads, SET, "2"), ("message.max.bytes", SET, " 2000000 ")), 0, 1),
        *changed(
            (BROKER, "", ("log.roll.hours", SET, "5")),
            (BROKER, "", ("nobody.knows", SET, "5")),
            (BROKER, "", ("listener.security.protocol.map", SET, "A:PLAINTEXT")),
            (BROKER, "", ("min.insync.replicas", DELETE, None)),
            (BROKER, "1", ("min.insync.replicas", SET, "2")),
            (BROKER, "1", ("ssl.keystore.location", SET, "/x")),
            (BROKER, "1", (threads, SET, "abc")),
            (BROKER, "1", (threads, APPEND, "5")),
            (BROKER, "1", (threads, 9, "5")),
            (BROKER, "1", (threads, SET, None)),
            (BROKER, "1", ("a", SET, "2"), ("a", SET, "3")),
            (BROKER, "2", (threads, SET, "2")),
            (BROKER, "x"),
            (BROKER, "1"),
            (BROKER, "1", ("log.cleanup.policy", APPEND, "compact")),
            (BROKER, "1", ("log.cleanup.policy", SET, "zz")),
            (NO_TYPE, "1", ("a", SET, "2")),
        ),
        *ask(describe((BROKER, "1"), (BROKER, "")), 1, 4),
        *changed(
            (BROKER, "", ("log.retention.ms", DELETE, None), ("nobody.knows", DELETE, None)),
            (BROKER, "1", (threads, DELETE, None), ("message.max.bytes", DELETE, None)),
            (BROKER, "1", ("log.cleanup.policy", DELETE, None)),
        ),
        *ask(describe((BROKER, "1"), (BROKER, "")), 4),
    ]


def of_topics() -> list[Step]:
    request = change(TOPIC, "set-b", ("retention.ms", SET, "600"))
    request.resources += change(TOPIC, "set-a", ("retention.ms", SET, "1")).resources * 2
    return [
        *create(("set-a", 1), ("set-b", 1)),
        Settle(("set-a", "set-b")),
        *changed(
            (TOPIC, "set-a", ("retention.ms", SET, "x")),
            (TOPIC, "set-a", ("retention.ms", SET, "-5")),
            (TOPIC, "set-a", ("retention.ms", APPEND, "5")),
            (TOPIC, "set-a", ("retention.ms", SET, None)),
            (TOPIC, "set-a", ("nobody", SET, "x")),
            (TOPIC, "set-a", ("nobody", DELETE, None)),
            (TOPIC, "set-a", ("cleanup.policy", APPEND, "compact")),
            (TOPIC, "set-a", ("cleanup.policy", SUBTRACT, "delete")),
            (TOPIC, "set-a", ("min.insync.replicas", SET, "1")),
            (TOPIC, "set-a", ("segment.bytes", SET, "1")),
            (TOPIC, "set-a", ("remote.storage.enable", SET, "true")),
            (TOPIC, "set-a", ("max.compaction.lag.ms", SET, "5"), ("min.compaction.lag.ms", SET, "9")),
            (TOPIC, "set-a", ("compression.type", SET, "lz4")),
            (TOPIC, "nobody", ("retention.ms", SET, "1")),
            (TOPIC, "bad name", ("retention.ms", SET, "1")),
            (TOPIC, "", ("retention.ms", SET, "1")),
        ),
        *ask(request, 0, 1),
        *ask(describe((TOPIC, "set-a"), (TOPIC, "set-b")), 1, 2, 3, 4),
    ]


def of_groups_and_metrics() -> list[Step]:
    timeout = "consumer.session.timeout.ms"
    matches = ["nobody=x", "client_id", "client_id=", "client_id=a=b", "client_id=(", "client_source_port=9.*", ""]
    return [
        *changed(
            (
                CLIENT_METRICS,
                "cm",
                ("interval.ms", SET, "1000"),
                ("metrics", SET, "a.b"),
                ("match", SET, "client_id=x"),
            ),
            *((CLIENT_METRICS, "cm", ("match", SET, match)) for match in matches),
            (CLIENT_METRICS, "cm", ("interval.ms", SET, "1")),
            (CLIENT_METRICS, "cm", ("nobody", SET, "1")),
            (CLIENT_METRICS, "", ("interval.ms", SET, "1000")),
            (GROUP, "g", (timeout, SET, "50000")),
            (GROUP, "g", (timeout, SET, "1")),
            (GROUP, "g", ("nobody", SET, "1")),
            (GROUP, "", (timeout, SET, "50000")),
        ),
        *ask(describe((CLIENT_METRICS, "cm"), (GROUP, "g"), (CLIENT_METRICS, ""), (GROUP, "")), 4),
        *ask(ListConfigResourcesRequest(), 0, 1),
        *ask(ListConfigResourcesRequest(resource_types=[TOPIC]), 1),
        *ask(ListConfigResourcesRequest(resource_types=[CLIENT_METRICS, GROUP, BROKER]), 1),
        *ask(ListConfigResourcesRequest(resource_types=[NO_TYPE]), 1),
    ]


def of_loggers() -> list[Step]:
    return [
        *changed(
            (LOGGER, "1", ("root", SET, "ERROR")),
            (LOGGER, "1", ("root", SET, "ZZ")),
            (LOGGER, "1", ("nobody", SET, "INFO")),
            (LOGGER, "1", ("root", DELETE, None)),
            (LOGGER, "1", ("root", APPEND, "INFO")),
            (LOGGER, "2", ("root", SET, "INFO")),
            (LOGGER, "", ("root", SET, "INFO")),
        ),
        # Which other loggers there are is each system's own.
        *ask(describe((LOGGER, "1", ["root"]), (LOGGER, ""), (LOGGER, "3")), 4),
    ]


def replaced() -> list[Step]:
    """The older API, which gives a resource all its settings anew."""

    def replace(type: int, name: str, **configs: str | None) -> AlterConfigsRequest:
        given = [
            AlterConfigsRequest.AlterableConfig(name=key.replace("_", "."), value=value)
            for key, value in configs.items()
        ]
        resource = AlterConfigsRequest.AlterConfigsResource(resource_type=type, resource_name=name, configs=given)
        return AlterConfigsRequest(resources=[resource])

    return [
        *create(("replaced", 1)),
        Settle(("replaced",)),
        *ask(replace(TOPIC, "replaced", retention_ms="9"), 0, 1, 2),
        *ask(replace(TOPIC, "replaced", retention_ms=None), 2),
        *ask(replace(TOPIC, "nobody", retention_ms="9"), 2),
        *ask(replace(LOGGER, "1", root="INFO"), 2),
        *ask(replace(BROKER, "2", zz="2"), 2),
        *ask(replace(7, "2", zz="2"), 2),
        *ask(replace(BROKER, "1", log_roll_hours="2"), 2),
        *ask(describe((TOPIC, "replaced")), 4),
        *ask(replace(TOPIC, "replaced"), 2),
        *ask(describe((TOPIC, "replaced")), 4),
    ]


def described() -> list[Step]:
    return [
        *create(("shown", 1)),
        Settle(("shown",)),
        *ask(describe((BROKER, "2"), (BROKER, "x"), (TOPIC, "nobody"), (TOPIC, ""), (TOPIC, "bad name")), 4),
        *ask(describe((TOPIC, "shown", []), (TOPIC, "__consumer_offsets")), 4),
        *ask(describe((TOPIC, "shown", ["retention.ms", "nobody"])), 4),
        *ask(describe((NO_TYPE, "1"), (TOPIC, "shown")), 4),
        *ask(describe((TOPIC, "shown"), (TOPIC, "shown")), 4),
    ]
