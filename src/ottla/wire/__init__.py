"""Kafka's wire protocol: messages, their codec, framing, error codes and the table of APIs.

    from ottla.wire import decode_request, encode_response, messages

Importing this costs next to nothing. The schema facts are read when the first message class is asked for, a class is
built when it is named, and a codec is compiled when a version of it is first used.

    apis, errors, acls   the table of APIs; error codes; what rules of access speak of
    frame                requests and responses as they cross a connection; exchange the talk over one, without I/O
    messages             every message as a class (message), made from the facts by their schema
    codec                whole messages to bytes and back. compiler ties a class to its codecs: decoding and encoding
                         write them (source, head, layout), reading and writing have their slow paths, plans is for
                         the compiled one, diagnosis finds the field that made one fail
    varint, faults       numbers of variable length; what can be wrong with bytes
    record_values        messages inside records
    http                 HTTP requests and responses, without I/O
    otlp                 metrics as OpenTelemetry writes them, for clients that push
    request_forms        requests that a client sends again and again, filled in
"""

TYPE_CHECKING = False  # not the one of `typing`, whose import would be half of the cost
if TYPE_CHECKING:
    from ottla.wire.apis import Api, ApiKey
    from ottla.wire.codec import decode, encode, encode_parts
    from ottla.wire.errors import ErrorCode
    from ottla.wire.faults import DecodeError, EncodeError, UnsupportedVersionError
    from ottla.wire.frame import (
        Request,
        UnsupportedRequestError,
        correlation_id_of,
        decode_request,
        decode_response,
        encode_request,
        encode_request_parts,
        encode_response,
        encode_response_parts,
    )
    from ottla.wire.message import Message

_HOMES = {
    "apis": ("Api", "ApiKey"),
    "codec": ("decode", "encode", "encode_parts"),
    "errors": ("ErrorCode",),
    "faults": ("DecodeError", "EncodeError", "UnsupportedVersionError"),
    "frame": (
        "Request",
        "UnsupportedRequestError",
        "correlation_id_of",
        "decode_request",
        "decode_response",
        "encode_request",
        "encode_request_parts",
        "encode_response",
        "encode_response_parts",
    ),
    "message": ("Message",),
}

__all__ = [
    "Api",
    "ApiKey",
    "DecodeError",
    "EncodeError",
    "ErrorCode",
    "Message",
    "Request",
    "UnsupportedRequestError",
    "UnsupportedVersionError",
    "correlation_id_of",
    "decode",
    "decode_request",
    "decode_response",
    "encode",
    "encode_parts",
    "encode_request",
    "encode_request_parts",
    "encode_response",
    "encode_response_parts",
]


def __getattr__(name: str) -> object:
    for home, names in _HOMES.items():
        if name in names:
            from importlib import import_module

            value: object = getattr(import_module(f"{__name__}.{home}"), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
