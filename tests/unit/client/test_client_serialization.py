"""Serializers by short name, by Java's name, or as a callable."""

from typing import Any

import pytest

from ottla.client.serialization import deserializer, serializer


@pytest.mark.parametrize(
    ("name", "value", "content"),
    [
        ("bytes", b"\x00\x01", b"\x00\x01"),
        ("string", "grüß", "grüß".encode()),
        ("json", {"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'.encode()),
        ("short", -2, b"\xff\xfe"),
        ("integer", 1, b"\0\0\0\1"),
        ("long", -1, b"\xff" * 8),
        ("double", 1.0, b"\x3f\xf0\0\0\0\0\0\0"),
        ("org.apache.kafka.common.serialization.StringSerializer", "a", b"a"),
        ("org.apache.kafka.common.serialization.ByteArraySerializer", b"a", b"a"),
        ("org.apache.kafka.common.serialization.LongSerializer", 1, b"\0" * 7 + b"\1"),
    ],
)
def test_a_value_becomes_bytes_and_comes_back(name: str, value: Any, content: bytes) -> None:
    assert serializer(name)("t", value, []) == content
    assert deserializer(name.replace("Serializer", "Deserializer"))("t", content, ()) == value


@pytest.mark.parametrize("value", [float("nan"), float("inf"), [1, {"a": float("-inf")}]])
def test_numbers_that_json_has_not_are_not_written(value: Any) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        serializer("json")("t", value, [])


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b"NaN", "NaN is not JSON"),
        (b'{"a":[-Infinity]}', "-Infinity is not JSON"),
        (b"[1,1e400]", "1e400 is too large for a float"),
    ],
)
def test_numbers_that_json_has_not_are_not_read(content: bytes, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        deserializer("json")("t", content, ())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_json_is_read_in_each_of_its_encodings(encoding: str) -> None:
    assert deserializer("json")("t", '{"ü": 1.5}'.encode(encoding), ()) == {"ü": 1.5}


def test_bytes_are_the_default_and_nothing_else_passes_for_them() -> None:
    assert serializer(None)("t", memoryview(b"a"), []) == b"a"
    with pytest.raises(TypeError, match="expected bytes, got str"):
        serializer(None)("t", "a", [])


def test_any_callable_is_a_serializer() -> None:
    def shout(topic: str, value: str, headers: list[tuple[str, bytes | None]]) -> bytes:
        headers.append(("by", topic.encode()))
        return value.upper().encode()

    headers: list[tuple[str, bytes | None]] = []
    assert serializer(shout)("t", "a", headers) == b"A"
    assert headers == [("by", b"t")]


@pytest.mark.parametrize("given", ["avro", 5])
def test_what_is_no_serializer_is_refused(given: object) -> None:
    with pytest.raises(ValueError, match="one of bytes, string, json"):
        serializer(given)
