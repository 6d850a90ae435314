"""Brokers of both kinds with SASL_SSL between all nodes, and an authorizer, under a controller of either kind.

Nodes let each other in by PLAIN, SCRAM or OAUTHBEARER, replicate, write markers of transactions, and pass on what
clients ask: the controller judges by the client that asked, whichever kind of broker passed it on.
"""

import time
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.admin import AclBinding, AclOperation, AclPermission, AclResourceType, PatternType
from ottla.errors import ClusterAuthorizationFailed, TopicAuthorizationFailed
from tests.interop.certificate_maker import Authority
from tests.interop.mixed_cluster import APACHE_KAFKA, OURS, MixedCluster, eventually
from tests.interop.secured_kafka import OAUTH_MODULE, PLAIN_MODULE, SCRAM_MODULE
from tests.unit.security.sasl.token_provider import Provider

pytestmark = pytest.mark.interop

KAFKAS, MINE = 2, 3
KINDS = {KAFKAS: APACHE_KAFKA, MINE: OURS}
ROLES = {1: "controller", KAFKAS: "broker", MINE: "broker"}
USERS = {"admin": "admin-secret", "alice": "alice-secret", "bob": "bob-secret"}
TOPIC = "alice-orders"
PARTITIONS = [TopicPartition(TOPIC, 0), TopicPartition(TOPIC, 1)]
BATCH = 20
_OAUTH = "org.apache.kafka.common.security.oauthbearer."


class Secured(NamedTuple):
    """What nodes and clients of one cluster need to trust each other."""

    settings: dict[str, object]
    format_options: list[str]
    allowed_urls: list[str]
    authority: Path

    def client(self, bootstrap: str, user: str) -> dict[str, object]:
        return {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.authority),
            "sasl.mechanism": "PLAIN",
            "sasl.jaas.config": f'{PLAIN_MODULE} required username="{user}" password="{USERS[user]}";',
        }


def secured(directory: Path, mechanism: str) -> Secured:
    """Nodes use that mechanism between each other, clients PLAIN.

    Controllers have PLAIN where brokers have SCRAM: its users are in the metadata, which controllers must load first.
    """
    authority = Authority(directory)
    of_controllers = "PLAIN" if mechanism.startswith("SCRAM") else mechanism
    login = f'required username="admin" password="{USERS["admin"]}"'
    users = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
    logins = {
        "PLAIN": f"{PLAIN_MODULE} {login} {users};",
        "SCRAM-SHA-512": f"{SCRAM_MODULE} {login};",
        "OAUTHBEARER": f"{OAUTH_MODULE} required;",
    }
    settings: dict[str, object] = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_SSL,CONTROLLER:SASL_SSL",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": ",".join({"PLAIN", mechanism, of_controllers}),
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.mechanism.controller.protocol": of_controllers,
        "connections.max.reauth.ms": 5000,
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": authority.issue("node").pem,
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": authority.pem,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:admin",
    }
    for listener in ("plaintext", "controller"):
        for name in {"PLAIN", mechanism, of_controllers}:
            settings[f"listener.name.{listener}.{name.lower()}.sasl.jaas.config"] = logins[name]
    allowed: list[str] = []
    if mechanism == "OAUTHBEARER":
        allowed = _with_tokens(settings, directory)
    scram = f"SCRAM-SHA-512=[name=admin,password={USERS['admin']}]"
    return Secured(settings, ["--add-scram", scram], allowed, authority.pem)


def _with_tokens(settings: dict[str, object], directory: Path) -> list[str]:
    """Nodes show a signed token that is in a file, and believe it by the provider's keys; returns the URLs of both."""
    provider = Provider()
    now = int(time.time())
    claims = {"sub": "admin", "iss": "https://provider", "aud": "kafka", "iat": now, "exp": now + 3600}
    keys, token = directory / "jwks.json", directory / "token.jwt"
    keys.write_bytes(provider.jwks())
    token.write_text(provider.token(claims))
    settings |= {
        "sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
        "sasl.oauthbearer.token.endpoint.url": token.as_uri(),
        "sasl.oauthbearer.expected.audience": "kafka",
        "sasl.oauthbearer.expected.issuer": "https://provider",
    }
    for listener in ("plaintext", "controller"):
        prefix = f"listener.name.{listener}.oauthbearer.sasl."
        settings[prefix + "server.callback.handler.class"] = _OAUTH + "OAuthBearerValidatorCallbackHandler"
        settings[prefix + "login.callback.handler.class"] = _OAUTH + "OAuthBearerLoginCallbackHandler"
    return [keys.as_uri(), token.as_uri()]


@pytest.mark.parametrize(
    ("controller", "mechanism"),
    [
        (APACHE_KAFKA, "SCRAM-SHA-512"),
        (OURS, "PLAIN"),
        (APACHE_KAFKA, "OAUTHBEARER"),
        (OURS, "OAUTHBEARER"),
    ],
)
def test_nodes_of_both_kinds_trust_each_other_and_hold_clients_to_their_rights(
    tmp_path: Path, controller: str, mechanism: str
) -> None:
    trust = secured(tmp_path, mechanism)
    with MixedCluster(
        tmp_path,
        {1: controller, **KINDS},
        ROLES,
        more=trust.settings,
        format_options=trust.format_options,
        allowed_urls=trust.allowed_urls,
    ) as cluster:
        with Admin(trust.client(cluster.bootstrap, "admin")) as admin:
            eventually(lambda: len(admin.describe_cluster().nodes) == len(KINDS), "both brokers are there")
            _allow_alice(admin)
            for node_id in KINDS:
                _is_judged_by_its_own_rights(trust, cluster.addresses[node_id], node_id)
            assignment = {0: [KAFKAS, MINE], 1: [MINE, KAFKAS]}
            admin.create_topics([NewTopic(TOPIC, assignment=assignment)]).raise_first()

            def leaders() -> list[int | None]:
                return [one.leader for one in admin.describe_topics([TOPIC])[TOPIC].partitions]

            def in_sync() -> list[set[int]]:
                return [set(one.in_sync_replicas) for one in admin.describe_topics([TOPIC])[TOPIC].partitions]

            eventually(lambda: leaders() == [KAFKAS, MINE], "each leads one partition")
            sent = 0
            settings = {**trust.client(cluster.bootstrap, "alice"), "transactional.id": "alice-writer"}
            with Producer(settings) as producer:
                sent = _write(producer, sent)
                for gone, left in ((KAFKAS, MINE), (MINE, KAFKAS)):
                    cluster.kill(gone)
                    eventually(lambda left=left: leaders() == [left, left], f"node {left} leads both")
                    sent = _write(producer, sent)
                    cluster.start(gone)
                    eventually(lambda: in_sync() == [{KAFKAS, MINE}] * 2, "both are in sync")
                sent = _write(producer, sent)
        assert _read_all(trust.client(cluster.bootstrap, "alice"), sent) == list(range(sent))


def _allow_alice(admin: Admin) -> None:
    def rule(kind: AclResourceType, operation: AclOperation) -> AclBinding:
        return AclBinding(kind, "alice-", "User:alice", operation, AclPermission.ALLOW, PatternType.PREFIXED)

    admin.create_acls(
        [
            rule(AclResourceType.TOPIC, AclOperation.ALL),
            rule(AclResourceType.TRANSACTIONAL_ID, AclOperation.ALL),
            rule(AclResourceType.GROUP, AclOperation.READ),
        ]
    ).raise_first()


def _is_judged_by_its_own_rights(trust: Secured, address: str, node_id: int) -> None:
    """What a broker passes on to the controller is asked by its client, not by the broker, which may do everything."""
    with Admin(trust.client(address, "alice")) as alice, Admin(trust.client(address, "bob")) as bob:
        own = f"alice-through-{node_id}"
        eventually(lambda: alice.create_topics([NewTopic(own)]).errors == {}, "alice may create what is hers")
        for one in (alice, bob):
            error = one.create_topics([NewTopic(f"others-through-{node_id}")]).errors[f"others-through-{node_id}"]
            assert isinstance(error, ClusterAuthorizationFailed | TopicAuthorizationFailed)
        eventually(lambda: own in {topic.name for topic in alice.list_topics()}, "alice sees her topic")
        assert bob.list_topics() == []


def _write(producer: Producer, sent: int) -> int:
    """To both partitions, in a transaction; returns how many there are now."""
    with producer.transaction():
        for number in range(sent, sent + BATCH):
            producer.send(TOPIC, b"%d" % number, partition=number % len(PARTITIONS))
    return sent + BATCH


def _read_all(settings: dict[str, object], wanted: int) -> list[int]:
    found: list[int] = []
    with Consumer({**settings, "isolation.level": "read_committed"}) as consumer:
        consumer.assign(PARTITIONS)
        consumer.seek_to_beginning(*PARTITIONS)

        def read() -> bool:
            found.extend(int(record.value) for record in consumer.poll(0.5))
            return len(found) >= wanted

        eventually(read, f"{wanted} records are read")
    return sorted(found)
