"""JSON Schemas: texts, references, tags, and values held against them."""

import json

import pytest

from ottla.schemas.json_schema.schema import JsonSchema
from ottla.schemas.json_schema.validation import InvalidValue
from ottla.schemas.schema import Entity, InvalidSchema, Limits, parse

NEW = "https://json-schema.org/draft/2020-12/schema"


def schema(tree: object, **references: object) -> JsonSchema:
    text = tree if isinstance(tree, str) else json.dumps(tree)
    parsed = parse("JSON", text, {f"{name}.json": json.dumps(one) for name, one in references.items()})
    assert isinstance(parsed, JsonSchema)
    return parsed


def test_a_schema_keeps_its_order_and_its_numbers() -> None:
    one = schema('{ "type" : "number",\n "maximum": 1.50, "minimum": -1e3, "x": [1E400, 0.0, -0] }')
    assert one.canonical == '{"type":"number","maximum":1.50,"minimum":-1E+3,"x":[1E+400,0.0,0]}'
    assert one.normalized == '{"maximum":1.50,"minimum":-1E+3,"type":"number","x":[1E+400,0.0,0]}'
    assert one.rendered("resolved") == one.canonical


def test_it_is_named_by_its_title() -> None:
    one = schema({"title": "Order", "properties": {"id": {}}})
    assert (one.name, one.names(), one.has_top_level_field("id")) == ("Order", ("Order",), True)
    assert schema("true").name is None
    assert not schema("true").has_top_level_field("id")


@pytest.mark.parametrize(
    ("said", "draft"),
    [
        (None, 7),
        ("http://json-schema.org/draft-04/schema#", 4),
        ("http://json-schema.org/draft-06/schema", 6),
        ("http://json-schema.org/draft-07/schema#", 7),
        ("https://json-schema.org/draft/2019-09/schema", 2019),
        (NEW, 2020),
        ("http://example.com/own", 7),
    ],
)
def test_the_draft_is_what_the_schema_says(said: str | None, draft: int) -> None:
    assert schema({} if said is None else {"$schema": said}).draft == draft


@pytest.mark.parametrize(
    "tree",
    [
        {"$ref": "#/definitions/a", "definitions": {"a": {"type": "string"}}},
        {"$ref": "#/$defs/a", "definitions": {"a": {"type": "string"}}},
        {"$schema": NEW, "$ref": "#thing", "$defs": {"a": {"$anchor": "thing", "type": "string"}}},
        {
            "$id": "http://x.y/z.json",
            "$ref": "other.json",
            "definitions": {"a": {"$id": "other.json", "type": "string"}},
        },
        {
            "$id": "http://x.y/z.json",
            "$ref": "http://x.y/z.json#/definitions/a",
            "definitions": {"a": {"type": "string"}},
        },
        {"$ref": "text.json"},
        {"$ref": "./text.json"},
        {"$ref": "text.json#/definitions/inner"},
        {"$schema": NEW, "$ref": "text.json#/$defs/inner"},
        {"$ref": "#/definitions/a~1b/x%25y", "definitions": {"a/b": {"x%y": {"type": "string"}}}},
    ],
)
def test_references_are_followed(tree: object) -> None:
    text = {"type": "string", "definitions": {"inner": {"type": "string"}}}
    one = schema(tree, text=text)
    one.validate()
    assert one.incompatibilities(schema({"type": "string"})) == []
    assert [found.rule.id for found in one.incompatibilities(schema({"type": "number"}))] == ["TYPE_CHANGED"]


def test_a_reference_within_a_reference_is_of_its_own_text() -> None:
    other = {"$ref": "#/definitions/a", "definitions": {"a": {"type": "integer"}}}
    one = schema({"properties": {"p": {"$ref": "other.json"}}, "definitions": {"a": {"type": "string"}}}, other=other)
    assert one.incompatibilities(schema({"properties": {"p": {"type": "integer"}}})) == []


@pytest.mark.parametrize(
    ("tree", "reason"),
    [
        ({"$ref": "#/definitions/a"}, "$ref #/definitions/a leads nowhere: there is no definitions"),
        ({"$ref": "#nowhere"}, "$ref #nowhere leads nowhere: there is no anchor nowhere"),
        ({"$ref": "nowhere.json"}, "no reference has the name nowhere.json"),
        ({"$ref": "https://example.com/x.json"}, "Remote schema reference fetching over HTTP(S) is disabled"),
        ({"$ref": 5}, "$ref is a number, and must be a string"),
        ({"type": "thing"}, "unknown type: [thing]"),
        ({"type": 5}, "type is a number, and must be a string or an array"),
        ({"properties": []}, "properties is an array, and must be an object"),
        ({"properties": {"a": 5}}, "Expected type is one of JsonObject or Boolean"),
        ({"required": "a"}, "required is a string, and must be an array"),
        ({"required": [5]}, "required has a number, and must have strings"),
        ({"minLength": "5"}, "minLength is a string, and must be an integer"),
        ({"minLength": 1.5}, "minLength is a number, and must be an integer"),
        ({"maximum": "5"}, "maximum is a string, and must be a number"),
        ({"multipleOf": 0}, "multipleOf should not be 0"),
        ({"pattern": 5}, "pattern is a number, and must be a string"),
        ({"enum": 5}, "enum is a number, and must be an array"),
        ({"oneOf": {}}, "oneOf is an object, and must be an array"),
        ({"uniqueItems": 1}, "uniqueItems is a number, and must be a boolean"),
        ({"dependencies": {"a": [5]}}, "dependencies has a number, and must have strings"),
        ({"$schema": "http://json-schema.org/draft-04/schema", "exclusiveMinimum": 5}, "must be a boolean in draft 4"),
        ([], "expected an object or boolean at the root"),
    ],
)
def test_what_no_draft_allows_is_parsed_and_not_valid(tree: object, reason: str) -> None:
    one = schema(tree)
    with pytest.raises(InvalidSchema) as raised:
        one.validate()
    assert reason in raised.value.reason


def test_a_meta_schema_may_be_referred_to_and_nothing_is_fetched() -> None:
    schema({"$ref": "http://json-schema.org/draft-07/schema#"}).validate()
    schema({"$schema": NEW, "$ref": NEW}).validate()


def test_strict_validation_keeps_two_dollars_free() -> None:
    one = schema({"type": "object", "properties": {"$$a": {}}})
    one.validate()
    with pytest.raises(InvalidSchema, match="Field names cannot start with"):
        one.validate(strict=True)


def test_tags_are_found_and_changed() -> None:
    one = schema(
        {
            "type": "object",
            "confluent:tags": ["R"],
            "properties": {
                "a": {"type": "string", "confluent:tags": ["P"]},
                "b": {"type": "array", "items": {"type": "object", "properties": {"c": {}}}},
            },
        }
    )
    assert one.tagged_entities() == {Entity("object", "sr_record"): ("R",), Entity("object.a", "sr_field"): ("P",)}
    changed = one.with_tags(
        {Entity("object.b.array.object.c", "sr_field"): ["C"]}, {Entity("object.a", "sr_field"): ["P"]}
    )
    assert changed.tags() == ("R", "C")
    assert one.tags() == ("R", "P"), "the schema itself stays as it was"
    with pytest.raises(InvalidSchema, match="No matching path"):
        one.with_tags({Entity("object.x", "sr_field"): ["C"]}, {})


def test_values_are_held_against_it() -> None:
    checked = schema({"type": "object", "properties": {"a": {"$ref": "t.json"}}, "required": ["a"]}, t={"maxLength": 2})
    checked.validation.check({"a": "xy"})
    with pytest.raises(InvalidValue, match=r"longer than 2 characters \(at a\)"):
        checked.validation.check({"a": "xyz"})
    with pytest.raises(InvalidValue, match="is a required property"):
        checked.validation.check({})


def test_a_pattern_that_would_never_end_does() -> None:
    evil = schema({"pattern": "^(a+)+$"})
    with pytest.raises(InvalidValue):
        evil.validation.check("a" * 10_000 + "b")
    looks_ahead = schema({"pattern": "^(?=(a+)+$)x"})
    with pytest.raises((InvalidValue, InvalidSchema)):
        looks_ahead.validation.check("a" * 10_000 + "b")


def test_nothing_is_fetched_to_hold_a_value_against_it() -> None:
    with pytest.raises(InvalidSchema, match="nothing is fetched"):
        schema({"$ref": "https://example.com/x.json"}).validation.check(5)


def test_a_schema_beyond_a_limit_is_refused_at_once() -> None:
    deep: object = {}
    for _ in range(200):
        deep = {"not": deep}
    with pytest.raises(InvalidSchema, match="deeper"):
        schema(deep).validate()
    wide = parse("JSON", json.dumps({"properties": {str(n): {} for n in range(20)}}), limits=Limits(definitions=10))
    with pytest.raises(InvalidSchema, match="more than 10 schemas"):
        wide.validate()
    chain = {"definitions": {f"d{n}": {"not": {"$ref": f"#/definitions/d{n + 1}"}} for n in range(300)}}
    chain["definitions"]["d300"] = {}
    one = schema(chain | {"$ref": "#/definitions/d0"})
    with pytest.raises(InvalidSchema, match="deeper"):
        one.incompatibilities(schema(chain | {"$ref": "#/definitions/d0"}))
