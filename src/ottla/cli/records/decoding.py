"""Bytes to something that a person, or a JSON line, can show.

A decoder is a deserializer of the clients: a callable of topic, bytes and headers. It is named by

- a word: `auto`, `text`, `json`, `hex`, `base64`, or a deserializer of the clients (`long`, `double`, …);
- `schema`: what a schema registry says of the record, whose URL is given;
- an entry point of the group `ottla.decoders`, which any installed package may bring;
- `module:function`.

What a decoder cannot read is shown as `auto` would, marked: one strange record must not end a command.
"""

import os
from argparse import ArgumentParser
from collections.abc import Callable, Sequence
from typing import Any

from ottla.base.errors import OttlaError

ENTRY_POINTS = "ottla.decoders"
SCHEMA = "schema"
REGISTRY_VARIABLE = "SCHEMA_REGISTRY_URL"
DEFAULT_REGISTRY = "http://127.0.0.1:8081"
Header = tuple[str, bytes | None]
Decoder = Callable[[str, bytes, Sequence[Header]], Any]


class UnknownDecoder(OttlaError):
    """No decoder has this name."""


class Undecoded:
    """What a decoder did not understand, and why."""

    __slots__ = ("content", "problem")

    def __init__(self, content: Any, problem: str) -> None:
        self.content = content
        self.problem = problem


def add_decoders(parser: ArgumentParser) -> None:
    """The options that name decoders."""
    parser.add_argument(
        "--decode-key", default="auto", metavar="DECODER", help="how keys are read (default: %(default)s)"
    )
    parser.add_argument(
        "--decode", default="auto", metavar="DECODER", help="how values are read (default: %(default)s)"
    )
    parser.add_argument(
        "--registry",
        metavar="URL",
        help=f"the schema registry of the decoder schema (default: {REGISTRY_VARIABLE}, or {DEFAULT_REGISTRY})",
    )


def decoder_named(name: str, registry: str | None = None, *, is_key: bool = False) -> Decoder:
    """Raises `UnknownDecoder`. `registry` is where schemas are."""
    if name in _OWN:
        return _OWN[name]
    if name == SCHEMA:
        from ottla.cli.registry.record_schemas import SchemaDecoder, open_registry

        url = registry or os.environ.get(REGISTRY_VARIABLE) or DEFAULT_REGISTRY
        return SchemaDecoder(open_registry({"url": url}), is_key=is_key)
    if found := _from_clients(name):
        return found
    if ":" in name:
        return _from_module(name)
    return _from_entry_point(name)


def decode(decoder: Decoder, topic: str, content: bytes | None, headers: Sequence[Header]) -> Any:
    if content is None:
        return None
    try:
        return decoder(topic, content, headers)
    except Exception as problem:
        return Undecoded(_auto(topic, content, headers), str(problem) or type(problem).__name__)


def _auto(topic: str, content: bytes, headers: Sequence[Header]) -> Any:
    """JSON objects and lists, or text, or hexadecimal digits: the first that it is."""
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return content.hex()
    if text[:1] in "{[" and text:
        from ottla.cli.records.record_json import from_json

        try:
            return from_json(text)
        except ValueError:
            return text
    return text


def _text(topic: str, content: bytes, headers: Sequence[Header]) -> str:
    return content.decode(errors="replace")


def _json(topic: str, content: bytes, headers: Sequence[Header]) -> Any:
    from ottla.cli.records.record_json import from_json

    return from_json(content)


def _hex(topic: str, content: bytes, headers: Sequence[Header]) -> str:
    return content.hex()


def _base64(topic: str, content: bytes, headers: Sequence[Header]) -> str:
    from base64 import b64encode

    return b64encode(content).decode()


_OWN: dict[str, Decoder] = {"auto": _auto, "text": _text, "json": _json, "hex": _hex, "base64": _base64}


def _from_clients(name: str) -> Decoder | None:
    from ottla.client.serialization import DESERIALIZERS

    return DESERIALIZERS.get(name)


def _from_module(name: str) -> Decoder:
    from importlib import import_module

    module, _, function = name.partition(":")
    try:
        found: Decoder = getattr(import_module(module), function)
    except (ImportError, AttributeError) as problem:
        raise UnknownDecoder(f"decoder {name}: {problem}") from problem
    return found


def _from_entry_point(name: str) -> Decoder:
    from importlib.metadata import entry_points

    points = entry_points(group=ENTRY_POINTS)
    for point in points:
        if point.name == name:
            loaded: Decoder = point.load()
            return loaded
    known = ", ".join(sorted({*_OWN, SCHEMA, *(point.name for point in points)}))
    raise UnknownDecoder(f"there is no decoder {name}; there are {known}, and module:function for one of your own")
