"""Ways to a field (KIP-821): `a.b.c`, and names with dots in them between backticks."""

from typing import Any

from ottla.connect.data.columns import Column
from ottla.connect.data.rows import field_value, java_class
from ottla.connect.data.schema import Schema
from ottla.connect.errors import DataError
from ottla.connect.options import InvalidOption


def steps_of(text: str, *, nested: bool) -> tuple[str, ...]:
    """The names on the way. Version 1 of the syntax knows only one. Raises `InvalidOption`."""
    if not nested:
        return (text,)
    steps: list[str] = []
    at = 0
    while at < len(text):
        if text[at] != "`":
            dot = text.find(".", at)
            steps.append(text[at:] if dot < 0 else text[at:dot])
            at = len(text) if dot < 0 else dot + 1
        else:
            step, at = _quoted(text, at)
            steps.append(step)
    if text.endswith("."):
        steps.append("")
    return tuple(steps)


def _quoted(text: str, start: int) -> tuple[str, int]:
    """The name between backticks, and where the next begins. A backtick before a dot ends it, or one at the end
    of the text. With a backslash before it, it is part of the name."""
    name = ""
    begin = at = start + 1
    while True:
        at = text.find("`", at)
        escaped = at > 0 and text[at - 1] == "\\"
        is_last = at == len(text) - 1
        if at < 0 or (is_last and escaped):
            raise InvalidOption(
                f"Incomplete backtick pair in path: [{text}], consider adding a backslash before backtick at position "
                f"{start} to escape it"
            )
        if is_last:
            return name + text[begin:at], at + 1
        if text[at + 1] == "." and not escaped:
            return name + text[begin:at], at + 2
        if text[at + 1] == ".":
            name += text[begin : at - 1] + "`"
            begin = at + 1
        at += 1


def schema_at(schema: Schema, steps: tuple[str, ...]) -> Schema | None:
    """The schema of the field at the end of the way; None if there is no such field."""
    current = schema
    for step in steps:
        field = current.field(step)
        if field is None:
            return None
        current = field.schema
    return current


def column_at(column: Column, steps: tuple[str, ...], *, defaults: bool) -> Column:
    """The field at the end of the way, which is there. On the way defaults count always, at its end if asked for."""
    for number, step in enumerate(steps):
        place = next(place for place, field in enumerate(column.schema.fields) if field.name == step)
        takes_default = defaults or number < len(steps) - 1
        column = field_value(column, place) if takes_default else column.child(place)
    return column


def value_at(value: dict[str, Any], steps: tuple[str, ...]) -> Any:
    """The same without a schema; None if there is nothing."""
    current: Any = value
    for number, step in enumerate(steps):
        if current is None:
            return None
        if not isinstance(current, dict):
            assert number > 0
            raise DataError(
                "Only Map objects supported in absence of schema for [nested field access], found: "
                f"{java_class(current)}"
            )
        current = current.get(step)
    return current
