"""How values are decoded: `value.format` is raw, string, json, or the name of a class of the user's own; or avro,
protobuf or json with `schema.registry.url` (see `ottla.spark.schemas`).

A class is named as `package.module:Name` and is called with the options that begin with `value.decoder.`, without that:

    class Decoder:
        value_type = "STRUCT<id: BIGINT, name: STRING>"           # in Spark's words; the type of the column `value`

        def __init__(self, options: Mapping[str, str]) -> None: ...

        def decode(self, values: pyarrow.BinaryArray) -> pyarrow.Array: ...

`decode` gives a value for each value, null for null, in the Arrow type that Spark has for `value_type`. If one of them
cannot be decoded it raises `ValueError`; the source finds out which one. So a decoder for Avro or Protobuf needs to
know nothing of bad records. It must be importable on the executors.
"""

import json
import re
from collections.abc import Mapping
from enum import Enum
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
from pyspark.sql.types import StructType

from ottla.spark.options import DECODER_PREFIX, REGISTRY_PREFIX, OptionError, Options

if TYPE_CHECKING:
    from ottla.schemas.registry_port import RegisteredSchema
    from ottla.spark.schemas.schema_options import WantedSchemas

RAW: Final = "raw"
STRING: Final = "string"
JSON: Final = "json"
_OF_REGISTRIES: Final = ("avro", "protobuf")
_TYPE_NAMES: Final = re.compile(
    "tinyint|byte|smallint|short|int|integer|bigint|long|float|real|double|decimal|dec|numeric|boolean|string|varchar|char"
    "|binary|date|timestamp|timestamp_ntz|timestamp_ltz|interval|struct|array|map|variant"
)


class OnError(Enum):
    FAIL = "fail"
    DROP = "drop"
    DEAD_LETTER = "deadLetter"


class Decoder(Protocol):
    """What turns a column of bytes into a column of values. Raises `ValueError` if one cannot be decoded."""

    def decode(self, values: pa.Array) -> pa.Array: ...


class ValueOptions(NamedTuple):
    format: str
    schema: str | None
    on_error: OnError
    dead_letter_topic: str | None
    of_decoder: Mapping[str, str]
    """For a decoder of the user's own, in lower case."""
    wanted: "WantedSchemas | None" = None
    """Of a registry."""
    found: "tuple[RegisteredSchema, ...]" = ()
    """What these were when the query was planned."""


def read_value_options(options: Options, topics: tuple[str, ...] | None = None) -> ValueOptions:
    text = options.text("value.format") or RAW
    known = {RAW, STRING, JSON, *_OF_REGISTRIES}
    value_format = text.lower() if text.lower() in known else text
    if value_format not in known and not re.fullmatch(r"[\w.]+:\w+", value_format):
        raise OptionError(
            f"option value.format is {text!r}, and must be raw, string, json, avro, protobuf, or package.module:Class "
            "of a decoder"
        )
    wanted = None
    if value_format in _OF_REGISTRIES or options.beginning_with(REGISTRY_PREFIX):
        from ottla.spark.schemas.schema_options import read_wanted

        wanted = read_wanted(options, value_format, topics)
    schema = options.text("value.schema")
    if value_format == JSON and schema is None and wanted is None:
        raise OptionError("option value.schema is missing: value.format=json needs it, as in 'id BIGINT, name STRING'")
    if value_format in (RAW, STRING, *_OF_REGISTRIES) and schema is not None:
        raise OptionError(f"option value.schema has no meaning with value.format={value_format}: leave it out")
    on_error = options.choice("value.onError", {one.value: one for one in OnError}, OnError.FAIL)
    topic = options.text("value.deadLetterTopic")
    if (on_error is OnError.DEAD_LETTER) != (topic is not None):
        raise OptionError("options value.onError=deadLetter and value.deadLetterTopic belong together: give both")
    if value_format == RAW and options.text("value.onError") is not None:
        raise OptionError("option value.onError has no meaning with value.format=raw: bytes can always be read")
    of_decoder = options.beginning_with(DECODER_PREFIX)
    if of_decoder and value_format in known:
        raise OptionError(f"options {DECODER_PREFIX}… are for a decoder of your own, and value.format={value_format}")
    return ValueOptions(value_format, schema, on_error, topic, of_decoder, wanted)


def with_schemas(options: ValueOptions) -> ValueOptions:
    """The same with the schemas that a registry has for them now."""
    if options.wanted is None:
        return options
    from ottla.spark.schemas.schema_options import find_schemas

    return options._replace(found=find_schemas(options.wanted))


def value_type_ddl(options: ValueOptions) -> str:
    """The type of the column `value`, as Spark's parser reads it."""
    if options.format == RAW:
        return "BINARY"
    if options.format == STRING:
        return "STRING"
    if options.wanted is not None and options.schema is None:
        return _registered_ddl(options)
    if options.format == JSON:
        return _struct_ddl(options.schema or "")
    value_type = getattr(_custom(options), "value_type", None)
    if not isinstance(value_type, str):
        raise OptionError(f"option value.format names {options.format}, which has no `value_type` in Spark's words")
    return value_type


def _registered_ddl(options: ValueOptions) -> str:
    from ottla.schemas.json_schema.schema import JsonSchema
    from ottla.spark.schemas.decoding import SchemaValues, parsed
    from ottla.spark.schemas.spark_types import json_schema_ddl

    assert options.wanted is not None
    try:
        if options.wanted.kind == "JSON":
            schema = parsed(options.found[0], "JSON")
            assert isinstance(schema, JsonSchema)
            return json_schema_ddl(schema.tree)
        return SchemaValues(options.wanted, options.found).ddl()
    except ValueError as problem:
        raise problem if isinstance(problem, OptionError) else OptionError(f"option value.format: {problem}") from None


def make_decoder(options: ValueOptions, arrow_type: pa.DataType) -> Decoder | None:
    """None for bytes as they are."""
    if options.format == RAW:
        return None
    if options.format == STRING:
        return _Text()
    if options.wanted is not None:
        from ottla.spark.schemas.decoding import FramedJson, SchemaValues

        return (
            FramedJson(arrow_type)
            if options.format == JSON
            else SchemaValues(options.wanted, options.found, arrow_type)
        )
    if options.format == JSON:
        from ottla.schemas.json_schema.arrow import JsonValues

        return JsonValues(arrow_type)
    decoder: Decoder = _custom(options)
    return decoder


class _Text:
    def decode(self, values: pa.Array) -> pa.Array:
        return values.cast(pa.string())  # checks that it is UTF-8, and copies nothing


def _custom(options: ValueOptions) -> Any:
    module, _, name = options.format.partition(":")
    try:
        found = getattr(import_module(module), name)
    except (ImportError, AttributeError) as problem:
        raise OptionError(f"option value.format names {options.format}, which cannot be imported: {problem}") from None
    return found(options.of_decoder)


def _struct_ddl(text: str) -> str:
    """The fields of a struct, given in Spark's words or as the JSON of a schema. Spark's parser looks closer later."""
    if text.startswith("{"):
        try:
            return StructType.fromJson(json.loads(text)).simpleString()
        except (ValueError, KeyError, TypeError) as problem:
            raise OptionError(f"option value.schema is not a schema in JSON: {problem}") from None
    inner = re.fullmatch(r"(?is)struct\s*<(.*)>", text)
    fields = inner[1] if inner else text
    for field in _fields(fields):
        words = re.split(r"[\s:]+", field.strip(), maxsplit=1)
        type_name = re.match(r"[a-z_]*", words[-1].lower())
        if len(words) < 2 or type_name is None or not _TYPE_NAMES.fullmatch(type_name[0]):
            raise OptionError(
                f"option value.schema is {text!r}, in which {field.strip()!r} is no field with a type of Spark's: "
                "it is written as 'id BIGINT, name STRING'"
            )
    return f"STRUCT<{fields}>"


def _fields(text: str) -> list[str]:
    """Divided at the commas that are within no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "<(") - (letter in ">)")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
