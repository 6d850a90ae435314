"""A server's end of GSSAPI (RFC 4752).

Theory of operation. An exchange goes through these steps, and never back:

    token       tokens of the client's context, until it is complete
    nothing     the client has our last token, if there was one, and answers with no bytes
    choice      it was offered no security layer, and has to choose that; then it is known

A client is who Kerberos says that it is. It may name another in its choice (the authorization id); as in Apache Kafka
that has no effect, and is no reason to refuse it: some clients send the name of the service there.
"""

from collections.abc import Callable

from ottla.security.kerberos.gss_context import GssContext
from ottla.security.kerberos.layers import NO_LAYER, OFFER, parse_layers
from ottla.security.sasl.mechanism import LastingLogin, SaslError

ShortName = Callable[[str], str]
"""The name that a principal goes by. Raises `SaslError` if it has none."""


class GssapiServer(LastingLogin):
    def __init__(self, context: GssContext, short_name: ShortName) -> None:
        super().__init__()
        self._context = context
        self._short_name = short_name
        self._step: Callable[[bytes], bytes] = self._on_token

    def evaluate(self, response: bytes) -> bytes:
        step, self._step = self._step, self._over  # unless it goes well
        return step(response)

    def _on_token(self, response: bytes) -> bytes:
        token = self._context.step(response)
        if not self._context.is_complete:
            self._step = self._on_token
            return token or b""
        if token:
            self._step = self._on_nothing
            return token
        return self._offer()

    def _on_nothing(self, response: bytes) -> bytes:
        if response:
            raise SaslError("the client sent a token after the context was complete")
        return self._offer()

    def _offer(self) -> bytes:
        self._step = self._on_choice
        return self._context.wrap(OFFER)

    def _on_choice(self, response: bytes) -> bytes:
        choice = parse_layers(self._context.unwrap(response))
        if choice.layers != NO_LAYER:
            raise SaslError(f"the client chose security layer {choice.layers}, which it was not offered")
        self._user = self._short_name(self._context.client)
        return b""

    def _over(self, response: bytes) -> bytes:
        raise SaslError("the exchange is over")
