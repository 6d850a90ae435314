"""Avro schemas: what is one, its texts, and its fingerprints. Apache Avro 1.12 decides (`tests/interop/schemas`)."""

import json

import pytest

from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.schema import Entity, InvalidSchema, Limits, parse


def avro(schema: object, *references: object, as_new: bool = True) -> AvroSchema:
    texts = {str(number): json.dumps(one) for number, one in enumerate(references)}
    parsed = parse("AVRO", json.dumps(schema), texts, as_new=as_new)
    assert isinstance(parsed, AvroSchema)
    return parsed


def record(*fields: object, name: str = "R", **more: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": type, **more}


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "string"}, '"string"'),
        ("int", '"int"'),
        ({"type": "string", "x": 1}, '{"type":"string","x":1}'),
        ({"values": "int", "type": "map"}, '{"type":"map","values":"int"}'),
        (
            {"name": "a.b.C", "fields": [], "type": "record", "doc": "", "z": 1.0},
            '{"type":"record","name":"C","namespace":"a.b","doc":"","fields":[],"z":1.0}',
        ),
        (
            record(field("f", "long", aliases=["g"], order="DESCENDING", default=1, doc="d", x=None)),
            '{"type":"record","name":"R","fields":[{"name":"f","type":"long","doc":"d","default":1,"order":"descending",'
            '"aliases":["g"],"x":null}]}',
        ),
        (
            record(field("f", {"type": "fixed", "name": "F", "size": 2, "namespace": ""}), namespace="n"),
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":{"type":"fixed","name":"F",'
            '"namespace":"","size":2}}]}',
        ),
        (
            record(field("f", ["null", "R"]), name="n.R"),
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"f","type":["null","R"]}]}',
        ),
        (
            record(field("f", "float", default="NaN")),
            '{"type":"record","name":"R","fields":[{"name":"f","type":"float","default":"NaN"}]}',
        ),
        (
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "A", "aliases": ["x.B"]},
            '{"type":"enum","name":"E","symbols":["A"],"default":"A","aliases":["x.B"]}',
        ),
    ],
)
def test_a_schema_is_written_as_java_writes_it(schema: object, text: str) -> None:
    assert avro(schema).canonical == text


def test_what_came_from_a_reference_is_named_and_not_written_again() -> None:
    line = record(field("n", {"type": "enum", "name": "Unit", "symbols": ["KG"]}), name="shop.Line")
    order = avro(record(field("l", "shop.Line"), field("u", "shop.Unit"), name="shop.Order"), line)
    # Only the schema that was referred to is known by name, and not what is defined in it: as in Confluent's registry.
    assert order.canonical == (
        '{"type":"record","name":"Order","namespace":"shop","fields":[{"name":"l","type":"Line"},'
        '{"name":"u","type":{"type":"enum","name":"Unit","symbols":["KG"]}}]}'
    )
    assert '"name":"Line"' in order.rendered("resolved")
    assert order.rendered("nonsense") == order.canonical
    assert order.names() == ("shop.Order", "shop.Unit")


def test_the_normal_form_sorts_what_has_no_order() -> None:
    one = avro(
        record(field("f", {"type": "bytes", "scale": 2, "precision": 9, "logicalType": "decimal", "b": 1, "a": 2}))
    )
    assert one.normalized == (
        '{"type":"record","name":"R","fields":[{"name":"f","type":{"type":"bytes","logicalType":"decimal","precision":9,'
        '"scale":2,"a":2,"b":1}}]}'
    )
    other = avro(
        record(field("f", {"a": 2, "b": 1, "type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}))
    )
    assert other.normalized == one.normalized
    assert avro(record(field("f", "float", default=1))).normalized.endswith('"type":"float","default":1.0}]}')
    assert avro(record(aliases=["b", "a"], doc="")).normalized == (
        '{"type":"record","name":"R","fields":[],"aliases":["a","b"]}'
    )


def test_a_logical_type_beside_a_java_class_is_a_property_only() -> None:
    odd = avro({"type": "string", "logicalType": "uuid", "avro.java.string": "String"})
    assert odd.type.logical is None
    assert odd.normalized == '{"type":"string","avro.java.string":"String","logicalType":"uuid"}'
    assert avro({"type": "string", "logicalType": "uuid", "avro.java.string": 5}).type.logical is not None


def test_fingerprints_are_those_of_the_specification() -> None:
    assert avro("int").fingerprint().hex() == "8f5c393f1ad57572"
    assert avro("int").fingerprint("MD5").hex() == "ef524ea1b91e73173d938ade36c1db32"
    sha = "3f2b87a9fe7cc9b13835598c3981cd45e3e355309e5090aa0933d7becb6fba45"
    assert avro("int").fingerprint("SHA-256").hex() == sha
    with_doc = avro(record(field("f", {"type": "int", "logicalType": "date"}, doc="x"), doc="y", namespace="n"))
    assert with_doc.parsing_form == '{"name":"n.R","type":"record","fields":[{"name":"f","type":"int"}]}'


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (record(field("f", "int"), field("f", "int")), "Duplicate field f in record R"),
        (record(name="1R"), "Illegal initial character: 1R"),
        (record(name="a-b"), "Illegal character in: a-b"),
        (record(name=""), "Empty name"),
        (record(name="int"), "Schemas may not be named after primitives: int"),
        (record(namespace="a..b"), 'Namespace part "" is invalid: Empty name'),
        (record(field("f", "Nowhere")), "Undefined schema: Nowhere"),
        (["int", "int"], "Duplicate in union:int"),
        ([["int"]], "Nested union"),
        ([{"type": "array", "items": "int"}, {"type": "array", "items": "long"}], "Duplicate in union:array"),
        ({"type": "enum", "name": "E", "symbols": ["A", "A"]}, "Duplicate enum symbol: A"),
        (
            {"type": "enum", "name": "E", "symbols": ["A"], "default": "B"},
            "The Enum Default: B is not in the enum symbol set",
        ),
        ({"type": "fixed", "name": "F", "size": -1}, "Malformed data. Length is negative: -1"),
        ({"type": "fixed", "name": "F", "size": 1.5}, "Invalid or no size"),
        ({"type": "fixed", "name": "F"}, "Invalid or no size"),
        ({"type": "array"}, "Array has no items type"),
        ({"type": "map"}, "Map has no values type"),
        ({"type": "record", "name": "R"}, "Record has no fields"),
        ({"type": "what"}, 'A schema "type" MUST be'),
        ({"type": {"type": "int"}}, "No type"),
        (record({"type": "int"}), "No field name"),
        (record({"name": "f"}), "No field type"),
        (record(field("f", "int", default="1")), 'Invalid default for field f: "1" not a "int"'),
        (record(field("f", "int", default=2**31)), "Invalid default for field f"),
        (record(field("f", "float", default="x")), 'For input string: "x"'),
        (record(field("f", "int", order="up")), "No such order"),
        (record(field("f", "int", aliases="g")), "aliases not an array"),
        (record(field("f", "int", aliases=[1])), "alias not a string"),
        ([record(field("f", "int")), record(field("f", "long"))], "Can't redefine: R"),
        (record(field("f", "R", default={})), "Schema fields not set yet"),
        (5, "Schema not yet supported: 5"),
    ],
)
def test_what_java_refuses_is_refused(schema: object, reason: str) -> None:
    with pytest.raises(InvalidSchema) as raised:
        avro(schema)
    assert raised.value.reason.startswith(reason)


def test_a_fault_says_where_it_is() -> None:
    with pytest.raises(InvalidSchema) as raised:
        avro(
            record(
                field("a", "int"), field("b", {"type": "array", "items": record(field("c", {"type": "map"}), name="I")})
            )
        )
    assert raised.value.path == "/fields/1/type/items/fields/0/type"


def test_a_stored_schema_may_break_rules_that_a_new_one_may_not() -> None:
    assert avro(record(field("f", "int", default="1")), as_new=False).name == "R"
    assert avro(record(name="Bestellung_für_Öl"), as_new=False).name == "Bestellung_für_Öl"
    with pytest.raises(InvalidSchema):
        avro(record(name="Öl"))
    inner = record(name="I")
    older = {"type": "record", "name": "R", "fields": [field("a", inner), field("b", {"type": "I"})]}
    assert avro(older, as_new=False).canonical.endswith('{"name":"b","type":"I"}]}')


def test_java_takes_comments_and_an_equal_definition_twice() -> None:
    assert parse("AVRO", '/* a */ {"type": // b\n "string"}').canonical == '"string"'
    twice = avro(record(field("a", record(name="I")), field("b", record(name="I"))))
    assert twice.canonical.endswith('{"name":"b","type":"I"}]}')


def test_equivalence_looks_at_meaning_and_at_docs() -> None:
    line = record(field("n", "int"), name="Line")
    inlined = avro(record(field("l", line)))
    referring = avro(record(field("l", "Line")), line)
    assert inlined.is_equivalent(referring)
    assert inlined.canonical != referring.canonical
    assert not inlined.is_equivalent(avro(record(field("l", line), doc="x")))
    assert not avro("int").is_equivalent(avro("long"))


def test_tags_are_found_and_changed() -> None:
    person = avro(record(field("name", "string", **{"confluent:tags": ["PII"]}), field("n", "int"), name="a.P"))
    assert person.tagged_entities() == {Entity("a.P.name", "sr_field"): ("PII",)}
    tagged = person.with_tags({Entity("a.P", "sr_record"): ["X"], Entity("a.P.n", "sr_field"): ["Y"]}, {})
    assert tagged.tags() == ("X", "PII", "Y")
    bare = tagged.with_tags({}, tagged.tagged_entities())
    assert bare.tags() == ()
    with pytest.raises(InvalidSchema, match=r"No matching path 'a\.P\.x'"):
        person.with_tags({Entity("a.P.x", "sr_field"): ["Y"]}, {})


def test_a_schema_beyond_a_limit_is_refused_at_once() -> None:
    deep: object = "int"
    for _ in range(130):
        deep = {"type": "array", "items": deep}
    with pytest.raises(InvalidSchema, match="deeper"):
        avro(deep)
    chain = [record(field("f", f"R{number + 1}"), name=f"R{number}") for number in range(200)]
    with pytest.raises(InvalidSchema, match="deeper"):
        avro([*chain, record(name="R200")])
    with pytest.raises(InvalidSchema, match="more than 10 types"):
        parse("AVRO", json.dumps(record(*(field(f"f{n}", "int") for n in range(11)))), limits=Limits(definitions=10))
    with pytest.raises(InvalidSchema, match="bytes, and a schema may have"):
        parse("AVRO", " " * 100 + '"int"', limits=Limits(text_bytes=100))
    with pytest.raises(InvalidSchema, match="references"):
        parse("AVRO", '"int"', {str(n): '"int"' for n in range(3)}, limits=Limits(references=2))
