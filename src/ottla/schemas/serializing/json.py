"""JSON Schema for records: `ottla.schemas.Json`."""

from collections.abc import Iterator, Mapping
from json import JSONDecodeError, JSONDecoder, JSONEncoder
from typing import Any, Final

from ottla.schemas.faults import CannotDecode, CannotEncode
from ottla.schemas.json_schema.schema import TAGS, JsonSchema, parse_json_schema
from ottla.schemas.json_schema.validation import InvalidValue
from ottla.schemas.registry_port import (
    AsyncRegistry,
    BlockingRegistry,
    Reference,
    RegisteredSchema,
    SchemaToRegister,
)
from ottla.schemas.schema import ParsedSchema
from ottla.schemas.serializing.framing import Frame
from ottla.schemas.serializing.objects import maker, plain
from ottla.schemas.serializing.rules import FieldPlace, RuleSet
from ottla.schemas.serializing.serializers import (
    Asynchronous,
    Blocking,
    Buffer,
    Face,
    Format,
    Framing,
    Header,
    LocalSchema,
    Procedure,
    Reader,
    RegistryT,
    Settings,
    Writer,
    settings_of,
)


def _no_constant(name: str) -> float:
    raise ValueError(f"{name} is no number of JSON")


_ENCODER: Final = JSONEncoder(separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_DECODER: Final = JSONDecoder(parse_constant=_no_constant)


class JsonFormat(Format):
    """Values are what JSON knows, dataclasses, or models of pydantic's."""

    def __init__(
        self,
        settings: Settings,
        schema: str | None,
        references: Mapping[str, str],
        registered_references: tuple[Reference, ...],
        value_type: Any,
        validate: bool,
    ) -> None:
        super().__init__(settings)
        self._local: LocalSchema | None = None
        if schema is not None:
            parsed = parse_json_schema(schema, references, as_new=True, limits=settings.limits)
            parsed.validate()
            to_register = SchemaToRegister("JSON", parsed.canonical, registered_references)
            self._local = LocalSchema("given", parsed, to_register, parsed.name)
        self._make = maker(value_type) if value_type is not None else None
        self._validate = validate

    def local_key(self, value: Any) -> Any:
        return None

    def local_schema(self, value: Any, topic: str | None, is_key: bool) -> Procedure[LocalSchema | None]:
        yield from ()
        return self._local

    def writer(self, registered: RegisteredSchema, parsed: ParsedSchema, framed: Framing) -> Writer:
        assert isinstance(parsed, JsonSchema)
        start, rules = framed.prefix(), framed.rules
        check = parsed.validation.check if self._validate else None
        encode = _ENCODER.encode
        tree = parsed.tree

        def write(value: Any, headers: list[Header] | None) -> bytes:
            value = plain(value)
            if rules.on_write:
                value = rules.run("WRITE", value, lambda whole: fields_of(whole, tree))
            try:
                if check is not None:
                    check(value)
                content = encode(value).encode()
            except InvalidValue as error:
                raise CannotEncode(error.reason, tuple(error.path.split("/")) if error.path else ()) from None
            except (TypeError, ValueError) as error:
                raise CannotEncode(str(error)) from None
            framed.add_header(headers)
            return start + content

        return write

    def reader(self, registered: RegisteredSchema, parsed: ParsedSchema, rules: RuleSet) -> Reader:
        assert isinstance(parsed, JsonSchema)
        check = parsed.validation.check if self._validate else None
        make, tree = self._make, parsed.tree

        def read(content: Buffer, frame: Frame) -> Any:
            try:
                value = _DECODER.decode(str(memoryview(content)[frame.start :], "utf-8"))
                if check is not None:
                    check(value)
            except (JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
                raise CannotDecode(f"the record is not JSON: {error}") from None
            except ValueError as error:
                raise CannotDecode(str(error)) from None
            if rules.on_read:
                value = rules.run("READ", value, lambda whole: fields_of(whole, tree))
            return make(value) if make is not None else value

        return read


def fields_of(value: Any, tree: Any, name: str = "$") -> Iterator[FieldPlace]:
    """The properties of a value that are no objects themselves, with the tags that the schema gives them."""
    properties = tree.get("properties") if isinstance(tree, dict) else None
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return
    for key, inner in properties.items():
        if key not in value or not isinstance(inner, dict):
            continue
        content = value[key]
        if isinstance(content, dict):
            yield from fields_of(content, inner, f"{name}.{key}")
            continue
        tags = inner.get(TAGS)
        said = inner.get("type")
        yield FieldPlace(
            key,
            f"{name}.{key}",
            said.upper() if isinstance(said, str) else "COMBINED",
            frozenset(tags if isinstance(tags, list) else ()),
            lambda content=content: content,  # type: ignore[misc]
            lambda changed, key=key: value.__setitem__(key, changed),  # type: ignore[misc]
        )


class _Json(Face[RegistryT]):
    """How `Json` and `AsyncJson` are made."""

    def __init__(
        self,
        registry: RegistryT,
        schema: str | None = None,
        *,
        references: Mapping[str, str] | None = None,
        registered_references: tuple[Reference, ...] = (),
        value_type: Any = None,
        validate: bool = True,
        **settings: Any,
    ) -> None:
        made = JsonFormat(settings_of(settings), schema, references or {}, registered_references, value_type, validate)
        super().__init__(made, registry)


class Json(_Json[BlockingRegistry], Blocking):
    """JSON Schema for records, on a registry.

    `schema` is the schema of what is written; without one, the latest of the subject is. Values are held against it,
    both ways, unless `validate` is False. `value_type` is a class to make of what was read.
    """


class AsyncJson(_Json[AsyncRegistry], Asynchronous):
    """`Json` for asyncio."""
