"""Runs the decoders of Protobuf and JSON over values that are damaged, beside the libraries that say what is sound.

    python hostile_values.py FIRST_SEED CASES

A program of its own, so that a test outlives it: what decodes columns is compiled, and could end the process.

What must hold of each batch: values are decoded or refused, nothing else; one that the library refuses is refused; a
value that is whole says the same whatever is beside it.
"""

import json
import sys
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

from google.protobuf.message import DecodeError

from ottla.schemas import Json, Protobuf
from ottla.schemas.faults import CannotDecode
from ottla.schemas.json_schema.arrow import ArrowDecoder as JsonColumns
from ottla.schemas.protobuf.arrow import ArrowDecoder as ProtobufColumns
from ottla.schemas.protobuf.schema import ProtobufSchema
from ottla.schemas.registry_port import SchemaToRegister
from ottla.schemas.schema import parse
from ottla.schemas.serializing.framing import prefix, read_frame
from tests.property.schemas.random_proto import IMPORTED, random_proto
from tests.property.schemas.random_values import damaged
from tests.unit.schemas.registry_in_memory import RegistryInMemory

JSON = """{"type": "object", "properties": {
    "id": {"type": "integer"}, "name": {"type": ["null", "string"]}, "at": {"type": "string", "format": "date-time"},
    "price": {"type": "number"}, "paid": {"type": "boolean"}, "tags": {"type": "array", "items": {"type": "string"}},
    "inner": {"type": "object", "properties": {"day": {"type": "string", "format": "date"}, "n": {"type": "integer"}}}}}
"""


def main(first_seed: int, cases: int) -> None:
    for seed in range(first_seed, first_seed + cases):
        sys.stderr.write(f"\rseed {seed}")  # The last one that is told of is the one to look at.
        random = Random(seed)
        run_json(random)
        run_protobuf(random)
        run_frames(random)
        run_objects(random)
    sys.stdout.write(f"{cases} cases\n")


# --- Protobuf ---


def run_protobuf(random: Random) -> None:
    schema = parse("PROTOBUF", random_proto(random), {"lib/shared.proto": IMPORTED})
    assert isinstance(schema, ProtobufSchema)
    try:
        decoder = ProtobufColumns(schema)
    except CannotDecode:
        return  # Nothing that is recursive has columns.
    assert schema.name is not None
    made = schema.message_class(schema.name)
    if not made.DESCRIPTOR.fields:
        return
    sound = [random_message(random, made()).SerializePartialToString() for _ in range(3)]
    hostile = [hostile_message(random, random.choice(sound)) for _ in range(6)]

    def said_again(content: bytes) -> bytes | None:
        try:
            again: bytes = made.FromString(content).SerializePartialToString()
        except DecodeError:
            return None
        return again

    check_plain_fields(decoder, made, sound)
    check(decoder, sound, hostile, said_again, random, passes_over_more=True)


def check_plain_fields(decoder: ProtobufColumns, made: Any, sound: Sequence[bytes]) -> None:
    """What is no message and no enum is as the library says."""
    for content in sound:
        decoder.append(content)
    batch = decoder.finish()
    messages = [made.FromString(content) for content in sound]
    for field in made.DESCRIPTOR.fields:
        if field.message_type is not None:
            assert field.is_repeated or batch.column(field.name).is_valid().to_pylist() == [
                message.HasField(field.name) for message in messages
            ], field.name
        elif field.enum_type is None:
            expected = [
                list(getattr(message, field.name))
                if field.is_repeated
                else getattr(message, field.name)
                if not field.has_presence or message.HasField(field.name)
                else None
                for message in messages
            ]
            assert batch.column(field.name).to_pylist() == expected, field.name


def random_message(random: Random, message: Any, depth: int = 0) -> Any:
    """With some of its fields set."""
    for field in message.DESCRIPTOR.fields:
        if random.random() < 0.3:
            continue
        is_map = field.message_type is not None and field.message_type.GetOptions().map_entry
        for _ in range(random.randrange(3) if field.is_repeated else 1):
            if is_map:
                entry = field.message_type.fields_by_name
                key = scalar(random, entry["key"])
                if entry["value"].message_type is None:
                    getattr(message, field.name)[key] = scalar(random, entry["value"])
                elif depth < 3:
                    random_message(random, getattr(message, field.name)[key], depth + 1)
            elif field.message_type is None:
                value = scalar(random, field)
                if field.is_repeated:
                    getattr(message, field.name).append(value)
                else:
                    setattr(message, field.name, value)
            elif depth < 3:
                inner = getattr(message, field.name)
                random_message(random, inner.add() if field.is_repeated else inner, depth + 1)
                if not field.is_repeated:
                    inner.SetInParent()
    return message


def scalar(random: Random, field: Any) -> Any:
    if field.enum_type is not None:
        return random.choice(field.enum_type.values).number
    match field.cpp_type:
        case field.CPPTYPE_INT32:
            return random.choice((0, 1, -1, 2**31 - 1, -(2**31)))
        case field.CPPTYPE_INT64:
            return random.choice((0, 1, -1, 2**63 - 1, -(2**63)))
        case field.CPPTYPE_UINT32:
            return random.choice((0, 1, 2**32 - 1))
        case field.CPPTYPE_UINT64:
            return random.choice((0, 1, 2**64 - 1))
        case field.CPPTYPE_BOOL:
            return random.random() < 0.5
        case field.CPPTYPE_STRING if field.type == field.TYPE_BYTES:
            return random.randbytes(random.randrange(5))
        case field.CPPTYPE_STRING:
            return random.choice(("", "ä", "text", "\0"))
        case _:
            return random.choice((0.0, -1.5, 1e30))


def hostile_message(random: Random, content: bytes) -> bytes:
    number = bytes([random.randrange(1, 16) << 3])
    match random.randrange(6):
        case 0:  # a length that is not there
            return (
                content
                + bytes([number[0] | 2])
                + random.choice((b"\x7f", b"\xff\xff\xff\xff\x07", b"\xff" * 9 + b"\x01"))
            )
        case 1:  # a number that does not end
            return content + number + b"\xff" * random.choice((9, 10, 11, 40))
        case 2:  # groups within groups; protobuf goes 100 deep, and what is not long may go deeper here
            deep = random.choice((3, 99, 5_000, 200_000))
            return content + bytes([number[0] | 3]) * deep + bytes([number[0] | 4]) * random.choice((deep, 1))
        case 3:  # lengths within lengths
            for _ in range(random.choice((3, 90, 200))):
                content = bytes([number[0] | 2]) + varint(len(content)) + content
            return content
        case _:
            return damaged(random, content)


def varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


# --- JSON ---


def run_json(random: Random) -> None:
    decoder = JsonColumns(parse("JSON", JSON, {}))  # type: ignore[arg-type]
    sound = [json.dumps(random_document(random), ensure_ascii=random.random() < 0.5).encode() for _ in range(3)]
    hostile = [hostile_document(random, random.choice(sound)) for _ in range(6)]
    check(decoder, sound, hostile, said_again_in_json, random)


def said_again_in_json(content: bytes) -> bytes | None:
    try:
        json.loads(str(content, "utf-8"))
    except RecursionError:
        pass  # Python does not say.
    except ValueError:
        return None
    return content


def random_document(random: Random) -> dict[str, Any]:
    document = {
        "id": random.choice((0, -1, 2**63 - 1)),
        "name": random.choice(
            (None, "", "ä", 'quote " and \\ and \n', "\ud83d\ude00".encode("utf-16", "surrogatepass").decode("utf-16"))
        ),
        "at": "2024-01-02T03:04:05Z",
        "price": random.choice((0.0, 1.5, -1e300, 3)),
        "paid": random.random() < 0.5,
        "tags": ["a", "]", "{"][: random.randrange(4)],
        "inner": {"day": "2024-02-29", "n": random.randrange(9)},
        "more": {"of": [1, {"what": None}]},
    }
    return {name: value for name, value in document.items() if random.random() < 0.8}


def hostile_document(random: Random, content: bytes) -> bytes:
    match random.randrange(8):
        case 0:  # more than one document, or less
            return random.choice((content + content, b"", b" ", content[:-1], content + b"]}\n{", b"]", content + b","))
        case 1:
            deep = random.choice((10, 1_500, 100_000))
            return b'{"more":' + b"[" * deep + b"]" * random.choice((deep, deep - 1, 0)) + b"}"
        case 2:
            return content.replace(b"1", random.choice((b"NaN", b"-", b"1" * 400, b"01", b"1e999", b"0x1")))
        case 3:
            return content.replace(b'"', random.choice((b"'", b"", b"\xff", b'"\\ud800', b'"\x01')), 1)
        case 4:
            return random.choice((b"null", b"[]", b"7", b'"text"', b"true", b"\xef\xbb\xbf" + content))
        case _:
            return damaged(random, content)


# --- what must hold ---


def check(
    decoder: Any,
    sound: Sequence[bytes],
    hostile: Sequence[bytes],
    said_again: Callable[[bytes], bytes | None],
    random: Random,
    *,
    passes_over_more: bool = False,
) -> None:
    """`said_again` is the library: the same value once more, or None if it refuses it. `passes_over_more`: what the
    library refuses may be read all the same, if what is wrong is in a field that nobody knows."""
    expected = decoded(decoder, sound, "raise")
    assert expected is not None, "what is whole is decoded"
    assert len(expected) == len(sound)
    mixed = [(content, None) for content in hostile] + [(content, place) for place, content in enumerate(sound)]
    random.shuffle(mixed)
    rows = decoded(decoder, [content for content, _ in mixed], "null")
    assert rows is not None
    assert len(rows) == len(mixed)
    for (content, place), row in zip(mixed, rows, strict=True):
        if place is not None:
            assert row == expected[place], f"{content!r} reads differently beside others"
    for content in hostile:
        again, alone = said_again(content), decoded(decoder, [content], "raise")
        if again is None:
            assert alone is None or passes_over_more, f"{content[:200]!r} is refused elsewhere"
        elif alone is not None:
            assert alone == decoded(decoder, [again], "raise"), (
                f"{content[:200]!r} reads as {alone}, not {again[:200]!r}"
            )


def decoded(decoder: Any, values: Sequence[bytes], on_error: str) -> list[Any] | None:
    for value in values:
        decoder.append(value)
    try:
        batch = decoder.finish(on_error)
    except CannotDecode:
        return None
    batch.validate(full=True)
    return [batch.slice(row, 1).columns for row in range(batch.num_rows)]


def run_frames(random: Random) -> None:
    """Ids and message indexes before a record."""
    indexes = [random.randrange(300) for _ in range(random.randrange(1, 5))]
    content = damaged(random, prefix(random.getrandbits(31), indexes) + b"value")
    try:
        frame = read_frame(content, (), False, True)
    except CannotDecode:
        return
    assert 0 < frame.start <= len(content)
    assert len(frame.indexes) <= len(content)


def run_objects(random: Random) -> None:
    """The serializers, as programs use them."""
    registry = RegistryInMemory()
    document = random_document(random)
    as_json = Json(registry, JSON, validate=random.random() < 0.5)
    framed = as_json.serialize("json", document)
    for _ in range(4):
        content = hostile_document(random, framed[5:])
        try:
            as_json.deserialize("json", framed[:5] + content)
        except CannotDecode:
            continue
        assert said_again_in_json(content) is not None, f"{content[:200]!r} is refused elsewhere"
    text = random_proto(random)
    schema = parse("PROTOBUF", text, {"lib/shared.proto": IMPORTED})
    assert isinstance(schema, ProtobufSchema)
    made = schema.message_class(schema.name)
    if 'import "lib/' in text:
        return
    registered = registry.register("proto", SchemaToRegister("PROTOBUF", text))
    protobuf = Protobuf(registry, value_type=random.choice((None, dict)))
    for _ in range(4):
        content = hostile_message(random, random_message(random, made()).SerializePartialToString())
        try:
            protobuf.deserialize("proto", prefix(registered.id, [0]) + content)
        except CannotDecode:
            continue
        made.FromString(content)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
