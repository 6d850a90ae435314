"""Envelope 0: a broker passes on what a client asked of it, with the client's principal and address (KIP-590).

The request inside is answered as every other, on behalf of the client. What is wrong with the envelope, and that this
controller is not the active one, is said on the envelope: the broker looks for the active one and sends again. Every
other refusal is the client's reply.

Who sends an envelope speaks for others, and so needs CLUSTER_ACTION (`controller.access`).
"""

from struct import Struct
from typing import Final

from ottla.apis.error_responses import error_response
from ottla.apis.table import APIS
from ottla.base.addresses import of_bytes
from ottla.base.errors import RemoteProtocolError
from ottla.base.ports import Buffer
from ottla.controller.controller_apis import answer
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import Caller
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.apis import api
from ottla.wire.codec import decode
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import Request, decode_request, encode_response
from ottla.wire.message import Message
from ottla.wire.messages import DefaultPrincipalData, EnvelopeRequest, EnvelopeResponse

_VERSION = Struct(">h")
_SIZE_BYTES: Final = 4


class _Refused(Exception):
    """Why an envelope is not opened."""

    def __init__(self, error: ErrorCode) -> None:
        self.error = error


def handle_envelope(
    server: ControllerServer, _context: RequestContext, envelope: EnvelopeRequest, respond: Respond
) -> None:
    try:
        principal, host = _principal(envelope.request_principal), _host(envelope.client_host_address)
        header, request = _opened(envelope.request_data)
        name = f"{principal.type}:{principal.name}"
        caller = Caller(name, host, header.client_id or "", principal.token_authenticated)
    except _Refused as refused:
        respond(EnvelopeResponse(error_code=refused.error))
        return
    version = header.request_api_version

    def then(reply: Message) -> None:
        framed = encode_response(reply, version, header.correlation_id)
        respond(EnvelopeResponse(response_data=framed[_SIZE_BYTES:]))

    def failed(error: ErrorCode) -> None:
        refusal = None if error is ErrorCode.NOT_CONTROLLER else error_response(request, version, error)
        if refusal is None:
            respond(EnvelopeResponse(error_code=error))
        else:
            then(refusal)

    answer(server, ControllerRequest(request, version, caller), then, failed)


def _opened(data: Buffer) -> Request:
    """Bytes that are no request are, to Kafka, one of a version that it does not know."""
    try:
        opened = decode_request(data)
    except RemoteProtocolError:
        raise _Refused(ErrorCode.UNSUPPORTED_VERSION) from None
    key = opened.header.request_api_key
    if key not in APIS or not APIS[key].may_be_forwarded:
        raise _Refused(ErrorCode.INVALID_REQUEST)
    if opened.header.request_api_version not in api(key).stable_versions:
        raise _Refused(ErrorCode.UNSUPPORTED_VERSION)
    return opened


def _principal(data: bytes | None) -> DefaultPrincipalData:
    """As Kafka's default builder of principals writes it: a version, then the message."""
    if data is None or len(data) < _VERSION.size:
        raise _Refused(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE)
    try:
        return decode(DefaultPrincipalData, data[_VERSION.size :], _VERSION.unpack_from(data)[0])
    except RemoteProtocolError:
        raise _Refused(ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE) from None


def _host(address: bytes) -> str:
    try:
        return of_bytes(bytes(address))
    except ValueError:
        raise _Refused(ErrorCode.INVALID_REQUEST) from None
