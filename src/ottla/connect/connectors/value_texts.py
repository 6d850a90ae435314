"""The text of each value of a column, for targets that take text. A value that has none does not spoil the others."""

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.converters.by_name import make_converter
from ottla.connect.data.columns import AnyColumn
from ottla.connect.errors import DataError

Texts = Callable[[AnyColumn], Sequence[bytes | None]]


def json_writer(decimals: str) -> Texts:
    """Values as JSON, without schemas. `decimals` is Kafka's `decimal.format`."""
    converter = make_converter("JsonConverter", {"schemas.enable": "false", "decimal.format": decimals})

    def texts(column: AnyColumn) -> Any:
        return converter.to_bytes("", column).to_pylist()

    return texts


def texts_of(column: AnyColumn, write: Texts) -> list[bytes | DataError | None]:
    """Of each row its text, None for no value, or why it has none."""
    try:
        found: list[bytes | DataError | None] = list(write(column))
    except DataError:
        found = [_text_of(column.take(pa.array([row], pa.int64())), write) for row in range(len(column))]
    gone = column.is_null().to_pylist()
    return [None if is_gone else one for is_gone, one in zip(gone, found, strict=True)]


def _text_of(one: AnyColumn, write: Texts) -> bytes | DataError | None:
    try:
        return write(one)[0]
    except DataError as error:
        return error
