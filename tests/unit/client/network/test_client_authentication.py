"""What a client asks of a broker to say who it is, over an exchange that a test answers."""

import random
from typing import Any

import pytest

from ottla.client.errors import KafkaError, SaslAuthenticationFailed, UnsupportedSaslMechanism
from ottla.client.login.passwords import PasswordLogin
from ottla.client.network.api_versions import ApiVersions
from ottla.client.network.authentication import NO_LIMIT, SaslAuthentication
from ottla.client.promise import Promise
from ottla.security.sasl.jaas import JaasEntry
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

VERSIONS = ApiVersions({ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)})
OPTIONS = {"username": "alice", "password": "hunter2"}


class FakeBroker:
    """Answers each request with what the test has prepared, in order."""

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)
        self.asked: list[Message] = []

    def exchange(self, request: Message, version: int) -> Promise[Any]:
        self.asked.append(request)
        return Promise.resolved(self._answers.pop(0))


def authenticated(broker: FakeBroker, mechanism: str = "PLAIN", versions: ApiVersions = VERSIONS) -> Promise[float]:
    login = PasswordLogin(random.Random(1), mechanism, JaasEntry("module", "required", OPTIONS))
    return SaslAuthentication(login, "localhost", random.Random(1)).begin(broker.exchange, versions)


def failure(broker: FakeBroker, mechanism: str = "PLAIN", versions: ApiVersions = VERSIONS) -> KafkaError:
    error = authenticated(broker, mechanism, versions).error
    assert isinstance(error, KafkaError)
    return error


def test_the_mechanism_is_named_first_and_then_the_password_is_sent() -> None:
    broker = FakeBroker(SaslHandshakeResponse(mechanisms=["PLAIN"]), SaslAuthenticateResponse())
    assert authenticated(broker).value() == NO_LIMIT
    handshake, token = broker.asked
    assert isinstance(handshake, SaslHandshakeRequest)
    assert handshake.mechanism == "PLAIN"
    assert isinstance(token, SaslAuthenticateRequest)
    assert token.auth_bytes == b"\0alice\0hunter2"


def test_a_session_is_renewed_late_in_its_life_and_not_by_all_clients_at_once() -> None:
    """KIP-368: after 85 to 95 hundredths of it."""
    delays = []
    for seed in range(20):
        broker = FakeBroker(SaslHandshakeResponse(), SaslAuthenticateResponse(session_lifetime_ms=10_000))
        login = PasswordLogin(random.Random(1), "PLAIN", JaasEntry("module", "required", OPTIONS))
        delays.append(SaslAuthentication(login, "h", random.Random(seed)).begin(broker.exchange, VERSIONS).value())
    assert all(8500 <= delay <= 9500 for delay in delays)
    assert len(set(delays)) > 10


def test_the_brokers_words_are_told_and_ours_are_not() -> None:
    refused = SaslAuthenticateResponse(
        error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message="Authentication failed: go away"
    )
    error = failure(FakeBroker(SaslHandshakeResponse(), refused))
    assert isinstance(error, SaslAuthenticationFailed)
    assert error.fatal
    assert "go away" in str(error)
    assert "hunter2" not in str(error)


def test_a_mechanism_that_is_not_enabled_is_told_with_those_that_are() -> None:
    refused = SaslHandshakeResponse(
        error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=["GSSAPI", "SCRAM-SHA-256"]
    )
    error = failure(FakeBroker(refused))
    assert isinstance(error, UnsupportedSaslMechanism)
    assert "it has GSSAPI, SCRAM-SHA-256" in str(error)


def test_a_broker_that_cannot_prove_that_it_knows_the_password_is_not_believed() -> None:
    """Whoever answers without a signature may be anybody who has taken the broker's address."""
    broker = FakeBroker(SaslHandshakeResponse(), SaslAuthenticateResponse(auth_bytes=b"r=mine,s=c2FsdA==,i=4096"))
    error = failure(broker, "SCRAM-SHA-256")
    assert isinstance(error, SaslAuthenticationFailed)
    assert "not believed" in str(error)


def test_a_broker_that_answers_scram_with_nothing_is_not_believed() -> None:
    broker = FakeBroker(SaslHandshakeResponse(), SaslAuthenticateResponse())
    assert isinstance(failure(broker, "SCRAM-SHA-512"), SaslAuthenticationFailed)


@pytest.mark.parametrize(
    "versions",
    [
        ApiVersions({ApiKey.SASL_HANDSHAKE: (0, 0), ApiKey.SASL_AUTHENTICATE: (0, 2)}),
        ApiVersions({ApiKey.SASL_HANDSHAKE: (0, 1)}),
    ],
)
def test_a_broker_whose_tokens_go_without_headers_is_refused(versions: ApiVersions) -> None:
    assert "older than Kafka 1.0" in str(failure(FakeBroker(), versions=versions))
