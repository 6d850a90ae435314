"""Nodes that say who they are to each other: brokers and controllers over listeners with SASL."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    NewTopic,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from tests.cluster.processes_of_a_cluster import WAIT_S, ClusterOfProcesses, eventually
from tests.unit.security.sasl.token_provider import Provider
from tests.unit.security.tls import trial_certificates as trial

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LOGIN = 'required username="admin" password="admin-secret"'
USERS = 'user_admin="admin-secret" user_alice="alice-secret"'


def settings(between_brokers: str, more: dict[str, str] | None = None) -> dict[str, str]:
    """Every listener has SASL, that of the controllers with PLAIN."""
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "sasl.mechanism.inter.broker.protocol": between_brokers,
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.controller.plain.sasl.jaas.config": f"{PLAIN} {LOGIN} {USERS};",
        "listener.name.plaintext.plain.sasl.jaas.config": f"{PLAIN} {LOGIN} {USERS};",
        "listener.name.plaintext.scram-sha-512.sasl.jaas.config": f"{SCRAM} {LOGIN};",
        **(more or {}),
    }


def client(cluster: ClusterOfProcesses, **more: object) -> dict[str, object]:
    tls = {} if cluster.authority is None else {"ssl.ca.location": str(cluster.authority)}
    return {
        "bootstrap.servers": cluster.bootstrap,
        "security.protocol": "SASL_SSL" if tls else "SASL_PLAINTEXT",
        **tls,
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": "alice-secret",
        "log_level": 0,
        "reconnect.backoff.max.ms": 200,
        **more,
    }


def by_tokens(directory: Path) -> dict[str, str]:
    """Nodes show each other a token that a provider has signed, and which is in a file."""
    provider = Provider()
    keys, token = directory / "jwks.json", directory / "token.jwt"
    keys.write_bytes(provider.jwks())
    now = int(time.time())
    token.write_text(provider.token({"sub": "admin", "iat": now, "exp": now + 600}))
    module = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
    return {
        "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
        "sasl.mechanism.controller.protocol": "OAUTHBEARER",
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        "listener.name.controller.oauthbearer.sasl.jaas.config": f"{module} required;",
        "listener.name.plaintext.oauthbearer.sasl.jaas.config": f"{module} required;",
    }


def over_tls(directory: Path) -> dict[str, str]:
    """Every listener is SASL_SSL."""
    node, authority = directory / "node.pem", directory / "ca.pem"
    node.write_bytes(trial.node().both)
    authority.write_bytes(trial.authority().issued.certificate)
    return {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(node),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(authority),
    }


WAYS = [("PLAIN", False), ("SCRAM-SHA-512", False), ("PLAIN", True), ("OAUTHBEARER", False)]


@pytest.fixture(params=WAYS, ids=str)
def cluster(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[ClusterOfProcesses]:
    mechanism, has_tls = request.param
    # Nodes begin their sessions anew again and again while records go through: a little before the end, and not within
    # a second of the last time, which a listener would refuse.
    more = {"connections.max.reauth.ms": "1500"} | (over_tls(tmp_path) if has_tls else {})
    if mechanism == "OAUTHBEARER":
        more |= by_tokens(tmp_path)
        urls = [url for key, url in more.items() if key.endswith("endpoint.url")]
        monkeypatch.setenv("OTTLA_OAUTHBEARER_ALLOWED_URLS", ",".join(urls))
    with ClusterOfProcesses(tmp_path, settings=settings(mechanism, more)) as running:
        if has_tls:
            running.authority = tmp_path / "ca.pem"
        if mechanism == "SCRAM-SHA-512":
            credential = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
            upsertion = UserScramCredentialUpsertion("admin", credential, b"admin-secret")
            admin = AdminClient(client(running))
            for altered in admin.alter_user_scram_credentials([upsertion]).values():
                altered.result(timeout=WAIT_S)
        yield running


def test_brokers_replicate_and_ask_the_controllers_over_sasl(cluster: ClusterOfProcesses) -> None:
    admin = AdminClient(client(cluster))
    for created in admin.create_topics([NewTopic("t", 3, 3)]).values():
        created.result(timeout=WAIT_S)

    def is_replicated() -> bool:
        partitions = admin.list_topics("t", timeout=WAIT_S).topics["t"].partitions.values()
        return len(partitions) == 3 and all(len(partition.isrs) == 3 for partition in partitions)

    eventually(is_replicated, "all replicas are in sync")
    producer = Producer(client(cluster, acks="all"))
    failed: list[object] = []
    # For longer than two sessions, so that followers fetch, and clients produce, in several.
    ends_s = time.monotonic() + 3.5
    count = 0
    while time.monotonic() < ends_s:
        producer.produce("t", str(count).encode(), on_delivery=lambda problem, _: problem and failed.append(problem))
        count += 1
        producer.flush(WAIT_S)
        time.sleep(0.01)  # The time is what counts here, not the records: four processes would use all of the machine.
    assert failed == []
    assert is_replicated()
    consumer = Consumer(client(cluster, **{"group.id": "g", "auto.offset.reset": "earliest"}))
    consumer.subscribe(["t"])
    seen: list[int] = []
    ends_s = time.monotonic() + WAIT_S
    while len(seen) < count and time.monotonic() < ends_s:
        message = consumer.poll(1)
        if message is not None and message.error() is None:
            seen.append(int(message.value()))
    consumer.close()
    assert sorted(seen) == list(range(count))
