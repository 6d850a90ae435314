"""Avro's rules, a pair for each, and the levels over them."""

import json
from typing import Any

import pytest

from ottla.schemas.avro.compatibility import RULES
from ottla.schemas.levels import Level, check
from ottla.schemas.schema import InvalidSchema, Limits, ParsedSchema, parse


def avro(schema: object, **options: Any) -> ParsedSchema:
    return parse("AVRO", json.dumps(schema), **options)


def record(*fields: object, name: str = "R", **more: object) -> dict[str, object]:
    return {"type": "record", "name": name, "fields": list(fields), **more}


def field(name: str, type: object, **more: object) -> dict[str, object]:
    return {"name": name, "type": type, **more}


def enum(*symbols: str, **more: object) -> dict[str, object]:
    return {"type": "enum", "name": "E", "symbols": list(symbols), **more}


REFUSED = [
    ("NAME_MISMATCH", "/name", record(name="A"), record(name="B")),
    ("NAME_MISMATCH", "/name", enum("X") | {"name": "A"}, enum("X")),
    (
        "FIXED_SIZE_MISMATCH",
        "/size",
        {"type": "fixed", "name": "F", "size": 1},
        {"type": "fixed", "name": "F", "size": 2},
    ),
    ("MISSING_ENUM_SYMBOLS", "/symbols", enum("A"), enum("A", "C", "B")),
    ("READER_FIELD_MISSING_DEFAULT_VALUE", "/fields/0", record(field("f", "int")), record()),
    ("TYPE_MISMATCH", "/", "int", "long"),
    ("TYPE_MISMATCH", "/", "string", "int"),
    ("TYPE_MISMATCH", "/items", {"type": "array", "items": "int"}, {"type": "array", "items": "string"}),
    ("TYPE_MISMATCH", "/values", {"type": "map", "values": "int"}, {"type": "map", "values": "string"}),
    ("TYPE_MISMATCH", "/0", "int", ["null", "int"]),
    ("MISSING_UNION_BRANCH", "/1", ["null"], ["null", "int"]),
    ("MISSING_UNION_BRANCH", "/", ["null", "string"], "int"),
    ("AMBIGUOUS_FIELD", "/", record(field("a", "int", aliases=["b"])), record(field("a", "int"), field("b", "int"))),
]
ALLOWED = [
    ("FIELD_REMOVED", record(), record(field("f", "int"))),
    ("FIELD_WITH_DEFAULT", record(field("f", "int", default=1)), record()),
    ("FIELD_RENAMED", record(field("g", "int", aliases=["f"])), record(field("f", "int"))),
    ("FIELDS_REORDERED", record(field("a", "int"), field("b", "int")), record(field("b", "int"), field("a", "int"))),
    ("NAMESPACE_CHANGED", record(namespace="a"), record(namespace="b")),
    ("PROMOTION", "long", "int"),
    ("PROMOTION", "float", "int"),
    ("PROMOTION", "float", "long"),
    ("PROMOTION", "double", "float"),
    ("PROMOTION", "bytes", "string"),
    ("PROMOTION", "string", "bytes"),
    ("SYMBOL_ADDED", enum("A", "B"), enum("A")),
    ("SYMBOL_REMOVED", enum("A", default="A"), enum("A", "B")),
    ("BRANCH_ADDED", ["null", "int", "string"], ["null", "int"]),
    ("MADE_A_UNION", ["null", "int"], "int"),
    ("LOGICAL_TYPE_CHANGED", {"type": "int", "logicalType": "date"}, "int"),
    ("DOC_OR_PROPERTY_CHANGED", record(doc="x", y=1), record()),
]


@pytest.mark.parametrize(("rule", "path", "reader", "writer"), REFUSED)
def test_a_change_is_refused_by_its_rule(rule: str, path: str, reader: object, writer: object) -> None:
    found = avro(reader).incompatibilities(avro(writer))
    assert [(one.rule.id, one.path) for one in found] == [(rule, path)]


@pytest.mark.parametrize(("rule", "reader", "writer"), ALLOWED)
def test_a_change_that_readers_do_not_mind_is_allowed(rule: str, reader: object, writer: object) -> None:
    assert avro(reader).incompatibilities(avro(writer)) == []


def test_every_row_of_the_table_has_an_example() -> None:
    assert {rule.id for rule in RULES if not rule.compatible} == {row[0] for row in REFUSED}
    assert {rule.id for rule in RULES if rule.compatible} == {row[0] for row in ALLOWED}


def test_an_alias_is_a_name_in_full() -> None:
    assert avro(record(name="B", aliases=["n.A"])).incompatibilities(avro(record(name="n.A"))) == []
    assert avro(record(name="B", aliases=["A"])).incompatibilities(avro(record(name="n.A"))) != []


def test_recursive_schemas_are_compared_once() -> None:
    reader = record(field("n", ["null", "R"]), field("v", "int"))
    writer = record(field("n", ["null", "R"]), field("v", "string"))
    found = avro(reader).incompatibilities(avro(writer))
    assert [one.path for one in found] == ["/fields/1/type"]


def test_the_messages_are_confluents() -> None:
    old, new = avro(record(field("f", "int"))), avro(record(field("f", "string"), field("g", enum("A"))))
    verdict = check(Level.BACKWARD, new, [(3, old)])
    assert verdict.messages == (
        "{errorType:'TYPE_MISMATCH', description:'The type (path '/fields/0/type') of a field in the new schema does "
        "not match with the old schema', additionalInfo:'reader type: STRING not compatible with writer type: INT'}",
        "{errorType:'READER_FIELD_MISSING_DEFAULT_VALUE', description:'The field 'g' at path '/fields/1' in the new "
        "schema has no default value and is missing in the old schema', additionalInfo:'g'}",
        "{oldSchemaVersion: 3}",
        "{oldSchema: '" + old.canonical + "'}",
    )
    assert [(one.version, one.reader) for one in verdict.refusals] == [(3, "new"), (3, "new")]


OLD, WIDER, OTHER = avro(record()), avro(record(field("f", "int", default=1))), avro(record(field("f", "int")))


@pytest.mark.parametrize(
    ("level", "new", "is_compatible"),
    [
        (Level.NONE, avro("int"), True),
        (Level.BACKWARD, WIDER, True),
        (Level.BACKWARD, OTHER, False),
        (Level.FORWARD, OTHER, True),
        (Level.FORWARD, avro("int"), False),
        (Level.FULL, WIDER, True),
        (Level.FULL, OTHER, False),
    ],
)
def test_a_level_looks_in_its_direction(level: Level, new: ParsedSchema, is_compatible: bool) -> None:
    assert check(level, new, [(1, OLD)]).is_compatible is is_compatible


def test_transitive_levels_look_at_all_versions_and_stop_at_the_first_that_refuses() -> None:
    history = [(3, WIDER), (2, OLD), (1, avro("int"))]
    assert check(Level.BACKWARD, WIDER, history).is_compatible
    looked_at: list[int] = []

    def versions() -> Any:
        for version, schema in history:
            looked_at.append(version)
            yield version, schema

    refused = check(Level.BACKWARD_TRANSITIVE, OTHER, versions())
    assert [one.version for one in refused.refusals] == [2]
    assert looked_at == [3, 2]


def test_full_names_the_old_schema_only_for_what_the_new_one_cannot_read() -> None:
    verdict = check(Level.FULL, OLD, [(1, OTHER)])
    assert [one.reader for one in verdict.refusals] == ["old"]
    assert len(verdict.messages) == 1
    assert "in the old schema has no default value and is missing in the new schema" in verdict.messages[0]


def test_two_kinds_are_never_compatible() -> None:
    other = parse("JSON", "{}")
    assert check(Level.BACKWARD, other, [(1, OLD)]).messages == ("Incompatible because of different schema type",)


def test_a_comparison_that_would_never_end_is_refused() -> None:
    # Each type has two fields of the next one: without memory, 2^40 pairs.
    def nested(last: str) -> ParsedSchema:
        types: list[object] = [record(field("f", last), name="R0")]
        for number in range(1, 40):
            inner = f"R{number - 1}"
            types.append(record(field("a", inner), field("b", inner), name=f"R{number}"))
        return avro(types)

    found = nested("int").incompatibilities(nested("string"))
    assert 0 < len(found) <= 1_000
    few = Limits(comparisons=10)
    with pytest.raises(InvalidSchema, match="more than 10 pairs"):
        avro(record(*(field(f"f{n}", "int") for n in range(20))), limits=few).incompatibilities(
            avro(record(*(field(f"f{n}", "int") for n in range(20))))
        )
