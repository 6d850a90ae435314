"""What goes wrong with values, where schemas themselves are sound."""

from ottla.base.errors import OttlaError


class CannotDecode(OttlaError, ValueError):
    """Bytes are not what their schema says, or cannot be read with the reader's schema."""


class CannotEncode(OttlaError, ValueError):
    """A value is not what its schema wants. `path` leads to the part of it that is wrong, outermost first."""

    def __init__(self, reason: str, path: tuple[str, ...] = ()) -> None:
        super().__init__(f"{reason} (at {'.'.join(path)})" if path else reason)
        self.reason = reason
        self.path = path
