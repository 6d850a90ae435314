"""Why a request, or a part of one, is refused. Goes over the wire as it is: clients show the message to people."""

from typing import NamedTuple

from ottla.wire.errors import ErrorCode


class Refusal(NamedTuple):
    """`message` is None where the code says it all."""

    code: ErrorCode
    message: str | None = None


UNKNOWN_TOPIC = Refusal(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "This server does not host this topic-partition.")
UNKNOWN_TOPIC_ID = Refusal(ErrorCode.UNKNOWN_TOPIC_ID, "This server does not host this topic ID.")
