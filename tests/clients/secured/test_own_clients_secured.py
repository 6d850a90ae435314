"""Our clients over TLS and SASL against our node: what must work, and how the rest fails."""

import asyncio
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest

from ottla import Admin, Consumer, NewTopic, Producer, aio
from ottla.admin import Password, ScramDeletion, ScramMechanism, ScramUpsertion
from ottla.errors import KafkaError, SaslAuthenticationFailed, SslAuthenticationFailed, UnsupportedSaslMechanism
from ottla.security.tls.issuing import Authority
from ottla.testing import Broker
from tests.clients.eventually import eventually
from tests.clients.secured.logging_in import logs_in

PROTOCOLS = ("SSL", "SASL_PLAINTEXT", "SASL_SSL")
LARGE = bytes(range(256)) * 2000
SCRAM_MODULE = "org.apache.kafka.common.security.scram.ScramLoginModule"
SESSION_MS = 1500


@pytest.fixture(scope="module", params=PROTOCOLS)
def broker(request: pytest.FixtureRequest) -> Iterator[Broker]:
    with Broker(security=request.param) as broker:
        yield broker


def failing(settings: dict[str, str]) -> KafkaError:
    """What the simplest call raises, at once and not when its time is over."""
    with Admin(settings) as admin, pytest.raises(KafkaError) as raised:
        admin.list_topics(timeout=30)
    return raised.value


def test_records_come_back(broker: Broker) -> None:
    settings = broker.client_settings
    with Admin(settings) as admin:
        admin.create_topics([NewTopic("blocking", partitions=2)]).raise_first()
    with Producer(settings) as producer:
        for number in range(100):
            producer.send("blocking", value=LARGE if number % 25 == 0 else b"%d" % number)
    with Consumer({**settings, "auto.offset.reset": "earliest", "group.id": "readers"}) as consumer:
        consumer.subscribe(["blocking"])
        values: list[bytes] = []
        while len(values) < 100:
            values += [record.value for record in consumer.poll(10.0)]
    assert values.count(LARGE) == 4
    assert len(set(values)) == 97


def test_asyncio_clients_do_the_same(broker: Broker) -> None:
    settings = broker.client_settings

    async def scene() -> list[bytes]:
        async with aio.Admin(settings) as admin:
            (await admin.create_topics([NewTopic("aio")])).raise_first()
        async with aio.Producer(settings) as producer:
            for number in range(20):
                await producer.send("aio", value=LARGE if number % 5 == 0 else b"%d" % number)
        values: list[bytes] = []
        async with aio.Consumer({**settings, "auto.offset.reset": "earliest", "group.id": "aio"}) as consumer:
            consumer.subscribe(["aio"])
            while len(values) < 20:
                values += [record.value for record in await consumer.poll(10.0)]
        return values

    assert len(set(asyncio.run(scene()))) == 17


def test_who_does_not_say_who_it_is_gets_nowhere(broker: Broker) -> None:
    """A plain client is told of TLS; a listener with SASL hangs up on it, and the error says what may be wrong."""
    settings = {"bootstrap.servers": broker.bootstrap}
    with Admin(settings) as admin, pytest.raises(KafkaError) as raised:
        admin.list_topics(timeout=2)
    assert "security.protocol" in str(raised.value)


@pytest.mark.parametrize("broker", PROTOCOLS[1:], indirect=True)
def test_a_wrong_password_is_told_and_not_shown(broker: Broker) -> None:
    settings = broker.client_settings
    known = settings["sasl.jaas.config"].partition('password="')[2].partition('"')[0]
    settings["sasl.jaas.config"] = settings["sasl.jaas.config"].replace(known, "not-the-password")
    error = failing(settings)
    assert isinstance(error, SaslAuthenticationFailed)
    assert "not-the-password" not in str(error) + repr(error)
    assert isinstance(failing({**settings, "sasl.mechanism": "SCRAM-SHA-256"}), UnsupportedSaslMechanism)


def certificate_of(issuer: Authority, **options: int) -> dict[str, str]:
    issued = issuer.issue("node", ("localhost",), **options)
    return {
        "listener.name.secured.ssl.keystore.key": issued.key.decode(),
        "listener.name.secured.ssl.keystore.certificate.chain": issued.certificate.decode(),
    }


def test_certificates_that_should_not_be_trusted_are_not() -> None:
    """Expired; of another CA; for another name, unless names are not compared."""
    own, other = (Authority(name, datetime.now(UTC)) for name in ("own", "other"))
    trust = {"ssl.truststore.certificates": own.issued.certificate.decode()}
    with Broker(certificate_of(own, from_days=-9, days=-1), security="SSL") as broker:
        error = failing(broker.client_settings | trust)
        assert isinstance(error, SslAuthenticationFailed)
        assert "has expired" in str(error)
    with Broker(certificate_of(other), security="SSL") as broker:
        error = failing(broker.client_settings | trust)
        assert isinstance(error, SslAuthenticationFailed)
        assert "is of no CA that ssl.truststore.location has" in str(error)
    with Broker(certificate_of(own), security="SSL") as broker:
        trust["bootstrap.servers"] = broker.bootstrap.replace("localhost", "127.0.0.1")
        error = failing(broker.client_settings | trust)
        assert isinstance(error, SslAuthenticationFailed)
        assert "is for another name" in str(error)
        with Admin(broker.client_settings | trust | {"ssl.endpoint.identification.algorithm": ""}) as admin:
            admin.list_topics()


def scram_login(user: str, password: str) -> dict[str, str]:
    login = f'{SCRAM_MODULE} required username="{user}" password="{password}";'
    return {"sasl.mechanism": "SCRAM-SHA-512", "sasl.jaas.config": login}


def send_for(producer: Producer, duration_s: float) -> None:
    ends_s = time.monotonic() + duration_s
    while time.monotonic() < ends_s:
        producer.send("sessions", value=b"again").result(30)
        time.sleep(0.05)


def test_a_session_is_renewed_while_the_user_is_there_and_ends_when_it_is_deleted() -> None:
    """KIP-368. A record is sent once: a connection whose session the broker has ended would lose it."""
    settings = {
        "listener.name.secured.sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-512",
        "connections.max.reauth.ms": SESSION_MS,
    }
    mechanism = ScramMechanism.SCRAM_SHA_512
    with Broker(settings, security="SASL_PLAINTEXT") as broker, Admin(broker.client_settings) as admin:
        admin.alter_user_scram_credentials([ScramUpsertion("dora", mechanism, Password("dora-secret"))]).raise_first()
        dora = broker.client_settings | scram_login("dora", "dora-secret")
        eventually(lambda: logs_in(dora), True)
        once = {**dora, "retries": 0, "enable.idempotence": False, "delivery.timeout.ms": 31_000}
        with Producer(once) as producer:
            send_for(producer, 3 * SESSION_MS / 1000)
            admin.alter_user_scram_credentials([ScramDeletion("dora", mechanism)]).raise_first()
            with pytest.raises(SaslAuthenticationFailed):
                send_for(producer, 30)
        eventually(lambda: logs_in(dora), False)
