"""Which values of a batch cannot be decoded, and what is done with them: fail, drop, or a dead letter.

Theory of operation. A task of a source may run twice, for a query that is replayed, for another query over the same
DataFrame, or for a look at its rows. So reading sends nothing. A record that cannot be decoded becomes a row whose
`value` is null and whose column `deadLetter` has the record for the topic of dead letters, complete. The job writes it
like any other row, and the sink's transaction counts for both.
"""

from typing import Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.base.errors import OttlaError
from ottla.client.consumer.dead_letters import dead_letter_headers
from ottla.records.kernel import ConsumerRecord
from ottla.spark.source.rows import ARROW_DEAD_LETTER, DEAD_LETTER
from ottla.spark.source.values.value_options import Decoder, OnError, ValueOptions


class UndecodableValue(OttlaError, ValueError):
    """A value that is not what `value.format` says."""


class _Bad(NamedTuple):
    row: int
    problem: Exception


class DecodedValues:
    """One task's."""

    def __init__(self, options: ValueOptions, decoder: Decoder) -> None:
        self._options = options
        self._decoder = decoder

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its values decoded. Rows that could not be are left out or have a dead letter, as asked."""
        values = batch.column("value")
        good: list[tuple[int, pa.Array]] = []
        bad: list[_Bad] = []
        self._decode(values, 0, good, bad, stops_at_first=self._options.on_error is OnError.FAIL)
        if bad and self._options.on_error is OnError.FAIL:
            raise self._failure(batch, bad[0])
        if self._options.on_error is OnError.DEAD_LETTER:
            return self._with_letters(batch, good, bad)
        if bad:
            batch = (
                pa.concat_batches([batch.slice(row, len(part)) for row, part in good]) if good else batch.slice(0, 0)
            )
        return _with_values(batch, self._joined([part for _, part in good]))

    def _with_letters(self, batch: pa.RecordBatch, good: list[tuple[int, pa.Array]], bad: list[_Bad]) -> pa.RecordBatch:
        """All rows: null in the place of a value that is bad, and of a dead letter where it is not."""
        null = pa.nulls(1, (good[0][1] if good else self._joined([])).type)
        parts = sorted([*good, *((row, null) for row, _ in bad)], key=lambda part: part[0])
        places: list[int | None] = [None] * batch.num_rows
        for number, (row, _) in enumerate(bad):
            places[row] = number
        letters = pa.array([self._letter(batch, one) for one in bad], ARROW_DEAD_LETTER)
        column = letters.take(pa.array(places, pa.int64()))
        return _with_values(batch, self._joined([part for _, part in parts])).append_column(DEAD_LETTER, column)

    def _joined(self, parts: list[pa.Array]) -> pa.Array:
        if len(parts) == 1:
            return parts[0]
        return pa.concat_arrays(parts or [self._decoder.decode(pa.array([], pa.binary()))])

    def _decode(
        self, values: pa.Array, first: int, good: list[tuple[int, pa.Array]], bad: list[_Bad], *, stops_at_first: bool
    ) -> None:
        """In halves, until each bad one is alone: a few bad ones cost little."""
        if bad and stops_at_first:
            return
        try:
            good.append((first, self._decoder.decode(values)))
        except (ValueError, pa.ArrowException) as problem:
            if len(values) == 1:
                bad.append(_Bad(first, problem))
                return
            half = len(values) // 2
            self._decode(values.slice(0, half), first, good, bad, stops_at_first=stops_at_first)
            self._decode(values.slice(half), first + half, good, bad, stops_at_first=stops_at_first)

    def _failure(self, batch: pa.RecordBatch, bad: _Bad) -> UndecodableValue:
        row = batch.slice(bad.row, 1).to_pylist()[0]
        return UndecodableValue(
            f"the value of {row['topic']}-{row['partition']} at offset {row['offset']} cannot be decoded with option "
            f"value.format={self._options.format}: {bad.problem}; with option value.onError=drop such values are "
            "passed over, with deadLetter they come as rows for another topic"
        )

    def _letter(self, batch: pa.RecordBatch, bad: _Bad) -> dict[str, Any]:
        record = _record(batch.slice(bad.row, 1).to_pylist()[0])
        headers = dead_letter_headers(record, bad.problem)
        return {
            "topic": self._options.dead_letter_topic,
            "key": record.key,
            "value": record.value,
            "headers": [{"key": key, "value": value} for key, value in headers],
            "reason": str(bad.problem),
        }


def _with_values(batch: pa.RecordBatch, values: pa.Array) -> pa.RecordBatch:
    return batch.set_column(batch.schema.get_field_index("value"), "value", values)


def _record(row: dict[str, Any]) -> ConsumerRecord:
    headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
    timestamp_ms = round(row["timestamp"].timestamp() * 1000)
    return ConsumerRecord(
        row["topic"], row["partition"], row["offset"], timestamp_ms, row["key"], row["value"], headers
    )
