"""`kafka-avro-console-producer`, `kafka-avro-console-consumer`, and those for Protobuf and JSON Schema.

They are Kafka's console tools with a registry: what is read and printed is JSON, Avro's with the branches of unions
named. Their properties are Confluent's.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from ottla.cli.console import (
    console_consumer,
    console_consumer_options,
    console_producer,
    console_producer_options,
)
from ottla.cli.console.formatters import DefaultFormatter, Formatter, Headers
from ottla.cli.console.line_reader import LineError, LineReader, ParsedLine
from ottla.cli.failures import Terse
from ottla.cli.options.checks import UsageError, run_program
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program
from ottla.cli.registry.record_schemas import SchemaDecoder, SchemaEncoder, open_registry
from ottla.client.schema_registry.registry_errors import RegistryError
from ottla.config.parse import ConfigError
from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.registry_port import Reference, RegisteredSchema, SchemaToRegister
from ottla.schemas.schema import SchemaKind

if TYPE_CHECKING:
    from ottla.client.blocking.schema_registry import SchemaRegistryClient

_KINDS: Final[dict[str, SchemaKind]] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json-schema": "JSON"}
_URL: Final = "schema.registry.url"
_DEFAULT_URL: Final = "http://localhost:8081"
_REGISTRY: Final = ("schema.registry.", "basic.auth.", "bearer.auth.")
_STRING: Final = "org.apache.kafka.common.serialization.String"
_PROPERTIES: Final = (
    " With a registry: schema.registry.url=http://localhost:8081, basic.auth.user.info, and other settings of its "
    "client. "
)
_READER: Final = (
    "value.schema, value.schema.file or value.schema.id; value.refs; value.subject; the same for keys, or "
    "key.serializer=string; auto.register=true, use.latest.version=false, normalize.schemas=false; message.name for "
    "Protobuf."
)
_FORMATTER: Final = "print.schema.ids=false, schema.id.separator=tab; key.deserializer=string for keys that are text."


def main(arguments: list[str]) -> int:
    """The first argument is which of them: avro-console-producer and so on."""
    kind, _, which = arguments[0].partition("-console-")
    if which == "producer":
        run = partial(_produce, _KINDS[kind])
        program = _program(console_producer_options.PROGRAM, kind, "reader-property", _READER)
    else:
        run = partial(_consume, _KINDS[kind])
        program = _program(console_consumer_options.PROGRAM, kind, "formatter-property", _FORMATTER)
    return run_program(program, arguments[1:], run, help_with_options=True)


def _program(base: Program, kind: str, option: str, more: str) -> Program:
    def described(one: Option) -> Option:
        return one._replace(help=one.help + _PROPERTIES + more) if one.name == option else one

    name = base.name.replace("console", f"{kind}-console")
    summary = f"{base.summary[:-1]}, as JSON, with schemas of a registry."
    return Program(name, summary, tuple(map(described, base.options)))


def _registry(properties: dict[str, str]) -> SchemaRegistryClient:
    """Takes the registry's settings out of the properties."""
    settings = {name: properties.pop(name) for name in list(properties) if name.startswith(_REGISTRY)}
    settings.setdefault(_URL, _DEFAULT_URL)
    try:
        return open_registry(settings)
    except ConfigError as problem:
        raise UsageError(str(problem)) from None


def _is_true(properties: dict[str, str], name: str, default: bool) -> bool:
    return properties.pop(name, str(default)).strip().lower() == "true"


# --- the consumer ---


def _consume(kind: SchemaKind, given: Given) -> int:
    return console_consumer.run(given, _formatter)


def _formatter(given: Given) -> Formatter:
    properties = console_consumer.formatter_properties(given)
    registry = _registry(properties)
    shows_ids = _is_true(properties, "print.schema.ids", False)
    separator = properties.pop("schema.id.separator", "\t").encode()
    decodes_keys = "key.deserializer" not in properties
    if "value.deserializer" in properties:
        raise UsageError("value.deserializer: values are decoded by their schemas; leave it out")
    try:
        shown = DefaultFormatter(properties)
    except Terse as problem:
        raise UsageError(str(problem)) from None
    shown.show_value = _Shown(SchemaDecoder(registry, names_branches=True), separator if shows_ids else None)
    if decodes_keys:
        keys = SchemaDecoder(registry, is_key=True, names_branches=True)
        shown.show_key = _Shown(keys, separator if shows_ids else None)
    return shown


class _Shown:
    def __init__(self, decoder: SchemaDecoder, separator: bytes | None) -> None:
        self._decoder = decoder
        self._separator = separator

    def __call__(self, topic: str, content: bytes, headers: Headers) -> bytes:
        value = self._decoder(topic, content, headers)
        line = json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()
        if self._separator is None:
            return line
        return line + self._separator + str(self._decoder.id_of(content, headers)).encode()


# --- the producer ---


def _produce(kind: SchemaKind, given: Given) -> int:
    return console_producer.run(given, partial(_SchemaReader, kind, given.get("topic") or ""))


class _SchemaReader:
    """Lines of JSON to records. A line that its schema refuses ends the tool, as the one without schemas ends."""

    def __init__(self, kind: SchemaKind, topic: str, properties: dict[str, str]) -> None:
        registry = _registry(properties)
        options: dict[str, bool] = {
            "register": _is_true(properties, "auto.register", True),
            "latest": _is_true(properties, "use.latest.version", False),
            "normalize": _is_true(properties, "normalize.schemas", False),
        }
        message = properties.pop("message.name", None)
        try:
            self._value = SchemaEncoder(
                _schema(registry, kind, properties, f"{topic}-value", "value", options), message
            )
            self._key: SchemaEncoder | None = None
            serializer = properties.pop("key.serializer", None)
            if serializer is not None and serializer.removeprefix(_STRING).removesuffix("Serializer") not in (
                "",
                "string",
            ):
                raise UsageError(f"key.serializer is {serializer}: keys are text (string), or of key.schema")
            names = [name for name in properties if name.startswith("key.") and name != "key.separator"]
            if serializer is None and (names or properties.get("parse.key", "").strip().lower() == "true"):
                self._key = SchemaEncoder(_schema(registry, kind, properties, f"{topic}-key", "key", options))
        except (RegistryError, CannotDecode) as problem:
            raise Terse(str(problem)) from None
        self._lines = LineReader(properties)

    def lines(self, source: BinaryIO) -> Iterator[ParsedLine]:
        for number, line in enumerate(self._lines.lines(source), 1):
            try:
                value = None if line.value is None else self._value.encode(line.value.decode())
                key = line.key
                if key is not None and self._key is not None:
                    key = self._key.encode(key.decode())
            except (CannotEncode, UnicodeDecodeError) as problem:
                raise LineError(f"line number {number}: {problem}") from None
            yield ParsedLine(key, value, line.headers)


def _schema(
    registry: SchemaRegistryClient,
    kind: SchemaKind,
    properties: dict[str, str],
    subject: str,
    part: str,
    options: dict[str, bool],
) -> RegisteredSchema:
    """The schema of keys or values: by its id, or of a text, which is registered or looked up, or the latest."""
    text, file, id, references, named = (
        properties.pop(f"{part}.{name}", None) for name in ("schema", "schema.file", "schema.id", "refs", "subject")
    )
    subject = named or subject
    if id is not None:
        if not id.isdecimal():
            raise UsageError(f"{part}.schema.id is {id!r}, and must be a number")
        return registry.schema_by_id(int(id))
    if options["latest"]:
        return _with_texts(registry, registry.version(subject, -1))
    if file is not None:
        with open(file, encoding="utf-8") as opened:
            text = opened.read()
    if text is None:
        raise UsageError(f"Must provide {part}.schema, {part}.schema.file or {part}.schema.id")
    schema = SchemaToRegister(kind, text, _references(references, part))
    ask: Any = registry.register if options["register"] else registry.look_up
    return _with_texts(registry, ask(subject, schema, normalize=options["normalize"]))


def _with_texts(registry: SchemaRegistryClient, found: RegisteredSchema) -> RegisteredSchema:
    """With what it refers to, which a reply to a registration does not have."""
    assert found.id is not None
    return registry.schema_by_id(found.id, found.subject)


def _references(text: str | None, part: str) -> tuple[Reference, ...]:
    if text is None:
        return ()
    try:
        return tuple(Reference(one["name"], one["subject"], int(one["version"])) for one in json.loads(text))
    except (ValueError, KeyError, TypeError):
        raise UsageError(
            f'{part}.refs must be JSON, as [{{"name": "shop.Customer", "subject": "customers-value", "version": 1}}]'
        ) from None
