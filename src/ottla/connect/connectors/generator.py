"""Records from nowhere: for trying a pipeline out, for tests and for measuring. The same seed makes the same records.

The n-th record of a connector is always the same, whenever and in however many starts it is made: so what must be in
the topic can be computed, and whether something was lost or repeated is known.

    {"id": 17, "key": "k-3", "amount": 40.25, "text": "…", "at": 1700000000017}
"""

from collections.abc import Mapping, Sequence
from time import monotonic, sleep
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.config.bounds import at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Double, Int, Long, Text
from ottla.connect.connector import Problem, Source, SourceRecords
from ottla.connect.data.columns import Column, struct_column
from ottla.connect.data.records import Records
from ottla.connect.data.schema import Schema, Type, struct, timestamp

_KEY: Final = Schema(Type.STRING)
VALUE: Final = struct(
    [
        ("id", Schema(Type.INT64)),
        ("key", Schema(Type.STRING)),
        ("amount", Schema(Type.FLOAT64)),
        ("text", Schema(Type.STRING)),
        ("at", timestamp()),
    ],
    name="ottla.Generated",
)
_BEGINNING_MS: Final = 1_700_000_000_000
_ALPHABET: Final = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz012345", np.uint8)
_AT_A_TIME: Final = 20_000


class GeneratorSource(Source):
    """One source partition, `{"generator": NAME}`, whose offset is `{"next": n}`."""

    settings = (
        Text("topic", REQUIRED, ANY, HIGH, "The topic to write to.", acted_on=True),
        Double("rate", 0.0, at_least(0), HIGH, "Records a second; 0: as many as possible.", acted_on=True),
        Long("count", -1, at_least(-1), MEDIUM, "How many records there are altogether; -1: no end.", acted_on=True),
        Int("keys", 100, at_least(1), MEDIUM, "How many different keys there are.", acted_on=True),
        Int("text.bytes", 100, at_least(0), MEDIUM, "How long each text is.", acted_on=True),
        Long("seed", 0, at_least(0), LOW, "Another seed makes other records.", acted_on=True),
    )

    def start(self) -> None:
        options = self.options()
        self._topic = options.text("topic")
        self._rate = options.number("rate")
        self._count = options.integer("count")
        self._keys = options.integer("keys")
        self._length = options.integer("text.bytes")
        self._seed = options.integer("seed")
        self._partition = {"generator": self.context.connector}
        stored = self.context.offset(self._partition)
        self._next = int(stored["next"]) if stored else 0
        self._began_s, self._began_at = monotonic(), self._next

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        due = self._due(timeout_s)
        if not due:
            return []
        records = generated(self._topic, self._seed, self._next, due, self._keys, self._length)
        self._next += due
        return [SourceRecords(records, self._partition, {"next": self._next})]

    def is_at_end(self) -> bool | None:
        return None if self._count < 0 else self._count <= self._next

    def _due(self, timeout_s: float) -> int:
        """How many records there are to make now; waits until one is."""
        most = max(min(_AT_A_TIME, self.context.max_bytes // (self._length + 64)), 1)
        left = most if self._count < 0 else self._count - self._next
        if left <= 0:
            sleep(timeout_s)
            return 0
        if self._rate <= 0:
            return min(most, left)
        should = self._began_at + int((monotonic() - self._began_s) * self._rate)
        if should <= self._next:
            wait_s = (self._next + 1 - self._began_at) / self._rate - (monotonic() - self._began_s)
            sleep(max(min(wait_s, timeout_s), 0.0))
            should = self._began_at + int((monotonic() - self._began_s) * self._rate)
        return max(min(should - self._next, most, left), 0)

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        topic = config.get("topic", "")
        return [("topic", "one topic is written to, and this names several")] if "," in topic else []


def generated(topic: str, seed: int, first: int, count: int, keys: int, length: int) -> Records:
    """Records `first` to `first + count - 1`, each of which depends on its number and the seed alone."""
    numbers = np.arange(first, first + count, dtype=np.uint64)
    mixed = _mixed(numbers + np.uint64((seed * 0x9E3779B97F4A7C15) & (2**64 - 1)))
    names = pa.array((mixed % np.uint64(keys)).astype(np.int64)).cast(pa.string())
    key = pc.binary_join_element_wise("k", names, "-")
    columns = [
        pa.array(numbers.astype(np.int64)),
        key,
        pa.array((mixed % np.uint64(100_000)).astype(np.float64) / 4),
        _texts(mixed, length),
        pa.array(numbers.astype(np.int64) + _BEGINNING_MS),
    ]
    fields = [Column(field.schema, array) for field, array in zip(VALUE.fields, columns, strict=True)]
    return Records(
        topic,
        Column(_KEY, key),
        struct_column(VALUE, fields, count),
        pa.array(range(count), pa.int64()),
        pa.nulls(count, pa.int64()),
        pa.nulls(count, pa.int32()),
    )


def _mixed(numbers: Any) -> Any:
    """SplitMix64's mixing: neighbours become unlike."""
    with np.errstate(over="ignore"):
        mixed = numbers + np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def _texts(mixed: Any, length: int) -> Any:
    """Five bits of a number are a letter; each word of twelve letters is mixed anew."""
    words = []
    for _ in range((length + 11) // 12):
        mixed = _mixed(mixed)
        words.append(_ALPHABET[((mixed[:, None] >> (np.arange(12, dtype=np.uint64) * np.uint64(5))) & np.uint64(31))])
    letters = np.concatenate(words, axis=1)[:, :length] if words else np.zeros((len(mixed), 0), np.uint8)
    ends = np.arange(len(mixed) + 1, dtype=np.int32) * length
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(letters))]
    return pa.Array.from_buffers(pa.string(), len(mixed), buffers)
