"""`provide.transaction.metadata`: records of transactions' begin and end, and the place of each change in its own.

    shop.transaction   {"id": "571:53195829"}   {"status": "BEGIN", …}
    shop.public.a      …   "transaction": {"id": "571:53195832", "total_order": 1, "data_collection_order": 1}
    shop.transaction   {"id": "571:53195900"}   {"status": "END", "event_count": 1, "data_collections": […]}

An id is the transaction's number and the LSN of what the record is about. Records of several tables are made apart, in
columns; so their order is counted when all of them are there, by their positions. What was counted of a transaction
that is not at its end is in the offset, under Debezium's names, and counting continues there after a crash.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.connect.connectors.postgres.envelopes import STRIDE, TRANSACTION
from ottla.connect.data.columns import Column, storage_type
from ottla.connect.data.records import Records
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, array, struct

_INT64: Final = Schema(Type.INT64)
_STRING: Final = Schema(Type.STRING)
KEY: Final = struct([("id", _STRING)], name="io.debezium.connector.common.TransactionMetadataKey", version=1)
_COLLECTION: Final = struct(
    [("data_collection", _STRING), ("event_count", _INT64)], name="event.collection", version=1, optional=True
)
VALUE: Final = struct(
    [
        ("status", _STRING),
        ("id", _STRING),
        ("event_count", Schema(Type.INT64, True)),
        ("data_collections", array(_COLLECTION, optional=True)),
        ("ts_ms", _INT64),
    ],
    name="io.debezium.connector.common.TransactionMetadataValue",
    version=1,
)
MESSAGES: Final = "message"
"""What logical messages are counted as."""


@dataclass(frozen=True, slots=True)
class Mark:
    """The begin or the end of a transaction, among the changes: at which number, and where in the WAL."""

    is_end: bool
    place: int
    number: int
    xid: int
    lsn: int
    commit_us: int

    @property
    def id(self) -> str:
        return f"{self.xid}:{self.lsn}"

    def value(self, counts: Mapping[str, int]) -> dict[str, Any]:
        listed = [{"data_collection": name, "event_count": count} for name, count in counts.items()]
        return {
            "status": "END" if self.is_end else "BEGIN",
            "id": self.id,
            "event_count": sum(counts.values()) if self.is_end else None,
            "data_collections": listed if self.is_end else None,
            "ts_ms": self.commit_us // 1000,
        }


def mark_records(topic: str, marks: Sequence[Mark], counts: Mapping[int, Mapping[str, int]]) -> Records:
    """The records of begins and ends. `counts` has those of each place."""
    count = len(marks)
    return Records(
        topic,
        column_of(KEY, [{"id": mark.id} for mark in marks]),
        column_of(VALUE, [mark.value(counts.get(mark.place, {})) for mark in marks]),
        pa.array([mark.number * STRIDE for mark in marks], pa.int64()),
        pa.nulls(count, pa.int64()),
        pa.nulls(count, pa.int32()),
    )


@dataclass(frozen=True, slots=True)
class Made:
    """Records of one table, or a message's."""

    collection: str
    records: Records


def ordered(
    made: Sequence[Made], place_of: Any, begun: Mapping[int, Mapping[str, int]]
) -> tuple[list[Records], dict[int, dict[str, int]]]:
    """The records with their places in their transactions, and how many each transaction has of each collection.

    `place_of` has the transaction's place of each change's number, or -1 where there is none. `begun` has what was
    counted before, of the transaction that was under way.
    """
    counts = {place: dict(counted) for place, counted in begun.items()}
    events = [one for one in made if isinstance(one.records.value, Column)]
    if not events:
        return [one.records for one in made], counts
    names = sorted({one.collection for one in events})
    positions = [np.asarray(one.records.position) for one in events]
    position = np.concatenate(positions)
    place = place_of[position // STRIDE]
    name = np.repeat([names.index(one.collection) for one in events], [len(one) for one in positions])
    total = _ranks(position, place)
    own = _ranks(position, place * len(names) + name)
    for at, counted in begun.items():
        total[place == at] += sum(counted.values())
        for number, collection in enumerate(names):
            own[(place == at) & (name == number)] += counted.get(collection, 0)
    inside = place >= 0
    for at, which, size in zip(*_sizes(place[inside], name[inside]), strict=True):
        of = counts.setdefault(at, {})
        of[names[which]] = of.get(names[which], 0) + size
    start = 0
    blocks: dict[int, Records] = {}
    for one, some in zip(events, positions, strict=True):
        rows = slice(start, start + len(some))
        blocks[id(one)] = _with_block(one.records, total[rows], own[rows], inside[rows])
        start += len(some)
    return [blocks.get(id(one), one.records) for one in made], counts


def _ranks(position: Any, group: Any) -> Any:
    """The place of each among those of its group, by position, from 1."""
    order = np.lexsort((position, group))
    sorted_group = group[order]
    begins = np.flatnonzero(np.concatenate([[True], sorted_group[1:] != sorted_group[:-1]]))
    sizes = np.diff(np.concatenate([begins, [len(group)]]))
    found = np.empty(len(group), np.int64)
    found[order] = np.arange(len(group)) - np.repeat(begins, sizes) + 1
    return found


def _sizes(place: Any, name: Any) -> tuple[list[int], list[int], list[int]]:
    pairs, sizes = np.unique(np.stack([place, name]), axis=1, return_counts=True)
    return pairs[0].tolist(), pairs[1].tolist(), sizes.tolist()


def _with_block(records: Records, total: Any, own: Any, inside: Any) -> Records:
    """The records with their `transaction` filled in."""
    value = records.value
    assert isinstance(value, Column)
    names = [field.name for field in value.schema.fields]
    source = value.child(names.index("source"))
    of_source = [field.name for field in source.schema.fields]
    xid, lsn = (source.child(of_source.index(name)).array.cast(pa.string()) for name in ("txId", "lsn"))
    ids = pc.binary_join_element_wise(xid, lsn, ":")
    block = pa.StructArray.from_arrays(
        [pc.fill_null(ids, ""), pa.array(total), pa.array(own)],
        fields=list(storage_type(TRANSACTION)),
        mask=pa.array(~inside),
    )
    children = [value.child(place).array for place in range(len(names))]
    children[names.index("transaction")] = block
    whole = pa.StructArray.from_arrays(children, fields=list(storage_type(value.schema)))
    return records.but(value=Column(value.schema, whole))
