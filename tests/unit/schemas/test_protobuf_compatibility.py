"""Protobuf's rules, which are Confluent's: a pair for each."""

import pytest

from ottla.schemas.levels import Level, check
from ottla.schemas.protobuf.compatibility import RULES
from ottla.schemas.schema import InvalidSchema, Limits, ParsedSchema, parse


def proto(body: str, syntax: str = "proto3", **references: str) -> ParsedSchema:
    texts = {f"{name}.proto": f'syntax = "proto3"; {one}' for name, one in references.items()}
    return parse("PROTOBUF", f'syntax = "{syntax}"; {body}', texts)


REFUSED = [
    ("PACKAGE_CHANGED", "#/", "package b;", "package a;"),
    ("MESSAGE_REMOVED", "#/A", "", "message A {}"),
    ("MESSAGE_REMOVED", "#/A/B", "message A {}", "message A { message B {} }"),
    ("FIELD_KIND_CHANGED", "#/A/1", "message A { A a = 1; }", "message A { int32 a = 1; }"),
    ("FIELD_KIND_CHANGED", "#/A/1", "message A { map<int32, int32> a = 1; }", "message A { repeated int32 a = 1; }"),
    ("FIELD_SCALAR_KIND_CHANGED", "#/A/1", "message A { string a = 1; }", "message A { int32 a = 1; }"),
    ("FIELD_SCALAR_KIND_CHANGED", "#/A/1", "message A { sint32 a = 1; }", "message A { int32 a = 1; }"),
    (
        "FIELD_SCALAR_KIND_CHANGED",
        "#/A/1",
        "message A { map<int32, string> a = 1; }",
        "message A { map<int32, int32> a = 1; }",
    ),
    (
        "FIELD_NAMED_TYPE_CHANGED",
        "#/A/1",
        "message A { C a = 1; } message B {} message C {}",
        "message A { B a = 1; } message B {} message C {}",
    ),
    (
        "FIELD_NUMERIC_LABEL_CHANGED",
        "#/A/1",
        "message A { repeated int32 a = 1; }",
        "message A { optional int32 a = 1; }",
    ),
    (
        "ONEOF_FIELD_REMOVED",
        "#/A/o/2",
        "message A { oneof o { int32 a = 1; } }",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
    ),
    (
        "ONEOF_FIELD_REMOVED",
        "#/A/o/2",
        "message A { int32 a = 1; }",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
    ),
    (
        "MULTIPLE_FIELDS_MOVED_TO_ONEOF",
        "#/A/o",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        "message A { int32 a = 1; int32 b = 2; }",
    ),
    (
        "FIELD_MOVED_TO_EXISTING_ONEOF",
        "#/A/o",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        "message A { oneof o { int32 a = 1; } int32 b = 2; }",
    ),
]
REFUSED_IN_PROTO2 = [
    ("REQUIRED_FIELD_ADDED", "#/A/1", "message A { required int32 a = 1; }", "message A {}"),
    ("REQUIRED_FIELD_REMOVED", "#/A/1", "message A {}", "message A { required int32 a = 1; }"),
]
ALLOWED = [
    ("MESSAGE_ADDED", "message A {} message B {}", "message A {}"),
    ("MESSAGE_MOVED", "message A {} message B {}", "message B {} message A {}"),
    ("ENUM_ADDED", "enum E { A = 0; }", ""),
    ("ENUM_REMOVED", "", "enum E { A = 0; }"),
    ("ENUM_CONST_ADDED", "enum E { A = 0; B = 1; }", "enum E { A = 0; }"),
    ("ENUM_CONST_CHANGED", "enum E { B = 0; }", "enum E { A = 0; }"),
    ("ENUM_CONST_REMOVED", "enum E { A = 0; }", "enum E { A = 0; B = 1; }"),
    ("FIELD_ADDED", "message A { int32 a = 1; }", "message A {}"),
    ("FIELD_REMOVED", "message A {}", "message A { int32 a = 1; }"),
    ("FIELD_NAME_CHANGED", "message A { int32 b = 1; }", "message A { int32 a = 1; }"),
    (
        "FIELD_STRING_OR_BYTES_LABEL_CHANGED",
        "message A { repeated string a = 1; }",
        "message A { optional string a = 1; }",
    ),
    ("ONEOF_ADDED", "message A { oneof o { int32 a = 1; } }", "message A { int32 a = 1; }"),
    ("ONEOF_REMOVED", "message A {}", "message A { oneof o { int32 a = 1; } }"),
    (
        "ONEOF_FIELD_ADDED",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
        "message A { oneof o { int32 a = 1; } }",
    ),
    (
        "ONEOF_FIELD_MOVED_TO_TOP_LEVEL",
        "message A { oneof o { int32 a = 1; } int32 b = 2; }",
        "message A { oneof o { int32 a = 1; int32 b = 2; } }",
    ),
    (
        "exchangeable",
        "message A { uint64 a = 1; bytes b = 2; sfixed32 c = 3; bool d = 4; }",
        "message A { int32 a = 1; string b = 2; fixed32 c = 3; E d = 4; } enum E { Z = 0; }",
    ),
    (
        "another spelling",
        "package p; message A { p.B b = 1; } message B {}",
        "package p; message A { .p.B b = 1; } message B {}",
    ),
]


@pytest.mark.parametrize(("rule", "path", "reader", "writer"), REFUSED)
def test_a_change_is_refused_by_its_rule(rule: str, path: str, reader: str, writer: str) -> None:
    found = proto(reader).incompatibilities(proto(writer))
    assert [(one.rule.id, one.path) for one in found] == [(rule, path)]


@pytest.mark.parametrize(("rule", "path", "reader", "writer"), REFUSED_IN_PROTO2)
def test_required_fields_stay_what_they_are(rule: str, path: str, reader: str, writer: str) -> None:
    found = proto(reader, "proto2").incompatibilities(proto(writer, "proto2"))
    assert [(one.rule.id, one.path) for one in found] == [(rule, path)]
    as_edition = 'edition = "2023"; message A { int32 a = 1 [features.field_presence = LEGACY_REQUIRED]; }'
    empty = 'edition = "2023"; message A {}'
    texts = (as_edition, empty) if rule.endswith("ADDED") else (empty, as_edition)
    new, old = (parse("PROTOBUF", text) for text in texts)
    assert [one.rule.id for one in new.incompatibilities(old)] == [rule]


@pytest.mark.parametrize(("rule", "reader", "writer"), ALLOWED)
def test_a_change_that_readers_do_not_mind_is_allowed(rule: str, reader: str, writer: str) -> None:
    assert proto(reader).incompatibilities(proto(writer)) == []


def test_every_row_of_the_table_has_an_example() -> None:
    assert {rule.id for rule in RULES if not rule.compatible} == {row[0] for row in (*REFUSED, *REFUSED_IN_PROTO2)}
    assert {rule.id for rule in RULES if rule.compatible} <= {row[0] for row in ALLOWED}


def test_an_entry_of_a_map_is_a_map() -> None:
    written = "message A { map<string, int32> m = 1; }"
    described = """message A { repeated MEntry m = 1;
        message MEntry { option map_entry = true; string key = 1; int32 value = 2; } }"""
    assert proto(written).incompatibilities(proto(described)) == []
    assert proto(described).incompatibilities(proto(written)) == []


def test_what_a_field_leads_to_in_another_file_is_compared_there() -> None:
    body = 'import "l.proto"; message A { s.L a = 1; s.L b = 2; }'
    old = proto(body, l="package s; message L { int32 n = 1; }")
    new = proto(body, l="package s; message L { string n = 1; }")
    assert [(one.rule.id, one.path) for one in new.incompatibilities(old)] == [
        ("FIELD_SCALAR_KIND_CHANGED", "#/L/1"),
        ("FIELD_NAMED_TYPE_CHANGED", "#/A/1"),
        ("FIELD_SCALAR_KIND_CHANGED", "#/L/1"),
        ("FIELD_NAMED_TYPE_CHANGED", "#/A/2"),
    ]
    assert old.incompatibilities(proto(body, l="package s; message L { int32 m = 1; }")) == []


def test_recursive_messages_are_compared_once() -> None:
    body = 'import "l.proto"; message A { s.L l = 1; }'
    old = proto(body, l="package s; message L { L next = 1; int32 n = 2; }")
    new = proto(body, l="package s; message L { L next = 1; string n = 2; }")
    assert [one.rule.id for one in new.incompatibilities(old)] == [
        "FIELD_SCALAR_KIND_CHANGED",
        "FIELD_NAMED_TYPE_CHANGED",
    ]


def test_the_messages_are_confluents() -> None:
    old, new = proto("message A { int32 a = 1; }"), proto("message A { string a = 1; }")
    assert check(Level.FORWARD, new, [(2, old)]).messages == (
        '{errorType:"FIELD_SCALAR_KIND_CHANGED", description:"The kind of a SCALAR field at path \'#/A/1\' in the old '
        'schema does not match its kind in the new schema"}',
        "{oldSchemaVersion: 2}",
        "{oldSchema: '" + old.canonical + "'}",
    )


def test_a_comparison_that_would_never_end_is_refused() -> None:
    fields = "".join(f"int32 f{n} = {n}; " for n in range(1, 50))
    one = parse(
        "PROTOBUF", f'syntax = "proto3"; message A {{ {fields} }} message B {{}}', limits=Limits(comparisons=10)
    )
    with pytest.raises(InvalidSchema, match="more than 10 pairs"):
        one.incompatibilities(one)
