"""Our transforms of change events beside Debezium's, on random envelopes, a batch of several each."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.data.columns import AnyColumn, Schemaless, nothing
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Field, Schema, Type, array, struct
from ottla.connect.errors import DataError
from ottla.connect.transforms.by_name import make_transform
from tests.interop.apache_kafka import libraries
from tests.interop.connect.connect_oracle import RandomData, asked
from tests.interop.connect.test_transforms_and_kafkas import plain, row_by_row, said

pytestmark = pytest.mark.interop

SEED = 20261119
BATCHES = 25
VERSION = "3.6.0.Final"
POM = """\
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion><groupId>ottla</groupId><artifactId>interop</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>io.debezium</groupId><artifactId>debezium-connect-plugins</artifactId><version>{version}</version></dependency>
  </dependencies>
</project>
"""
PACKAGE = "io.debezium.transforms."
TEXT = Schema(Type.STRING)

EXTRACT: list[dict[str, str]] = [
    *({"delete.tombstone.handling.mode": mode} for mode in ("drop", "tombstone", "rewrite", "delete-to-tombstone")),
    {"delete.tombstone.handling.mode": "rewrite-with-tombstone", "add.headers": "op,lsn,source.ts_ms:when,nothing"},
    {"add.fields": "op,table,lsn,source.ts_ms,ts_ms,transaction.id", "delete.tombstone.handling.mode": "rewrite"},
    {"add.fields": "op:kind,id", "add.fields.prefix": "x_", "add.headers": "op,table", "add.headers.prefix": ""},
    {"route.by.field": "route", "delete.tombstone.handling.mode": "rewrite"},
    {"route.by.field": "route"},
    {"delete.tombstone.handling.mode": "rewrite", "replace.null.with.default": "false"},
    {"drop.fields.header.name": "drop", "delete.tombstone.handling.mode": "rewrite", "add.fields": "op"},
    {"drop.fields.header.name": "drop", "drop.fields.keep.schema.compatible": "false"},
    {"drop.fields.header.name": "drop", "drop.fields.from.key": "true"},
]
ROUTER: list[dict[str, str]] = [
    {"topic.regex": "(.*)shop(.*)", "topic.replacement": "$1all$2"},
    {"topic.regex": "shop.*", "topic.replacement": "1-all/é", "schema.name.adjustment.mode": "avro"},
    {"topic.regex": "shop.*", "topic.replacement": "1_all/é", "schema.name.adjustment.mode": "avro_unicode"},
    {"topic.regex": "shop.*", "topic.replacement": "all", "key.enforce.uniqueness": "false"},
    {
        "topic.regex": ".*",
        "topic.replacement": "all",
        "key.field.name": "table",
        "key.field.regex": "shop.(.*)",
        "key.field.replacement": "t_$1",
    },
]
OUTBOX: list[dict[str, str]] = [
    {},
    {"table.field.event.timestamp": "at", "route.tombstone.on.empty.payload": "true"},
    {"table.fields.additional.placement": "type:header:kind,n:partition,id:header"},
    {"table.fields.additional.placement": "type:envelope:kind,note:envelope"},
    {"table.fields.additional.placement": "type:envelope", "table.field.event.schema.version": "n"},
    {"table.fields.additional.placement": "none:envelope,type:envelope", "table.field.additional.missing": "ignore"},
    {"route.topic.regex": "(o)(.*)", "route.topic.replacement": "$2.$1", "table.field.event.key": "type"},
    {"table.expand.json.payload": "true"},
    {"table.expand.json.payload": "true", "table.json.payload.null.behavior": "optional_bytes"},
    {"table.op.invalid.behavior": "fatal"},
    {"table.field.event.payload": "none"},
]


def jars() -> Path:
    return libraries(VERSION, POM, "debezium")


def envelope(row: Schema) -> Schema:
    source = struct(
        [("table", TEXT), ("ts_ms", Schema(Type.INT64)), ("lsn", Schema(Type.INT64, True, doc="d"))], name="S"
    )
    order = struct([("id", TEXT), ("total_order", Schema(Type.INT64))], name="event.block", version=1, optional=True)
    optional = row.but(optional=True)
    fields = [("before", optional), ("after", optional), ("source", source), ("op", TEXT)]
    fields += [("ts_ms", Schema(Type.INT64, True)), ("transaction", order)]
    return struct(fields, name="shop.orders.Envelope", version=2)


class ChangeData(RandomData):
    def row(self) -> Schema:
        made = self.struct(depth=1)
        fields = (*made.fields, Field("route", Schema(Type.STRING, True)))
        return Schema(Type.STRUCT, name="shop.orders.Value", fields=fields)

    def outbox_row(self) -> Schema:
        random = self.random
        times = ["io.debezium.time.Timestamp", "io.debezium.time.MicroTimestamp", "io.debezium.time.NanoTimestamp"]
        at = Schema(Type.INT64, True, name=random.choice([*times, None]))
        payload = random.choice(
            [
                Schema(Type.STRING, True),
                Schema(Type.STRING, True, name="io.debezium.data.Json"),
                Schema(Type.BYTES, True),
            ]
        )
        fields = [
            ("id", TEXT),
            ("aggregatetype", TEXT),
            ("aggregateid", Schema(Type.INT32, True, default=7)),
            ("type", TEXT),
        ]
        fields += [("payload", payload), ("at", at), ("n", Schema(Type.INT32)), ("note", Schema(Type.STRING, True))]
        return struct(fields, name=random.choice(["shop.outbox.Value", "Value", None]))

    def outbox_value(self, row: Schema, route: str) -> dict[str, Any]:
        random = self.random
        made: dict[str, Any] = self.value(row)
        texts = [None, "", "  ", "plain", "[1]", '{"a":', self.document(), self.document(), self.document()]
        if row.fields[4].schema.type is Type.STRING:
            made["payload"] = random.choice(texts)
        made["n"] = random.randrange(100)
        made["at"] = random.choice([None, random.randrange(10**18)])
        return made | {"aggregatetype": route}

    def document(self) -> str:
        def value(depth: int) -> Any:
            kinds = [None, 5, 1 << 40, 2.5, True, "x", [1, None, 2], ["a"], [], [[1]], [{"a": 1}, {"a": 2}]]
            if depth and self.random.random() < 0.3:
                return {name: value(depth - 1) for name in self.random.sample("abc", 2)}
            return self.random.choice(kinds)

        return json.dumps({name: value(2) for name in self.random.sample("abcd", self.random.randrange(1, 4))})

    def events(self, outbox: bool) -> Records:
        random = self.random
        length = random.randrange(1, 5)
        row = self.outbox_row() if outbox else self.row()
        schema = envelope(row)
        route = random.choice(["orders", "o", ""])

        def of(schema: Schema) -> Any:
            return self.outbox_value(schema, route) if outbox else self.value(schema)

        def event() -> Any:
            op = random.choice("crudt" if not outbox else "cccrud")
            made = {"op": op, "before": None, "after": None, "ts_ms": random.choice([None, 5]), "transaction": None}
            made["source"] = {"table": "orders", "ts_ms": random.randrange(9), "lsn": random.choice([None, 7])}
            if random.random() < 0.5:
                made["transaction"] = {"id": "t1", "total_order": 3}
            if op in "cru":
                made["after"] = of(row)
            if op in "ud":
                made["before"] = of(row)
            return made

        kind = random.randrange(8)
        value: AnyColumn = nothing(length)
        if kind == 1:
            value = Schemaless(tuple({"a": 1} for _ in range(length)))
        elif kind == 2:
            value = column_of(row, [of(row) for _ in range(length)])
        elif kind > 2:
            optional = schema.but(optional=random.random() < 0.3)
            value = column_of(
                optional, [None if optional.optional and random.random() < 0.3 else event() for _ in range(length)]
            )
        key: AnyColumn = nothing(length)
        if random.random() < 0.8:
            keys = struct([("id", Schema(Type.INT32)), ("a", Schema(Type.STRING, True))], name="shop.orders.Key")
            key = column_of(keys, [self.value(keys) for _ in range(length)])
        names = array(TEXT)
        headers = [
            [("drop", names, random.choice([["a", "b"], ["route"], []]))] if random.random() < 0.6 else []
            for _ in range(length)
        ]
        return records_of(
            random.choice(["shop.orders", "other"]),
            key,
            value,
            timestamps=[9] * length,
            partitions=[3] * length,
            headers=headers,
        ).but(offset=pa.array([1] * length, pa.int64()))


CASES = [
    *(("ExtractNewRecordState", options) for options in EXTRACT),
    *(("ByLogicalTableRouter", options) for options in ROUTER),
    *(("outbox.EventRouter", options) for options in OUTBOX),
]


def is_ours_to_differ(options: dict[str, str], javas: dict[str, Any]) -> bool:
    """Where Debezium's fail: on the fields to drop of a tombstone, and on payloads that are arrays."""
    if javas.get("error") == "NullPointerException":
        return "drop.fields.header.name" in options
    return "table.expand.json.payload" in options and "Invalid type for ARRAY" in javas.get("message", "")


def compared(name: str, options: dict[str, str], seed: int = SEED, batches: int = BATCHES) -> int:
    data = ChangeData(seed)
    cases = [data.events(outbox=name.startswith("outbox")) for _ in range(batches)]
    questions = [
        {"do": "transform", "class": PACKAGE + name, "options": options, "records": said(records), "source": True}
        for records in cases
    ]
    transformed = 0
    for number, (records, answer) in enumerate(zip(cases, asked(questions, jars()), strict=True)):
        transform = make_transform(PACKAGE + name, options)
        ours = row_by_row(transform, records)
        for row, (javas, (made, refusal)) in enumerate(zip(answer["out"], ours, strict=True)):
            if is_ours_to_differ(options, javas):
                continue
            where = f"batch {number} row {row} {options}: {refusal}, Debezium: {javas}"
            assert (refusal is None) == ("error" not in javas), where
            if refusal is None:
                assert plain(made) == plain(javas["out"]), where
                transformed += made is not None
        if all(refusal is None for _, refusal in ours):
            together = [one for batch in transform.apply(records) for one in said(batch)]
            expected = [made for made, _ in ours if made is not None]
            assert sorted(map(repr, together)) == sorted(map(repr, expected)), f"batch {number} {options}"
        else:
            with pytest.raises(DataError) as refused:
                transform.apply(records)
            assert refused.value.row is not None
            assert ours[refused.value.row][1] == str(refused.value)
    return transformed


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
def test_events_become_what_debezium_makes_of_them(name: str, options: dict[str, str]) -> None:
    transformed = compared(name, options)
    assert transformed > 5 or options.get("table.field.event.payload") == "none"
