"""Clients push their metrics to a real node (KIP-714), ours and librdkafka, and they are on its metrics page."""

import re
import time
from urllib.request import urlopen

import confluent_kafka
import pytest

from ottla.admin import ConfigResource
from ottla.client.admin.access.acls import AclBinding, AclResourceType
from ottla.client.blocking.admin import Admin
from ottla.client.blocking.producer import Producer
from ottla.client.errors import ClusterAuthorizationFailed
from ottla.testing import Broker
from ottla.testing.node import RunningNode
from ottla.wire.acls import AclOperation
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


def test_a_client_may_push_its_metrics_without_rights_and_say_nothing_of_others() -> None:
    """As in Apache Kafka: what is asked for is a setting of the cluster, and is changed and shown with rights on it."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",
        "ottla.metrics.listener": "127.0.0.1:0",
    }
    subscription = ConfigResource.client_metrics("all")
    wanted = {"metrics": "*", "interval.ms": "200"}
    with Broker(settings, security="SASL_PLAINTEXT") as broker:
        url = re.search(r"^  metrics  (\S+)$", broker.log.read_text(), re.MULTILINE)[1]
        broker.create_topic("orders")
        secured = broker.client_settings
        with Admin(secured) as admin:
            for refused in (
                lambda: admin.incremental_alter_configs({subscription: wanted}).raise_first(),
                lambda: admin.describe_configs([subscription]).raise_first(),
                admin.list_client_metrics_resources,
            ):
                with pytest.raises(ClusterAuthorizationFailed):
                    refused()
        with Admin(bootstrap_servers=broker._node.bootstrap) as admin:  # where nobody has to log in
            admin.incremental_alter_configs({subscription: wanted}).raise_first()
            rule = AclBinding(AclResourceType.TOPIC, "orders", "User:test", AclOperation.WRITE)
            admin.create_acls([rule]).raise_first()
        with Producer({**secured, "client.id": "pushing"}) as producer:

            def look() -> bool:
                producer.send("orders", b"a record")
                time.sleep(0.05)
                with urlopen(url, timeout=30) as reply:
                    page = reply.read().decode()
                return re.search(r'^kafka_client_producer_\w+{.*client_id="pushing"', page, re.MULTILINE) is not None

            eventually(look, True)


def test_a_node_without_a_metrics_page_does_not_ask_for_metrics() -> None:
    from ottla.client.errors import UnsupportedVersion

    with RunningNode() as node, Admin(bootstrap_servers=node.bootstrap) as admin:
        try:
            admin.client_instance_id()
        except UnsupportedVersion:
            return
        raise AssertionError("it gave an id")
