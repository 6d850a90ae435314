"""Apache Kafka with an authorizer is asked the whole table again: what is committed of it is what it does.

`python -m tests.interop.security.test_access_table_and_kafka` writes the
table anew.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ottla.testing.free_ports import free_ports
from ottla.wire import messages as m
from tests.golden.access.access_table import FACTS, Right, creations, made_table, read_facts, write_facts
from tests.golden.access.guarded_nodes import EVERY_RULE, STANDARD
from tests.golden.access.prepared import prepare, until
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.compared_nodes import Connection

pytestmark = pytest.mark.interop

USERS = {"admin": "a", "bob": "b"}
JAAS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="admin" password="a" user_admin="a" user_bob="b";'
)


class GuardedKafka:
    """A node with listeners for brokers' clients and for controllers', both with SASL. admin is a super user."""

    def __init__(self, broker: str, controller: str) -> None:
        self._addresses = {False: broker, True: controller}
        self._connections: dict[tuple[str, bool], Connection] = {}

    def send(self, user: str, request: Any, version: int, to_controller: bool = False) -> Any:
        key = user, to_controller
        connection = self._connections.get(key)
        if connection is None:
            connection = self._connections[key] = Connection(self._addresses[to_controller])
            connection.send(m.SaslHandshakeRequest(mechanism="PLAIN"), 1)
            secret = f"\0{user}\0{USERS[user]}".encode()
            assert not connection.send(m.SaslAuthenticateRequest(auth_bytes=secret), 2).error_code
        reply = connection.send(request, version)
        if isinstance(reply, str):
            self._connections.pop(key).close()
        return reply

    def set_rules(self, rules: tuple[Right, ...]) -> None:
        """Comes back when broker and controller have heard of them."""
        every = m.DeleteAclsRequest.DeleteAclsFilter(**EVERY_RULE)
        self.send("admin", m.DeleteAclsRequest(filters=[every]), 3)
        if rules:
            self.send("admin", m.CreateAclsRequest(creations=creations(rules)), 3)
        for to_controller in (False, True):
            until(
                lambda where=to_controller: self.send("admin", m.DescribeAclsRequest(**EVERY_RULE), 3, where),
                lambda reply: sum(len(resource.acls) for resource in reply.resources) == len(rules),
            )

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()


@contextmanager
def a_guarded_kafka() -> Iterator[GuardedKafka]:
    port, controller = free_ports(2)
    config = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"ADMIN://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}",
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,ADMIN:SASL_PLAINTEXT",
        "inter.broker.listener.name": "ADMIN",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.admin.plain.sasl.jaas.config": JAAS,
        "listener.name.controller.plain.sasl.jaas.config": JAAS,
        "super.users": "User:admin",
        "authorizer.class.name": STANDARD,
    }
    kafka = ApacheKafka(config=config)
    kafka.bootstrap, kafka._port = f"127.0.0.1:{port}", port
    with kafka:
        guarded = GuardedKafka(kafka.bootstrap, f"127.0.0.1:{controller}")
        try:
            yield guarded
        finally:
            guarded.close()


def asked_anew() -> dict[str, dict[str, dict[str, list[str]]]]:
    with a_guarded_kafka() as kafka:
        ids = prepare(lambda request, version: kafka.send("admin", request, version))
        return made_table(
            kafka.set_rules, lambda request, version, where: kafka.send("bob", request, version, where), ids
        )


def test_the_table_is_what_apache_kafka_does() -> None:
    facts = read_facts()
    asked = asked_anew()
    assert asked.keys() == facts.keys()
    differing = [
        f"{title}, with {rules}"
        for title, by_rules in asked.items()
        for rules, outcomes in by_rules.items()
        if facts[title][rules] != outcomes
    ]
    assert differing == []


if __name__ == "__main__":
    write_facts(asked_anew())
    print(f"wrote {FACTS}")
