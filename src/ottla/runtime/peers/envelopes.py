"""A client's request inside an Envelope, as a broker passes it on to the active controller (KIP-590).

The controller answers for the client: it is told the client's principal, address and client id, and the request is in
the client's version. What it answers is inside the envelope's response.
"""

from __future__ import annotations  # messages are made when they are first named

from struct import Struct
from typing import Any, Final

from ottla.base.addresses import to_bytes
from ottla.runtime.channels import Caller
from ottla.wire import messages
from ottla.wire.codec import encode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message

_PRINCIPAL_VERSION: Final = 0
_VERSION = Struct(">h")
_SIZE_BYTES: Final = 4
_NO_ADDRESS: Final = "0.0.0.0"


def enveloped(request: Message, version: int, caller: Caller) -> messages.EnvelopeRequest:
    return messages.EnvelopeRequest(
        request_data=encode_request(request, version, 0, caller.client_id)[_SIZE_BYTES:],
        request_principal=_principal(caller),
        client_host_address=to_bytes(caller.host or _NO_ADDRESS),
    )


def opened(request: Message, version: int, response: messages.EnvelopeResponse) -> Any:
    """The reply to the request that was inside. Raises `ProtocolError` for what is none."""
    _, reply = decode_response(response_type(request._schema.api_key), response.response_data or b"", version)
    return reply


def _principal(caller: Caller) -> bytes:
    type_, _, name = caller.principal.partition(":")
    data = messages.DefaultPrincipalData(type=type_, name=name, token_authenticated=caller.is_token_authenticated)
    return _VERSION.pack(_PRINCIPAL_VERSION) + encode(data, _PRINCIPAL_VERSION)
