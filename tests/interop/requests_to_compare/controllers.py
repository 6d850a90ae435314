"""What is asked on the listener of the controllers (KIP-919), by tools with `--bootstrap-controller`."""

from dataclasses import replace

from ottla.wire.messages import (
    AlterConfigsRequest,
    ApiVersionsRequest,
    DescribeClientQuotasRequest,
    DescribeClusterRequest,
    ElectLeadersRequest,
    ListConfigResourcesRequest,
    ListPartitionReassignmentsRequest,
    UnregisterBrokerRequest,
)
from tests.interop.compared_nodes import Settle, Step, ask
from tests.interop.requests_to_compare.batches import batch, produce
from tests.interop.requests_to_compare.cluster import CLUSTER_METADATA, metadata_of, quorum, update_features
from tests.interop.requests_to_compare.settings import (
    BROKER,
    CLIENT_METRICS,
    DELETE,
    GROUP,
    LOGGER,
    NO_TYPE,
    SET,
    TOPIC,
    change,
    changed,
    describe,
)
from tests.interop.requests_to_compare.topics import create, creation, topic


def listener() -> list[Step]:
    threads = ("log.cleaner.threads", SET, "2")
    named = ApiVersionsRequest(client_software_name="x", client_software_version="1")
    repeated = change(TOPIC, "ctl", ("retention.ms", SET, "600"))
    repeated.resources *= 2
    both = change(TOPIC, "ctl", ("retention.ms", SET, "700"))
    both.resources += change(BROKER, "x", threads).resources
    config = AlterConfigsRequest.AlterableConfig(name="log.cleaner.threads", value="1")
    replaced = AlterConfigsRequest.AlterConfigsResource(resource_type=BROKER, resource_name="1", configs=[config])
    steps: list[Step] = [
        *ask(named, 0, 3, 4),
        *ask(DescribeClusterRequest(), 0, 1),
        *(
            step
            for type in range(4)
            for step in ask(
                DescribeClusterRequest(endpoint_type=type, include_cluster_authorized_operations=True), 1, 2
            )
        ),
        *ask(quorum(CLUSTER_METADATA, 0), 0, 2),
        *ask(update_features(), 1),
        *ask(UnregisterBrokerRequest(broker_id=9), 0),
        *ask(ListPartitionReassignmentsRequest(topics=None, timeout_ms=30_000), 0),
        *ask(ElectLeadersRequest(topic_partitions=[], timeout_ms=30_000), 2),
        *ask(creation(topic("ctl")), 7),
        *ask(creation(topic("ctl")), 7),
        *changed(
            (BROKER, "1", threads),
            (BROKER, "2", threads),
            (BROKER, "x", threads),
            (BROKER, "", threads),
            (BROKER, "1", ("ssl.keystore.location", SET, "/x")),
            (LOGGER, "1", ("root", SET, "INFO")),
            (LOGGER, "2", ("root", SET, "INFO")),
            (TOPIC, "ctl", ("retention.ms", SET, "7")),
            (TOPIC, "nobody", ("retention.ms", SET, "7")),
            (CLIENT_METRICS, "cm", ("interval.ms", SET, "1000")),
            (GROUP, "g", ("consumer.session.timeout.ms", SET, "50000")),
            (NO_TYPE, "g", ("x", SET, "1")),
            (BROKER, "1", ("ssl.keystore.location", DELETE, None)),
        ),
        *ask(repeated, 1),
        *ask(both, 1),
        *ask(AlterConfigsRequest(resources=[replaced]), 2),
        *ask(describe((BROKER, ""), (BROKER, "1"), (BROKER, "2"), (BROKER, "x")), 4),
        *ask(describe((TOPIC, "ctl"), (TOPIC, "nobody"), (CLIENT_METRICS, "cm"), (GROUP, "g")), 4),
        *ask(describe((LOGGER, "1", ["root"]), (LOGGER, "2"), (CLIENT_METRICS, ""), (GROUP, "")), 4),
        *ask(describe((NO_TYPE, "x")), 4),
        # Not for controllers: they hang up.
        *ask(metadata_of("ctl"), 12),
        *ask(produce(batch(), "ctl"), 12),
        *ask(ListConfigResourcesRequest(), 1),
        *ask(DescribeClientQuotasRequest(), 1),
    ]
    return [*create(("before-ctl", 1)), Settle(("before-ctl",)), *(replace(step, to_controller=True) for step in steps)]
