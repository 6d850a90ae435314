"""Events as records of three topics, and back as DataFrames.

A record's key is the auction's or the person's number, so that an auction's bids are in one partition, and its value is
JSON. Whole columns are written at once, here and in Spark.
"""

from typing import Any, Final, NamedTuple

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]  # the same
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from ottla.spark.nexmark.events import Events

PEOPLE: Final = "people"
AUCTIONS: Final = "auctions"
BIDS: Final = "bids"
TOPICS: Final = (PEOPLE, AUCTIONS, BIDS)

SCHEMAS: Final = {
    PEOPLE: "person long, name string, email string, city string, state string, time timestamp",
    AUCTIONS: (
        "auction long, item string, first_price long, seller long, category long, expires timestamp, time timestamp"
    ),
    BIDS: "auction long, bidder long, price long, channel string, time timestamp",
}


class Streams(NamedTuple):
    """The three kinds of events, as DataFrames with the columns of `SCHEMAS`, streaming or not."""

    people: DataFrame
    auctions: DataFrame
    bids: DataFrame


def to_records(of: Events) -> "dict[str, tuple[pa.Array, pa.Array]]":
    """Keys and values for each topic, in the order of the events."""
    return {
        PEOPLE: (_key(of.people["person"]), _json(of.people)),
        AUCTIONS: (_key(of.auctions["auction"]), _json(of.auctions)),
        BIDS: (_key(of.bids["auction"]), _json(of.bids)),
    }


def from_records(records: DataFrame, kind: str) -> DataFrame:
    """Rows of a topic (with a column `value`) as events of this kind."""
    event = F.from_json(F.col("value").cast("string"), SCHEMAS[kind], {"timestampFormat": _SPARKS})
    return records.select(event.alias("event")).select("event.*")


_SPARKS: Final = "yyyy-MM-dd'T'HH:mm:ss.SSSSSSX"
_ARROWS: Final = "%Y-%m-%dT%H:%M:%S"


def _key(number: "pa.ChunkedArray") -> pa.Array:
    return number.combine_chunks().cast(pa.string())


def _json(table: pa.Table) -> pa.Array:
    """One JSON object a row. Our texts have nothing that JSON would escape."""
    parts: list[Any] = []
    for position, (name, column) in enumerate(zip(table.column_names, table.columns, strict=True)):
        parts.append(f'{"," if position else "{"}"{name}":')
        parts.extend(_value(column.combine_chunks()))
    return pc.binary_join_element_wise(*parts, "}", "")


def _value(column: pa.Array) -> list[Any]:
    if pa.types.is_string(column.type):
        return ['"', column, '"']
    if pa.types.is_timestamp(column.type):
        return ['"', pc.strftime(column.cast(pa.timestamp("us")), format=_ARROWS), 'Z"']
    return [column.cast(pa.string())]
