"""Avro schemas and values from seeds: texts that say the same when read again, and two twins that never differ."""

import json
from contextlib import suppress
from random import Random
from typing import Any

import pyarrow
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.schemas.avro import _slow
from ottla.schemas.avro.arrow import ArrowDecoder
from ottla.schemas.avro.json_form import from_json_form, to_json_form
from ottla.schemas.avro.plan import decoding_plan, encoding_plan
from ottla.schemas.avro.schema import AvroSchema
from ottla.schemas.faults import CannotDecode
from ottla.schemas.schema import InvalidSchema, parse
from tests.property.schemas.random_avro import changed, random_schema
from tests.property.schemas.random_values import NoValue, damaged, random_value, untagged

SEEDS = st.integers(0, 2**32)


def random_pair(random: Random) -> tuple[AvroSchema, AvroSchema] | None:
    """A schema, and what it may have become; None if one of them is none."""
    schema = random_schema(random)
    try:
        one, other = (parse("AVRO", json.dumps(made)) for made in (schema, changed(random, schema)))
    except InvalidSchema:
        return None
    assert isinstance(one, AvroSchema)
    assert isinstance(other, AvroSchema)
    return one, other


@given(SEEDS)
@settings(max_examples=100)
def test_a_text_says_the_same_when_it_is_read_again(seed: int) -> None:
    pair = random_pair(Random(seed))
    if pair is None:
        return
    for schema in pair:
        again = parse("AVRO", schema.canonical)
        assert again.canonical == schema.canonical
        assert again.incompatibilities(schema) == schema.incompatibilities(schema)
        try:
            normal = schema.normalize()
        except InvalidSchema:
            continue  # a default that is no value has no normal form
        assert normal.normalized == normal.canonical
        assert isinstance(again, AvroSchema)
        assert again.parsing_form == schema.parsing_form
        # Confluent's normal form moves a name of the empty namespace into the one around it. So does ours.
        if '"namespace":""' not in schema.canonical:
            assert normal.parsing_form == schema.parsing_form


@given(SEEDS)
@settings(max_examples=100)
def test_what_is_not_sound_is_refused_and_nothing_else_happens(seed: int) -> None:
    schema = random_schema(Random(seed), unsound=0.05)
    with suppress(InvalidSchema):
        parse("AVRO", json.dumps(schema), as_new=True)


def outcome(call: Any, *arguments: Any) -> Any:
    try:
        return call(*arguments)
    except CannotDecode as error:
        return f"refused: {error}"


@pytest.fixture(scope="module")
def fast() -> Any:
    return pytest.importorskip("ottla.schemas.avro._fast", reason="this installation has no compiled decoder")


@given(seed=SEEDS)
@settings(max_examples=120)
def test_the_twins_never_differ(fast: Any, seed: int) -> None:
    random = Random(seed)
    pair = random_pair(random)
    if pair is None:
        return
    writer, reader = pair[0].type, pair[1].type
    encoding = encoding_plan(writer)
    decoders = [(twin.Decoder(decoding_plan(writer)), twin.Encoder(encoding)) for twin in (fast, _slow)]
    try:
        resolved = decoding_plan(writer, reader)
    except CannotDecode:
        resolved = None
    trees = [twin.Decoder(resolved, None, True, True) for twin in (fast, _slow)] if resolved is not None else []
    for _ in range(4):
        try:
            value = random_value(random, writer)
        except NoValue:
            continue
        content, twins_content = (encoder.encode(value, b"pre") for _, encoder in decoders)
        assert content == twins_content
        read, twins_read = (decoder.decode(content, 3) for decoder, _ in decoders)
        assert _same(read, twins_read)
        assert read == untagged(value)
        for data in (content[3:], *(damaged(random, content[3:]) for _ in range(3))):
            first, second = (outcome(decoder.decode, data) for decoder, _ in decoders)
            assert _same(first, second)
            if trees:
                first, second = (outcome(decoder.decode, data) for decoder in trees)
                assert _same(first, second)


@given(seed=SEEDS)
@settings(max_examples=60)
def test_columns_are_the_same_from_both_twins(fast: Any, seed: int) -> None:
    random = Random(seed)
    pair = random_pair(random)
    if pair is None:
        return
    writer, reader = pair[0].type, pair[1].type
    try:
        decoders = [ArrowDecoder(reader, nullable=True, compiled=compiled) for compiled in (True, False)]
        for decoder in decoders:
            decoder.bind(writer)
    except CannotDecode:
        return
    encoder = _slow.Encoder(encoding_plan(writer))
    for _ in range(5):
        try:
            content = encoder.encode(random_value(random, writer))
        except NoValue:
            continue
        for data in (content, damaged(random, content)):
            first, second = (outcome(decoder.append, writer, data) for decoder in decoders)
            assert first == second
        if random.random() < 0.2:
            for decoder in decoders:
                decoder.append_null()
    batch, twins_batch = (decoder.finish() for decoder in decoders)
    batch.validate()
    assert batch.schema == twins_batch.schema
    rows, twins_rows = ([_value(row) for row in one.to_struct_array()] for one in (batch, twins_batch))
    assert _same(rows, twins_rows)


def _value(scalar: Any) -> Any:
    """As `as_py`, with days and times as numbers: Python's calendar does not reach all of them."""
    if not scalar.is_valid:
        return None
    if isinstance(scalar, pyarrow.StructScalar):
        return [(name, _value(value)) for name, value in scalar.items()]
    if isinstance(scalar, pyarrow.ListScalar):  # a map is a list of entries
        return [_value(value) for value in scalar.values]
    return scalar.value if hasattr(scalar, "value") else scalar.as_py()


def _same(one: Any, other: Any) -> bool:
    """Equal, in order and in type, and NaN is NaN."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(_same, one, other))
    return bool(one == other) or (one != one and other != other)


@given(SEEDS)
@settings(max_examples=150)
def test_bytes_become_json_and_the_same_bytes_again(seed: int) -> None:
    random = Random(seed)
    pair = random_pair(random)
    if pair is None:
        return
    try:
        content = _slow.Encoder(encoding_plan(pair[0].type)).encode(random_value(random, pair[0].type))
    except (NoValue, InvalidSchema):
        return
    said = json.loads(json.dumps(to_json_form(pair[0].type, content), allow_nan=False))
    assert from_json_form(pair[0].type, said) == content
    for wrong in (damaged(random, content) for _ in range(5)):
        with suppress(CannotDecode):
            json.dumps(to_json_form(pair[0].type, wrong))
