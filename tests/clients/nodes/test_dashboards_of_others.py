"""Dashboards that people have: every metric that their expressions name is on the page, with the labels that they use.

The names are facts, read from Strimzi's dashboards for Kafka, KRaft and its exporter, and from kafka_exporter's own, in
November 2026: of 22, 14, 16 and 5 different expressions that are not about the JVM, containers or volumes. Labels that
Prometheus itself adds (namespace, instance, job, kubernetes_pod_name) are left out.
"""

import re
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from ottla.admin import NewTopic
from ottla.client.blocking.admin import Admin
from ottla.client.blocking.consumer import Consumer
from ottla.client.blocking.producer import Producer
from ottla.testing.node import RunningNode
from tests.clients.eventually import eventually

TOPIC = ("topic",)
PARTITION = ("topic", "partition")
GROUP = ("consumergroup", "topic", "partition")
NONE: tuple[str, ...] = ()

STRIMZI_KAFKA = {
    "kafka_server_replicamanager_leadercount": NONE,
    "kafka_controller_kafkacontroller_activecontrollercount": NONE,
    "kafka_controller_controllerstats_uncleanleaderelections_total": NONE,
    "kafka_server_replicamanager_partitioncount": NONE,
    "kafka_server_replicamanager_underreplicatedpartitions": NONE,
    "kafka_cluster_partition_atminisr": PARTITION,
    "kafka_cluster_partition_underminisr": PARTITION,
    "kafka_controller_kafkacontroller_offlinepartitionscount": NONE,
    "process_open_fds": NONE,
    "kafka_server_kafkaserver_linux_disk_read_bytes": NONE,
    "kafka_server_kafkaserver_linux_disk_write_bytes": NONE,
    "kafka_server_brokertopicmetrics_messagesin_total": TOPIC,
    "kafka_server_brokertopicmetrics_bytesin_total": TOPIC,
    "kafka_server_brokertopicmetrics_bytesout_total": TOPIC,
    "kafka_server_brokertopicmetrics_totalproducerequests_total": TOPIC,
    "kafka_server_brokertopicmetrics_failedproducerequests_total": TOPIC,
    "kafka_server_brokertopicmetrics_totalfetchrequests_total": TOPIC,
    "kafka_server_brokertopicmetrics_failedfetchrequests_total": TOPIC,
    "kafka_network_socketserver_networkprocessoravgidle_percent": NONE,
    "kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent": NONE,
    "kafka_server_socket_server_metrics_connection_count": ("listener",),
    "kafka_log_log_size": PARTITION,
}
STRIMZI_KRAFT = {
    "kafka_server_raftmetrics_current_state": ("current_state",),
    "kafka_server_raftmetrics_current_leader": NONE,
    "kafka_server_raftmetrics_current_vote": NONE,
    "kafka_server_raftmetrics_current_epoch": NONE,
    "kafka_server_raftmetrics_high_watermark": NONE,
    "kafka_server_raftmetrics_log_end_offset": NONE,
    "kafka_server_raftmetrics_append_records_rate": NONE,
    "kafka_server_raftmetrics_fetch_records_rate": NONE,
    "kafka_server_raftmetrics_commit_latency_avg": NONE,
    "kafka_server_raftchannelmetrics_incoming_byte_total": NONE,
    "kafka_server_raftchannelmetrics_outgoing_byte_total": NONE,
    "kafka_server_raftchannelmetrics_request_total": NONE,
    "kafka_server_raftchannelmetrics_response_total": NONE,
    "process_open_fds": NONE,
}
EXPORTER = {
    "kafka_topic_partitions": TOPIC,
    "kafka_topic_partition_replicas": PARTITION,
    "kafka_topic_partition_in_sync_replica": PARTITION,
    "kafka_topic_partition_under_replicated_partition": PARTITION,
    "kafka_topic_partition_leader_is_preferred": PARTITION,
    "kafka_topic_partition_current_offset": PARTITION,
    "kafka_topic_partition_oldest_offset": PARTITION,
    "kafka_cluster_partition_atminisr": PARTITION,
    "kafka_cluster_partition_underminisr": PARTITION,
    "kafka_consumergroup_current_offset": GROUP,
    "kafka_consumergroup_lag": GROUP,
}
NAMED = {**STRIMZI_KAFKA, **STRIMZI_KRAFT, **EXPORTER}


@pytest.fixture(scope="module")
def page() -> Iterator[str]:
    """Of a node that has seen a producer, and a group that is one record behind."""
    with RunningNode(options=("--metrics", "0")) as node:
        with Admin(bootstrap_servers=node.bootstrap) as admin:
            admin.create_topics([NewTopic("orders", 2)])["orders"]
        with Producer(bootstrap_servers=node.bootstrap) as producer:
            for number in range(3):
                producer.send("orders", str(number).encode(), partition=0)
        reading = {"bootstrap.servers": node.bootstrap, "group.id": "readers", "auto.offset.reset": "earliest"}
        with Consumer(reading) as consumer:
            consumer.subscribe(["orders"])
            read = 0
            while read < 3:
                read += len(consumer.poll(1.0))
            consumer.commit()
        with Producer(bootstrap_servers=node.bootstrap) as producer:
            producer.send("orders", b"late", partition=0)
        url = re.search(r"^  metrics  (\S+)$", node.log.read_text(), re.MULTILINE)[1]

        def look() -> bool:
            with urlopen(url, timeout=30) as reply:
                page.append(reply.read().decode())
            return "kafka_consumergroup_lag{" in page[-1]

        page: list[str] = []
        eventually(look, True)
        yield page[-1]


@pytest.mark.parametrize("name", NAMED)
def test_a_metric_that_dashboards_name_is_there_with_its_labels(page: str, name: str) -> None:
    samples = re.findall(rf"^{name}(?:{{(.*)}})? \S+$", page, re.MULTILINE)
    assert samples, f"{name} is not on the page"
    found = [set(re.findall(r'(\w+)="', labels)) for labels in samples]
    assert any(set(NAMED[name]) <= labels for labels in found), found[:3]


def test_a_group_is_told_with_its_lag_in_records_and_seconds(page: str) -> None:
    labels = '{consumergroup="readers",topic="orders",partition="0"}'
    assert f"kafka_consumergroup_current_offset{labels} 3\n" in page
    assert f"kafka_consumergroup_lag{labels} 1\n" in page
    assert 'kafka_consumergroup_lag_sum{consumergroup="readers",topic="orders"} 1\n' in page
    assert re.search(rf"^ottla_consumergroup_lag_seconds{re.escape(labels)} [0-9.]+$", page, re.MULTILINE)


def test_every_metric_of_a_real_node_says_what_it_is(page: str) -> None:
    typed = re.findall(r"^# TYPE (\S+)", page, re.MULTILINE)
    assert len(typed) == len(set(typed)) > 90
    assert set(typed) == set(re.findall(r"^# HELP (\S+)", page, re.MULTILINE))
