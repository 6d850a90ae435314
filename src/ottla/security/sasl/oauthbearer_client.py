"""A client's end of OAUTHBEARER (RFC 7628, KIP-255): it shows a token that somebody else has given it."""

from collections.abc import Mapping
from typing import Final

from ottla.security.sasl.mechanism import OAUTHBEARER, SaslError
from ottla.security.sasl.oauthbearer_messages import ABORT, token_message


class OAuthBearerClient:
    """`extensions` are sent along (KIP-342). A server that refuses says why, in JSON: that is `refusal` then."""

    name: Final = OAUTHBEARER

    def __init__(self, token: str, extensions: Mapping[str, str] | None = None) -> None:
        self.is_complete = False
        self.refusal: str | None = None
        self._first = token_message(token, extensions or {})

    def respond(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return self._first
        if self.refusal is not None or self.is_complete:
            raise SaslError(f"the server refused the token, and has more to say: {self.refusal}")
        if challenge:
            self.refusal = challenge.decode(errors="replace")
            return ABORT
        self.is_complete = True
        return None
