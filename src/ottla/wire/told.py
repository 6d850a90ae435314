"""What a client is told with an error: a code, and words where the protocol has a place for them."""

from ottla.wire.errors import ErrorCode
from ottla.wire.reading import MAX_STRING_BYTES


def told(error: ErrorCode, message: str | None) -> tuple[ErrorCode, str | None]:
    """The error with its message; UNKNOWN_SERVER_ERROR without one if the message does not fit into a string.

    Messages repeat names that clients send, which may be as long as a string can be. Kafka fails to write such a reply
    and gives this code instead.
    """
    if message is not None and len(message) * 4 > MAX_STRING_BYTES and len(message.encode()) > MAX_STRING_BYTES:
        return ErrorCode.UNKNOWN_SERVER_ERROR, None
    return error, message
