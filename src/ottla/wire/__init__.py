"""Kafka's wire protocol: messages, their codec, framing, error codes and the table of APIs.

    from ottla.wire import decode_request, encode_response, messages

Importing this costs next to nothing. The schema facts are read when the first message class is asked for, a class is
built when it is named, and a codec is compiled when a version of it is first used.
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
