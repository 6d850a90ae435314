"""The JSON files that tools are given, and what may be wrong with them."""

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from ottla.cli.failures import Terse

T = TypeVar("T")


def read_json(path: str) -> object:
    try:
        with open(path, "rb") as file:
            text = file.read()
    except OSError:
        raise Terse(f"Unable to read file {path}") from None
    return parse_json(text, path)


def parse_json(text: str | bytes, source: str) -> object:
    import json  # few tools read any

    try:
        return json.loads(text)
    except ValueError as problem:
        raise Terse(f"The content of {source} is not JSON: {problem}") from None


def entries(document: object, name: str) -> Iterator[Mapping[str, Any]]:
    """The objects in the list of that name. The version, if there is one, must be 1."""
    if not isinstance(document, dict):
        raise Terse(f'The file must have an object with "{name}"')
    if (version := document.get("version", 1)) != 1:
        raise Terse(f"Not supported version field value {version}")
    listed = document.get(name)
    if not isinstance(listed, list) or not all(isinstance(entry, dict) for entry in listed):
        raise Terse(f"Missing {name} field, or it is not a list of objects")
    return iter(listed)


def field(entry: Mapping[str, Any], name: str, kind: type[T]) -> T:
    value = entry.get(name)
    if not isinstance(value, kind) or isinstance(value, bool):
        raise Terse(f'The field "{name}" is missing or not {kind.__name__}: {dict(entry)}')
    return value
