"""Messages with random content, made from the schema: round trips, the comparison with kio and the fuzz use them."""

from random import Random
from typing import Any

from ottla.wire import messages, schema
from ottla.wire.message import Message, WireStruct

EDGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
TEXTS = ("", "a", "topic-1", "žluťoučký kůň", "🐎" * 40, "x" * 126, "y" * 127, "z" * 128, "long" * 100)


def every_message() -> list[tuple[type[Message], int]]:
    """All messages in all their versions."""
    return [
        (message, version)
        for name in schema.message_names()
        for message in [getattr(messages, name)]
        for version in message._schema.versions
    ]


class RandomMessages:
    """`tame` numbers are small and not negative, and there are no unknown tags: what kio can represent."""

    def __init__(self, random: Random, *, tame: bool = False) -> None:
        self.random = random
        self.tame = tame

    def message(self, message: type[Message], version: int) -> Message:
        made = self._struct(message, message._schema.root, version, message)
        assert isinstance(made, Message)
        return made

    def _struct(self, message: type[Message], struct: schema.Struct, version: int, made_as: Any) -> WireStruct:
        present = [field for field in struct.fields if version in field.versions]
        values = {field.attribute: self._field(message, field, version) for field in present}
        if not self.tame and version in message._schema.flexible and self.random.random() < 0.1:
            values["unknown_tags"] = ((1000, b""), (1001 + self.random.randrange(1 << 20), self.random.randbytes(5)))
        made = made_as(**values)
        assert isinstance(made, WireStruct)
        return made

    def _field(self, message: type[Message], field: schema.Field, version: int) -> Any:
        if version in field.nullable and self.random.random() < 0.2:
            return None
        if not field.is_array:
            return self._value(message, field, version)
        counts = (0, 1, 2, 3) if field.struct else (0, 1, 2, 5, 126, 127, 128, 200)
        weights = (4, 4, 2, 1) if field.struct else (20, 20, 20, 20, 1, 1, 1, 1)
        count = self.random.choices(counts, weights)[0]
        return [self._value(message, field, version) for _ in range(count)]

    def _value(self, message: type[Message], field: schema.Field, version: int) -> Any:
        random = self.random
        if field.struct is not None:
            return self._struct(message, field.struct, version, getattr(message, field.type))
        if field.type in EDGES:
            return self._integer(field.type)
        if field.type == "bool":
            return random.random() < 0.5
        if field.type == "float64":
            return random.choice((0.0, 1.5, -2.25e100))
        if field.type == "uuid":
            return random.choice((bytes(16), random.randbytes(16)))
        if field.type == "string":
            return random.choices(TEXTS, (9, 9, 9, 3, 1, 1, 1, 1, 1))[0]
        return random.randbytes(random.choices((0, 1, 30, 126, 127, 128, 300), (6, 6, 6, 1, 1, 1, 1))[0])

    def _integer(self, type_name: str) -> int:
        lowest, highest = EDGES[type_name]
        if self.tame:
            return self.random.randrange(min(highest, 60))
        return self.random.choice((0, 1, -1 if lowest else 1, lowest, highest, self.random.randint(lowest, highest)))
