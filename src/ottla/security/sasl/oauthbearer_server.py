"""A server's end of OAUTHBEARER (RFC 7628, KIP-255): it believes a token, or tells why not in JSON.

A client that gets the reason answers with one byte, and is refused then. What is wrong with its token it does not
learn: the reason is in our log.
"""

from collections.abc import Callable
from typing import Final

from ottla.security.sasl.jwt import Token, WrongToken
from ottla.security.sasl.mechanism import AuthenticationFailed, SaslError
from ottla.security.sasl.oauthbearer_messages import ABORT, parse_token_message

_INVALID: Final = '{"status":"invalid_token"}'

CheckToken = Callable[[str], Token]
"""Raises `WrongToken`."""
NoteRefused = Callable[[str], None]
"""Hears why a token was not believed."""


class OAuthBearerServer:
    is_token_authenticated: Final = False

    def __init__(self, check: CheckToken, note_refused: NoteRefused) -> None:
        self._check = check
        self._note_refused = note_refused
        self._token: Token | None = None
        self._is_refused = False

    @property
    def is_complete(self) -> bool:
        return self._token is not None

    @property
    def principal(self) -> str:
        assert self._token is not None, "nobody has authenticated"
        return f"User:{self._token.name}"

    @property
    def expires_ms(self) -> int | None:
        return self._token.expires_ms if self._token is not None else None

    def evaluate(self, response: bytes) -> bytes:
        if self._is_refused and response == ABORT:
            raise AuthenticationFailed(_INVALID)
        if self._is_refused or self._token is not None:
            raise SaslError("the exchange is over")
        message = parse_token_message(response)
        try:
            token = self._check(message.token)
        except WrongToken as problem:
            self._is_refused = True
            self._note_refused(str(problem))
            return _INVALID.encode()
        if message.authorization_id and message.authorization_id != token.name:
            raise AuthenticationFailed(
                f"Authentication failed: Client requested an authorization id ({message.authorization_id}) that is"
                f" different from the token's principal name ({token.name})"
            )
        self._token = token
        return b""
