"""Debezium's transforms: ExtractNewRecordState, ByLogicalTableRouter, EventRouter."""

from typing import Any

import pytest

from ottla.connect.data.columns import AnyColumn, Column, Schemaless, nothing
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema, Type, array, struct
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption
from ottla.connect.transforms.by_name import make_transform
from ottla.connect.transforms.envelopes import adjusted

TEXT, INT = Schema(Type.STRING), Schema(Type.INT32)
ROW = struct([("id", INT), ("note", Schema(Type.STRING, True, default="none"))], name="shop.Value", optional=True)
KEY = struct([("id", INT)], name="shop.Key")
SOURCE = struct([("table", TEXT), ("lsn", Schema(Type.INT64, True))])


def envelope(row: Schema) -> Schema:
    fields = [("before", row), ("after", row), ("source", SOURCE), ("op", TEXT), ("ts_ms", Schema(Type.INT64, True))]
    return struct(fields, name="shop.Envelope", optional=True)


def event(op: str, before: Any = None, after: Any = None) -> dict[str, Any]:
    return {"op": op, "before": before, "after": after, "source": {"table": "t", "lsn": 9}, "ts_ms": 5}


def events(*values: Any, row: Schema = ROW, headers: Any = None) -> Records:
    keys = column_of(KEY, [{"id": number} for number in range(len(values))])
    return records_of("shop", keys, column_of(envelope(row), values), headers=headers)


def rows(column: AnyColumn) -> list[Any]:
    return rows_of(column) if isinstance(column, Column) else list(column.values)


def applied(name: str, records: Records, **options: str) -> list[Records]:
    return make_transform(name, {key.replace("_", "."): value for key, value in options.items()}).apply(records)


ONE, TWO = {"id": 1, "note": "a"}, {"id": 2, "note": None}
CHANGES = (event("c", None, ONE), event("d", TWO), None, event("t"))


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("drop", {0: ONE}),
        ("tombstone", {0: ONE, 1: None}),
        ("delete-to-tombstone", {0: ONE, 1: None}),
        ("rewrite", {0: ONE | {"__deleted": "false"}, 1: {"id": 2, "note": "none", "__deleted": "true"}}),
        (
            "rewrite-with-tombstone",
            {0: ONE | {"__deleted": "false"}, 1: {"id": 2, "note": "none", "__deleted": "true"}, 2: None},
        ),
    ],
)
def test_deletes_and_tombstones_become_what_the_mode_says(mode: str, expected: dict[int, Any]) -> None:
    made = applied("ExtractNewRecordState", events(*CHANGES), delete_tombstone_handling_mode=mode)
    found = {
        place: value
        for batch in made
        for place, value in zip(batch.position.to_pylist(), rows(batch.value), strict=True)
    }
    assert found == expected


def test_fields_and_headers_come_from_the_envelope() -> None:
    (made,) = applied(
        "ExtractNewRecordState", events(CHANGES[0]), add_fields="op:kind,lsn,nothing", add_headers="table"
    )
    assert rows(made.value) == [ONE | {"__kind": "c", "__lsn": 9}]
    assert made.value.schema is not None
    assert not made.value.schema.optional
    assert made.headers_of(0) == [("__table", Schema(Type.STRING, True), "t")]


def test_fields_that_a_header_names_are_left_out() -> None:
    names = array(TEXT)
    headers = [[("drop", names, ["note", "id"])], [("drop", names, [])]]
    records = events(event("c", None, ONE), event("c", None, ONE), headers=headers)
    dropped, kept = applied("ExtractNewRecordState", records, drop_fields_header_name="drop")
    assert (rows(dropped.value), rows(kept.value)) == ([{"id": 1}], [ONE])


def test_a_route_that_is_no_text_is_refused_with_its_row() -> None:
    with pytest.raises(DataError, match="Field 'id' is not of type STRING") as refused:
        applied("ExtractNewRecordState", events(None, CHANGES[0]), route_by_field="id")
    assert refused.value.row == 1
    routed = applied("ExtractNewRecordState", events(CHANGES[0]), route_by_field="note")
    assert [batch.topic for batch in routed] == ["a"]


def test_tables_of_one_topic_are_told_apart_by_their_keys() -> None:
    options = {"topic_regex": "s(.*)", "topic_replacement": "all"}
    moved, gone = applied("ByLogicalTableRouter", events(CHANGES[0], None), **options)
    assert (moved.topic, gone.topic) == ("all", "all")
    assert rows(moved.key) == [{"id": 0, "__dbz__physicalTableIdentifier": "shop"}]
    assert moved.key.schema is not None
    assert moved.value.schema is not None
    assert (moved.key.schema.name, moved.value.schema.name) == ("all.Key", "all.Envelope")
    assert moved.value.schema.fields[0].schema.name == "all.Value"
    with pytest.raises(DataError, match="Only Struct objects supported"):
        applied("ByLogicalTableRouter", records_of("shop", Schemaless(("k",)), nothing(1)), **options)


def test_names_are_adjusted_to_avros() -> None:
    assert adjusted("1-a.é_b", "avro") == "_1_a.__b"
    assert adjusted("1-a.é_b", "avro_unicode") == "_u0031_u002da._u00e9_u005fb"
    assert adjusted("1-a", "none") == "1-a"


OUTBOX = struct(
    [
        ("id", TEXT),
        ("aggregatetype", TEXT),
        ("aggregateid", TEXT),
        ("type", TEXT),
        ("payload", Schema(Type.STRING, True)),
    ],
    name="db.outbox.Value",
    optional=True,
)


def outbox(payload: str | None, route: str = "orders") -> dict[str, Any]:
    row = {"id": "e1", "aggregatetype": route, "aggregateid": "k", "type": "made", "payload": payload}
    return event("c", None, row)


def test_rows_of_an_outbox_become_events_in_the_topics_that_they_name() -> None:
    made = applied("EventRouter", events(outbox("one"), outbox("two", "bills"), event("d", None), None, row=OUTBOX))
    assert [(batch.topic, rows(batch.key), rows(batch.value)) for batch in made] == [
        ("outbox.event.orders", ["k"], ["one"]),
        ("outbox.event.bills", ["k"], ["two"]),
    ]
    assert made[0].headers_of(0) == [("id", TEXT, "e1")]
    assert made[0].timestamp.to_pylist() == [5]
    with pytest.raises(DataError, match="Unexpected update") as refused:
        applied("EventRouter", events(outbox("x"), event("u", None), row=OUTBOX), table_op_invalid_behavior="fatal")
    assert refused.value.row == 1


def test_more_fields_go_into_an_envelope_of_the_events_own() -> None:
    options = {"table_fields_additional_placement": "type:envelope:kind", "route_tombstone_on_empty_payload": "true"}
    gone, made = applied("EventRouter", events(outbox("one"), outbox(" "), row=OUTBOX), **options)
    assert rows(made.value) == [{"payload": "one", "kind": "made"}]
    assert made.value.schema is not None
    assert made.value.schema.name == "db.outbox.orders.Value"
    assert (gone.value.schema, rows(gone.value)) == (None, [None])


def test_a_payload_of_json_becomes_a_struct_and_what_is_none_stays_a_text() -> None:
    records = events(
        outbox('{"a": 1, "b": [{"c": null, "d": 5000000000}]}'), outbox("[1]"), outbox('{"a":'), row=OUTBOX
    )
    made, texts = applied("EventRouter", records, table_expand_json_payload="true")
    assert rows(made.value) == [{"a": 1, "b": [{"d": 5_000_000_000}]}]
    assert rows(texts.value) == ["[1]", '{"a":']


@pytest.mark.parametrize("name", ["ExtractNewRecordState", "ByLogicalTableRouter", "EventRouter"])
def test_an_option_that_is_not_there_is_refused_by_name(name: str) -> None:
    with pytest.raises(InvalidOption, match=r"has no option drop\.tombstones here"):
        make_transform(name, {"drop.tombstones": "false", "type": name, "predicate": "p"})
