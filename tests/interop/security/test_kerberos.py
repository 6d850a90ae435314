"""Kerberos (SASL GSSAPI): Java's clients at a node of ours, ours at Apache Kafka's, and ours at ours.

The KDC is Apache Kerby's, of these tests alone. Needs the extra: `pip install 'ottla[gssapi]'`.
"""

import asyncio
import json
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, aio
from ottla.errors import RetriableError, SaslAuthenticationFailed
from ottla.testing.node import RunningNode
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses, described, eventually
from tests.interop.apache_kafka import QUICK_START, ApacheKafka, free_ports, java
from tests.interop.security.kerberos_names import RECORDED, ask
from tests.interop.security.kerberos_realm import MODULE, KerberosRealm

pytestmark = pytest.mark.interop
LISTENER = "listener.name.sasl_plaintext.gssapi.sasl.jaas.config"
SESSION_MS = 1500
TOPICS = "org.apache.kafka.tools.TopicCommand"


def test_the_recorded_short_names_are_kafkas() -> None:
    assert json.loads(RECORDED.read_text()) == ask()


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KerberosRealm]:
    pytest.importorskip("gssapi", reason="the extra gssapi is not installed")
    with pytest.MonkeyPatch.context() as patched, KerberosRealm(tmp_path_factory.mktemp("realm")) as realm:
        for name, value in realm.environment.items():
            patched.setenv(name, value)
        yield realm


@pytest.fixture(scope="module")
def ours(realm: KerberosRealm) -> Iterator[str]:
    """Where our node listens with Kerberos."""
    [port] = free_ports(1)
    settings = {
        "listeners": f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://localhost:{port},CONTROLLER://127.0.0.1:0",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        LISTENER: realm.login("kafka/localhost"),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:ANONYMOUS",
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    with RunningNode(config=settings, environment=realm.environment):
        yield f"localhost:{port}"


@pytest.fixture(scope="module")
def kafkas(realm: KerberosRealm, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where Apache Kafka's does."""
    [port] = free_ports(1)
    kafka = ApacheKafka(tmp_path_factory.mktemp("kafka"), java_options=("-Xmx512m", realm.java_option))
    kafka.config["listeners"] = f"{kafka.config['listeners']},SASL_PLAINTEXT://localhost:{port}"
    kafka.config["listener.security.protocol.map"] = (
        "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT"
    )
    kafka.config |= {
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        LISTENER: realm.login("kafka/localhost"),
    }
    with kafka:
        yield f"localhost:{port}"


@pytest.fixture(params=["ours", "kafkas"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    where: str = request.getfixturevalue(request.param)
    return where


def test_our_clients_get_in_by_a_key_table(realm: KerberosRealm, bootstrap: str) -> None:
    settings = realm.client(bootstrap)
    with Admin(settings) as admin:
        admin.create_topics([NewTopic("blocking")]).raise_first()
    with Producer(settings) as producer:
        for number in range(10):
            producer.send("blocking", value=b"%d" % number)
    with Consumer({**settings, "auto.offset.reset": "earliest", "group.id": "blocking"}) as consumer:
        consumer.subscribe(["blocking"])
        values: list[bytes] = []
        while len(values) < 10:
            values += [record.value for record in consumer.poll(10.0)]
    assert values == [b"%d" % number for number in range(10)]


def test_asyncio_clients_do_the_same(realm: KerberosRealm, bootstrap: str) -> None:
    async def scene() -> None:
        settings = realm.client(bootstrap)
        async with aio.Admin(settings) as admin:
            (await admin.create_topics([NewTopic("asyncio")])).raise_first()
        async with aio.Producer(settings) as producer:
            await producer.send("asyncio", value=b"1")

    asyncio.run(scene())


def java_config(directory: Path, settings: Mapping[str, object]) -> str:
    file = directory / "client.properties"
    lines = [f"{key}={value}" for key, value in settings.items() if key != "bootstrap.servers"]
    file.write_text("\n".join([*lines, ""]))
    return str(file)


def javas_topics(realm: KerberosRealm, bootstrap: str, directory: Path, user: str, *words: str) -> list[str]:
    """Java's client, as that user."""
    config = java_config(directory, realm.client(bootstrap, user))
    words = ("--bootstrap-server", bootstrap, "--command-config", config, *words)
    return java(TOPICS, *words, java_options=(*QUICK_START, realm.java_option)).stdout.split()


def test_javas_clients_get_in_and_are_who_their_tickets_say(realm: KerberosRealm, ours: str, tmp_path: Path) -> None:
    """alice may do everything; bob may not, and gets in all the same."""
    javas_topics(realm, ours, tmp_path, "alice", "--create", "--topic", "javas")
    assert "javas" in javas_topics(realm, ours, tmp_path, "alice", "--list")
    assert javas_topics(realm, ours, tmp_path, "bob", "--list") == []


def test_a_client_shows_a_ticket_again_before_its_session_ends(realm: KerberosRealm, ours: str) -> None:
    """KIP-368: the node closes a connection whose session is over, and a request that is not tried again would fail."""
    ends_s = time.monotonic() + 3 * SESSION_MS / 1000
    with Admin({**realm.client(ours), "retries": 0}) as admin:
        while time.monotonic() < ends_s:
            admin.list_topics()
            time.sleep(0.05)


def refusal(settings: dict[str, object]) -> str:
    with Admin(settings) as admin, pytest.raises(SaslAuthenticationFailed) as raised:
        admin.list_topics()
    return str(raised.value)


def test_tickets_that_are_there_already_are_used(realm: KerberosRealm, bootstrap: str, tmp_path: Path) -> None:
    """As `kinit` leaves them."""
    import gssapi

    alice = gssapi.Name("alice@EXAMPLE.COM", gssapi.NameType.kerberos_principal)
    store = {"client_keytab": str(realm.key_table("alice")), "ccache": f"FILE:{tmp_path / 'tickets'}"}
    credentials = gssapi.Credentials(name=alice, usage="initiate", store=store)
    broker = gssapi.Name("kafka@localhost", gssapi.NameType.hostbased_service)
    gssapi.SecurityContext(name=broker, creds=credentials, usage="initiate").step()
    login = f'{MODULE} required useTicketCache=true ticketCache="{tmp_path / "tickets"}";'
    with Admin({**realm.client(bootstrap), "sasl.jaas.config": login}) as admin:
        admin.list_topics()
    without = {**realm.client(bootstrap), "sasl.jaas.config": login.replace("tickets", "nothing")}
    assert "Kerberos gives no ticket for localhost" in refusal(without)


def test_a_service_that_the_realm_has_not_is_told_at_once(realm: KerberosRealm, bootstrap: str) -> None:
    settings = {**realm.client(bootstrap), "sasl.kerberos.service.name": "other"}
    assert "not found in Kerberos database" in refusal(settings)


def test_another_users_key_is_of_no_use(realm: KerberosRealm, bootstrap: str) -> None:
    login = realm.login("bob").replace('principal="bob@', 'principal="alice@')
    assert "Kerberos gives no ticket" in refusal({**realm.client(bootstrap), "sasl.jaas.config": login})


def test_a_kdc_that_is_away_is_asked_again_until_the_time_is_over(
    realm: KerberosRealm, ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = tmp_path / "krb5.conf"
    text = realm.configuration.read_text()
    elsewhere.write_text(re.sub(r"kdc = .*", f"kdc = localhost:{free_ports(1)[0]}", text))
    monkeypatch.setenv("KRB5_CONFIG", str(elsewhere))
    with Admin(realm.client(ours, "kafka/localhost")) as admin:
        with pytest.raises(RetriableError, match="no KDC can be asked"):
            admin.list_topics(timeout=5)
        monkeypatch.setenv("KRB5_CONFIG", str(realm.configuration))
        admin.list_topics()


def test_kafka_python_gets_in_although_it_names_the_service_as_its_authorization_id(
    realm: KerberosRealm, ours: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kafka import KafkaAdminClient

    monkeypatch.setenv("KRB5_CLIENT_KTNAME", str(realm.key_table("alice")))
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{tmp_path / 'tickets'}")
    client = KafkaAdminClient(
        bootstrap_servers=ours,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="GSSAPI",
        sasl_kerberos_service_name="kafka",
        sasl_kerberos_domain_name="localhost",
    )
    client.list_topics()
    client.close()


def test_a_node_without_the_key_of_its_principal_does_not_start_and_says_why(realm: KerberosRealm) -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://localhost:0,CONTROLLER://127.0.0.1:0",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        LISTENER: realm.login("alice").replace('principal="alice@', 'principal="kafka/localhost@'),
    }
    with pytest.raises(Exception, match="a login whose key table has the key of its principal") as raised:
        RunningNode(config=settings, environment=realm.environment).__enter__()
    assert LISTENER in str(raised.value)


def test_nodes_say_who_they_are_to_each_other_by_tickets(realm: KerberosRealm, tmp_path: Path) -> None:
    """Brokers and controllers, in short sessions: replicas stay in sync over several of them."""
    login = realm.login("kafka/localhost")
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:SASL_PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.mechanism.inter.broker.protocol": "GSSAPI",
        "sasl.mechanism.controller.protocol": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.controller.gssapi.sasl.jaas.config": login,
        "listener.name.plaintext.gssapi.sasl.jaas.config": login,
        "connections.max.reauth.ms": str(SESSION_MS),
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:alice;User:kafka",
    }
    with ClusterOfProcesses(tmp_path, settings=settings) as cluster:
        client = realm.client(cluster.bootstrap)
        with Admin(client) as admin:
            admin.create_topics([NewTopic("t", partitions=3, replication_factor=3)]).raise_first()

            def is_replicated() -> bool:
                return all(len(one.in_sync_replicas) == 3 for one in described(admin, "t").partitions)

            eventually(is_replicated, "all replicas are in sync")
            ends_s = time.monotonic() + 2.5 * SESSION_MS / 1000
            with Producer({**client, "acks": "all"}) as producer:
                while time.monotonic() < ends_s:
                    producer.send("t", value=b"1").result(30)
            assert is_replicated()
