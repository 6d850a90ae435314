"""Java's clients and Kafka's tools over SASL at a node of ours: mechanisms, sessions that end, delegation tokens."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.apache_kafka import ApacheKafkaError, java
from tests.interop.sasl_node import PLAIN_USERS, SCRAM_USERS, SaslNode, a_sasl_node, add_scram_users, quoted

pytestmark = pytest.mark.interop

TOPICS = "org.apache.kafka.tools.TopicCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
PRODUCER = "org.apache.kafka.tools.ProducerPerformance"
_MODULES = "org.apache.kafka.common.security."
PLAIN, SCRAM = _MODULES + "plain.PlainLoginModule", _MODULES + "scram.ScramLoginModule"
USERS = [
    ("PLAIN", PLAIN, "alice", PLAIN_USERS["alice"]),
    ("PLAIN", PLAIN, "bob", PLAIN_USERS["bob"]),
    ("SCRAM-SHA-256", SCRAM, "carol", SCRAM_USERS["carol"]),
    ("SCRAM-SHA-512", SCRAM, "d=a,n", SCRAM_USERS["d=a,n"]),
]


@pytest.fixture(scope="module")
def node() -> Iterator[SaslNode]:
    settings = {"delegation.token.secret.key": "of the cluster", "connections.max.reauth.ms": "3000"}
    with a_sasl_node(settings) as running:
        add_scram_users(running.node.bootstrap)
        yield running


def config(directory: Path, mechanism: str, module: str, user: str, password: str, more: str = "") -> str:
    login = f"{module} required username={quoted(user)} password={quoted(password)} {more};"
    file = directory / "client.properties"
    lines = ["security.protocol=SASL_PLAINTEXT", f"sasl.mechanism={mechanism}"]
    file.write_text("\n".join([*lines, "sasl.jaas.config=" + login.replace("\\", "\\\\"), ""]))
    return str(file)


def tool(main: str, node: SaslNode, client: str, *words: str) -> str:
    return java(main, "--bootstrap-server", node.bootstrap, "--command-config", client, *words).stdout


@pytest.mark.parametrize("user", USERS, ids=lambda user: f"{user[0]} {user[2]}")
def test_javas_clients_get_in(node: SaslNode, tmp_path: Path, user: tuple[str, str, str, str]) -> None:
    topic = "of-" + "".join(sign for sign in user[2] if sign.isalpha())
    client = config(tmp_path, *user)
    tool(TOPICS, node, client, "--create", "--topic", topic)
    assert topic in tool(TOPICS, node, client, "--list").split()


def test_a_wrong_password_is_told_in_kafkas_words(node: SaslNode, tmp_path: Path) -> None:
    client = config(tmp_path, "SCRAM-SHA-512", SCRAM, "carol", "wrong")
    with pytest.raises(ApacheKafkaError, match="due to invalid credentials with SASL mechanism SCRAM-SHA-512"):
        tool(TOPICS, node, client, "--list")


def test_a_producer_outlives_its_session(node: SaslNode, tmp_path: Path) -> None:
    """For eight seconds, in sessions of three: it authenticates again on its way (KIP-368)."""
    client = config(tmp_path, "PLAIN", PLAIN, "alice", PLAIN_USERS["alice"])
    tool(TOPICS, node, client, "--create", "--topic", "long")
    rate = ("--num-records", "80", "--record-size", "10", "--throughput", "10")
    assert "80 records sent" in tool(PRODUCER, node, client, "--topic", "long", *rate)


def test_a_delegation_token_is_made_used_renewed_and_ended(node: SaslNode, tmp_path: Path) -> None:
    alice = config(tmp_path, "PLAIN", PLAIN, "alice", PLAIN_USERS["alice"])
    made = tool(TOKENS, node, alice, "--create", "--max-life-time-period", "-1")
    token_id, hmac = made.strip().splitlines()[-1].split()[:2]
    (tmp_path / "token").mkdir()
    by_token = config(tmp_path / "token", "SCRAM-SHA-256", SCRAM, token_id, hmac, 'tokenauth="true"')
    tool(TOPICS, node, by_token, "--list")
    shown = tool(TOKENS, node, alice, "--describe", "--owner-principal", "User:alice")
    assert token_id in shown
    assert "Completed renew" in tool(TOKENS, node, alice, "--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert "Completed expire" in tool(TOKENS, node, alice, "--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    with pytest.raises(ApacheKafkaError, match="invalid credentials"):
        tool(TOPICS, node, by_token, "--list")
