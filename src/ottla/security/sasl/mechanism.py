"""The two ends of a SASL mechanism, and what they raise.

A client's end (`wire.exchange.login.ClientMechanism`) speaks first: `respond(None)` is its first message, or None where
the server has to begin. Each challenge of the server then gets a response, until `is_complete`. The server's end
evaluates responses until it is complete, and knows then who the client is.
"""

from typing import Final, Protocol

from ottla.base.errors import OttlaError

PLAIN: Final = "PLAIN"
SCRAM_SHA_256: Final = "SCRAM-SHA-256"
SCRAM_SHA_512: Final = "SCRAM-SHA-512"
OAUTHBEARER: Final = "OAUTHBEARER"
GSSAPI: Final = "GSSAPI"


class SaslError(OttlaError):
    """An exchange that cannot succeed: the other side sent what the mechanism does not allow, or is not believed.

    Its message may say more than the other side should hear.
    """


class AuthenticationFailed(SaslError):
    """The client is not who it says it is. Its message may be sent to the client: it gives nothing away."""


class ServerMechanism(Protocol):
    """What is known of the client is valid once the exchange is complete."""

    @property
    def is_complete(self) -> bool: ...
    @property
    def principal(self) -> str:
        """`User:name`."""

    @property
    def is_token_authenticated(self) -> bool:
        """Whether a delegation token was used (KIP-48)."""

    @property
    def expires_ms(self) -> int | None:
        """When the credential ends, in ms since 1970; None if it does not."""

    def evaluate(self, response: bytes) -> bytes:
        """Our next message. Raises `SaslError`: then the exchange is over."""


class LastingLogin:
    """What is known of the client where a login lasts as long as its connection, and no delegation token was used.

    The base of such a `ServerMechanism`, which sets `_user` when it believes the client.
    """

    is_token_authenticated: Final = False
    expires_ms: Final = None

    def __init__(self) -> None:
        self._user: str | None = None

    @property
    def is_complete(self) -> bool:
        return self._user is not None

    @property
    def principal(self) -> str:
        assert self._user is not None, "nobody has authenticated"
        return f"User:{self._user}"
