"""Transforms and predicates: what they make of columns, of maps without a schema and of null, and what they refuse."""

import sys
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import AnyColumn, Column, Schemaless, nothing
from ottla.connect.data.records import Records, records_of
from ottla.connect.data.rows import Float32, Int32, Moment, column_of, rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption
from ottla.connect.transforms.by_name import PREDICATES, TRANSFORMS, make_predicate, make_transform
from ottla.connect.transforms.chain import TransformFailed, make_chain
from ottla.connect.transforms.field_paths import steps_of
from ottla.connect.transforms.java_patterns import compiled, replaced_first

PACKAGE = "org.apache.kafka.connect.transforms."
INT = Schema(Type.INT32)
TEXT = Schema(Type.STRING)
ORDER = struct([("id", INT), ("note", TEXT.but(optional=True, default="none"))], name="Order", version=1, optional=True)
ROWS = [{"id": 1, "note": "a"}, None, {"id": 2, "note": None}]


def orders(rows: list[Any] = ROWS, schema: Schema = ORDER) -> Records:
    return records_of("orders", nothing(len(rows)), column_of(schema, rows), first=10)


def maps(*values: Any) -> Records:
    return records_of("orders", nothing(len(values)), Schemaless(values))


def rows(column: AnyColumn) -> list[Any]:
    return rows_of(column) if isinstance(column, Column) else list(column.values)


def applied(name: str, records: Records, **options: str) -> list[Records]:
    return make_transform(name, {key.replace("_", "."): value for key, value in options.items()}).apply(records)


def values(name: str, records: Records, **options: str) -> list[tuple[Schema | None, list[Any]]]:
    return [(made.value.schema, rows(made.value)) for made in applied(name, records, **options)]


def names(schema: Schema | None) -> list[str]:
    assert schema is not None
    return [field.name for field in schema.fields]


def test_null_stays_what_it_was_with_the_schema_it_had() -> None:
    gone, kept = values("ReplaceField$Value", orders(), exclude="id")
    assert gone == (ORDER, [None])
    assert kept[1] == [{"note": "a"}, {"note": "none"}]
    assert kept[0] == struct([("note", ORDER.fields[1].schema)], name="Order", version=1)
    assert values("ReplaceField$Value", maps(None, None), exclude="id") == [(None, [None, None])]


def test_fields_are_kept_left_out_and_renamed() -> None:
    (made,) = values("ReplaceField$Value", orders(ROWS[:1]), renames="id:number", include="id")
    assert (names(made[0]), made[1]) == (["number"], [{"number": 1}])
    assert values("ReplaceField$Value", maps({"a": 1, "b": 2}), renames="a:z", exclude="b") == [(None, [{"z": 1}])]
    (left,) = values("ReplaceField$Value", orders([ROWS[2]]), include="note", replace_null_with_default="false")
    assert left[1] == [{"note": None}]
    with pytest.raises(DataError, match="field name duplication note"):
        values("ReplaceField$Value", orders(ROWS[:1]), renames="id:note")
    with pytest.raises(DataError, match="field name duplication b") as refused:
        values("ReplaceField$Value", maps({"a": 1}, {"b": 1, "a": 2}), renames="a:b")
    assert refused.value.row == 1


def test_a_field_is_extracted_with_its_schema() -> None:
    assert values("ExtractField$Value", orders(), field="note") == [
        (ORDER.fields[1].schema, ["a", None, "none"]),
    ]
    nested = struct([("in.ner", ORDER)])
    records = records_of("t", nothing(2), column_of(nested, [{"in.ner": ROWS[0]}, {"in.ner": None}]))
    made = values("ExtractField$Value", records, field="`in.ner`.id", field_syntax_version="v2")
    assert made == [(INT, [1, None])]
    assert values("ExtractField$Value", maps({"a": {"b": 1}}, None), field="a.b", field_syntax_version="V2") == [
        (None, [1, None])
    ]
    with pytest.raises(DataError, match="Unknown field: no"):
        values("ExtractField$Value", orders(), field="no")
    with pytest.raises(DataError, match=r"\[nested field access\], found: java.lang.Long") as refused:
        values("ExtractField$Value", maps({"a": {}}, {"a": 5}), field="a.b", field_syntax_version="V2")
    assert refused.value.row == 1


def test_a_value_is_hoisted_null_or_not() -> None:
    (made,) = values("HoistField$Value", orders(), field="order")
    assert made == (struct([("order", ORDER)]), [{"order": row} for row in ROWS])
    assert values("HoistField$Value", maps(None, 5), field="f") == [(None, [{"f": None}, {"f": 5}])]


def test_fields_are_inserted_from_the_record() -> None:
    records = orders(ROWS[:1]).but(
        offset=pa.array([9], pa.int64()), partition=pa.array([3], pa.int32()), timestamp=pa.array([77], pa.int64())
    )
    options = {"topic_field": "t!", "partition_field": "p", "offset_field": "o", "timestamp_field": "ts"}
    ((schema, made),) = values("InsertField$Value", records, static_field="s", static_value="v", **options)
    assert made == [{"id": 1, "note": "a", "t": "orders", "p": 3, "o": 9, "ts": 77, "s": "v"}]
    assert schema is not None
    assert [field.schema for field in schema.fields[2:]] == [
        TEXT,
        INT.but(optional=True),
        Schema(Type.INT64, optional=True),
        schemas.timestamp(optional=True),
        TEXT.but(optional=True),
    ]
    bare = records.but(value=Schemaless(({"a": 1},)))
    ((_, found),) = values("InsertField$Value", bare, **options)
    assert found == [{"a": 1, "t": "orders", "p": 3, "o": 9, "ts": 77}]
    assert isinstance(found[0]["p"], Int32)
    with pytest.raises(DataError, match="Only SinkRecord supported"):
        values("InsertField$Value", orders(), offset_field="o")


def test_masked_values_are_nothing_or_the_same() -> None:
    schema = struct(
        [
            ("i", INT),
            ("s", TEXT.but(optional=True)),
            ("d", schemas.decimal(2)),
            ("a", schemas.array(INT)),
            ("t", schemas.timestamp()),
        ]
    )
    row = {"i": 5, "s": "x", "d": Decimal("1.25"), "a": [1], "t": 4}
    records = records_of("t", nothing(2), column_of(schema, [row, {**row, "s": None}]))
    ((_, made),) = values("MaskField$Value", records, fields="i,s,d,a,t")
    assert made == [
        {"i": 0, "s": "", "d": Decimal("0.00"), "a": [], "t": 0},
        {"i": 0, "s": None, "d": Decimal("0.00"), "a": [], "t": 0},
    ]
    ((_, replaced),) = values("MaskField$Value", records, fields="i,s,d", replacement="42")
    assert (replaced[0]["i"], replaced[0]["s"], replaced[0]["d"]) == (42, "42", Decimal("42.00"))
    assert values("MaskField$Value", maps({"a": {"b": 1}, "f": Float32(2)}), fields="a,f,no") == [
        (None, [{"a": {}, "f": 0.0, "no": None}])
    ]


def test_a_tombstone_that_is_masked_stays_one() -> None:
    gone, kept = values("MaskField$Value", orders(), fields="note")
    assert gone[1] == [None]
    assert [row["note"] for row in kept[1]] == ["", ""]
    assert values("MaskField$Value", maps(None), fields="a") == [(None, [None])]


@pytest.mark.parametrize(
    ("value", "replacement", "words"),
    [
        (b"x", None, r"Cannot mask value of type: class \[B"),
        (Moment(1), "5", r"class java.util.Date with custom replacement"),
        (5, "x", r"Unable to convert x \(class java.lang.String\) to a number"),
        (5, "1e999999", "Unable to convert"),
        (5, "NaN", "Unable to convert"),
        (True, "1", r"class java.lang.Boolean with custom replacement"),
    ],
)
def test_what_cannot_be_masked_is_refused(value: Any, replacement: str | None, words: str) -> None:
    options = {"fields": "a"} | ({} if replacement is None else {"replacement": replacement})
    with pytest.raises(DataError, match=words) as refused:
        values("MaskField$Value", maps({"a": None}, {"a": value}), **options)
    assert refused.value.row == 1


def test_structs_are_flattened() -> None:
    inner = struct([("x", INT.but(default=7)), ("y", TEXT.but(optional=True))], optional=True)
    schema = struct([("a", inner), ("b", INT)], name="n")
    records = records_of("t", nothing(2), column_of(schema, [{"a": {"x": 1, "y": "s"}, "b": 2}, {"a": None, "b": 3}]))
    ((made, found),) = values("Flatten$Value", records, delimiter="_")
    assert found == [{"a_x": 1, "a_y": "s", "b": 2}, {"a_x": None, "a_y": None, "b": 3}]
    assert made == struct(
        [("a_x", INT.but(optional=True, default=7)), ("a_y", TEXT.but(optional=True)), ("b", INT)], name="n"
    )
    assert values("Flatten$Value", maps({"a": {"b": [1], "c": {}}, "d": None})) == [(None, [{"a.b": [1], "d": None}])]
    with pytest.raises(DataError, match="does not support MAP for record with schemas"):
        values("Flatten$Value", orders([{"m": []}], struct([("m", schemas.map_of(TEXT, INT))])))
    deep: dict[str, Any] = {}
    for _ in range(2 * sys.getrecursionlimit()):  # which a library may have raised
        deep = {"a": deep}
    with pytest.raises(DataError, match="nested too deep") as refused:
        values("Flatten$Value", maps({}, deep))
    assert refused.value.row == 1


def test_a_schema_gets_another_name() -> None:
    ((made, found),) = values("SetSchemaMetadata$Value", orders(), schema_name="N", schema_version="4")
    assert made == ORDER.but(name="N", version=4)
    assert found == [ROWS[0], None, {"id": 2, "note": "none"}]
    assert values("SetSchemaMetadata$Value", orders([1], INT), schema_name="N") == [(INT.but(name="N"), [1])]
    assert values("SetSchemaMetadata$Value", maps(None), schema_name="N") == [(None, [None])]
    with pytest.raises(DataError, match=r"Schema required for \[updating schema metadata\]"):
        values("SetSchemaMetadata$Value", maps({}), schema_name="N")


def test_headers_come_from_fields() -> None:
    (made,) = applied("HeaderFrom$Value", orders([ROWS[0]]), fields="id", headers="h", operation="move")
    assert made.headers_of(0) == [("h", INT, 1)]
    assert rows(made.value) == [{"note": "a"}]
    (copied,) = applied("HeaderFrom$Value", maps({"a": 1}), fields="a,b", headers="h,i", operation="copy")
    assert copied.headers_of(0) == [("h", None, 1), ("i", None, None)]
    (dropped,) = applied("DropHeaders", copied, headers="h")
    assert dropped.headers_of(0) == [("i", None, None)]
    with pytest.raises(DataError, match=r"Only Struct objects supported for \[header copy\], found: null") as refused:
        applied("HeaderFrom$Value", orders(), fields="id", headers="h", operation="copy")
    assert refused.value.row == 1


def test_a_key_is_made_of_the_value() -> None:
    (made,) = applied("ValueToKey", orders([ROWS[0]]), fields="note,id")
    assert (made.key.schema, rows(made.key)) == (
        struct([("note", ORDER.fields[1].schema), ("id", INT)]),
        [{"note": "a", "id": 1}],
    )
    with pytest.raises(DataError, match="Field does not exist: no"):
        applied("ValueToKey", orders([ROWS[0]]), fields="no")
    with pytest.raises(DataError, match="found: null"):
        applied("ValueToKey", maps(None), fields="no")


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("a.b", ("a", "b")),
        ("`a.b`.c", ("a.b", "c")),
        ("a.`b`", ("a", "b")),
        ("`a`b`.c", ("a`b", "c")),
        ("`a\\`.b`.c", ("a`.b", "c")),
        ("a.", ("a", "")),
        ("", ()),
    ],
)
def test_ways_to_fields_are_read_as_kip_821_says(path: str, steps: tuple[str, ...]) -> None:
    assert steps_of(path, nested=True) == steps
    assert steps_of(path, nested=False) == (path,)


@pytest.mark.parametrize("path", ["`a", "`", "`a\\`", "a.`b"])
def test_a_backtick_without_its_pair_is_refused(path: str) -> None:
    with pytest.raises(InvalidOption, match="Incomplete backtick pair in path"):
        steps_of(path, nested=True)


@pytest.mark.parametrize(
    ("pattern", "topic", "replacement", "made"),
    [
        ("(\\w+)-(.*)", "shop-orders", "$2.$1", "orders.shop"),
        ("(?<a>\\w+)", "shop", "${a}-x", "shop-x"),
        ("(a)(b)", "ab", "$12\\$", "a2$"),
        ("a?", "b", "x", "xb"),
    ],
)
def test_replacements_are_read_as_java_reads_them(pattern: str, topic: str, replacement: str, made: str) -> None:
    assert replaced_first(compiled(pattern), topic, replacement) == made


@pytest.mark.parametrize("pattern", ["[a[b]]", "[a-z&&b]", "\\p{Alpha}", "[[a]", "(", "a**"])
def test_what_only_java_understands_is_refused(pattern: str) -> None:
    with pytest.raises(InvalidOption, match="Invalid regex"):
        make_predicate("TopicNameMatches", {"pattern": pattern})
    assert compiled("[]a]&&\\[[^\\[b]+").fullmatch("]&&[c")


def test_a_topic_is_replaced_if_all_of_it_matches() -> None:
    assert [one.topic for one in applied("RegexRouter", orders(), regex="(.*)", replacement="new-$1")] == ["new-orders"]
    assert [one.topic for one in applied("RegexRouter", orders(), regex="ord", replacement="x")] == ["orders"]
    for replacement in ("$2", "${no}", "$", "\\"):
        with pytest.raises(DataError, match="the replacement"):
            applied("RegexRouter", orders(), regex="(.*)", replacement=replacement)
    with pytest.raises(InvalidOption, match=r"Invalid value \( for configuration regex: Invalid regex"):
        make_transform("RegexRouter", {"regex": "(", "replacement": "x"})


def test_predicates_choose_records() -> None:
    records = records_of(
        "orders", nothing(3), column_of(ORDER, ROWS), headers=[[("h", TEXT, "x")], [], [("i", TEXT, "y")]]
    )
    assert make_predicate("HasHeaderKey", {"name": "h"}).holds(records).to_pylist() == [True, False, False]
    assert make_predicate("RecordIsTombstone", {}).holds(records).to_pylist() == [False, True, False]
    assert make_predicate("TopicNameMatches", {"pattern": "ord.*"}).holds(records).to_pylist() == [True] * 3


CONFIG = {
    "transforms": "drop, mask",
    "transforms.drop.type": PACKAGE + "Filter",
    "transforms.drop.predicate": "gone",
    "transforms.mask.type": PACKAGE + "MaskField$Value",
    "transforms.mask.fields": "note",
    "predicates": "gone",
    "predicates.gone.type": PACKAGE + "predicates.RecordIsTombstone",
}


def test_transforms_follow_each_other() -> None:
    (made,) = make_chain(CONFIG).apply([orders()])
    assert (rows(made.value), made.position.to_pylist()) == (
        [{"id": 1, "note": ""}, {"id": 2, "note": ""}],
        [10, 12],
    )
    (only,) = make_chain({**CONFIG, "transforms": "drop", "transforms.drop.negate": "true"}).apply([orders()])
    assert rows(only.value) == [None]
    assert make_chain({}).apply([]) == []


def test_a_refusal_names_transform_and_record() -> None:
    chain = make_chain(
        {**CONFIG, "transforms": "key", "transforms.key.type": "ValueToKey", "transforms.key.fields": "id"}
    )
    with pytest.raises(TransformFailed) as refused:
        chain.apply([orders()])
    assert str(refused.value) == (
        "transform key (ValueToKey) refused record 11 for topic orders: "
        "Only Struct objects supported for [copying fields from value to key], found: null"
    )
    assert refused.value.position == 11


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"transforms": "a,a"}, "Duplicate alias provided"),
        ({"transforms": "no"}, 'Missing required configuration "transforms.no.type" which has no default value.'),
        ({"transforms.drop.type": "com.example.No"}, "Class com.example.No could not be found."),
        ({"transforms.drop.predicate": "no"}, "Invalid value no for configuration transforms.drop.predicate"),
        ({"transforms.drop.negate": "maybe"}, "Expected value to be either true or false"),
        ({"transforms.mask.fields": ""}, "Configuration 'fields' must not be empty."),
    ],
)
def test_a_chain_that_is_wrong_is_refused(changes: dict[str, str], words: str) -> None:
    with pytest.raises(InvalidOption) as refused:
        make_chain({**CONFIG, **changes})
    assert words in str(refused.value)


def test_every_class_says_what_it_is_for() -> None:
    assert len(TRANSFORMS) == 29
    assert len(PREDICATES) == 3
    assert all(row.acted_on for kind in (*TRANSFORMS, *PREDICATES) for row in kind.options)
    assert [kind.class_name for kind in (*TRANSFORMS, *PREDICATES) if not kind.doc] == []
