"""Converters under Kafka's class names, and under the short names that a worker's plugins have."""

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ottla.config.parse import Values
from ottla.config.setting import Setting
from ottla.connect.converters import json as json_converter
from ottla.connect.converters.converter import Converter
from ottla.connect.converters.json import JsonConverter
from ottla.connect.converters.plain import (
    STRING_OPTIONS,
    BooleanConverter,
    ByteArrayConverter,
    NumberConverter,
    StringConverter,
)
from ottla.connect.data.schema import Type
from ottla.connect.options import InvalidOption, read_options


class Kind(NamedTuple):
    """A converter that there is: its options, and what makes it."""

    class_name: str
    options: tuple[Setting, ...]
    make: Callable[[Values], Converter]


def _numbers(class_name: str, name: str, type: Type, code: str) -> Kind:
    return Kind(f"org.apache.kafka.connect.converters.{class_name}", (), lambda _: NumberConverter(name, type, code))


KINDS: Final = (
    Kind("org.apache.kafka.connect.storage.StringConverter", STRING_OPTIONS, StringConverter),
    Kind("org.apache.kafka.connect.converters.ByteArrayConverter", (), lambda _: ByteArrayConverter()),
    Kind("org.apache.kafka.connect.converters.BooleanConverter", (), lambda _: BooleanConverter()),
    _numbers("ShortConverter", "short", Type.INT16, "h"),
    _numbers("IntegerConverter", "integer", Type.INT32, "i"),
    _numbers("LongConverter", "long", Type.INT64, "q"),
    _numbers("FloatConverter", "float", Type.FLOAT32, "f"),
    _numbers("DoubleConverter", "double", Type.FLOAT64, "d"),
    Kind("org.apache.kafka.connect.json.JsonConverter", json_converter.OPTIONS, JsonConverter),
)
"""One row for each converter."""


def aliases(class_name: str) -> tuple[str, ...]:
    """The short names: `JsonConverter`, and without its kind `Json`."""
    simple = class_name.rpartition(".")[2]
    return simple, simple.removesuffix("Converter")


_BY_NAME: Final = {name: kind for kind in KINDS for name in (kind.class_name, *aliases(kind.class_name))}


def make_converter(name: str, options: Mapping[str, str | None]) -> Converter:
    """A converter by its class name or a short one, with these options: what stands behind `value.converter.` in a
    configuration. Raises `InvalidOption`."""
    kind = _BY_NAME.get(name.strip())
    if kind is None:
        raise InvalidOption(f"Class {name.strip()} could not be found.")
    return kind.make(read_options(kind.options, options))
