"""Converters under Kafka's class names, and under the short names that a worker's plugins have.

Those that use a schema registry are given a client of it: `make_converter(…, registry=…)`. They are loaded when one is
used: with the libraries of schemas they are a third of what a connector's process would load.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

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

if TYPE_CHECKING:
    from ottla.connect.converters.registered import RegistryMaker


class Kind(NamedTuple):
    """A converter that there is: its options, and what makes it, alone or on a registry."""

    class_name: str
    own_options: tuple[Setting, ...] = ()
    make: Callable[[Values], Converter] | None = None
    """None: it is made on a registry."""
    module: str = ""
    """Where one is that uses a registry: `OPTIONS`, and a class of the same name."""

    @property
    def options(self) -> tuple[Setting, ...]:
        if self.make is not None:
            return self.own_options
        found: tuple[Setting, ...] = self._loaded().OPTIONS
        return found

    def _loaded(self) -> Any:
        return import_module(self.module)

    def made_on(self, values: Values, registry: Any, *, is_key: bool) -> Converter:
        made: Converter = getattr(self._loaded(), self.class_name.rpartition(".")[2])(values, registry, is_key)
        return made


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
    Kind("io.confluent.connect.avro.AvroConverter", module="ottla.connect.converters.avro"),
    Kind("io.confluent.connect.protobuf.ProtobufConverter", module="ottla.connect.converters.protobuf"),
    Kind("io.confluent.connect.json.JsonSchemaConverter", module="ottla.connect.converters.json_schema"),
)
"""One row for each converter."""


def aliases(class_name: str) -> tuple[str, ...]:
    """The short names: `JsonConverter`, and without its kind `Json`."""
    simple = class_name.rpartition(".")[2]
    return simple, simple.removesuffix("Converter")


_BY_NAME: Final = {name: kind for kind in KINDS for name in (kind.class_name, *aliases(kind.class_name))}


def needs_registry(name: str) -> bool:
    """Whether the converter of this name uses a schema registry."""
    kind = _BY_NAME.get(name.strip())
    return kind is not None and kind.make is None


def make_converter(
    name: str,
    options: Mapping[str, str | None],
    *,
    is_key: bool = False,
    registry: "RegistryMaker | None" = None,
) -> Converter:
    """A converter by its class name or a short one, with these options: what stands behind `value.converter.` in a
    configuration. `registry` makes a client from these options; it is called for converters that need one, and the
    caller closes the client. Raises `InvalidOption`."""
    kind = _BY_NAME.get(name.strip())
    if kind is None:
        raise InvalidOption(f"Class {name.strip()} could not be found.")
    if kind.make is not None:
        return kind.make(read_options(kind.options, options))
    from ottla.connect.converters.registered import refuse_unknown

    refuse_unknown(kind.class_name, kind.options, options)
    values = read_options(kind.options, options)
    if registry is None:
        raise InvalidOption(f"{kind.class_name} needs a schema registry, and there is none here")
    return kind.made_on(values, registry(options), is_key=is_key)
