"""How a node says who it is to another node whose listener has SASL: the requests of one authentication.

As a client's does it (KIP-152): a handshake that names the mechanism, then tokens until both sides have heard enough.
The other node may tell how long the session lasts (KIP-368); the connection begins another authentication before that.
"""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable
from typing import Any, Final

from ottla.base.errors import ProtocolError
from ottla.base.ports import Buffer
from ottla.security.sasl.mechanism import ClientMechanism, SaslError
from ottla.wire import messages
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request
from ottla.wire.message import Message

_HANDSHAKE_VERSION: Final = 1
_AUTHENTICATE_VERSION: Final = 2

NewLogin = Callable[[str, Callable[[ClientMechanism], None], Callable[[str], None]], None]
"""Makes a mechanism for one authentication at that host, with what this node has to show in it.

It may take time, for a token has to be fetched. Either the mechanism is told, or why there is none.
"""


class LoginRefused(ProtocolError):
    """The other node does not believe us, or we do not believe it."""


class NodeLogin:
    def __init__(self, mechanism: ClientMechanism, client_id: str) -> None:
        self.session_lifetime_ms = 0
        self._mechanism = mechanism
        self._client_id = client_id
        self._has_shaken_hands = False

    def first(self) -> bytes:
        """The first request."""
        return self._encoded(messages.SaslHandshakeRequest(mechanism=self._mechanism.name), _HANDSHAKE_VERSION)

    def on_frame(self, frame: Buffer) -> bytes | None:
        """The next request, or None when the other node knows who we are. Raises `LoginRefused`."""
        try:
            return self._on_token(frame) if self._has_shaken_hands else self._on_handshake(frame)
        except SaslError as problem:
            raise LoginRefused(f"it is not believed to be one of ours: {problem}") from problem

    def _on_handshake(self, frame: Buffer) -> bytes | None:
        _, response = decode_response(messages.SaslHandshakeResponse, frame, _HANDSHAKE_VERSION)
        if response.error_code:
            enabled = ", ".join(response.mechanisms)
            raise LoginRefused(f"it does not take {self._mechanism.name}, but {enabled}")
        self._has_shaken_hands = True
        return self._token(self._mechanism.respond(None))

    def _on_token(self, frame: Buffer) -> bytes | None:
        response: Any
        _, response = decode_response(messages.SaslAuthenticateResponse, frame, _AUTHENTICATE_VERSION)
        if response.error_code:
            name = ErrorCode(response.error_code).name
            raise LoginRefused(f"it does not let this node in: {response.error_message or name}")
        self.session_lifetime_ms = response.session_lifetime_ms
        return self._token(self._mechanism.respond(bytes(response.auth_bytes)))

    def _token(self, token: bytes | None) -> bytes | None:
        if token is not None:
            return self._encoded(messages.SaslAuthenticateRequest(auth_bytes=token), _AUTHENTICATE_VERSION)
        if not self._mechanism.is_complete:
            raise LoginRefused("it lets this node in without having said what the mechanism wants to hear")
        return None

    def _encoded(self, request: Message, version: int) -> bytes:
        return encode_request(request, version, 0, self._client_id)
