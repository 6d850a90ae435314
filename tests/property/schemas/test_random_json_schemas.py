"""JSON Schemas from seeds: whatever they say, they are compared with themselves, and refused only as what they are."""

import json
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.schemas.schema import InvalidSchema, parse

DRAFTS = (
    None,
    "http://json-schema.org/draft-04/schema#",
    "http://json-schema.org/draft-06/schema#",
    "http://json-schema.org/draft-07/schema#",
    "https://json-schema.org/draft/2019-09/schema",
    "https://json-schema.org/draft/2020-12/schema",
)
TYPES = ("string", "number", "integer", "boolean", "null", "array", "object")


class Maker:
    def __init__(self, random: Random, unsound: float) -> None:
        self.random = random
        self.unsound = unsound
        self.left = random.randrange(1, 40)

    def schema(self, depth: int = 0) -> Any:
        random = self.random
        self.left -= 1
        if random.random() < self.unsound:
            return random.choice((5, "x", [], None, {"$ref": "#/nowhere"}, {"type": "odd"}))
        if depth > 5 or self.left < 0 or random.random() < 0.1:
            return random.choice(
                (True, False, {}, {"type": random.choice(TYPES)}, {"$ref": "#/definitions/d"}, {"$ref": "#"})
            )
        tree: dict[str, Any] = {}
        for make in random.sample(
            (self.typed, self.object, self.array, self.number, self.string, self.combined, self.values),
            random.randrange(4),
        ):
            make(tree, depth + 1)
        return tree

    def typed(self, tree: dict[str, Any], depth: int) -> None:
        tree["type"] = self.random.choice((self.random.choice(TYPES), self.random.sample(TYPES, 2)))

    def object(self, tree: dict[str, Any], depth: int) -> None:
        random = self.random
        tree["properties"] = {name: self.schema(depth) for name in random.sample("abcd", random.randrange(4))}
        if random.random() < 0.5:
            tree["additionalProperties"] = random.choice((True, False, self.schema(depth)))
        if random.random() < 0.3:
            tree["required"] = random.sample("abcd", random.randrange(3))
        if random.random() < 0.2:
            tree["patternProperties"] = {random.choice(("^a", ".*", "(", "b$")): self.schema(depth)}
        if random.random() < 0.2:
            tree["dependencies"] = {"a": random.choice((["b"], self.schema(depth)))}
        if random.random() < 0.2:
            tree["unevaluatedProperties"] = self.schema(depth)

    def array(self, tree: dict[str, Any], depth: int) -> None:
        random = self.random
        tree["items"] = random.choice((self.schema(depth), [self.schema(depth) for _ in range(random.randrange(3))]))
        if random.random() < 0.3:
            tree["additionalItems"] = self.schema(depth)
        if random.random() < 0.3:
            tree["minItems"] = random.randrange(3)
        if random.random() < 0.2:
            tree["prefixItems"] = [self.schema(depth)]
        if random.random() < 0.2:
            tree["contains"] = self.schema(depth)

    def number(self, tree: dict[str, Any], depth: int) -> None:
        for name in self.random.sample(("minimum", "maximum", "multipleOf"), self.random.randrange(3)):
            tree[name] = self.random.choice((1, 2.5, 0.1, 10))

    def string(self, tree: dict[str, Any], depth: int) -> None:
        for name in self.random.sample(("minLength", "maxLength"), self.random.randrange(3)):
            tree[name] = self.random.randrange(5)
        if self.random.random() < 0.2:
            tree["pattern"] = self.random.choice(("a", "(b+)+", "["))

    def combined(self, tree: dict[str, Any], depth: int) -> None:
        word = self.random.choice(("allOf", "anyOf", "oneOf"))
        tree[word] = [self.schema(depth) for _ in range(self.random.randrange(4))]
        if self.random.random() < 0.2:
            tree["not"] = self.schema(depth)

    def values(self, tree: dict[str, Any], depth: int) -> None:
        tree[self.random.choice(("enum", "default", "examples"))] = [1, "a", None, {"x": [True]}]
        if self.random.random() < 0.3:
            tree["const"] = self.random.choice((1, "a", None))


def random_json_schema(random: Random, unsound: float = 0.0) -> Any:
    maker = Maker(random, unsound)
    tree = maker.schema()
    if isinstance(tree, dict):
        tree["definitions"] = {"d": maker.schema(2)}
        if draft := random.choice(DRAFTS):
            tree["$schema"] = draft
    return tree


@given(st.integers(0, 2**32))
@settings(max_examples=120)
def test_a_schema_is_compatible_with_itself(seed: int) -> None:
    tree = random_json_schema(Random(seed))
    schema = parse("JSON", json.dumps(tree))
    assert json.loads(schema.canonical) == tree
    assert parse("JSON", schema.canonical).canonical == schema.canonical
    try:
        schema.validate()
    except InvalidSchema:
        return  # 2020-12 has no array of items
    again = parse("JSON", schema.canonical)
    for policy in ("STRICT", "LENIENT"):
        assert schema.incompatibilities(again, policy) == []  # type: ignore[arg-type]
    assert schema.normalize().incompatibilities(again) == []


@given(st.integers(0, 2**32))
@settings(max_examples=120)
def test_two_schemas_are_compared_whatever_they_are(seed: int) -> None:
    random = Random(seed)
    one, other = (parse("JSON", json.dumps(random_json_schema(random, 0.01))) for _ in range(2))
    try:
        strict = one.incompatibilities(other)
        lenient = one.incompatibilities(other, "LENIENT")
    except InvalidSchema:
        return
    assert bool(lenient) <= bool(strict), "LENIENT refuses nothing that STRICT allows"
