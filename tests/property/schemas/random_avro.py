"""Avro schemas from a seed, sound and unsound, and the changes that people make to them."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

PRIMITIVES = ("null", "boolean", "int", "long", "float", "double", "bytes", "string")
NAMES = ("A", "B", "C", "Order", "Line", "x", "_y", "int_", "Ünit", "record", "map")
SPACES = ("shop", "shop.eu", "a.b.c", "")
LOGICAL = (
    "date",
    "time-millis",
    "time-micros",
    "timestamp-millis",
    "timestamp-micros",
    "timestamp-nanos",
    "local-timestamp-millis",
    "decimal",
    "uuid",
    "duration",
    "big-decimal",
    "unknown",
)
WORDS = ("", "a", 'quote "', "back\\slash", "tab\t", "é", "\U0001f600", "\x01\x1f\x7f", "/")

Schema = Any


class Maker:
    """Makes one schema. With `unsound`, now and then something that Java refuses."""

    def __init__(self, random: Random, unsound: float = 0.0) -> None:
        self.random = random
        self.unsound = unsound
        self.defined: list[tuple[str, str]] = []
        self.left = random.randrange(1, 25)

    def some(self, chance: float) -> bool:
        return self.random.random() < chance

    def schema(self, depth: int = 0, space: str = "") -> Schema:
        random = self.random
        self.left -= 1
        if depth == 0 and self.some(0.8):
            return self.record(depth, space)
        if self.defined and self.some(0.2):
            name, of = random.choice(self.defined)
            return name if of == space and self.some(0.5) else f"{of}.{name}" if of else name
        if depth > 5 or self.left < 0 or self.some(0.35):
            return self.primitive()
        return random.choice((self.record, self.enum, self.fixed, self.array, self.map, self.union))(depth, space)

    def primitive(self) -> Schema:
        name = self.random.choice(PRIMITIVES)
        if self.some(0.6):
            return name
        node = {"type": name}
        if self.some(0.6):
            self.add_logical(node, name)
        self.add_props(node)
        return node

    def add_logical(self, node: dict[str, Any], kind: str) -> None:
        random = self.random
        fitting = {
            "int": ("date", "time-millis"), "long": ("time-micros", "timestamp-millis", "timestamp-nanos"),
            "string": ("uuid",), "bytes": ("decimal", "big-decimal"), "fixed": ("decimal", "duration", "uuid"),
        }.get(kind, LOGICAL)  # fmt: skip
        node["logicalType"] = random.choice(fitting if self.some(0.8) else LOGICAL)
        if node["logicalType"] == "decimal":
            node["precision"] = random.choice((1, 4, 9, 38, 0, "4"))
            if self.some(0.7):
                node["scale"] = random.choice((0, 2, 4, 39, -1))

    def add_props(self, node: dict[str, Any]) -> None:
        for _ in range(self.random.choice((0, 0, 0, 1, 2))):
            node[self.random.choice(("x-prop", "a", "order", "avro.java.string", "default", "doc"))] = self.json()

    def json(self, depth: int = 0) -> Any:
        random = self.random
        return random.choice(
            (
                lambda: random.choice(WORDS),
                lambda: random.choice((0, -1, 2**31, 2**63, 12345678901234567890123)),
                lambda: random.choice((0.0, 1.5, -2.25, 1e10, 1e-7, 123456789.5)),
                lambda: random.choice((True, False, None)),
                lambda: [] if depth > 2 else [self.json(depth + 1) for _ in range(random.randrange(3))],
                lambda: {} if depth > 2 else {random.choice("zyxw"): self.json(depth + 1) for _ in range(2)},
            )
        )()

    def named(self, kind: str, space: str) -> tuple[dict[str, Any], str]:
        random = self.random
        name = random.choice(NAMES[:7]) + (str(random.randrange(30)) if self.some(0.8) else "")
        if self.some(self.unsound):
            name = random.choice(("", "1a", "a-b", "a.b.", ".x", "string", "é", "ab ", "a..b.c"))
        node: dict[str, Any] = {"type": kind, "name": name}
        own = space
        if self.some(0.25):
            own = node["namespace"] = random.choice(SPACES if not self.some(self.unsound) else ("a..b", "1.2", "é"))
        elif self.some(0.1):
            own = random.choice(SPACES[:3])
            node["name"] = f"{own}.{name}"
        if self.some(0.2):
            node["doc"] = random.choice(WORDS)
        if self.some(0.15):
            node["aliases"] = random.sample(("A", "B", "old.Name", "shop.C", "Order3", "int"), random.randrange(3))
        return node, own

    def define(self, node: dict[str, Any], own: str) -> None:
        if self.some(0.9):
            self.defined.append((node["name"].rsplit(".", 1)[-1], own))

    def record(self, depth: int, space: str) -> Schema:
        random = self.random
        node, own = self.named("record" if self.some(0.97) else "error", space)
        if self.some(0.4):
            self.define(node, own)  # so that it may be used inside itself
        fields = []
        for number in range(random.choice((0, 1, 2, 3, 4, 6))):
            name = f"f{number}" if not self.some(self.unsound) else random.choice(("f0", "a b", ""))
            field: dict[str, Any] = {"name": name, "type": self.schema(depth + 1, own)}
            if self.some(0.4):
                field["default"] = self.default(field["type"])
            if self.some(0.1):
                field["order"] = random.choice(("ascending", "descending", "IGNORE"))
            if self.some(0.15):
                field["doc"] = random.choice(WORDS)
            if self.some(0.15):
                field["aliases"] = random.sample(("f0", "f1", "f2", "g1"), random.randrange(3))
            if self.some(0.1):
                field["x-field"] = self.json()
            fields.append(field)
        node["fields"] = fields
        self.add_props(node)
        self.define(node, own)
        return node

    def default(self, type: Schema, depth: int = 0) -> Any:
        random = self.random
        if self.some(self.unsound):
            return self.json()
        kind = type["type"] if isinstance(type, dict) else type
        if isinstance(type, list):
            return self.default(random.choice(type), depth) if type and depth < 4 else None
        if kind in ("int", "long"):
            return random.choice((0, -5, 2**31 - 1))
        if kind in ("float", "double"):
            return random.choice((0, 1.5, "NaN", "Infinity", " 1e3 ", "-0.5f", 3, 1e20))
        if kind == "boolean":
            return self.some(0.5)
        if kind == "null":
            return None
        if kind == "array" and isinstance(type, dict):
            return [self.default(type["items"], depth + 1) for _ in range(random.randrange(2))]
        if kind == "map" and isinstance(type, dict):
            return {word: self.default(type["values"], depth + 1) for word in WORDS[: random.randrange(2)]}
        if kind in ("record", "error") and isinstance(type, dict):
            return {
                field["name"]: self.default(field["type"], depth + 1)
                for field in type["fields"]
                if "default" not in field or self.some(0.5)
            }
        if kind == "enum" and isinstance(type, dict):
            return random.choice(type["symbols"] or ("x",))
        return random.choice(("", "abc", "ÿ\u0100"))

    def enum(self, depth: int, space: str) -> Schema:
        node, own = self.named("enum", space)
        node["symbols"] = self.random.sample(("RED", "GREEN", "BLUE", "a", "_"), self.random.randrange(1, 5))
        if self.some(self.unsound):
            node["symbols"].append(self.random.choice((node["symbols"][0], "a-b", "", 5)))
        if self.some(0.3):
            node["default"] = self.random.choice(node["symbols"] if not self.some(self.unsound) else ["NONE", 3])
        self.add_props(node)
        node.pop("order", None)
        if not isinstance(node.get("default", ""), str) or (
            "default" in node and node["default"] not in node["symbols"] and not self.some(self.unsound)
        ):
            del node["default"]
        self.define(node, own)
        return node

    def fixed(self, depth: int, space: str) -> Schema:
        node, own = self.named("fixed", space)
        node["size"] = self.random.choice((0, 1, 4, 12, 16)) if not self.some(self.unsound) else 1.5
        if self.some(0.4):
            self.add_logical(node, "fixed")
        self.define(node, own)
        return node

    def array(self, depth: int, space: str) -> Schema:
        node = {"type": "array", "items": self.schema(depth + 1, space)}
        self.add_props(node)
        return node

    def map(self, depth: int, space: str) -> Schema:
        node = {"type": "map", "values": self.schema(depth + 1, space)}
        self.add_props(node)
        return node

    def union(self, depth: int, space: str) -> Schema:
        branches = [self.schema(depth + 1, space) for _ in range(self.random.choice((0, 1, 2, 2, 3, 4)))]
        if self.some(self.unsound):
            return branches
        kinds: dict[str, Schema] = {}
        for branch in branches:
            if isinstance(branch, list):
                continue
            kind = branch["type"] if isinstance(branch, dict) else branch
            if kind in ("record", "enum", "fixed", "error"):
                kind = f"{branch.get('namespace')}.{branch['name']}"
            kinds.setdefault(kind, branch)
        return list(kinds.values())


def random_schema(random: Random, unsound: float = 0.0) -> Schema:
    return Maker(random, unsound).schema()


def changed(random: Random, schema: Schema) -> Schema:
    """The schema after a few changes, some of which no reader minds."""
    schema = copy.deepcopy(schema)
    for _ in range(random.choice((0, 1, 1, 2, 4))):
        places = list(_places(schema))
        holder, key = random.choice(places) if places else (None, None)
        if holder is None:
            return schema
        node = holder[key]
        if isinstance(node, dict) and "fields" in node and random.random() < 0.6:
            _change_fields(random, node)
        elif isinstance(node, dict) and "symbols" in node and random.random() < 0.7:
            if random.random() < 0.5 and len(node["symbols"]) > 1:
                gone = node["symbols"].pop(random.randrange(len(node["symbols"])))
                if node.get("default") == gone:
                    del node["default"]
            else:
                node["symbols"].append(f"NEW{random.randrange(9)}")
        elif isinstance(node, dict) and "size" in node and random.random() < 0.5:
            node["size"] = random.randrange(9)
        elif isinstance(node, dict) and "name" in node and random.random() < 0.4:
            node.setdefault("aliases", []).append(node["name"])
            node["name"] = random.choice(("Renamed", "A", "shop.Order3"))
        elif isinstance(node, list) and node and random.random() < 0.7:
            if random.random() < 0.5:
                node.pop(random.randrange(len(node)))
            else:
                node.append(random.choice([p for p in PRIMITIVES if p not in node] or ["null"]))
        elif isinstance(node, str) and node in PRIMITIVES:
            holder[key] = random.choice(PRIMITIVES)
        elif random.random() < 0.3:
            holder[key] = ["null", node] if not isinstance(node, list) and node != "null" else node
        elif random.random() < 0.2:
            holder[key] = Maker(random).schema(3)
    return schema


def _change_fields(random: Random, node: dict[str, Any]) -> None:
    fields = node["fields"]
    if fields and random.random() < 0.4:
        fields.pop(random.randrange(len(fields)))
    elif fields and random.random() < 0.3:
        field = random.choice(fields)
        field.setdefault("aliases", []).append(field["name"])
        field["name"] = f"renamed{random.randrange(9)}"
    elif random.random() < 0.3:
        random.shuffle(fields)
    else:
        field = {"name": f"new{random.randrange(1000)}", "type": random.choice(PRIMITIVES)}
        if random.random() < 0.6:
            field["default"] = Maker(random).default(field["type"])
        fields.insert(random.randrange(len(fields) + 1), field)


def _places(schema: Schema) -> Any:
    """Where types stand: their holder and the key in it."""
    root = [schema]
    todo: list[tuple[Any, Any]] = [(root, 0)]
    while todo:
        holder, key = todo.pop()
        if holder is not root:
            yield holder, key
        node = holder[key]
        if holder is root and isinstance(node, dict | list):
            yield root, 0
        if isinstance(node, list):
            todo += ((node, index) for index in range(len(node)))
        elif isinstance(node, dict):
            todo += ((node, key) for key in ("items", "values") if key in node)
            todo += ((field, "type") for field in node.get("fields", ()) if isinstance(field, dict))
