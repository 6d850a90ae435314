"""A JSON Schema as others know it: `ottla.schemas.schema.ParsedSchema`, made of the shapes and rules beside."""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ottla.schemas.json_schema.compatibility import incompatibilities
from ottla.schemas.json_schema.shapes import Object, Shape, draft_of, resolved, shape_of
from ottla.schemas.json_text import read_json, sorted_json, write_json
from ottla.schemas.schema import Entity, Incompatibility, InvalidSchema, Limits, ParsedSchema, Policy

if TYPE_CHECKING:
    from ottla.schemas.json_schema.validation import Validation

TAGS = "confluent:tags"


def parse_json_schema(text: str, references: Mapping[str, str], *, as_new: bool, limits: Limits) -> "JsonSchema":
    """What `ottla.schemas.schema.parse` does for JSON Schema. `as_new` makes no difference here: `validate` does."""
    if len(references) > limits.references:
        raise InvalidSchema(f"{len(references)} references, and a schema may have {limits.references}")
    tree = read_json(text, limits, decimals=True)
    for name, referred in references.items():
        try:
            read_json(referred, limits, decimals=True)
        except InvalidSchema as error:
            raise InvalidSchema(f"in the reference {name}: {error.reason}", error.path) from None
    return JsonSchema(text, references, tree, limits)


class JsonSchema(ParsedSchema):
    """A parsed JSON Schema. `tree` is its JSON; it is not changed."""

    kind = "JSON"

    def __init__(self, text: str, references: Mapping[str, str], tree: Any, limits: Limits) -> None:
        self.text = text
        self.references = dict(references)
        self.tree = tree
        self._limits = limits

    @cached_property
    def canonical(self) -> str:
        return write_json(self.tree)

    def normalize(self) -> "JsonSchema":
        tree = sorted_json(self.tree)
        return JsonSchema(write_json(tree), self.references, tree, self._limits)

    def rendered(self, format: str) -> str:
        return self.canonical

    @property
    def draft(self) -> int:
        """4, 6, 7, 2019 or 2020."""
        return draft_of(self.tree)

    @property
    def name(self) -> str | None:
        title = self.tree.get("title") if isinstance(self.tree, dict) else None
        return title if isinstance(title, str) else None if title is None else write_json(title)

    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.name is not None else ()

    def has_top_level_field(self, field: str) -> bool:
        properties = self.tree.get("properties") if isinstance(self.tree, dict) else None
        return isinstance(properties, dict) and field in properties

    @cached_property
    def shape(self) -> Shape:
        """What a comparison looks at. Raises `InvalidSchema` if it is no schema of its draft."""
        if not isinstance(self.tree, dict | bool):
            raise InvalidSchema("Invalid JSON schema: expected an object or boolean at the root")
        return shape_of(self.tree, self.references, self._limits)

    def validate(self, strict: bool = False) -> None:
        shape = resolved(self.shape)
        if strict and isinstance(shape, Object):
            for name in shape.properties:
                if name.startswith("$$"):
                    raise InvalidSchema("Field names cannot start with $$ prefix", f"#/properties/{name}")

    def incompatibilities(self, writer: ParsedSchema, policy: Policy = "STRICT") -> list[Incompatibility]:
        assert isinstance(writer, JsonSchema), "schemas of two kinds"
        return incompatibilities(self.shape, writer.shape, policy, self._limits)

    def is_equivalent(self, other: ParsedSchema) -> bool:
        return isinstance(other, JsonSchema) and self.canonical == other.canonical

    @cached_property
    def validation(self) -> "Validation":
        """Checks values against it. Needs the package jsonschema-rs."""
        from ottla.schemas.json_schema.validation import Validation

        return Validation(self.tree, self.references, self.draft, self._limits)

    def tagged_entities(self) -> dict[Entity, tuple[str, ...]]:
        return {entity: tags for entity, node in _entities(self.tree) if (tags := _tags(node))}

    def tags(self) -> tuple[str, ...]:
        found: dict[str, None] = {}
        todo = [self.tree]
        while todo:
            node = todo.pop()
            if isinstance(node, dict):
                found.update(dict.fromkeys(_tags(node)))
                todo += reversed(node.values())
            elif isinstance(node, list):
                todo += reversed(node)
        return tuple(found)

    def with_tags(
        self, add: Mapping[Entity, Iterable[str]], remove: Mapping[Entity, Iterable[str]], add_first: bool = True
    ) -> "JsonSchema":
        tree = deepcopy(self.tree)
        nodes = dict(_entities(tree))
        for entity in dict.fromkeys((*add, *remove)):
            if entity not in nodes:
                raise InvalidSchema(f"No matching path '{entity.path}' found in the schema")
            node = nodes[entity]
            tags = dict.fromkeys(_tags(node))
            wanted, unwanted = dict.fromkeys(add.get(entity, ())), set(remove.get(entity, ()))
            if add_first:
                tags = {tag: None for tag in {**tags, **wanted} if tag not in unwanted}
            else:
                tags = {**{tag: None for tag in tags if tag not in unwanted}, **wanted}
            if tags:
                node[TAGS] = list(tags)
            else:
                node.pop(TAGS, None)
        return JsonSchema(write_json(tree), self.references, tree, self._limits)


def _tags(node: Mapping[str, Any]) -> tuple[str, ...]:
    tags = node.get(TAGS)
    return tuple(tag if isinstance(tag, str) else write_json(tag) for tag in tags) if isinstance(tags, list) else ()


def _entities(tree: Any) -> Iterator[tuple[Entity, dict[str, Any]]]:
    """What can have tags, with Confluent's paths: `object` for a schema of objects, `object.name` for a property of it,
    `array`, `oneof.0`, `definitions.Name` and the like on the way."""
    todo: list[tuple[Any, str, bool]] = [(tree, "", False)]
    while todo:
        node, scope, in_field = todo.pop()
        if not isinstance(node, dict):
            continue
        inner: list[tuple[Any, str, bool]] = []
        for word in ("allOf", "anyOf", "oneOf"):
            if isinstance(node.get(word), list):
                inner += ((one, f"{scope}{word.lower()}.{place}.", False) for place, one in enumerate(node[word]))
        if isinstance(node.get("items"), dict):
            inner.append((node["items"], f"{scope}array.", False))
        if isinstance(node.get("not"), dict):
            inner.append((node["not"], f"{scope}not.", False))
        for word in ("if", "then", "else"):
            if word in node:
                inner.append((node[word], f"{scope}conditional.{word}.", False))
        if node.get("type") == "object" or isinstance(node.get("properties"), dict):
            name = f"{scope}object"
            if not in_field:
                yield Entity(name, "sr_record"), node
            properties = node.get("properties")
            for field, one in properties.items() if isinstance(properties, dict) else ():
                if isinstance(one, dict):
                    yield Entity(f"{name}.{field}", "sr_field"), one
                    inner.append((one, f"{name}.{field}.", True))
            for word in ("definitions", "$defs"):
                defined = node.get(word)
                for defined_name, one in defined.items() if isinstance(defined, dict) else ():
                    inner.append((one, f"{name}.{word}.{defined_name}.", False))
        todo += reversed(inner)
