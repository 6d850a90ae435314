"""Rows a second of the sinks for lakes and files, on a local directory, without Kafka: `python bench/lakes.py`.

Records are made before the clock runs. A put has 20,000 rows of a number, a text of 100 bytes and a double; upserts
replace a tenth of 100,000 keys each time.
"""

import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

ROOT = Path(__file__).parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "src")]

from tests.unit.connect.connectors.sources import sink  # noqa: E402
from tests.unit.connect.lakes.given_lakes import KEY, Lake  # noqa: E402

from ottla.base.ids import TopicPartition  # noqa: E402 - the path comes first
from ottla.connect.data.columns import Column, struct_column  # noqa: E402
from ottla.connect.data.records import Records, records_of  # noqa: E402
from ottla.connect.data.schema import Schema, Type, struct  # noqa: E402

PUT, PUTS, KEYS = 20_000, 10, 100_000
VALUE = struct([("id", Schema(Type.INT64)), ("note", Schema(Type.STRING)), ("price", Schema(Type.FLOAT64))])


def batch(first: int, keys: list[int]) -> Records:
    number = Column(Schema(Type.INT64), pa.array(keys, pa.int64()))
    note = Column(Schema(Type.STRING), pa.array([f"{first:010}{key:010}" + "x" * 80 for key in keys]))
    price = Column(Schema(Type.FLOAT64), pa.array([key / 100 for key in keys]))
    count = len(keys)
    value = struct_column(VALUE, [number, note, price], count)
    made = records_of("orders", struct_column(KEY, [number], count), value, partitions=[0] * count, first=first)
    return made.but(offset=made.position)


def measured(name: str, made: Any, puts: list[Records]) -> None:
    made.positions()
    begin_s = time.perf_counter()
    for one in puts:
        made.put([one], {TopicPartition("orders", 0): one.offset[-1].as_py() + 1})
    taken_s = time.perf_counter() - begin_s
    rows = sum(map(len, puts))
    print(f"{name:28} {rows / taken_s:10,.0f} rows/s   {taken_s / len(puts) * 1000:6.0f} ms a put", flush=True)


def main() -> None:
    inserts = [batch(at * PUT, list(range(at * PUT, (at + 1) * PUT))) for at in range(PUTS)]
    some = [list(range(at, KEYS, 10)) for at in range(PUTS // 2)]
    upserts = [batch(at * len(keys) + KEYS, keys) for at, keys in enumerate(some)]
    all_keys = batch(0, list(range(KEYS)))
    with tempfile.TemporaryDirectory() as directory:
        root = Path(directory)
        for format in ("json", "parquet"):
            place = str(root / f"files-{format}")
            config = {"connector.class": "FilesSink", "directory": place, "format": format}
            measured(f"files, {format}", sink(root, **config), inserts)
        for name in ("Delta", "Iceberg"):
            Lake(name, root / "warm").sink(upserts=False).put(inserts[:1], {TopicPartition("orders", 0): PUT})
            measured(f"{name}, insert", Lake(name, root / "insert").sink(upserts=False), inserts)
            lake = Lake(name, root / "upsert").sink()
            lake.put([all_keys], {TopicPartition("orders", 0): KEYS})
            measured(f"{name}, upsert of 10,000", lake, upserts)


if __name__ == "__main__":
    main()
