"""What goes wrong in Connect."""

from ottla.base.errors import OttlaError


class ConnectError(OttlaError):
    """Anything of Connect's that fails on purpose."""


class Retriable(ConnectError):
    """What may be gone when it is tried again: Kafka's RetriableException. The connector restarts by itself, after
    pauses that grow; anything else is FAILED until somebody restarts it."""


class DataError(ConnectError):
    """Data that a schema, a converter or a transform refuses: Kafka's DataException.

    `row` is the row of the batch at hand, where one is to blame; the caller knows which record that is.
    """

    def __init__(self, message: str, row: int | None = None) -> None:
        super().__init__(message)
        self.row = row

    def at(self, row: int) -> "DataError":
        """The same, of this row, unless it has one already."""
        return self if self.row is not None else DataError(str(self), row)
