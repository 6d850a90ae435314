"""Sinks of lakes on a directory, and records for them: as the engine would use them."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from ottla.base.ids import TopicPartition
from ottla.connect.connector import SinkContext
from ottla.connect.connectors.lakes.sink import LakeSink
from ottla.connect.data.columns import AnyColumn, nothing
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.plugins import find_connector

KEY = struct([("id", Schema(Type.INT64))], name="orders.Key")
ORDER = struct([("id", Schema(Type.INT64)), ("note", Schema(Type.STRING, True))], name="orders.Value")


class Lake:
    """One place with one table `orders`, of one format."""

    def __init__(self, format: str, root: Path, place: str | None = None, **more: str) -> None:
        self.format, self.root = format, root
        self.where = place if place is not None else str(root / "warehouse")
        Path(root / "warehouse").mkdir(parents=True, exist_ok=True)
        self.more = more

    def config(self, *, upserts: bool = True, **options: str) -> dict[str, str]:
        given = {"name": "into", "connector.class": f"ottla.connect.{self.format}SinkConnector", "topics": "orders"}
        if self.format == "Delta":
            given["table.path"] = f"{self.where}/orders"
            if upserts:
                given |= {"insert.mode": "upsert", "delete.enabled": "true"}
        else:
            given |= {
                "iceberg.tables": "shop.orders",
                "iceberg.tables.auto-create-enabled": "true",
                "iceberg.tables.evolve-schema-enabled": "true",
                "iceberg.catalog.type": "sql",
                "iceberg.catalog.uri": f"sqlite:///{self.root}/catalog.db",
                "iceberg.catalog.warehouse": self.where,
            }
            if upserts:
                given["iceberg.tables.upsert-mode-enabled"] = "true"
        return given | self.more | options

    def sink(self, connector: str = "into", *, upserts: bool = True, **options: str) -> Any:
        """A sink that has started and read its positions."""
        return self.started(self.config(upserts=upserts, **options), connector)

    def started(self, config: dict[str, str], connector: str = "into") -> Any:
        kind = find_connector(config["connector.class"]).load()
        assert issubclass(kind, LakeSink)
        worker = {"file.allowed.paths": str(self.root)}
        made = kind(config, SinkContext(connector, logging.getLogger("lakes"), lambda: 0, worker))
        made.start()
        made.positions()
        return made

    def table(self) -> Any:
        """The table as another reader of the format sees it."""
        if self.format == "Delta":
            from deltalake import DeltaTable

            from ottla.connect.connectors.s3 import S3Access

            access = S3Access(
                *(self.more.get(one) for one in ("s3.region", "store.url", "aws.access.key.id")),
                self.more.get("aws.secret.access.key"),
                None,
            )
            options = access.for_delta() if self.where.startswith("s3:") else None
            return DeltaTable(f"{self.where}/orders", storage_options=options).to_pyarrow_table()
        return self.iceberg().scan().to_arrow()

    def iceberg(self) -> Any:
        from pyiceberg.catalog import load_catalog

        prefix = "iceberg.catalog."
        given = {name.removeprefix(prefix): text for name, text in self.config().items() if name.startswith(prefix)}
        return load_catalog("iceberg", **given).load_table("shop.orders")

    def rows(self, *names: str) -> list[tuple[Any, ...]]:
        table = self.table()
        columns = [table.column(name).to_pylist() for name in names or table.column_names]
        return sorted(zip(*columns, strict=True), key=repr)


def records(
    rows: Sequence[Any],
    *,
    first: int = 0,
    schema: Schema = ORDER,
    keys: Sequence[Any] | None = None,
    topic: str = "orders",
    partition: int = 0,
) -> list[Records]:
    """Rows, in which None is a tombstone; `keys` for those whose rows do not say it."""
    said = keys if keys is not None else [row["id"] for row in rows]
    made: list[Records] = []
    for is_gone in (False, True):
        chosen = [place for place, row in enumerate(rows) if (row is None) is is_gone]
        if not chosen:
            continue
        key = column_of(KEY, [{"id": said[place]} for place in chosen])
        value: AnyColumn = nothing(len(chosen)) if is_gone else column_of(schema, [rows[place] for place in chosen])
        one = records_of(topic, key, value, partitions=[partition] * len(chosen))
        places = pa.array([first + place for place in chosen], pa.int64())
        made.append(one.but(position=places, offset=places))
    return made


def at(partition: int = 0, topic: str = "orders") -> TopicPartition:
    return TopicPartition(topic, partition)
