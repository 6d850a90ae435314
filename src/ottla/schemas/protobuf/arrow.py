"""Protobuf to Arrow: typed columns from bytes, by the package ptars (`ottla[protobuf-arrow]`), without an object for
a row.

It was measured before anything of our own was written: 2 µs a row here, where messages of protobuf and `from_pylist`
take 137. Enums are strings, `google.protobuf.Timestamp` is a moment in microseconds; fields of a oneof, and those
that is seen to be missing, may be null. A message that contains itself, or a group, has no columns. ptars knows no
editions: it gets the same messages in proto2 or proto3 (`without_editions`).

All rows of a batch are decoded at once, so what is wrong with one shows in `finish`: it raises, or the row is null.

ptars follows groups that it does not know as deep as they go, on the stack: 300 KB of them ended the process. A row
that is long enough for that is first read by protobuf, which goes 100 deep.
"""

from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.schemas.faults import CannotDecode
from ottla.schemas.protobuf.schema import ProtobufSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


_LONG_BYTES: Final = 8_192
"""4,096 groups within each other, of which a stack of 1 MB holds more than twice as many."""


class ArrowDecoder:
    """Rows of one message. `append` what came, then `finish` the batch; then it begins anew."""

    def __init__(self, schema: ProtobufSchema, message: str | None = None) -> None:
        import ptars

        from ottla.schemas.protobuf.without_editions import without_editions

        name = message or schema.name
        if name is None:
            raise CannotDecode("the schema has no message")
        descriptor = schema.linked.descriptor(name)
        _refuse_what_has_none(descriptor, ())
        descriptor = without_editions(descriptor)
        config = ptars.PtarsConfig(enum_repr="string", timestamp_unit="us", duration_unit="us", time_unit="us")
        self._handler = ptars.HandlerPool([descriptor.file], config=config).get_for_message(descriptor)
        self._class = schema.message_class(name)
        self._name = name
        self._rows: list[bytes | None] = []

    def __len__(self) -> int:
        return len(self._rows)

    def append(self, content: bytes | bytearray | memoryview, start: int = 0) -> None:
        """One more row, from bytes that begin at `start`."""
        self._rows.append(bytes(memoryview(content)[start:]))

    def append_null(self) -> None:
        """A row of nulls."""
        self._rows.append(None)

    def finish(self, on_error: Literal["raise", "null"] = "raise") -> Any:
        """All rows as a `pyarrow.RecordBatch`. Raises `CannotDecode`, with the number of the row, unless it is to be
        null; the rows are gone either way."""
        rows, self._rows = self._rows, []
        if any(row is not None and len(row) > _LONG_BYTES and not self._is_message(row) for row in rows):
            rows = self._checked(rows, on_error, None)
        present = [row for row in rows if row is not None]
        try:
            batch = self._batch(present)
        except ValueError as error:
            rows = self._checked(rows, on_error, error)
            present = [row for row in rows if row is not None]
            batch = self._batch(present)
        if len(present) == len(rows):
            return batch
        places = iter(range(len(present)))
        taken = batch.take(pa.array([None if row is None else next(places) for row in rows], pa.int64()))
        fields = [field.with_nullable(True) for field in batch.schema]
        return pa.RecordBatch.from_arrays(taken.columns, schema=pa.schema(fields))

    def _checked(self, rows: list[bytes | None], on_error: str, error: ValueError | None) -> list[bytes | None]:
        """The rows, with None for those that are wrong."""
        checked: list[bytes | None] = []
        for number, row in enumerate(rows):
            if row is not None and not self._is_sound(row):
                if on_error == "raise":
                    raise CannotDecode(f"row {number} is no {self._name}") from error
                row = None
            checked.append(row)
        return checked

    def _is_sound(self, row: bytes) -> bool:
        if not self._is_message(row):
            return False
        try:
            self._batch([row])
        except ValueError:
            return False
        return True

    def _batch(self, rows: list[bytes]) -> Any:
        """Raises `ValueError`."""
        try:
            return self._handler.list_to_record_batch(rows)
        except BaseException as error:
            if not _is_panic(error):
                raise
            raise ValueError(str(error)) from error

    def _is_message(self, row: bytes) -> bool:
        try:
            self._class.FromString(row)
        except Exception:  # protobuf's own error, whose name has changed between versions
            return False
        return True


def _is_panic(error: BaseException) -> bool:
    """Whether it is Rust's way to stop, which Python sees as no `Exception`."""
    return type(error).__name__ == "PanicException"


def _refuse_what_has_none(descriptor: "Descriptor", within: tuple[str, ...], sound: set[str] | None = None) -> None:
    sound = set() if sound is None else sound
    if descriptor.full_name in within:
        raise CannotDecode(f"{descriptor.full_name} is recursive, and has no columns")
    if descriptor.full_name in sound:
        return
    for field in descriptor.fields:
        if field.type == field.TYPE_GROUP:
            raise CannotDecode(f"{field.full_name} is a group, which has no columns: ptars passes over its content")
        if field.message_type is not None:
            _refuse_what_has_none(field.message_type, (*within, descriptor.full_name), sound)
    sound.add(descriptor.full_name)
