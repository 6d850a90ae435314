"""Clients of others over a listener with SASL: those who know their password get in."""

import asyncio
from collections.abc import Callable, Iterator

import aiokafka
import confluent_kafka
import kafka
import pytest
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka.admin import AdminClient
from kafka.admin import KafkaAdminClient

from ottla.security.sasl.scram_client import ScramClient
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import MetadataRequest, SaslAuthenticateRequest, SaslHandshakeRequest
from tests.clients.eventually import eventually
from tests.interop.sasl_node import PLAIN_USERS, SCRAM_USERS, SaslNode, a_sasl_node, add_scram_users, alter_user
from tests.interop.wire_connection import WireConnection

_S = 20


@pytest.fixture(scope="module")
def node() -> Iterator[SaslNode]:
    with a_sasl_node() as running:
        add_scram_users(running.node.bootstrap)
        yield running


def by_confluent(bootstrap: str, mechanism: str, user: str, password: str) -> int:
    settings = {
        "bootstrap.servers": bootstrap,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "sasl.username": user,
        "sasl.password": password,
        "log_level": 0,
    }
    return len(AdminClient(settings).list_topics(timeout=5).brokers)


def by_kafka_python(bootstrap: str, mechanism: str, user: str, password: str) -> int:
    admin = KafkaAdminClient(
        bootstrap_servers=bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=user,
        sasl_plain_password=password,
        bootstrap_timeout_ms=5000,
    )
    try:
        return len(admin.describe_cluster()["brokers"])
    finally:
        admin.close()


def by_aiokafka(bootstrap: str, mechanism: str, user: str, password: str) -> int:
    async def ask() -> int:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            sasl_plain_username=user,
            sasl_plain_password=password,
        )
        try:
            await admin.start()
            return len((await admin.describe_cluster())["brokers"])
        finally:
            await admin.close()

    return asyncio.run(asyncio.wait_for(ask(), _S))


Client = Callable[[str, str, str, str], int]
CLIENTS: list[Client] = [by_confluent, by_kafka_python, by_aiokafka]
REFUSALS = (confluent_kafka.KafkaException, kafka.errors.KafkaError, aiokafka.errors.KafkaError)


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("user", PLAIN_USERS)
def test_clients_get_in_with_plain(node: SaslNode, client: Client, user: str) -> None:
    assert client(node.bootstrap, "PLAIN", user, PLAIN_USERS[user]) == 1


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_clients_get_in_with_scram(node: SaslNode, client: Client, mechanism: str) -> None:
    assert client(node.bootstrap, mechanism, "carol", SCRAM_USERS["carol"]) == 1


def test_a_name_may_have_what_scram_escapes(node: SaslNode) -> None:
    """librdkafka escapes it; the others send it as it is, which no server takes."""
    assert by_confluent(node.bootstrap, "SCRAM-SHA-256", "d=a,n", SCRAM_USERS["d=a,n"]) == 1


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_clients_with_a_wrong_password_stay_out(node: SaslNode, client: Client, mechanism: str) -> None:
    with pytest.raises(REFUSALS):
        client(node.bootstrap, mechanism, "alice" if mechanism == "PLAIN" else "carol", "wrong")


def test_a_user_that_is_deleted_stays_connected_and_cannot_come_again(node: SaslNode) -> None:
    """As in Kafka: a connection lives until it has to authenticate again."""
    plain = node.node.bootstrap
    alter_user(plain, "erin", "--add-config", "SCRAM-SHA-256=[password=erin-secret]")
    with WireConnection(node.bootstrap) as connected, WireConnection(node.bootstrap) as probe:
        assert scram_error(connected, "erin", "erin-secret") == ErrorCode.NONE
        alter_user(plain, "erin", "--delete-config", "SCRAM-SHA-256")

        def error_of_another() -> int:
            with WireConnection(node.bootstrap) as another:
                return scram_error(another, "erin", "erin-secret")

        eventually(error_of_another, ErrorCode.SASL_AUTHENTICATION_FAILED)
        assert connected.ask(MetadataRequest(topics=[]), 12).brokers
        assert scram_error(probe, "never-there", "erin-secret") == ErrorCode.SASL_AUTHENTICATION_FAILED


def scram_error(line: WireConnection, user: str, password: str) -> int:
    """How an authentication ends."""
    mechanism = ScramClient("SCRAM-SHA-256", user, password, "a-nonce")
    assert line.ask(SaslHandshakeRequest(mechanism=mechanism.name), 1).error_code == ErrorCode.NONE
    token = mechanism.respond(None)
    while token is not None:
        reply = line.ask(SaslAuthenticateRequest(auth_bytes=token), 2)
        if reply.error_code:
            return int(reply.error_code)
        token = mechanism.respond(bytes(reply.auth_bytes))
    return ErrorCode.NONE


def test_where_nobody_is_asked_for_a_name_sasl_is_out_of_turn(node: SaslNode) -> None:
    with WireConnection(node.node.bootstrap) as line:
        assert line.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code == ErrorCode.ILLEGAL_SASL_STATE
        reply = line.ask(SaslAuthenticateRequest(auth_bytes=b"\0alice\0alice-secret"), 2)
        assert reply.error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert reply.error_message == "SaslAuthenticate request received after successful authentication"
