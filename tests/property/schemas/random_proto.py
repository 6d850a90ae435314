""".proto files from a seed, all sound, in every syntax, and the changes that people make to them."""

from __future__ import annotations

import re
from random import Random

SCALARS = (
    "double",
    "float",
    "int32",
    "int64",
    "uint32",
    "uint64",
    "sint32",
    "sint64",
    "fixed32",
    "fixed64",
    "sfixed32",
    "sfixed64",
    "bool",
    "string",
    "bytes",
)
KEYS = tuple(name for name in SCALARS if name not in ("double", "float", "bytes"))
WELL_KNOWN = {
    "google/protobuf/timestamp.proto": "google.protobuf.Timestamp",
    "google/protobuf/wrappers.proto": "google.protobuf.StringValue",
    "google/type/money.proto": "google.type.Money",
}

IMPORTED = """syntax = "proto3";
package lib.v1;
message Shared { int32 n = 1; message Inner { string s = 1; } enum Level { LOW = 0; HIGH = 1; } }
"""
"""What a file may import, as `lib/shared.proto`."""


class Maker:
    def __init__(self, random: Random) -> None:
        self.random = random
        self.syntax = random.choice(("proto2", "proto3", "proto3", "2023"))
        self.package = random.choice(("", "shop", "a.b.c"))
        self.imports = random.sample((*WELL_KNOWN, "lib/shared.proto"), random.randrange(3))
        self.messages = [f"M{number}" for number in range(random.randrange(1, 4))]
        self.enums = [f"E{number}" for number in range(random.randrange(3))]
        self.names = 0

    def some(self, chance: float) -> bool:
        return self.random.random() < chance

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}_{self.names}" if self.some(0.5) else f"{prefix}{self.names}"

    def file(self) -> str:
        lines = [f'edition = "{self.syntax}";' if self.syntax == "2023" else f'syntax = "{self.syntax}";']
        if self.package:
            lines.append(f"package {self.package};")
        lines += (f'import "{name}";' for name in self.imports)
        if self.some(0.3):
            lines.append('option java_package = "com.é\\n\\"x\\"";')
        if self.some(0.2):
            lines.append("option optimize_for = CODE_SIZE; // why not")
        parts = [self.message(name, 0) for name in self.messages] + [self.enum(name) for name in self.enums]
        self.random.shuffle(parts)
        lines += parts
        if self.some(0.3):
            lines.append(self.service())
        if self.syntax == "proto2" and self.some(0.3):
            lines.append(f"extend {self.messages[0]} {{ optional int32 {self.name('ext')} = 1000; }}")
        return "\n".join(lines) + "\n"

    def type(self, nested: list[str], scope: str) -> str:
        """A type, in one of the ways in which it can be named here."""
        choice = self.random.random()
        if choice < 0.5:
            return self.random.choice(SCALARS)
        if choice < 0.6 and self.imports:
            name = self.random.choice(self.imports)
            full = WELL_KNOWN.get(name) or self.random.choice(
                ("lib.v1.Shared", "lib.v1.Shared.Inner", "lib.v1.Shared.Level")
            )
            return f".{full}" if self.some(0.3) else full
        if choice < 0.7 and nested:
            return self.random.choice(nested)
        name = self.random.choice((*self.messages, *self.enums))
        if self.some(0.3):
            return f".{self.package}.{name}" if self.package else f".{name}"
        return f"{self.package}.{name}" if self.package and self.some(0.3) else name

    def message(self, name: str, depth: int) -> str:
        random = self.random
        numbers = random.sample(range(1, 60), 12)
        nested_messages = [self.name("N") for _ in range(random.choice((0, 0, 1, 2)))] if depth < 2 else []
        nested_enums = [self.name("K") for _ in range(random.choice((0, 0, 1)))]
        nested = nested_messages + nested_enums
        parts = [self.message(one, depth + 1) for one in nested_messages] + [self.enum(one) for one in nested_enums]
        parts += [self.field(numbers.pop(), nested, name) for _ in range(random.randrange(6))]
        if self.some(0.3):
            fields = "".join(
                f"{self.type(nested, name)} {self.name('choice')} = {numbers.pop()}; "
                for _ in range(random.randrange(1, 3))
            )
            parts.append(f"oneof {self.name('either')} {{ {fields}}}")
        if self.syntax == "proto2" and self.some(0.2):
            parts.append(f"optional group {self.name('Group')} = {numbers.pop()} {{ optional int32 g = 1; }}")
        if self.some(0.3):
            reserved = f"{random.randrange(100, 120)}, {random.randrange(120, 130)} to {random.randrange(130, 140)}"
            parts.append(f"reserved {reserved}{', 900 to 910' if self.some(0.5) else ''};")
            parts.append("reserved gone, \t away;" if self.syntax == "2023" else 'reserved "gone", "away";')
        if self.syntax != "proto3" and (self.some(0.3) or name == self.messages[0]):
            parts.append("extensions 1000 to 1999, 5000 to max;")
        if self.some(0.2):
            parts.append("option deprecated = true;")
        random.shuffle(parts)
        return f"message {name} {{\n" + "".join(f"  {part}\n" for part in parts) + "}"

    def field(self, number: int, nested: list[str], scope: str) -> str:
        random = self.random
        name = self.name("field")
        if self.some(0.15):
            return f"map<{random.choice(KEYS)}, {self.type(nested, scope)}> {name} = {number};"
        type = self.type(nested, scope)
        label = {
            "proto2": random.choice(("optional ", "repeated ", "required ")),
            "2023": random.choice(("", "", "repeated ")),
        }.get(self.syntax, random.choice(("", "", "optional ", "repeated ")))
        options = []
        if self.some(0.2):
            options.append(random.choice(("deprecated = true", 'json_name = "other"', f'json_name = "j{number}"')))
        if self.syntax == "proto2" and label == "optional " and self.some(0.4) and (default := self.default(type)):
            options.append(f"default = {default}")
        if "json_name" in "".join(options):
            options = [one.replace('"other"', f'"other{self.names}"') for one in options]
        if label == "repeated " and self.syntax != "2023" and type in KEYS[:-2] and self.some(0.3):
            options.append(f"packed = {random.choice(('true', 'false'))}")
        random.shuffle(options)
        return f"{label}{type} {name} = {number}{' [' + ', '.join(options) + ']' if options else ''};"

    def default(self, type: str) -> str:
        random = self.random
        if type in ("double", "float"):
            return random.choice(("1.5", "-2", "1e10", "inf", "-inf", "nan", "0.1", ".5"))
        if type == "bool":
            return random.choice(("true", "false"))
        if type == "string":
            return random.choice(('"plain"', "'single'", '"a\\tb\\x41\\101"', '"two" " parts"', '"é"'))
        if type == "bytes":
            return random.choice(('"word"', '"\\001\\xff"', '"with space"'))
        if type in SCALARS:
            return random.choice(("0", "7", "0x1F", "010"))
        return ""

    def enum(self, name: str) -> str:
        values = [f"{name}_ZERO = 0;"]
        numbers = self.random.sample(range(1, 50), self.random.randrange(5))
        values += (f"{name}_V{number} = {number};" for number in numbers)
        if self.some(0.2):
            values.append(f"{name}_LAST = 0x7FFFFFFF [deprecated = true];")
        if self.some(0.2):
            values.append("reserved 100 to 200;")
        if self.some(0.2) and numbers:
            values.insert(0, "option allow_alias = true;")
            values.append(f"{name}_AGAIN = {numbers[0]};")
        return f"enum {name} {{ {' '.join(values)} }}"

    def service(self) -> str:
        request, response = self.random.choice(self.messages), self.random.choice(self.messages)
        options = " { option idempotency_level = IDEMPOTENT; }" if self.some(0.3) else ";"
        return f"service {self.name('S')} {{ rpc {self.name('Do')} (stream {request}) returns ({response}){options} }}"


def random_proto(random: Random) -> str:
    return Maker(random).file()


def changed(random: Random, text: str) -> str:
    """The file with some of its lines gone, or their types others."""
    lines = text.split("\n")
    for _ in range(random.choice((1, 1, 2, 3))):
        places = [place for place, line in enumerate(lines) if re.search(r" field_?\d+ = ", line)]
        if not places:
            break
        place = random.choice(places)
        if random.random() < 0.4:
            lines[place] = ""
        else:
            scalar = random.choice(SCALARS)
            lines[place] = re.sub(rf"\b(?:{'|'.join(SCALARS)})\b (?=field)", f"{scalar} ", lines[place])
    return "\n".join(lines)
