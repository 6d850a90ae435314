"""What a converter is: bytes of one part of records to columns, and back."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.data.columns import AnyColumn
from ottla.connect.errors import DataError


class Part(NamedTuple):
    """Rows that have one schema, or none: which rows of those given (int64), and what they are."""

    rows: Any
    column: AnyColumn


class Converter(Protocol):
    """`content` are arrays of `binary`; null is a record without a key, or a tombstone.

    Raises `DataError` with the row that is wrong.
    """

    def from_bytes(self, topic: str, content: Any) -> list[Part]:
        """What the bytes say, in as few parts as there are schemas."""

    def to_bytes(self, topic: str, column: AnyColumn) -> Any: ...


def all_rows(length: int) -> Any:
    return pa.array(range(length), pa.int64())


def naming_the_row(convert: Callable[[Any], Any], column: AnyColumn) -> Any:
    """What `convert` makes of a column. If it raises, the row that is to blame is looked for, by halves."""
    try:
        return convert(column)
    except DataError as error:
        if error.row is not None:
            raise
        low, high = 0, len(column)
        while high - low > 1:
            middle = (low + high) // 2
            try:
                convert(column.take(pa.array(range(low, middle), pa.int64())))
            except DataError:
                high = middle
            else:
                low = middle
        raise DataError(str(error), low) from None
