"""A connection whose client has to say who it is before it is listened to, and again when its session ends.

Until then only ApiVersions, SaslHandshake and SaslAuthenticate are decoded, their frames are bounded by
`sasl.server.max.receive.size`, and nothing else of a request is looked at. A client that is refused gets its answer
after `connection.failed.authentication.delay.ms`, and then the connection is closed: guessing takes time.

Re-authentication (KIP-368) is a handshake on a connection whose session has an end. A request after that end closes the
connection.
"""

from collections.abc import Callable
from struct import Struct
from typing import TYPE_CHECKING, Final

from ottla.base.errors import RemoteProtocolError
from ottla.base.lent import Lent
from ottla.base.ports import Transport
from ottla.runtime.authentication.conversation import Conversation, Identity, LoginStage, Refused
from ottla.runtime.connection import Connection
from ottla.runtime.pending_request import GivenReply, PendingRequest
from ottla.runtime.request import ClientConnection, RefusedRequest, RequestContext, Respond
from ottla.wire.apis import ApiKey, api
from ottla.wire.frame import UnsupportedRequestError, decode_request
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.runtime.authentication.authenticator import Authenticator
    from ottla.runtime.server import Server

_KEY_AND_VERSION: Final = Struct(">hh")
_SIZE: Final = Struct(">i")
_HANDSHAKE: Final = ApiKey.SASL_HANDSHAKE.to_bytes(2, "big")
_OF_AUTHENTICATION: Final = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
_FIRST_WITH_SOFTWARE: Final = 3
_UNKNOWN: Final = "unknown"
_BETWEEN_REAUTHENTICATIONS_S: Final = 1.0


class GatedConnection(Connection):
    """See the module. Nobody is let in but by `_let_in`, and its one caller has an `Identity`."""

    __slots__ = (
        "_authenticator",
        "_conversation",
        "_expires_s",
        "_has_failed",
        "_has_versions",
        "_identity",
        "_reauth_s",
    )

    def __init__(
        self, server: "Server", transport: Transport, client: ClientConnection, authenticator: "Authenticator"
    ) -> None:
        self._authenticator = authenticator
        self._conversation: Conversation | None = Conversation(authenticator)
        self._identity: Identity | None = None
        self._expires_s: float | None = None
        self._has_failed = False
        self._has_versions = False
        self._reauth_s: float | None = None
        super().__init__(server, transport, client)
        self._frames.set_limit(authenticator.max_receive_bytes, "sasl.server.max.receive.size")

    def _handle(self, frame: Lent | memoryview) -> bool:
        if self._conversation is None:
            if self._expires_s is None:
                return super()._handle(frame)
            if bytes(frame[:2]) != _HANDSHAKE or not self._begin_again():
                if self.session.active_s > self._expires_s:
                    self.server.count_authentication(self.session.client.listener, "expired_connections_killed")
                    self.close()
                    return False
                return super()._handle(frame)
        assert self._conversation is not None
        return self._hear(self._conversation, frame)

    def _begin_again(self) -> bool:
        """Whether a handshake begins another authentication: once a second at most."""
        now_s, before_s = self.session.active_s, self._reauth_s
        if before_s is not None and now_s - before_s < _BETWEEN_REAUTHENTICATIONS_S:
            return False
        self._reauth_s = now_s
        self._conversation = Conversation(self._authenticator, self._identity)
        return True

    # Before the client is known

    def _hear(self, conversation: Conversation, frame: Lent | memoryview) -> bool:
        """One frame of a client that has not authenticated. Returns whether the next may be heard, too."""
        if self._has_failed:
            return False
        if conversation.takes_bare_tokens:
            self._on_bare_token(conversation, frame)
        elif len(frame) < _KEY_AND_VERSION.size:
            raise RefusedRequest("a request without a header, during SASL handshake")
        else:
            key, version = _KEY_AND_VERSION.unpack_from(frame)
            if key == ApiKey.API_VERSIONS and self._may_ask_versions(conversation):
                super()._handle(frame)
                self._note_versions(version)
            elif key in _OF_AUTHENTICATION:
                self._on_request(frame)
            else:
                during = f"during SASL {conversation.state.value}"
                self._refuse(Refused(f"Unexpected Kafka request with API key {key} {during}"))
        return self._is_reading

    def _may_ask_versions(self, conversation: Conversation) -> bool:
        return conversation.state is LoginStage.HANDSHAKE and not conversation.is_again and not self._has_versions

    def _note_versions(self, version: int) -> None:
        """A client asks once; again only if the answer was that it asked in the wrong way."""
        is_known = version in api(ApiKey.API_VERSIONS).stable_versions
        is_named = version < _FIRST_WITH_SOFTWARE or self.session.client.software_name != _UNKNOWN
        self._has_versions = is_known and is_named

    def _on_request(self, frame: Lent | memoryview) -> None:
        try:
            header, message = decode_request(frame)
        except UnsupportedRequestError as problem:
            self._refuse(Refused(str(problem)))
            return
        self.take(PendingRequest(self, header, message, len(frame)), self._converse)

    def _converse(self, context: RequestContext, message: Message, respond: Respond) -> None:
        conversation = self._conversation
        assert conversation is not None
        try:
            reply = conversation.on_message(message, context.api_version)
        except Refused as refused:
            reply_late = refused.reply
            self._refuse(refused, (lambda: respond(reply_late)) if reply_late is not None else None)
        except Exception as problem:
            self.server.on_fault(context, problem)
            self._refuse(Refused("the authentication itself failed"))
        else:
            respond(reply)
            self._maybe_let_in(conversation)

    def _on_bare_token(self, conversation: Conversation, frame: Lent | memoryview) -> None:
        try:
            reply = conversation.on_bare_token(bytes(frame))
        except Refused as refused:
            self._refuse(refused)
        except Exception as problem:
            self.server.on_fault(self.session.client, problem)
            self._refuse(Refused("the authentication itself failed"))
        else:
            sent = _SIZE.pack(len(reply)) + reply
            self._replies.append(GivenReply(sent))
            self.session.unsent_bytes += len(sent)
            self._maybe_let_in(conversation)
            self._maybe_pause()

    # In, or not

    def _maybe_let_in(self, conversation: Conversation) -> None:
        if conversation.identity is not None:
            self._let_in(conversation.identity, is_again=conversation.is_again)

    def _let_in(self, identity: Identity, *, is_again: bool) -> None:
        client, server = self.session.client, self.server
        self._identity = identity
        self._conversation = None
        self._expires_s = None if identity.session_ms is None else server.now_s() + identity.session_ms / 1000
        client.principal = identity.principal
        client.is_token_authenticated = identity.is_token_authenticated
        server.count_authentication(
            client.listener, "successful_reauthentication" if is_again else "successful_authentication"
        )
        if not is_again:
            # Frames behind this one may be larger than those before it: they are looked at anew.
            self._frames.set_limit(server.limits.max_request_bytes, "socket.request.max.bytes")
            self._pause_reading()
            server.network.at_end_of_turn(self.maybe_resume)

    def _refuse(self, refused: Refused, answer: Callable[[], None] | None = None) -> None:
        """The client hears of it after a while, and then no more."""
        self._count_failure(refused.reason)
        self._has_failed = True
        self.session.client.pause()
        self._pause_reading()

        def end() -> None:
            if self.session.client.is_open:
                if answer is not None:
                    answer()
                    self.send_ready()
                self.close()

        self.server.timers.after(self._authenticator.failure_delay_ms / 1000, end)

    def _count_failure(self, reason: str) -> None:
        is_again = self._conversation is not None and self._conversation.is_again
        self.server.refused_authentication(self.session.client, reason, is_again=is_again)

    def hang_up(self, problem: RemoteProtocolError) -> None:
        if self._conversation is not None and not self._has_failed and self.session.client.is_open:
            self._has_failed = True
            self._count_failure(str(problem))
        super().hang_up(problem)
