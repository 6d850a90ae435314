"""Our clients over TLS and SASL against Apache Kafka: what must work, and how the rest fails."""

import asyncio
import time
from base64 import b64encode
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, aio
from ottla.admin import Password, ScramDeletion, ScramMechanism, ScramUpsertion
from ottla.errors import (
    IllegalSaslState,
    KafkaError,
    RetriableError,
    SaslAuthenticationFailed,
    SslAuthenticationFailed,
    UnsupportedSaslMechanism,
)
from tests.interop.certificate_maker import Authority
from tests.interop.secured_kafka import OAUTH_MODULE, SCRAM_MODULE, SecuredKafka

pytestmark = pytest.mark.interop

SESSION_MS = 1500
WAYS = [
    ("SSL", None),
    ("SASL_PLAINTEXT", "PLAIN"),
    ("SASL_PLAINTEXT", "SCRAM-SHA-512"),
    ("SASL_SSL", "PLAIN"),
    ("SASL_SSL", "SCRAM-SHA-256"),
    ("SASL_SSL", "SCRAM-SHA-512"),
]


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredKafka]:
    config = {
        "listener.name.sasl_plaintext.scram-sha-512.connections.max.reauth.ms": SESSION_MS,
        "listener.name.sasl_ssl.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    }
    with SecuredKafka(tmp_path_factory.mktemp("secured"), config=config) as kafka:
        yield kafka


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_records_come_back_over(kafka: SecuredKafka, protocol: str, mechanism: str | None) -> None:
    settings = kafka.client(protocol, mechanism)
    topic = f"blocking-{protocol}-{mechanism}"
    with Admin(settings) as admin:
        admin.create_topics([NewTopic(topic, partitions=2)]).raise_first()
    large = bytes(range(256)) * 2000
    with Producer(settings) as producer:
        for number in range(200):
            producer.send(topic, value=large if number % 50 == 0 else b"%d" % number)
    with Consumer({**settings, "auto.offset.reset": "earliest", "group.id": topic}) as consumer:
        consumer.subscribe([topic])
        values: list[bytes] = []
        while len(values) < 200:
            values += [record.value for record in consumer.poll(10.0)]
    assert values.count(large) == 4
    assert len(set(values)) == 197


@pytest.mark.parametrize(("protocol", "mechanism"), [WAYS[0], WAYS[-1]])
def test_asyncio_clients_do_the_same(kafka: SecuredKafka, protocol: str, mechanism: str | None) -> None:
    settings = kafka.client(protocol, mechanism)
    topic = f"aio-{protocol}-{mechanism}"
    large = bytes(range(256)) * 2000

    async def scene() -> list[bytes]:
        async with aio.Admin(settings) as admin:
            (await admin.create_topics([NewTopic(topic, partitions=2)])).raise_first()
        async with aio.Producer(settings) as producer:
            for number in range(20):
                await producer.send(topic, value=large if number % 5 == 0 else b"%d" % number)
        values: list[bytes] = []
        async with aio.Consumer({**settings, "auto.offset.reset": "earliest", "group.id": topic}) as consumer:
            consumer.subscribe([topic])
            while len(values) < 20:
                values += [record.value for record in await consumer.poll(10.0)]
        return values

    assert len(set(asyncio.run(scene()))) == 17


def test_a_certificate_tells_who_the_client_is(kafka: SecuredKafka) -> None:
    own = kafka.authority.issue("carol")
    settings = kafka.client("SSL", listener="MTLS", ssl_keystore_type="PEM", ssl_keystore_location=str(own.pem))
    with Admin(settings) as admin:
        admin.list_topics()


def failing(settings: dict[str, object]) -> KafkaError:
    """What the simplest call raises, at once and not when its time is over."""
    with Admin({**settings, "default.api.timeout.ms": 60_000}) as admin, pytest.raises(KafkaError) as raised:
        admin.list_topics(timeout=30)
    return raised.value


def test_a_client_without_the_certificate_that_is_wanted_is_told_so(kafka: SecuredKafka) -> None:
    error = failing(kafka.client("SSL", listener="MTLS"))
    assert isinstance(error, SslAuthenticationFailed)
    assert "certificate" in str(error)


def test_a_certificate_of_another_ca_is_refused(kafka: SecuredKafka, tmp_path: Path) -> None:
    other = Authority(tmp_path, "other CA")
    error = failing(kafka.client("SSL", ssl_truststore_location=str(other.pem)))
    assert isinstance(error, SslAuthenticationFailed)
    assert "is of no CA that ssl.truststore.location has" in str(error)


def test_a_certificate_for_another_name_is_refused_unless_names_are_not_compared(kafka: SecuredKafka) -> None:
    by_address = {"bootstrap.servers": f"127.0.0.1:{kafka.ports['SSL']}"}
    error = failing({**kafka.client("SSL"), **by_address})
    assert isinstance(error, SslAuthenticationFailed)
    assert "is for another name" in str(error)
    with Admin({**kafka.client("SSL"), **by_address, "ssl.endpoint.identification.algorithm": ""}) as admin:
        admin.list_topics()


def test_an_expired_certificate_is_refused(kafka: SecuredKafka) -> None:
    error = failing(kafka.client("SSL", listener="EXPIRED"))
    assert isinstance(error, SslAuthenticationFailed)
    assert "has expired" in str(error)


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_wrong_password_is_told_in_the_brokers_words_and_nowhere_shown(kafka: SecuredKafka, mechanism: str) -> None:
    error = failing(kafka.client("SASL_SSL", mechanism, password="not-the-password"))
    assert isinstance(error, SaslAuthenticationFailed)
    assert "Authentication failed" in str(error)
    assert "not-the-password" not in repr(error)


@pytest.mark.parametrize("Client", [Producer, Consumer])
def test_producers_and_consumers_are_told_at_once_too(kafka: SecuredKafka, Client: type) -> None:  # noqa: N803 - a class
    settings = kafka.client("SASL_PLAINTEXT", "SCRAM-SHA-512", password="not-the-password")
    if Client is Producer:
        with Producer(settings) as producer, pytest.raises(SaslAuthenticationFailed):
            producer.send("somewhere", value=b"").result(30)
        return
    with Consumer({**settings, "group.id": "nobody"}) as consumer:
        consumer.subscribe(["somewhere"])
        with pytest.raises(SaslAuthenticationFailed):
            consumer.poll(30)


def test_plain_bytes_on_a_port_with_tls_are_told_from_a_broker_that_is_down(kafka: SecuredKafka) -> None:
    error = failing(kafka.client("PLAINTEXT", listener="SSL"))
    assert isinstance(error, SslAuthenticationFailed)
    assert "speaks TLS" in str(error)


@pytest.mark.parametrize(
    ("protocol", "listener", "told"),
    [
        ("SSL", "PLAINTEXT", "does the listener have TLS"),
        ("PLAINTEXT", "SASL_PLAINTEXT", "does the listener want SASL"),
        ("SSL", "SASL_SSL", "does the listener want SASL"),
    ],
)
def test_a_listener_of_another_kind_hangs_up_and_the_error_says_what_may_be_wrong(
    kafka: SecuredKafka, protocol: str, listener: str, told: str
) -> None:
    """A broker that is starting hangs up, too: so it is tried again until the time is over, as in Kafka's clients."""
    settings = kafka.client(protocol, listener=listener)
    with Admin(settings) as admin, pytest.raises(RetriableError) as raised:
        admin.list_topics(timeout=2)
    assert told in str(raised.value)


def test_sasl_on_a_listener_without_it_is_told(kafka: SecuredKafka) -> None:
    error = failing(kafka.client("SASL_PLAINTEXT", "PLAIN", listener="PLAINTEXT"))
    assert isinstance(error, IllegalSaslState)


def eventually_logs_in(settings: dict[str, object], wanted: bool) -> None:
    """A broker hears of users and tokens a moment after the controller has answered."""
    deadline_s = time.monotonic() + 30
    while logs_in(settings) is not wanted:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def logs_in(settings: dict[str, object]) -> bool:
    with Admin(settings) as admin:
        try:
            admin.list_topics()
        except SaslAuthenticationFailed:
            return False
    return True


def test_a_delegation_token_logs_in_and_ends_when_it_expires(kafka: SecuredKafka) -> None:
    """KIP-48: it is shown by SCRAM, with its id for a name and its HMAC for a password."""
    with Admin(kafka.client("SASL_SSL", "SCRAM-SHA-256")) as admin:
        token = admin.create_delegation_token()
        login = (
            f'{SCRAM_MODULE} required username="{token.token_id}" '
            f'password="{b64encode(token.hmac).decode()}" tokenauth="true";'
        )
        settings = kafka.client("SASL_SSL", "SCRAM-SHA-256", sasl_jaas_config=login)
        eventually_logs_in(settings, True)
        admin.expire_delegation_token(token.hmac)
        eventually_logs_in(settings, False)


def test_an_unsigned_token_logs_in_where_the_broker_takes_them(kafka: SecuredKafka) -> None:
    login = f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="alice";'
    settings = kafka.client("SASL_PLAINTEXT", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=login)
    with Admin(settings) as admin:
        admin.list_topics()


def test_a_mechanism_that_the_listener_has_not_is_told_with_those_that_it_has(kafka: SecuredKafka) -> None:
    login = f'{OAUTH_MODULE} required unsecuredLoginStringClaim_sub="alice";'
    error = failing(kafka.client("SASL_SSL", sasl_mechanism="OAUTHBEARER", sasl_jaas_config=login))
    assert isinstance(error, UnsupportedSaslMechanism)
    assert "SCRAM-SHA-512" in str(error)


def test_a_user_who_is_deleted_can_connect_no_more(kafka: SecuredKafka) -> None:
    with Admin({"bootstrap.servers": kafka.bootstrap}) as admin:
        upsertion = ScramUpsertion("dora", ScramMechanism.SCRAM_SHA_256, Password("dora-secret"))
        admin.alter_user_scram_credentials([upsertion]).raise_first()
        settings = kafka.client("SASL_PLAINTEXT", "SCRAM-SHA-256", user="dora", password="dora-secret")
        eventually_logs_in(settings, True)
        with Admin(settings) as dora:
            dora.list_topics()
            deletion = ScramDeletion("dora", ScramMechanism.SCRAM_SHA_256)
            admin.alter_user_scram_credentials([deletion]).raise_first()
            dora.list_topics()  # A connection that is open stays open (KIP-368 is what ends it).
        eventually_logs_in(settings, False)


def test_a_client_says_who_it_is_again_before_its_session_ends(kafka: SecuredKafka) -> None:
    """KIP-368: the broker closes a connection whose session is over, and then a record that is sent once would fail."""
    settings = kafka.client("SASL_PLAINTEXT", "SCRAM-SHA-512")
    once = {**settings, "retries": 0, "enable.idempotence": False, "delivery.timeout.ms": 31_000}
    with Producer(once) as producer, Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        producer.send("sessions", value=b"first").result(30)
        consumer.assign([("sessions", 0)])
        sent, received = 1, 0
        ends_s = time.monotonic() + 4 * SESSION_MS / 1000
        while time.monotonic() < ends_s:
            producer.send("sessions", value=b"again").result(30)
            sent += 1
            received += len(consumer.poll(0.1))
        while received < sent:
            received += len(consumer.poll(10))
