"""An Avro schema as others know it: `ottla.schemas.schema.ParsedSchema`, made of the types, texts and rules beside."""

from collections.abc import Iterable, Mapping
from copy import deepcopy
from functools import cached_property
from typing import Any

from ottla.schemas.avro.compatibility import incompatibilities
from ottla.schemas.avro.parsing import Parser
from ottla.schemas.avro.text import Fingerprint, fingerprint, java_text, normal_tree, parsing_form
from ottla.schemas.avro.types import AvroType, Equality, Named, Record, all_types
from ottla.schemas.json_text import read_json, write_json
from ottla.schemas.schema import Entity, Incompatibility, InvalidSchema, Limits, ParsedSchema, Policy

TAGS = "confluent:tags"


def parse_avro(text: str, references: Mapping[str, str], *, as_new: bool, limits: Limits) -> "AvroSchema":
    """What `ottla.schemas.schema.parse` does for Avro."""
    if len(references) > limits.references:
        raise InvalidSchema(f"{len(references)} references, and a schema may have {limits.references}")
    parser = Parser(limits, as_new)
    referred: list[AvroType] = []
    for name, referred_text in references.items():
        try:
            referred.append(parser.parse(referred_text))
        except InvalidSchema as error:
            raise InvalidSchema(f"in the reference {name}: {error.reason}", error.path) from None
    return AvroSchema(text, references, parser.parse(text), referred, as_new, limits)


class AvroSchema(ParsedSchema):
    """A parsed Avro schema. `type` is what it is made of."""

    kind = "AVRO"

    def __init__(
        self,
        text: str,
        references: Mapping[str, str],
        type: AvroType,
        referred: list[AvroType],
        as_new: bool,
        limits: Limits,
    ) -> None:
        self.text = text
        self.references = dict(references)
        self.type = type
        self._referred = tuple(one.full_name for one in referred)
        self._as_new = as_new
        self._limits = limits

    @cached_property
    def canonical(self) -> str:
        return java_text(self.type, self._referred)

    def normalize(self) -> "AvroSchema":
        return self._normal

    @cached_property
    def _normal(self) -> "AvroSchema":
        text = write_json(normal_tree(self.type, self._referred))
        return parse_avro(text, self.references, as_new=self._as_new, limits=self._limits)

    def rendered(self, format: str) -> str:
        return java_text(self.type) if format.strip().lower() == "resolved" else self.canonical

    @property
    def name(self) -> str | None:
        return self.type.full_name if isinstance(self.type, Record) else None

    def names(self) -> tuple[str, ...]:
        defined = (one.full_name for one in all_types(self.type) if isinstance(one, Named))
        return tuple(dict.fromkeys(name for name in defined if name not in self._referred))

    def has_top_level_field(self, field: str) -> bool:
        return isinstance(self.type, Record) and field in self.type.by_name

    def incompatibilities(self, writer: ParsedSchema, policy: Policy = "STRICT") -> list[Incompatibility]:
        assert isinstance(writer, AvroSchema), "schemas of two kinds"
        return incompatibilities(self.type, writer.type, self._limits)

    def is_equivalent(self, other: ParsedSchema) -> bool:
        return isinstance(other, AvroSchema) and Equality(self._limits.type_depth, with_meta=True).same(
            self.type, other.type
        )

    @cached_property
    def parsing_form(self) -> str:
        """The Parsing Canonical Form, references put in."""
        return parsing_form(self.type)

    def fingerprint(self, algorithm: Fingerprint = "CRC-64-AVRO") -> bytes:
        return fingerprint(self.type, algorithm)

    def tagged_entities(self) -> dict[Entity, tuple[str, ...]]:
        tagged: dict[Entity, tuple[str, ...]] = {}
        for record in all_types(self.type):
            if not isinstance(record, Record):
                continue
            if tags := _tags(record.props):
                tagged.setdefault(Entity(record.full_name, "sr_record"), tags)
            for field in record.fields:
                if tags := _tags(field.props):
                    tagged.setdefault(Entity(f"{record.full_name}.{field.name}", "sr_field"), tags)
        return tagged

    def with_tags(
        self, add: Mapping[Entity, Iterable[str]], remove: Mapping[Entity, Iterable[str]], add_first: bool = True
    ) -> "AvroSchema":
        tree = deepcopy(read_json(self.canonical, self._limits))
        for entity in dict.fromkeys((*add, *remove)):
            node = _entity_node(tree, entity)
            tags = dict.fromkeys(map(str, _tags(node)))
            wanted, unwanted = dict.fromkeys(add.get(entity, ())), set(remove.get(entity, ()))
            if add_first:
                tags = {tag: None for tag in {**tags, **wanted} if tag not in unwanted}
            else:
                tags = {**{tag: None for tag in tags if tag not in unwanted}, **wanted}
            if tags:
                node[TAGS] = list(tags)
            else:
                node.pop(TAGS, None)
        return parse_avro(write_json(tree), self.references, as_new=self._as_new, limits=self._limits)


def _tags(props: Mapping[str, Any]) -> tuple[str, ...]:
    tags = props.get(TAGS)
    return tuple(tag if isinstance(tag, str) else write_json(tag) for tag in tags) if isinstance(tags, list) else ()


def _entity_node(tree: Any, entity: Entity) -> dict[str, Any]:
    """The JSON of a record or field, level by level from the outside, as Confluent looks for it: a path without a
    namespace is of any."""
    path = entity.path.split(".")
    field = path.pop() if entity.kind == "sr_field" else None
    name = path.pop() if path else ""
    namespace = ".".join(path)
    level: list[tuple[Any, str | None]] = [(tree, None)]
    while level:
        inner: list[tuple[Any, str | None]] = []
        for node, outer in level:
            if isinstance(node, list):
                inner += ((branch, outer) for branch in node)
            if not isinstance(node, dict):
                continue
            space = node.get("namespace", outer)
            if node.get("type") in ("record", "error") and node.get("name") == name and namespace in ("", space or ""):
                if field is None:
                    return node
                for one in node["fields"]:
                    if one["name"] == field:
                        return one  # type: ignore[no-any-return]
            for key in ("fields", "items", "values", "type"):
                if key in node:
                    inner.append((node[key], space))
        level = inner
    raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")
