"""Texts that were made to hurt: each costs an `InvalidSchema` or nothing, never a RecursionError, and it is over soon.

What would take for ever here shows by not ending; nothing is timed.
"""

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from ottla.schemas.schema import InvalidSchema, ParsedSchema, SchemaKind, parse


def _record(name: str, *fields: dict[str, Any]) -> dict[str, Any]:
    return {"type": "record", "name": name, "fields": list(fields)}


def _field(name: str, type: Any, **more: Any) -> dict[str, Any]:
    return {"name": name, "type": type, **more}


def _doubling(count: int) -> str:
    """Each type has the one before it twice: 2^count paths lead to the first."""
    types = [_record("R0", _field("f", "int"))]
    types += (_record(f"R{n}", _field("a", f"R{n - 1}"), _field("b", f"R{n - 1}")) for n in range(1, count))
    return json.dumps(types)


AVRO = {
    "brackets": "[" * 100_000,
    "braces": '{"type":' * 100_000,
    "quotes": '"' * 100_000,
    "escapes": '"' + '\\"' * 100_000,
    "comments": "/* " * 100_000,
    "slashes": "//" * 100_000,
    "digits": "1" * 100_000,
    "a number in a size": '{"type":"fixed","name":"F","size":' + "9" * 900 + "}",
    "a float": '{"type":"record","name":"R","fields":[{"name":"f","type":"double","default":1e999999}]}',
    "half a pair": '"\\ud800"',
    "nested arrays": '{"type":"array","items":' * 120 + '"int"' + "}" * 120,
    "nested unions": "[" * 200 + "]" * 200,
    "doubling": _doubling(60),
    "many names": json.dumps([_record(f"R{n}") for n in range(4_000)]),
    "many fields": json.dumps(_record("R", *(_field(f"f{n}", "int") for n in range(3_000)))),
    "many symbols": json.dumps({"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(4_000)]}),
    "many aliases": json.dumps({**_record("R"), "aliases": [f"a{n}" for n in range(4_000)]}),
    "one symbol too often": json.dumps(
        {"type": "enum", "name": "E", "symbols": [f"S{n}" for n in range(4_000)] + ["S0"]}
    ),
    "a default that is a tree": json.dumps(
        _record("R", _field("f", {"type": "map", "values": ["null", "R"]}, default={str(n): {} for n in range(2_000)}))
    ),
    "a circle of names": json.dumps([_record("A", _field("f", "B")), _record("B", _field("f", "A"))]),
    "a long name": json.dumps(_record("R" * 500_000)),
}
PROTOBUF = {
    "braces": "message A {" * 100_000,
    "groups": "message A { " + "optional group G = 1 {" * 100_000,
    "values": "option a = " + "{a:" * 100_000,
    "lists": "option a = " + "[" * 100_000,
    "quotes": '"' * 100_000,
    "escapes": 'option a = "' + "\\" * 100_000,
    "comments": "/* " * 100_000,
    "semicolons": ";" * 100_000,
    "digits": "option a = " + "1" * 100_000 + ";",
    "many messages": "".join(f"message M{n} {{}}" for n in range(4_000)),
    "many fields": 'syntax = "proto3"; message A {' + "".join(f"int32 f{n} = {n + 1};" for n in range(3_000)) + "}",
    "many oneofs": 'syntax = "proto3"; message A {'
    + "".join(f"oneof o{n} {{ int32 f{n} = {n + 1}; }}" for n in range(2_000))
    + "}",
    "one key again and again": "option (a) = {" + "k: 1 " * 4_000 + "};",
    "a long name": "message " + "A" * 500_000 + " {}",
    "a long path": 'syntax = "proto3"; message A { ' + ".".join("a" * 1 for _ in range(50_000)) + " f = 1; }",
    "a large range": "message A { extensions 1 to max; reserved 1 to max; }",
    "itself": 'import "schema.proto"; message A {}',
    "rubbish in base64": base64.b64encode(bytes(range(256)) * 10).decode(),
    "a deep descriptor": base64.b64encode(b"\x1a\x02" * 1000).decode(),
}
JSON = {
    "brackets": "[" * 100_000,
    "nots": '{"not":' * 250 + "{}" + "}" * 250,
    "all of all": '{"allOf":[' * 120 + "{}" + "]}" * 120,
    "a circle": '{"$ref":"#"}',
    "a larger circle": json.dumps(
        {"$ref": "#/definitions/a", "definitions": {"a": {"$ref": "#/definitions/b"}, "b": {"$ref": "#/definitions/a"}}}
    ),
    "a circle of alternatives": json.dumps(
        {"anyOf": [{"$ref": "#"}, {"$ref": "#"}], "properties": {"a": {"$ref": "#"}}}
    ),
    "doubling": json.dumps(
        {
            "$ref": "#/definitions/d60",
            "definitions": {
                "d0": {"type": "string"},
                **{
                    f"d{n}": {
                        "anyOf": [
                            {"$ref": f"#/definitions/d{n - 1}"},
                            {"properties": {"x": {"$ref": f"#/definitions/d{n - 1}"}}},
                        ]
                    }
                    for n in range(1, 61)
                },
            },
        }
    ),
    "everything refers to everything": json.dumps(
        {
            "$ref": "#/definitions/d0",
            "definitions": {
                f"d{n}": {"oneOf": [{"properties": {f"p{m}": {"$ref": f"#/definitions/d{m}"}}} for m in range(12)]}
                for n in range(12)
            },
        }
    ),
    "a pattern": json.dumps(
        {"patternProperties": {"(a+)+$": {}, "(": {}, "(?=x)": {}, "a" * 10_000: {}}, "pattern": "((a*)*)*b"}
    ),
    "a large exponent": '{"multipleOf": 1e900, "maximum": 1e-900}',
    "a larger exponent": '{"multipleOf": 1e999999999}',
    "many properties": json.dumps({"properties": {f"p{n}": {} for n in range(4_000)}}),
    "many values": json.dumps({"enum": list(range(3_000))}),
    "a pointer into nothing": json.dumps({"$ref": "#/" + "a/" * 10_000}),
    "an odd address": json.dumps({"$id": "http://[", "$ref": "http://[::"}),
    "ids": json.dumps({"$id": "a", "definitions": {str(n): {"$id": str(n), "$ref": str(n)} for n in range(2_000)}}),
}


def _all_of_it(kind: SchemaKind, text: str) -> None:
    steps: list[Callable[[Any], object]] = [
        lambda parsed: parsed.canonical,
        lambda parsed: parsed.validate(strict=True),
        lambda parsed: parsed.normalized,
        lambda parsed: parsed.incompatibilities(parsed),
        lambda parsed: parsed.is_equivalent(parsed),
        lambda parsed: parsed.tags(),
        lambda parsed: parsed.names(),
        lambda parsed: parsed.rendered("serialized"),
        lambda parsed: parsed.rendered("resolved"),
    ]
    refusals: list[InvalidSchema] = []
    parsed: list[ParsedSchema] = []
    for as_new in (True, False):
        try:
            parsed.append(parse(kind, text, as_new=as_new))
        except InvalidSchema as error:
            refusals.append(error)
    for one in parsed:
        for step in steps:
            try:
                step(one)
            except InvalidSchema as error:
                refusals.append(error)
    if len(parsed) == 2:
        with suppress(InvalidSchema):
            parsed[0].incompatibilities(parsed[1])
    assert all(len(str(error)) < 2_000 for error in refusals), "an error is for a log line"


@pytest.mark.slow
@pytest.mark.parametrize("text", AVRO.values(), ids=AVRO)
def test_avro_is_bounded(text: str) -> None:
    _all_of_it("AVRO", text)


@pytest.mark.slow
@pytest.mark.parametrize("text", PROTOBUF.values(), ids=PROTOBUF)
def test_protobuf_is_bounded(text: str) -> None:
    _all_of_it("PROTOBUF", text)


@pytest.mark.slow
@pytest.mark.parametrize("text", JSON.values(), ids=JSON)
def test_json_schema_is_bounded(text: str) -> None:
    _all_of_it("JSON", text)
