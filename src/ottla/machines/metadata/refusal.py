"""Why a request, or a part of one, is refused. Goes over the wire as it is: clients show the message to people."""

from typing import NamedTuple

from ottla.wire.errors import ErrorCode, error_with_message


class _Refusal(NamedTuple):
    code: ErrorCode
    message: str | None


class Refusal(_Refusal):
    """`message` is None where the code says it all. `error_with_message` mends one that no reply can carry."""

    __slots__ = ()

    def __new__(cls, code: ErrorCode, message: str | None = None) -> "Refusal":
        return super().__new__(cls, *error_with_message(code, message))


UNKNOWN_TOPIC = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
THROTTLED = Refusal(ErrorCode.THROTTLING_QUOTA_EXCEEDED, "The throttling quota has been exceeded.")
UNKNOWN_TOPIC_ID = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
