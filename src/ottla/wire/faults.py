"""What can be wrong with the bytes of a message, and who is to blame.

`DecodeError` and its kinds: the other side sent it. Each carries `position`, the byte in the buffer
given to the decoder where the broken item starts. `EncodeError`: our caller asked for it.
"""

from ottla.base.errors import LocalProtocolError, RemoteProtocolError


class DecodeError(RemoteProtocolError):
    """Bytes that are no message of the schema."""

    def __init__(self, reason: str, position: int) -> None:
        super().__init__(f"{reason} at byte {position}")
        self.reason = reason
        self.position = position


class TruncatedError(DecodeError):
    """The bytes end before the message does."""


class OversizeError(DecodeError):
    """A count or size is negative, over the protocol's limit, or larger than the bytes that are left."""


class UnexpectedNullError(DecodeError):
    """Null where the schema's version does not allow it."""


class InvalidTextError(DecodeError):
    """A string that is not UTF-8."""


class VarintError(DecodeError):
    """A varint of more than five bytes, or of more than 32 bits."""


class TagSizeError(DecodeError):
    """A tagged field whose content does not fill exactly the size it was announced with."""


class TrailingBytesError(DecodeError):
    """The message ended before its bytes did."""


class UnsupportedVersionError(RemoteProtocolError):
    """A version, or a kind of message, that the schema does not know."""

    def __init__(self, message: str, version: int) -> None:
        super().__init__(f"{message} has no version {version}")
        self.message = message
        self.version = version


class EncodeError(LocalProtocolError):
    """A value that a message cannot carry, in this version or at all."""

    def __init__(self, message: str, version: int, field: str, reason: str) -> None:
        super().__init__(f"{message} version {version}: {field}: {reason}")
        self.message = message
        self.version = version
        self.field = field
        self.reason = reason
