"""Options about schemas, and the schemas that they mean. The driver asks the registry for these, and tasks are given
them: a version that is registered while a query runs changes nothing about its columns.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.errors import OttlaError
from ottla.client.schema_registry.registry_errors import RegistryError
from ottla.config.parse import ConfigError
from ottla.schemas.registry_port import RegisteredSchema, SchemaToRegister
from ottla.schemas.schema import SchemaKind
from ottla.spark.options import REGISTRY_PREFIX, OptionError, Options

if TYPE_CHECKING:
    from ottla.client.blocking.schema_registry import SchemaRegistryClient

KINDS: Final[Mapping[str, SchemaKind]] = {"avro": "AVRO", "protobuf": "PROTOBUF", "json": "JSON"}
LATEST: Final = -1
_NAMES: Final = ("value.subject", "value.version", "value.schemaId", "value.message")
_MOST_CLIENTS: Final = 8


class RegistrySettings(dict[str, str]):
    """The settings of a registry's client, with their secrets; a log line or an error is not given them."""

    def __repr__(self) -> str:
        return f"settings of a registry's client: {', '.join(self)}"


class WantedSchemas(NamedTuple):
    """Which schemas values are read as, or written with: by subject and version, or by id."""

    kind: SchemaKind
    registry: RegistrySettings
    subjects: tuple[str, ...]
    version: int
    id: int | None
    messages: tuple[str, ...]
    """Of Protobuf; the first of the file, if none is named."""


def read_wanted(options: Options, value_format: str, topics: tuple[str, ...] | None) -> WantedSchemas | None:
    """None if values have nothing to do with a registry. `topics` are those that are read or written, if known."""
    registry = RegistrySettings(options.beginning_with(REGISTRY_PREFIX))
    given = options.given(*_NAMES)
    if not registry and value_format != "json" and value_format in KINDS:
        raise OptionError(f"option {REGISTRY_PREFIX}url is missing: value.format={value_format} needs a registry")
    if not registry or value_format not in KINDS:
        if registry or given:
            name = given[0] if given else f"{REGISTRY_PREFIX}{next(iter(registry))}"
            needed = f"{REGISTRY_PREFIX}url" if given and not registry else "value.format=avro, protobuf or json"
            raise OptionError(f"option {name} has no meaning without {needed}")
        return None
    if "url" not in registry:
        raise OptionError(f"option {REGISTRY_PREFIX}url is missing: where the registry is, as http://host:port")
    kind = KINDS[value_format]
    id = options.integer("value.schemaId")
    messages = _words(options.text("value.message"))
    if messages and kind != "PROTOBUF":
        raise OptionError(f"option value.message is for value.format=protobuf, and it is {value_format}")
    if id is not None and (others := options.given("value.subject", "value.version")):
        raise OptionError(f"options value.schemaId and {others[0]} both name a schema: give one")
    subjects = _words(options.text("value.subject"))
    if not subjects and id is None:
        if topics is None or len(topics) != 1:
            raise OptionError("option value.subject is missing: there is not one topic whose name would give it")
        subjects = (f"{topics[0]}-value",)
    if len(subjects) > 1 and (kind == "JSON" or messages or options.given("value.version")):
        raise OptionError(
            f"option value.subject names {len(subjects)} subjects: that is for the latest schemas of avro and protobuf"
        )
    return WantedSchemas(kind, registry, subjects, _version(options), id, messages)


def _version(options: Options) -> int:
    text = options.text("value.version")
    if text is None or text.lower() in ("latest", str(LATEST)):
        return LATEST
    return options.integer("value.version") or LATEST


def _words(text: str | None) -> tuple[str, ...]:
    return tuple(word.strip() for word in (text or "").split(",") if word.strip())


def find_schemas(wanted: WantedSchemas) -> tuple[RegisteredSchema, ...]:
    """What the registry says now. Raises `OptionError` if it has none such."""
    registry = kept_registry(wanted.registry)
    found: list[RegisteredSchema] = []
    try:
        if wanted.id is not None:
            found.append(registry.schema_by_id(wanted.id))
        found += [registry.version(subject, wanted.version) for subject in wanted.subjects]
    except RegistryError as problem:
        what = f"value.schemaId={wanted.id}" if wanted.id is not None else f"value.subject={','.join(wanted.subjects)}"
        raise OptionError(f"option {what}: {problem}") from None
    for schema in found:
        _check_kind(schema, wanted)
    return tuple(found)


def find_schema_to_write(wanted: WantedSchemas, text: str | None) -> RegisteredSchema:
    """The one schema that rows are written with; if its text is given, it is registered."""
    if len(wanted.subjects) > 1 or len(wanted.messages) > 1:
        raise OptionError("rows are written with one schema: name one in value.subject and in value.message")
    if text is None:
        return find_schemas(wanted)[0]
    if wanted.id is not None or wanted.version != LATEST:
        raise OptionError("option value.schema is a schema to register: leave out value.schemaId and value.version")
    schema = SchemaToRegister(wanted.kind, text)
    try:
        return kept_registry(wanted.registry).register(wanted.subjects[0], schema)
    except RegistryError as problem:
        raise OptionError(f"option value.schema cannot be registered as {wanted.subjects[0]}: {problem}") from None


def _check_kind(schema: RegisteredSchema, wanted: WantedSchemas) -> None:
    if schema.kind != wanted.kind:
        raise OptionError(
            f"option value.format asks for {wanted.kind}, and the schema {schema.subject or schema.id} is {schema.kind}"
        )


_kept: "dict[tuple[tuple[str, str], ...], SchemaRegistryClient]" = {}
"""Clients of this process. Tasks of one query share one, and what it has learned."""


def kept_registry(settings: RegistrySettings) -> "SchemaRegistryClient":
    """Raises `OptionError` for settings that cannot be."""
    key = tuple(sorted(settings.items()))
    if key not in _kept:
        from ottla.client.blocking.schema_registry import SchemaRegistryClient

        if len(_kept) >= _MOST_CLIENTS:
            _kept.pop(next(iter(_kept))).close()
        try:
            _kept[key] = SchemaRegistryClient(dict(settings))
        except ConfigError as wrong:
            complaints = "; ".join(f"option {REGISTRY_PREFIX}{problem}" for problem in wrong.problems)
            raise OptionError(complaints) from None
        except OttlaError as problem:
            raise OptionError(f"options {REGISTRY_PREFIX}…: {problem}") from None
    return _kept[key]
