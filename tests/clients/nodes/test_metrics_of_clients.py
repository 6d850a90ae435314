"""Clients push their metrics to a real node (KIP-714), ours and librdkafka, and they are on its metrics page."""

import re
import time
from urllib.request import urlopen

import confluent_kafka

from ottla.admin import ConfigResource
from ottla.client.blocking.admin import Admin
from ottla.client.blocking.producer import Producer
from ottla.testing.node import RunningNode
from tests.clients.eventually import eventually


def test_metrics_that_clients_push_are_on_the_page() -> None:
    with RunningNode(options=("--metrics", "0")) as node:
        url = re.search(r"^  metrics  (\S+)$", node.log.read_text(), re.MULTILINE)[1]
        with Admin(bootstrap_servers=node.bootstrap) as admin:
            wanted = {"metrics": "*", "interval.ms": "200"}
            admin.incremental_alter_configs({ConfigResource.client_metrics("all"): wanted}).raise_first()
        foreign = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "client.id": "foreign"})
        with Producer(bootstrap_servers=node.bootstrap, client_id="ours") as producer:

            def look() -> set[str]:
                producer.send("orders", b"a record")
                foreign.produce("orders", b"another")
                foreign.poll(0.05)
                time.sleep(0.05)
                with urlopen(url, timeout=30) as reply:
                    page = reply.read().decode()
                return set(re.findall(r'^kafka_client_producer_\w+{.*client_id="(\w+)"', page, re.MULTILINE))

            eventually(look, {"ours", "foreign"})
        foreign.flush(10)


def test_a_node_without_a_metrics_page_does_not_ask_for_metrics() -> None:
    from ottla.client.errors import UnsupportedVersion

    with RunningNode() as node, Admin(bootstrap_servers=node.bootstrap) as admin:
        try:
            admin.client_instance_id()
        except UnsupportedVersion:
            return
        raise AssertionError("it gave an id")
