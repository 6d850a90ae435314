"""Avro schemas beside Apache Avro 1.12.2 and Confluent's client: the same texts, the same refusals, the same values."""

import json
from random import Random
from typing import Any

import pytest

from ottla.schemas.avro.codec import Decoder, Encoder
from ottla.schemas.avro.plan import decoding_plan, encoding_plan
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.avro.types import Array, AvroType, Map, Record, Union
from ottla.schemas.faults import CannotDecode
from ottla.schemas.levels import Level, check
from ottla.schemas.schema import InvalidSchema, parse
from tests.interop.schemas.schema_oracles import asked
from tests.property.schemas.random_avro import changed, random_schema
from tests.property.schemas.random_values import NoValue, random_value

pytestmark = pytest.mark.interop

PAIRS = 10_000
SEED = 20261117

REFERRED = json.dumps(
    {
        "type": "record",
        "name": "shop.C",
        "fields": [{"name": "q", "type": {"type": "enum", "name": "Inner", "symbols": ["A"]}}],
    }
)


def questions(random: Random, unsound: float) -> list[dict[str, Any]]:
    made = []
    for _ in range(PAIRS // 2):
        schema = random_schema(random, unsound)
        other = changed(random, schema) if random.random() < 0.9 else random_schema(random, unsound)
        references: list[str] = []
        if random.random() < 0.1:
            references = [REFERRED]
            fields = [
                {"name": "c", "type": "shop.C"},
                {"name": "i", "type": "shop.Inner"},
                {"name": "s", "type": schema},
            ]
            schema = {"type": "record", "name": "Top", "fields": fields}
        made.append(
            {
                "reader": json.dumps(schema),
                "writer": json.dumps(other),
                "references": references,
                "as_new": unsound > 0 or random.random() < 0.5,
            }
        )
    return made


def described(question: dict[str, Any], which: str) -> AvroSchema | None:
    texts = {str(number): text for number, text in enumerate(question["references"])}
    try:
        parsed = parse("AVRO", question[which], texts, as_new=question["as_new"])
    except InvalidSchema:
        return None
    assert isinstance(parsed, AvroSchema)
    return parsed


@pytest.mark.parametrize("unsound", [0.0, 0.03])
def test_five_thousand_random_pairs_are_what_java_says(unsound: float) -> None:
    asked_for = questions(Random(f"{SEED} {unsound}"), unsound)
    compared = 0
    for number, (question, javas) in enumerate(zip(asked_for, asked("AvroOracle", asked_for), strict=True)):
        ours = {which: described(question, which) for which in ("reader", "writer")}
        for which, schema in ours.items():
            said = javas[which]
            assert (schema is None) == ("error" in said), f"{which} {number} of seed {SEED}: {said.get('error')}"
            if schema is not None:
                assert schema.canonical == said["text"]
                assert schema.rendered("resolved") == said["resolved"]
                assert schema.parsing_form == said["form"]
                assert schema.fingerprint().hex() == said["CRC-64-AVRO"]
                assert schema.fingerprint("MD5").hex() == said["MD5"]
                assert schema.fingerprint("SHA-256").hex() == said["SHA-256"]
        reader, writer = ours["reader"], ours["writer"]
        if reader is not None and writer is not None:
            compared += 1
            found = [[one.rule.id, one.path, _information(one.message)] for one in reader.incompatibilities(writer)]
            assert found == javas["incompatibilities"], f"pair {number} of seed {SEED}"
    assert compared > PAIRS // 6


def _information(message: str) -> str:
    if message.startswith("Unexpected exception"):
        return message.split("check: ", 1)[1]
    return message.split("additionalInfo:'", 1)[1][:-2]


def test_texts_and_messages_are_those_of_confluents_client() -> None:
    random = Random(SEED)
    pairs = []
    for _ in range(PAIRS // 4):
        schema = random_schema(random)
        pairs.append({"new": json.dumps(schema), "old": json.dumps(changed(random, schema))})
    compared = normalized = 0
    for pair, said in zip(pairs, asked("ConfluentAvro", pairs), strict=True):
        if "error" in said:
            continue
        new, old = (parse("AVRO", pair[which]) for which in ("new", "old"))
        compared += 1
        assert new.canonical == said["canonical"]
        if "normalized" in said and not _has_default_of_union(json.loads(pair["new"])):
            normalized += 1
            assert new.normalized == said["normalized"]
        assert new.is_equivalent(old) is said["equivalent"]
        for level in (Level.BACKWARD, Level.FORWARD, Level.FULL):
            messages = list(check(level, new, [(7, old)]).messages)
            assert messages == said[level.name]
    assert compared > len(pairs) * 0.7
    assert normalized > compared * 0.6


def _has_default_of_union(node: Any) -> bool:
    """The client has Avro 1.12.1, which looks at the first branch only, and does not know all times."""
    if isinstance(node, list):
        return any(map(_has_default_of_union, node))
    if not isinstance(node, dict):
        return isinstance(node, str) and node.startswith("local-timestamp")
    if isinstance(node.get("type"), list) and "default" in node:
        return True
    return any(map(_has_default_of_union, node.values()))


def test_values_are_resolved_as_java_resolves_them() -> None:
    """What was written with one schema is read with another, and written again: the bytes say what was read."""
    random = Random(SEED)
    asked_for: list[dict[str, str]] = []
    ours: list[bytes | None] = []
    while len(asked_for) < 3_000:
        schema = random_schema(random)
        try:
            writer, reader = (parse("AVRO", json.dumps(one), as_new=True) for one in (schema, changed(random, schema)))
            assert isinstance(writer, AvroSchema)
            assert isinstance(reader, AvroSchema)
            content = Encoder(encoding_plan(writer.type)).encode(random_value(random, writer.type))
        except (InvalidSchema, NoValue):
            continue
        if reader.incompatibilities(writer):
            continue  # what the rules refuse, each reads or refuses in its own way
        asked_for.append({"writer": writer.canonical, "reader": reader.canonical, "content": content.hex()})
        try:
            tree = Decoder(decoding_plan(writer.type, reader.type), None, True, True).decode(content)
            ours.append(Encoder(encoding_plan(_raw(reader.canonical))).encode(_named(tree, reader.type)))
        except CannotDecode:
            ours.append(None)
    read = 0
    for question, mine, said in zip(asked_for, ours, asked("AvroData", asked_for), strict=True):
        if "error" in said:
            continue  # Java's reader wants full names to be equal in places where its rules do not
        if mine is None:
            continue  # bytes that are read as a string and are no UTF-8: Java makes one of them all the same
        read += 1
        reader = _raw(question["reader"])
        decode = Decoder(decoding_plan(reader), None, True).decode  # maps come in Java's order
        assert repr(decode(mine)) == repr(decode(bytes.fromhex(said["content"]))) or (
            decode(mine) == decode(bytes.fromhex(said["content"]))
        ), question
    assert read > len(asked_for) * 0.9


def _raw(text: str) -> AvroType:
    """The type without logical types: values are written as they were read."""
    without = parse("AVRO", text.replace('"logicalType"', '"was"'))
    assert isinstance(without, AvroSchema)
    return without.type


def _named(value: Any, type: AvroType) -> Any:
    """A decoded tree with the names of branches instead of their numbers."""
    if isinstance(type, Union):
        index, inner = value
        branch = type.branches[index]
        named = _named(inner, branch)
        return named if branch.kind == "null" else (branch.full_name, named)
    if isinstance(type, Record):
        return {field.name: _named(value[field.name], field.type) for field in type.fields}
    if isinstance(type, Array):
        return [_named(one, type.items) for one in value]
    if isinstance(type, Map):
        return {key: _named(one, type.values) for key, one in value}
    return value
