"""A client's end of GSSAPI (RFC 4752). The first token is given: making it may have taken a while (the KDC was asked).

The server proves who it is, too: its token is checked before anything else is said. A server that offers nothing but
security layers is refused, since Kafka's protocol has no place for them.
"""

from typing import Final

from ottla.security.kerberos.gss_context import GssContext
from ottla.security.kerberos.layers import NO_LAYER, OFFER, parse_layers
from ottla.security.sasl.mechanism import GSSAPI, SaslError


class GssapiClient:
    name: Final = GSSAPI

    def __init__(self, context: GssContext, first_token: bytes) -> None:
        self.is_complete = False
        self._context = context
        self._first_token = first_token
        self._has_chosen = False

    def respond(self, challenge: bytes | None) -> bytes | None:
        if challenge is None:
            return self._first_token
        if self.is_complete:
            raise SaslError("the exchange is over")
        if self._has_chosen:
            if challenge:
                raise SaslError("the server has more to say after its offer was taken")
            self.is_complete = True
            return None
        if not self._context.is_complete:
            return self._context.step(challenge) or b""
        return self._choice(challenge)

    def _choice(self, challenge: bytes) -> bytes:
        if not parse_layers(self._context.unwrap(challenge)).layers & NO_LAYER:
            raise SaslError("the server wants a security layer, and Kafka's protocol has none: use SASL_SSL")
        self._has_chosen = True
        return self._context.wrap(OFFER)
