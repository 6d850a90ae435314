"""What a client raises for a request that its connection failed."""

import pytest

from ottla.base.errors import LocalProtocolError
from ottla.client.errors import (
    ClientClosed,
    Disconnected,
    KafkaError,
    RequestTimedOut,
    SaslAuthenticationFailed,
    SslAuthenticationFailed,
    UnsupportedSaslMechanism,
    UnsupportedVersion,
)
from ottla.client.network.promised_request import client_error
from ottla.client.world import TlsFailed
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.api_versions import NotServed
from ottla.wire.exchange.open_request import ConnectionFailed, NoAnswer, Refused, TlsExpected

FAILURES: list[tuple[Exception, type[KafkaError], str]] = [
    (ClientClosed("closed"), ClientClosed, "closed"),
    (ConnectionFailed("n:1 closed the connection"), Disconnected, "n:1 closed the connection"),
    (ConnectionFailed("it ended", wants="SASL"), Disconnected, "does the listener want SASL (security.protocol)?"),
    (ConnectionFailed("it broke", cause=TlsFailed("a bad certificate")), SslAuthenticationFailed, "a bad certificate"),
    (TlsExpected("n:1 speaks TLS"), SslAuthenticationFailed, "n:1 speaks TLS"),
    (NoAnswer("n:1 did not answer"), RequestTimedOut, "n:1 did not answer"),
    (Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, "go away"), SaslAuthenticationFailed, "go away"),
    (Refused(ErrorCode.SASL_AUTHENTICATION_FAILED), SaslAuthenticationFailed, ""),
    (Refused(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "it has none"), UnsupportedSaslMechanism, "it has none"),
    (NotServed("the node does not serve X"), UnsupportedVersion, "the node does not serve X"),
    (LocalProtocolError("no place for y"), UnsupportedVersion, "the broker is too old: no place for y"),
]


@pytest.mark.parametrize(("problem", "error", "words"), FAILURES, ids=[repr(one[0]) for one in FAILURES])
def test_a_failure_becomes_the_error_that_says_what_to_do(
    problem: Exception, error: type[KafkaError], words: str
) -> None:
    raised = client_error(problem)
    assert type(raised) is error
    assert words in str(raised)
    assert "SASL_AUTHENTICATION_FAILED" not in str(raised), "the class says it in words"
