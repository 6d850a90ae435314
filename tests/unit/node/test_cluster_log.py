"""What an operator reads in the log of a node about the cluster."""

import logging
from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.controller import change_log
from ottla.machines.metadata.image.brokers_image import BrokerRegistration, Endpoint
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import PartitionImage
from ottla.machines.metadata.image.topics_image import TopicImage
from ottla.node.cluster_log import ClusterLog
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers
from ottla.wire.messages import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    CreateTopicsRequest,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from tests.unit.node.whole_nodes import COMBINED, PORT, WholeNode

ME, OTHER = 1, 2
SET = 0


def changed(**fields: Any) -> MetadataDelta:
    delta = MetadataDelta()
    vars(delta).update(fields)
    return delta


class Cluster:
    """An image that a test changes, and the lines that come of it."""

    def __init__(self, caplog: pytest.LogCaptureFixture, *, is_broker: bool = True, is_controller: bool = True) -> None:
        caplog.set_level(logging.INFO, "ottla")
        self._caplog = caplog
        self.timers = StepTimers(FixedClock())
        self.image = MetadataImage()
        self.log = ClusterLog(self.timers, self.image, ME, is_broker=is_broker, is_controller=is_controller)

    def broker(self, broker_id: int, **fields: Any) -> None:
        endpoint = Endpoint("PLAINTEXT", f"host-{broker_id}", 9092, 0)
        fields.setdefault("epoch", 7)
        self.image.brokers.by_id[broker_id] = BrokerRegistration(
            broker_id, incarnation_id=Uuid(bytes(16)), endpoints=(endpoint,), **fields
        )
        self.log.on_metadata(changed(brokers={broker_id}))

    def unregister(self, broker_id: int) -> None:
        del self.image.brokers.by_id[broker_id]
        self.log.on_metadata(changed(brokers={broker_id}))

    def partitions(self, before: PartitionImage | None, after: PartitionImage, count: int = 1) -> None:
        topic_id = Uuid(bytes([9] * 16))
        topic = TopicImage("orders", topic_id)
        topic.partitions = dict.fromkeys(range(count), after)
        self.image.topics.by_id[topic_id] = topic
        self.log.on_metadata(changed(partitions={(topic_id, number): before for number in range(count)}))

    def lines(self) -> list[str]:
        self.timers.advance(1000)
        lines = [f"{record.levelname} {record.getMessage()}" for record in self._caplog.records]
        self._caplog.clear()
        return lines


def test_a_broker_that_comes_and_goes(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(caplog)
    cluster.broker(OTHER, fenced=True, rack="a")
    cluster.broker(OTHER, fenced=False)
    cluster.broker(OTHER, fenced=False, in_controlled_shutdown=True)
    cluster.broker(OTHER, fenced=True, in_controlled_shutdown=True)
    cluster.unregister(OTHER)
    assert cluster.lines() == [
        "INFO broker 2 registered with epoch 7: PLAINTEXT://host-2:9092, rack a",
        "INFO broker 2 is unfenced",
        "INFO broker 2 is shutting down; the controller moves what it leads",
        "INFO broker 2 is fenced: it has shut down",
        "INFO broker 2 was unregistered",
    ]


def test_a_broker_that_is_lost_is_a_warning_and_so_are_its_directories(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(caplog)
    cluster.broker(OTHER, fenced=False, directories=(Uuid(bytes([1] * 16)), Uuid(bytes([2] * 16))))
    cluster.lines()
    cluster.broker(OTHER, fenced=True, directories=(Uuid(bytes([2] * 16)),))
    assert cluster.lines() == [
        "WARNING broker 2 is fenced: it has stopped, or the controller no longer hears from it",
        "WARNING broker 2 has lost 1 of its log directories",
    ]


def test_a_node_that_stops_does_not_warn_of_itself(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(caplog)
    cluster.broker(ME, fenced=False)
    cluster.lines()
    cluster.log.is_stopping = True
    cluster.broker(ME, fenced=True)
    assert cluster.lines() == ["INFO this broker is fenced: it has shut down"]


def test_brokers_that_flap_do_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(caplog)
    for number in range(1000):
        cluster.broker(OTHER, fenced=bool(number % 2))
    assert len(cluster.lines()) <= 10


def test_ten_thousand_partitions_that_change_at_once_are_a_line_for_each_kind(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(caplog)
    led_here = PartitionImage((1, 2), (1, 2), leader=ME)
    cluster.partitions(led_here, led_here._replace(isr=(1,)), count=10_000)
    cluster.partitions(led_here._replace(isr=(1,)), led_here, count=3)
    cluster.partitions(led_here, led_here._replace(leader=OTHER), count=1)
    lines = cluster.lines()
    assert lines == [
        "INFO new leaders of 1 partition: orders-0 (1 to 2)",
        "INFO this broker no longer leads 1 partition: orders-0",
        "INFO the ISR of 10,000 partitions shrank: orders-0 (from 1,2 to 1), orders-1 (from 1,2 to 1), orders-2 (from "
        "1,2 to 1), orders-3 (from 1,2 to 1), orders-4 (from 1,2 to 1) and 9,995 more",
        "INFO the ISR of 3 partitions expanded: orders-0 (from 1 to 1,2), orders-1 (from 1 to 1,2), orders-2 (from 1 "
        "to 1,2)",
    ]
    assert cluster.lines() == [], "nothing is told twice"


def test_a_partition_without_a_leader_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(caplog, is_broker=False)
    led = PartitionImage((2, 3), (2,), leader=2)
    cluster.partitions(led, led._replace(leader=-1))
    assert cluster.lines() == [
        "WARNING 1 partition lost the leader, and no other can be elected: orders-0 (replicas 2,3, ISR 2)"
    ]


def test_a_broker_without_a_controller_tells_of_its_own_partitions_alone(caplog: pytest.LogCaptureFixture) -> None:
    cluster = Cluster(caplog, is_controller=False)
    elsewhere = PartitionImage((2, 3), (2, 3), leader=2)
    cluster.partitions(elsewhere, elsewhere._replace(leader=3, isr=(3,)))
    assert cluster.lines() == []


def test_the_life_of_a_node_in_its_log(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla")
    node = WholeNode(COMBINED, offsets_topic_replication_factor="1")
    topic = CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=3, replication_factor=1)
    node.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1000), 7, PORT)
    set_retention = IncrementalAlterConfigsRequest.AlterableConfig(
        name="retention.ms", config_operation=SET, value="1000"
    )
    of_orders = IncrementalAlterConfigsRequest.AlterConfigsResource(
        resource_type=2, resource_name="orders", configs=[set_retention]
    )
    node.ask(IncrementalAlterConfigsRequest(resources=[of_orders]), 1, PORT)
    node.timers.advance(1000)
    node.stop()
    lines = [record.getMessage() for record in caplog.records]
    told = [
        "starting node 1 (broker,controller), ottla ",
        "cluster ",
        "listening on PLAINTEXT://127.0.0.1:9092, CONTROLLER://127.0.0.1:9093",
        "controller 1 leads the metadata quorum in epoch 1",
        "this broker registered with epoch ",
        "this broker is unfenced",
        "User:ANONYMOUS (127.0.0.1) set retention.ms=1000 of topic orders",
        "created 1 topic: orders (3 partitions)",
        "this broker now leads 3 partitions: orders-0, orders-1, orders-2",
        "stopping node 1",
        "this broker is shutting down; the controller moves what it leads",
        "3 partitions lost the leader",
        "controller 1 no longer leads the metadata quorum, after epoch 1",
    ]
    places = [next((at for at, line in enumerate(lines) if line.startswith(one)), -1) for one in told]
    assert places == sorted(set(places) - {-1}), lines
    assert not [record for record in caplog.records if record.levelno > logging.INFO]


def test_passwords_are_not_shown_nor_settings_that_nobody_knows() -> None:
    def changed(kind: int, name: str, value: str) -> str:
        config = IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=SET, value=value)
        resource = IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=kind, resource_name="", configs=[config]
        )
        [line] = change_log.configs(
            IncrementalAlterConfigsRequest(resources=[resource]), IncrementalAlterConfigsResponse(responses=[])
        )
        return line

    assert changed(4, "ssl.keystore.password", "secret") == "set ssl.keystore.password=[hidden] of all brokers"
    assert changed(4, "some.plugins.token", "secret") == "set some.plugins.token=[hidden] of all brokers"
    assert changed(4, "num.io.threads", "9") == "set num.io.threads=9 of all brokers"


def test_what_was_refused_is_not_told() -> None:
    config = IncrementalAlterConfigsRequest.AlterableConfig(name="retention.ms", config_operation=SET, value="x")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource(resource_type=2, resource_name="a", configs=[config])
    refused = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse(
        error_code=40, resource_type=2, resource_name="a"
    )
    request = IncrementalAlterConfigsRequest(resources=[resource])
    assert list(change_log.configs(request, IncrementalAlterConfigsResponse(responses=[refused]))) == []


def test_quotas_are_told_by_entity() -> None:
    entity = [AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="alice")]
    entity.append(AlterClientQuotasRequest.EntityData(entity_type="client-id", entity_name=None))
    ops = [AlterClientQuotasRequest.OpData(key="producer_byte_rate", value=1024.0, remove=False)]
    ops.append(AlterClientQuotasRequest.OpData(key="request_percentage", value=0.0, remove=True))
    request = AlterClientQuotasRequest(entries=[AlterClientQuotasRequest.EntryData(entity=entity, ops=ops)])

    reply = AlterClientQuotasResponse(entries=[AlterClientQuotasResponse.EntryData()])
    assert list(change_log.quotas(request, reply)) == [
        "set producer_byte_rate=1024 of user alice, client-id default",
        "removed request_percentage of user alice, client-id default",
    ]
