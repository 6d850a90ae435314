"""Which values of a batch cannot be decoded, and what is done with them: fail, drop, or a topic for dead letters."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.base.errors import OttlaError
from ottla.spark.source.values.value_options import Decoder, OnError, ValueOptions

if TYPE_CHECKING:
    from ottla.client.blocking.producer import Producer


class UndecodableValue(OttlaError, ValueError):
    """A value that is not what `value.format` says."""


class _Bad(NamedTuple):
    row: int
    problem: Exception


class DecodedValues:
    """One task's. `close` waits until the dead letters are delivered: before, the task is not done."""

    def __init__(self, options: ValueOptions, decoder: Decoder, client_settings: Mapping[str, str]) -> None:
        self._options = options
        self._decoder = decoder
        self._client_settings = client_settings
        self._producer: Producer | None = None

    def decoded(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """The batch with its values decoded; rows that could not be are left out, if that was asked for."""
        values = batch.column("value")
        good: list[tuple[int, pa.Array]] = []
        bad: list[_Bad] = []
        self._decode(values, 0, good, bad, stops_at_first=self._options.on_error is OnError.FAIL)
        if bad:
            if self._options.on_error is OnError.FAIL:
                raise self._failure(batch, bad[0])
            if self._options.on_error is OnError.DEAD_LETTER:
                self._send(batch, bad)
            batch = (
                pa.concat_batches([batch.slice(row, len(part)) for row, part in good]) if good else batch.slice(0, 0)
            )
        parts = [part for _, part in good]
        column = parts[0] if len(parts) == 1 else pa.concat_arrays(parts or [self._decoder.decode(values.slice(0, 0))])
        return batch.set_column(batch.schema.get_field_index("value"), "value", column)

    def close(self) -> None:
        if self._producer is not None:
            self._producer.close()

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
            "passed over, with deadLetter they go to another topic"
        )

    def _send(self, batch: pa.RecordBatch, bad: list[_Bad]) -> None:
        from ottla.client.blocking.producer import Producer
        from ottla.client.consumer.dead_letters import DeadLetters

        if self._producer is None:
            self._producer = Producer(self._client_settings)
        letters = DeadLetters(self._producer, self._options.dead_letter_topic or "")
        sent = [letters.send(_record(batch.slice(row, 1).to_pylist()[0]), problem) for row, problem in bad]
        self._producer.flush()
        for one in sent:
            one.result()


def _record(row: dict[str, Any]) -> Any:
    from ottla.records.kernel import ConsumerRecord

    headers = tuple((header["key"], header["value"]) for header in row["headers"] or ())
    timestamp_ms = round(row["timestamp"].timestamp() * 1000)
    return ConsumerRecord(
        row["topic"], row["partition"], row["offset"], timestamp_ms, row["key"], row["value"], headers
    )
