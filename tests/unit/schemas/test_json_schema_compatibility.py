"""The rules of JSON Schema, which are Confluent's: a pair for each that refuses, in the table's order."""

import json

import pytest

from ottla.schemas.json_schema.compatibility import RULES
from ottla.schemas.levels import Level, check
from ottla.schemas.schema import InvalidSchema, Limits, ParsedSchema, parse

NEW = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
CLOSED = {"type": "object", "additionalProperties": False}
PARTLY = {"type": "object", "additionalProperties": {"type": "string"}}
OPEN = {"type": "object"}


def schema(tree: object) -> ParsedSchema:
    return parse("JSON", json.dumps(tree))


def with_a(model: dict[str, object], a: object, **more: object) -> dict[str, object]:
    return {**model, "properties": {"a": a}, **more}


def bound(keyword: str, rule: str, tighter: str, low: int, high: int) -> list[tuple[str, str, object, object]]:
    """A bound that is new, and one that is tighter."""
    more = {"contains": {}} if "Contains" in keyword else {}
    given = NEW if more else {}
    before, after = (high, low) if tighter == "DECREASED" else (low, high)
    rows: list[tuple[str, str, object, object]] = [
        (f"{rule}_{tighter}", f"#/{keyword}", {**given, **more, keyword: after}, {**given, **more, keyword: before})
    ]
    if keyword == "minContains":  # with `contains` there is always one
        return [*rows, (f"{rule}_ADDED", f"#/{keyword}", {**given, **more}, {**given, "minItems": 0})]
    added = {**given, **more, keyword: low}
    without = {**given, **more} if more else {**given, _neighbour(keyword): 1}
    return [*rows, (f"{rule}_ADDED", f"#/{keyword}", {**added, **without}, without)]


def _neighbour(keyword: str) -> str:
    """A keyword of the same type, so that there is a type to compare."""
    return {
        "maxLength": "minLength", "minLength": "maxLength", "maximum": "minimum", "minimum": "maximum",
        "exclusiveMaximum": "minimum", "exclusiveMinimum": "maximum", "maxProperties": "minProperties",
        "minProperties": "maxProperties", "maxItems": "minItems", "minItems": "maxItems",
    }[keyword]  # fmt: skip


REFUSED: list[tuple[str, str, object, object]] = [
    ("TYPE_CHANGED", "#/", {"type": "string"}, {"type": "number"}),
    ("TYPE_CHANGED", "#/properties/a", with_a(OPEN, {"type": "null"}), with_a(OPEN, {"type": "boolean"})),
    ("TYPE_NARROWED", "#/", {"type": "integer"}, {"type": "number"}),
    ("SCHEMA_ADDED", "#/items", {"type": "array", "items": {"type": "string"}}, {"type": "array"}),
    *bound("maxLength", "MAX_LENGTH", "DECREASED", 1, 2),
    *bound("minLength", "MIN_LENGTH", "INCREASED", 1, 2),
    *bound("maximum", "MAXIMUM", "DECREASED", 1, 2),
    *bound("minimum", "MINIMUM", "INCREASED", 1, 2),
    *bound("exclusiveMaximum", "EXCLUSIVE_MAXIMUM", "DECREASED", 1, 2),
    *bound("exclusiveMinimum", "EXCLUSIVE_MINIMUM", "INCREASED", 1, 2),
    *bound("maxProperties", "MAX_PROPERTIES", "DECREASED", 1, 2),
    *bound("minProperties", "MIN_PROPERTIES", "INCREASED", 1, 2),
    *bound("maxItems", "MAX_ITEMS", "DECREASED", 1, 2),
    *bound("minItems", "MIN_ITEMS", "INCREASED", 1, 2),
    *bound("maxContains", "MAX_CONTAINS", "DECREASED", 1, 2),
    *bound("minContains", "MIN_CONTAINS", "INCREASED", 1, 2),
    ("PATTERN_ADDED", "#/pattern", {"type": "string", "pattern": "a"}, {"type": "string"}),
    ("PATTERN_CHANGED", "#/pattern", {"pattern": "a"}, {"pattern": "b"}),
    ("MULTIPLE_OF_ADDED", "#/multipleOf", {"type": "number", "multipleOf": 2}, {"type": "number"}),
    ("MULTIPLE_OF_EXPANDED", "#/multipleOf", {"multipleOf": 0.4}, {"multipleOf": 0.2}),
    ("MULTIPLE_OF_CHANGED", "#/multipleOf", {"multipleOf": 3}, {"multipleOf": 2}),
    ("REQUIRED_ATTRIBUTE_ADDED", "#/required/a", with_a(OPEN, {}, required=["a"]), with_a(OPEN, {})),
    ("DEPENDENCY_ARRAY_ADDED", "#/dependencies/a", OPEN | {"dependencies": {"a": ["b"]}}, OPEN),
    (
        "DEPENDENCY_ARRAY_EXTENDED",
        "#/dependencies/a",
        {"dependencies": {"a": ["b", "c"]}},
        {"dependencies": {"a": ["b"]}},
    ),
    ("DEPENDENCY_ARRAY_CHANGED", "#/dependencies/a", {"dependencies": {"a": ["c"]}}, {"dependencies": {"a": ["b"]}}),
    ("DEPENDENCY_SCHEMA_ADDED", "#/dependencies/a", OPEN | {"dependencies": {"a": {}}}, OPEN),
    ("ADDITIONAL_PROPERTIES_REMOVED", "#/additionalProperties", CLOSED, OPEN),
    ("ADDITIONAL_PROPERTIES_NARROWED", "#/additionalProperties", PARTLY, OPEN),
    (
        "UNEVALUATED_PROPERTIES_REMOVED",
        "#/unevaluatedProperties",
        {**NEW, **OPEN, "unevaluatedProperties": False},
        NEW | OPEN,
    ),
    (
        "UNEVALUATED_PROPERTIES_NARROWED",
        "#/unevaluatedProperties",
        {**NEW, **OPEN, "unevaluatedProperties": {"type": "null"}},
        NEW | OPEN,
    ),
    (
        "REQUIRED_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/a",
        with_a(OPEN, {"type": "null"}, required=["a"]),
        OPEN,
    ),
    (
        "REQUIRED_PROPERTY_WITH_DEFAULT_ADDED_TO_OPEN_CONTENT_MODEL",
        "#/properties/a",
        with_a(OPEN, {"type": "null", "default": None}, required=["a"]),
        OPEN,
    ),
    ("OPTIONAL_PROPERTY_ADDED_TO_OPEN_CONTENT_MODEL", "#/properties/a", with_a(OPEN, {"type": "null"}), OPEN),
    (
        "REQUIRED_PROPERTY_ADDED_TO_UNOPEN_CONTENT_MODEL",
        "#/properties/a",
        with_a(CLOSED, {"type": "null"}, required=["a"]),
        CLOSED,
    ),
    (
        "PROPERTY_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
        with_a(PARTLY, {"type": "null"}),
        PARTLY,
    ),
    ("PROPERTY_REMOVED_FROM_CLOSED_CONTENT_MODEL", "#/properties/a", CLOSED, with_a(CLOSED, {"type": "null"})),
    (
        "PROPERTY_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/properties/a",
        PARTLY,
        with_a(PARTLY, {"type": "null"}),
    ),
    ("UNIQUE_ITEMS_ADDED", "#/uniqueItems", {"type": "array", "uniqueItems": True}, {"type": "array"}),
    ("ADDITIONAL_ITEMS_REMOVED", "#/additionalItems", {"items": [{}], "additionalItems": False}, {"items": [{}]}),
    (
        "ADDITIONAL_ITEMS_NARROWED",
        "#/additionalItems",
        {"items": [{}], "additionalItems": {"type": "null"}},
        {"items": [{}]},
    ),
    (
        "UNEVALUATED_ITEMS_REMOVED",
        "#/unevaluatedItems",
        {**NEW, "type": "array", "unevaluatedItems": False},
        NEW | {"type": "array"},
    ),
    (
        "UNEVALUATED_ITEMS_NARROWED",
        "#/unevaluatedItems",
        {**NEW, "type": "array", "unevaluatedItems": {"type": "null"}},
        NEW | {"type": "array"},
    ),
    ("ITEM_ADDED_TO_OPEN_CONTENT_MODEL", "#/items/1", {"items": [{}, {"type": "null"}]}, {"items": [{}]}),
    (
        "ITEM_ADDED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        {"items": [{}, {"type": "null"}], "additionalItems": {"type": "string"}},
        {"items": [{}], "additionalItems": {"type": "string"}},
    ),
    (
        "ITEM_REMOVED_FROM_CLOSED_CONTENT_MODEL",
        "#/items/1",
        {"items": [{}], "additionalItems": False},
        {"items": [{}, {"type": "null"}], "additionalItems": False},
    ),
    (
        "ITEM_REMOVED_NOT_COVERED_BY_PARTIALLY_OPEN_CONTENT_MODEL",
        "#/items/1",
        {"items": [{}], "additionalItems": {"type": "string"}},
        {"items": [{}, {"type": "null"}], "additionalItems": {"type": "string"}},
    ),
    ("ENUM_ARRAY_NARROWED", "#/enum", {"enum": [1]}, {"enum": [1, 2]}),
    ("ENUM_ARRAY_CHANGED", "#/enum", {"enum": [1, 3]}, {"enum": [1, 2]}),
    ("ENUM_ARRAY_CHANGED", "#/const", {"const": 1}, {"const": True}),
    (
        "COMBINED_TYPE_CHANGED",
        "#/",
        {"oneOf": [{"type": "null"}, {"type": "string"}]},
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
    ),
    (
        "COMBINED_TYPE_SUBSCHEMAS_CHANGED",
        "#/",
        {"anyOf": [{"type": "null"}, {"type": "string"}]},
        {"anyOf": [{"type": "null"}, {"type": "array"}]},
    ),
    ("PRODUCT_TYPE_EXTENDED", "#/", {"allOf": [{"type": "string"}, {"enum": ["a"]}]}, {"allOf": [{"type": "string"}]}),
    ("SUM_TYPE_NARROWED", "#/", {"anyOf": [{"type": "null"}]}, {"anyOf": [{"type": "null"}, {"type": "string"}]}),
    ("NOT_TYPE_EXTENDED", "#/not", {"not": {"type": "number"}}, {"not": {"type": "integer"}}),
]

ALLOWED: list[tuple[object, object]] = [
    ({"type": "number"}, {"type": "integer"}),
    ({}, {"type": "string"}),
    (True, {"type": "string"}),
    ({"type": "string"}, False),
    ({"type": "string", "maxLength": 5}, {"type": "string", "maxLength": 4}),
    ({"type": "string"}, {"type": "string", "pattern": "a"}),
    ({"multipleOf": 0.2}, {"multipleOf": 0.40}),
    ({"title": "a", "description": "b", "default": 1, "$id": "c"}, {}),
    (with_a(OPEN, {}, required=[]), with_a(OPEN, {}, required=["a"])),
    (with_a(OPEN, {"default": 1}, required=["a"]), with_a(OPEN, {})),
    (OPEN, CLOSED),
    (OPEN, PARTLY),
    (with_a(OPEN, {}), OPEN),
    (OPEN, with_a(OPEN, {"type": "null"})),
    (with_a(CLOSED, {"type": "null"}), CLOSED),
    (with_a(CLOSED, {"type": "null", "default": None}, required=["a"]), CLOSED),
    (with_a(PARTLY, {"type": "string"}), PARTLY),
    (PARTLY, with_a(PARTLY, {"type": "string"})),
    (CLOSED, with_a(CLOSED, False)),
    (
        with_a({"patternProperties": {"^a": {"type": "null"}}, **OPEN}, {"type": "null"}),
        {"patternProperties": {"^a": {"type": "null"}}, **OPEN},
    ),
    ({"items": [{}, {}]}, {"items": [{}]}),
    ({"items": [{}]}, {"items": [{}, {"type": "null"}]}),
    ({"enum": [2, 1, 3]}, {"enum": [1, 2]}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"anyOf": [{"type": "null"}, {"type": "string"}]}),
    ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"oneOf": [{"type": "null"}, {"type": "string"}]}),
    ({"oneOf": [{"type": "string"}, {"type": "null"}]}, {"type": "null"}),
    ({"type": ["string", "null"]}, {"type": "null"}),
    ({"oneOf": [{"type": "string"}]}, {"type": "string"}),
    ({"type": "string"}, {"allOf": [{"type": "string"}, {"enum": ["a"]}]}),
    ({"not": {"type": "integer"}}, {"not": {"type": "number"}}),
    ({"type": "string", "connect.type": "bytes"}, {"type": "number", "connect.type": "bytes"}),
    ({"dependencies": {"a": ["b"]}}, {"dependencies": {"a": ["b", "c"], "d": {}}}),
    (
        NEW | {"prefixItems": [{"type": "null"}], "items": {"type": "string"}},
        NEW | {"prefixItems": [{"type": "null"}], "items": {"type": "string", "maxLength": 1}},
    ),
]


@pytest.mark.parametrize(("rule", "path", "reader", "writer"), REFUSED)
def test_a_change_is_refused_by_its_rule(rule: str, path: str, reader: object, writer: object) -> None:
    found = [(one.rule.id, one.path) for one in schema(reader).incompatibilities(schema(writer))]
    assert found[-1:] == [(rule, path)]
    covered = {"TYPE_CHANGED"} if "COVERED" in rule else set()  # what was not covered is told first
    assert {one[0] for one in found} - covered == {rule}


@pytest.mark.parametrize(("reader", "writer"), ALLOWED)
def test_a_change_that_readers_do_not_mind_is_allowed(reader: object, writer: object) -> None:
    assert schema(reader).incompatibilities(schema(writer)) == []


def test_every_row_of_the_table_that_refuses_has_an_example() -> None:
    assert {rule.id for rule in RULES if not rule.compatible} == {row[0] for row in REFUSED}


@pytest.mark.parametrize(("rule", "path", "reader", "writer"), REFUSED)
def test_lenient_lets_the_models_of_content_change(rule: str, path: str, reader: object, writer: object) -> None:
    row = next(one for one in RULES if one.id == rule)
    found = {one.rule.id for one in schema(reader).incompatibilities(schema(writer), "LENIENT")}
    assert (rule in found) is not row.compatible_if_lenient


def test_recursive_schemas_are_compared_soundly() -> None:
    def node(value: object) -> object:
        inner = {"type": "object", "properties": {"next": {"$ref": "#/definitions/n"}, "v": value}}
        return {"$ref": "#/definitions/n", "definitions": {"n": inner}}

    assert schema(node({"type": "number"})).incompatibilities(schema(node({"type": "integer"}))) == []
    found = schema(node({"type": "string"})).incompatibilities(schema(node({"type": "integer"})))
    assert "#/properties/v" in {one.path for one in found}


def test_a_pair_that_was_taken_for_compatible_is_looked_at_again() -> None:
    """A cycle is taken for compatible while it is open; another branch must not profit from that."""

    def tree(leaf: str) -> object:
        a = {"type": "object", "properties": {"b": {"$ref": "#/definitions/b"}, "leaf": {"type": leaf}}}
        b = {"type": "object", "properties": {"a": {"$ref": "#/definitions/a"}}}
        either = {"anyOf": [{"$ref": "#/definitions/b"}, {"type": "null"}]}
        whole = {"type": "object", "properties": {"x": {"$ref": "#/definitions/a"}, "y": either}}
        return whole | {"definitions": {"a": a, "b": b}}

    found = schema(tree("string")).incompatibilities(schema(tree("integer")))
    assert "#/properties/y" in {one.path for one in found}


def test_the_messages_are_confluents() -> None:
    old, new = schema({"type": "string"}), schema({"type": "number"})
    assert check(Level.BACKWARD, new, [(1, old)]).messages == (
        '{errorType:"TYPE_CHANGED", description:"A type at path \'#/\' is different between the new schema and the old '
        "schema'}",
        "{oldSchemaVersion: 1}",
        '{oldSchema: \'{"type":"string"}\'}',
    )


def test_a_pattern_of_properties_cannot_take_for_ever() -> None:
    evil = {"type": "object", "patternProperties": {"^(a+)+$": {"type": "string"}}, "additionalProperties": False}
    added = {**evil, "properties": {"a" * 5_000 + "b": {"type": "string"}}}
    assert schema(added).incompatibilities(schema(evil)) == []


def test_a_comparison_that_would_never_end_is_refused() -> None:
    many = parse(
        "JSON", json.dumps({"anyOf": [{"maxLength": n} for n in range(100)]}), limits=Limits(comparisons=1_000)
    )
    with pytest.raises(InvalidSchema, match="more than 1000 pairs"):
        many.incompatibilities(many)


def test_a_reference_to_itself_is_the_same_wherever_it_is_met() -> None:
    """It was another one each time, so a comparison never came to an end and was given up after 200,000 pairs."""
    inner = {"anyOf": [{"$ref": "#/definitions/d"}, {"type": "null"}, {"$ref": "#"}]}
    tree = {
        "definitions": {"d": {"$ref": "#/definitions/d"}},
        "anyOf": [
            {"allOf": [{"items": inner}, {"$ref": "#/definitions/d"}]},
            {"type": "object", "properties": {"a": inner}},
        ],
    }
    one, other = (parse("JSON", json.dumps(tree), limits=Limits(comparisons=500)) for _ in range(2))
    assert one.incompatibilities(other) == []
