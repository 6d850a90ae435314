"""Protobuf to Arrow: typed columns from bytes, by the package ptars (`ottla[protobuf-arrow]`), without an object for
a row.

It was measured before anything of our own was written: 2 µs a row here, where messages of protobuf and `from_pylist`
take 137. Enums are strings, `google.protobuf.Timestamp` is a moment in microseconds; fields of a oneof, and those
that is seen to be missing, may be null. A record of a message that contains itself has no columns.

All rows of a batch are decoded at once, so what is wrong with one shows in `finish`: it raises, or the row is null.
"""

from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.schemas.faults import CannotDecode
from ottla.schemas.protobuf.schema import ProtobufSchema

if TYPE_CHECKING:
    from google.protobuf.descriptor import Descriptor


class ArrowDecoder:
    """Rows of one message. `append` what came, then `finish` the batch; then it begins anew."""

    def __init__(self, schema: ProtobufSchema, message: str | None = None) -> None:
        import ptars

        name = message or schema.name
        if name is None:
            raise CannotDecode("the schema has no message")
        descriptor = schema.linked.descriptor(name)
        _refuse_recursion(descriptor, ())
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
        present = [row for row in rows if row is not None]
        try:
            batch = self._handler.list_to_record_batch(present)
        except ValueError as error:
            rows = self._checked(rows, on_error, error)
            present = [row for row in rows if row is not None]
            batch = self._handler.list_to_record_batch(present)
        if len(present) == len(rows):
            return batch
        places = iter(range(len(present)))
        taken = batch.take(pa.array([None if row is None else next(places) for row in rows], pa.int64()))
        return taken.cast(pa.schema([field.with_nullable(True) for field in batch.schema]))

    def _checked(self, rows: list[bytes | None], on_error: str, error: ValueError) -> list[bytes | None]:
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
        try:
            self._class.FromString(row)
            self._handler.list_to_record_batch([row])
        except Exception:  # protobuf's own error, whose name has changed between versions, or ptars' ValueError
            return False
        return True


def _refuse_recursion(descriptor: "Descriptor", within: tuple[str, ...], sound: set[str] | None = None) -> None:
    sound = set() if sound is None else sound
    if descriptor.full_name in within:
        raise CannotDecode(f"{descriptor.full_name} is recursive, and has no columns")
    if descriptor.full_name in sound:
        return
    for field in descriptor.fields:
        if field.message_type is not None:
            _refuse_recursion(field.message_type, (*within, descriptor.full_name), sound)
    sound.add(descriptor.full_name)
