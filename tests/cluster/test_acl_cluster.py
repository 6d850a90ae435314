"""Three nodes with an authorizer: they trust each other by name, and hold every client to its rights."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from tests.cluster.processes_of_a_cluster import WAIT_S, ClusterOfProcesses, eventually
from tests.cluster.test_sasl_cluster import client, settings

AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:admin",
}


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterOfProcesses]:
    directory: Path = tmp_path_factory.mktemp("acls")
    with ClusterOfProcesses(directory, settings=settings("PLAIN", AUTHORIZER)) as running:
        yield running


def test_clients_of_every_node_are_held_to_their_rights(cluster: ClusterOfProcesses) -> None:
    """A client creates topics through any node, and most have to ask another one on its behalf."""
    admin = AdminClient(client(cluster, **{"sasl.username": "admin", "sasl.password": "admin-secret"}))
    alices = [AdminClient(client(cluster, **{"bootstrap.servers": node.address})) for node in cluster.nodes.values()]
    for number, alice in enumerate(alices):
        with pytest.raises(KafkaException) as refused:
            alice.create_topics([NewTopic(f"mine-{number}", 1, 3)])[f"mine-{number}"].result(WAIT_S)
        assert refused.value.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    rules = [
        AclBinding(
            ResourceType.TOPIC, "mine-", ResourcePatternType.PREFIXED, "User:alice", "*", operation,
            AclPermissionType.ALLOW,
        )
        for operation in (AclOperation.CREATE, AclOperation.WRITE)
    ]  # fmt: skip
    for created in admin.create_acls(rules).values():
        created.result(WAIT_S)

    def creates(alice: AdminClient, name: str) -> bool:
        try:
            alice.create_topics([NewTopic(name, 1, 3)])[name].result(WAIT_S)
        except KafkaException as problem:
            if problem.args[0].code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
                return False  # The controller that was asked has not heard of the rules yet.
            raise
        return True

    for number, alice in enumerate(alices):
        eventually(lambda alice=alice, number=number: creates(alice, f"mine-{number}"), "alice may create topics")
    outcomes: list[object] = []
    producer = Producer(client(cluster, acks="all"))
    for number in range(len(alices)):
        producer.produce(f"mine-{number}", b"v", on_delivery=lambda error, _: outcomes.append(error))
    producer.flush(WAIT_S)
    assert outcomes == [None] * len(alices), "replicated by brokers that are super users to each other"
