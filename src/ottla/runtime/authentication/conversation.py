"""One authentication of a client, from the handshake to the last token. No I/O: messages in, messages out.

Theory of operation. A conversation goes through three states, and never back:

    HANDSHAKE   the client names its mechanism
    TOKENS      tokens of the mechanism, inside SaslAuthenticate requests; bare after a handshake of version 0
    OVER        `identity` says who the client is; or it was refused, and stays so

A client that is refused hears what Apache Kafka would tell it. What a mechanism says of its reasons stays here, but for
what it allows to be reported (`AuthenticationFailed`): otherwise names could be tried out. Whatever else goes wrong in
a mechanism is a refusal, too: there is no way to `identity` but a mechanism that is complete.
"""

from __future__ import annotations  # messages are made when they are first named

from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.security.sasl.mechanism import AuthenticationFailed, SaslError, ServerMechanism
from ottla.wire import messages
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.runtime.authentication.authenticator import Authenticator

_FIRST_WITH_SASL_AUTHENTICATE: Final = 1
_SHOWN: Final = 40


class LoginStage(Enum):
    HANDSHAKE = "handshake"
    TOKENS = "tokens"
    OVER = "over"


class Identity(NamedTuple):
    """Who a client has proved to be. `session_ms`: how long that is believed; None is for ever."""

    principal: str
    mechanism: str
    is_token_authenticated: bool
    session_ms: int | None


class Refused(OttlaError):
    """The client does not get in. `reply` is what it gets, if anything; `reason` is for our own log."""

    def __init__(self, reason: str, reply: Message | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.reply = reply


class Conversation:
    """`before` is who the client was, if it authenticates again: it must stay the same."""

    def __init__(self, authenticator: Authenticator, before: Identity | None = None) -> None:
        self._authenticator = authenticator
        self._before = before
        self._mechanism: ServerMechanism | None = None
        self._name = ""
        self.state = LoginStage.HANDSHAKE
        self.takes_bare_tokens = False
        self.identity: Identity | None = None

    @property
    def is_again(self) -> bool:
        return self._before is not None

    def on_message(self, message: Message, version: int) -> Message:
        """The reply to a SaslHandshake or SaslAuthenticate. Raises `Refused`."""
        state, self.state = self.state, LoginStage.OVER  # unless it goes well
        if state is LoginStage.HANDSHAKE and isinstance(message, messages.SaslHandshakeRequest):
            return self._on_handshake(message, version)
        if state is LoginStage.TOKENS and isinstance(message, messages.SaslAuthenticateRequest):
            return self._on_authenticate(message)
        raise _illegal(state, message)

    def on_bare_token(self, token: bytes) -> bytes:
        """A token as it is, as clients before KIP-152 send them. Raises `Refused`."""
        state, self.state = self.state, LoginStage.OVER
        if state is not LoginStage.TOKENS:
            raise Refused("a token after the end of the authentication")
        try:
            return self._evaluated(token)[0]
        except SaslError as problem:
            raise Refused(self._reason(problem)) from problem

    def _on_handshake(self, request: messages.SaslHandshakeRequest, version: int) -> Message:
        enabled = list(self._authenticator.mechanisms)
        name = request.mechanism
        if name not in self._authenticator.mechanisms:
            reply = messages.SaslHandshakeResponse(error_code=ErrorCode.UNSUPPORTED_SASL_MECHANISM, mechanisms=enabled)
            raise Refused(f"Unsupported SASL mechanism {name[:_SHOWN]!r}", reply)
        self._name = name
        if self._before is None or self._before.mechanism == name:
            self._mechanism = self._authenticator.mechanisms[name]()
        self.takes_bare_tokens = version < _FIRST_WITH_SASL_AUTHENTICATE
        self.state = LoginStage.TOKENS
        return messages.SaslHandshakeResponse(mechanisms=enabled)

    def _on_authenticate(self, request: messages.SaslAuthenticateRequest) -> Message:
        try:
            token, session_ms = self._evaluated(bytes(request.auth_bytes))
        except SaslError as problem:
            error_message = str(problem) if isinstance(problem, AuthenticationFailed) else self._generic_words()
            reply = messages.SaslAuthenticateResponse(
                error_code=ErrorCode.SASL_AUTHENTICATION_FAILED, error_message=error_message
            )
            raise Refused(self._reason(problem), reply) from problem
        return messages.SaslAuthenticateResponse(
            error_message=None, auth_bytes=token, session_lifetime_ms=session_ms or 0
        )

    def _evaluated(self, token: bytes) -> tuple[bytes, int | None]:
        """The mechanism's next token, and how long the session lasts that begins with it."""
        mechanism = self._mechanism
        if mechanism is None:
            assert self._before is not None
            raise Refused(
                f"SASL mechanism '{self._name}' requested by client is not supported for re-authentication of"
                f" mechanism '{self._before.mechanism}'"
            )
        reply = mechanism.evaluate(token)
        if not mechanism.is_complete:
            self.state = LoginStage.TOKENS
            return reply, None
        principal = mechanism.principal
        if self._before is not None and principal != self._before.principal:
            before, now = self._before.principal.replace(":", ".", 1), principal.replace(":", ".", 1)
            raise AuthenticationFailed(f"Cannot change principals during re-authentication from {before}: {now}")
        session_ms = self._authenticator.session_ms(self._name, mechanism.expires_ms)
        self.identity = Identity(principal, self._name, mechanism.is_token_authenticated, session_ms)
        return reply, session_ms

    def _generic_words(self) -> str:
        which = "re-authentication" if self.is_again else "authentication"
        return f"Authentication failed during {which} due to invalid credentials with SASL mechanism {self._name}"

    def _reason(self, problem: SaslError) -> str:
        return f"{self._name}: {problem}"


def _illegal(state: LoginStage, message: Any) -> Refused:
    """Only a request that costs nothing to decode gets the reason."""
    reason = f"Unexpected Kafka request of type {type(message).__name__} during SASL {state.value}."
    if state is not LoginStage.TOKENS or not isinstance(message, messages.SaslHandshakeRequest):
        return Refused(reason)
    return Refused(reason, messages.SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))
