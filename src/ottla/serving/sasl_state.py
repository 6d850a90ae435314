"""SaslHandshake 0-1 and SaslAuthenticate 0-2 of a client that has nothing to prove, or has proved it already.

Authentication itself is in `runtime/authentication`, before any handler: what comes here is out of turn.
"""

from typing import Final

from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
    SaslHandshakeRequest,
    SaslHandshakeResponse,
)

_TOO_LATE: Final = "SaslAuthenticate request received after successful authentication"


def handle_sasl_handshake(_context: RequestContext, _request: SaslHandshakeRequest, respond: Respond) -> None:
    respond(SaslHandshakeResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE))


def handle_sasl_authenticate(_context: RequestContext, _request: SaslAuthenticateRequest, respond: Respond) -> None:
    respond(SaslAuthenticateResponse(error_code=ErrorCode.ILLEGAL_SASL_STATE, error_message=_TOO_LATE))
