"""How a client proves who it is: the requests of one authentication by SASL (KIP-43, KIP-152).

The mechanism is named first (SaslHandshake), and then its messages go to and fro (SaslAuthenticate) until it is
complete. The node may limit how long that holds (KIP-368): before it ends, the connection begins another login.
"""

from typing import Any, Final, Protocol

from ottla.base.errors import OttlaError
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.api_versions import ApiVersions
from ottla.wire.exchange.open_request import Refused
from ottla.wire.message import Message
from ottla.wire.messages import SaslAuthenticateRequest, SaslHandshakeRequest

_RAW_MESSAGES: Final = 0
"""SaslHandshake of version 0 is followed by messages without headers, which brokers before 1.0 want."""


class ClientMechanism(Protocol):
    """A client's end of a SASL mechanism (`security.sasl`)."""

    @property
    def name(self) -> str: ...
    @property
    def is_complete(self) -> bool: ...
    def respond(self, challenge: bytes | None) -> bytes | None:
        """Our next message; None if there is nothing more to say. Raises `OttlaError` if the server is not believed."""


class SaslLogin:
    """One login. `session_lifetime_ms` is how long it holds, once it is over; 0 is without limit."""

    def __init__(self, mechanism: ClientMechanism) -> None:
        self.session_lifetime_ms = 0
        self._mechanism = mechanism
        self._has_named_it = False

    def first(self, served: ApiVersions) -> Message:
        """The first request. Raises `Refused`, or `NotServed`."""
        if served.newest(ApiKey.SASL_HANDSHAKE) == _RAW_MESSAGES or not served.serves(ApiKey.SASL_AUTHENTICATE):
            raise Refused(
                ErrorCode.SASL_AUTHENTICATION_FAILED,
                "The node is older than Kafka 1.0, and its SASL is not spoken here",
            )
        return SaslHandshakeRequest(mechanism=self._mechanism.name)

    def next(self, response: Any) -> Message | None:
        """The request after that one; None when the node knows who we are. Raises `Refused`."""
        if self._has_named_it:
            return self._on_challenge(response)
        self._has_named_it = True
        if response.error_code == ErrorCode.UNSUPPORTED_SASL_MECHANISM:
            has = ", ".join(response.mechanisms) or "none"
            name = self._mechanism.name
            raise Refused(response.error_code, f"The listener does not have the mechanism {name}; it has {has}")
        if response.error_code == ErrorCode.ILLEGAL_SASL_STATE:
            raise Refused(response.error_code, "The listener does not use SASL")
        if response.error_code:
            raise Refused(response.error_code)
        return SaslAuthenticateRequest(auth_bytes=self._respond(None) or b"")

    def _on_challenge(self, response: Any) -> Message | None:
        if response.error_code:
            raise Refused(response.error_code, response.error_message)
        self.session_lifetime_ms = response.session_lifetime_ms
        mechanism = self._mechanism
        message = None if mechanism.is_complete else self._respond(bytes(response.auth_bytes))
        if message is not None:
            return SaslAuthenticateRequest(auth_bytes=message)
        if not mechanism.is_complete:
            problem = f"The node cannot be trusted: it has not sent all that {mechanism.name} asks of it"
            raise Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, problem)
        return None

    def _respond(self, challenge: bytes | None) -> bytes | None:
        try:
            return self._mechanism.respond(challenge)
        except OttlaError as problem:
            refused = f"The node cannot be trusted: {problem}"
            raise Refused(ErrorCode.SASL_AUTHENTICATION_FAILED, refused) from problem
