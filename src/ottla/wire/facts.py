"""The schema facts of Apache Kafka 4.3.1: package data, read from disk when first asked for.

In a file of messages each has a line to itself, which begins with what it is. Only lines that are asked for are parsed:
a program uses a quarter of the messages, and all of them parsed are a megabyte.
"""

import json
import re
from functools import cache
from typing import Any, NamedTuple

_MESSAGE = re.compile(r'^\{(?:"apiKey":(\d+),)?"type":"([a-z-]+)",.*?"name":"(\w+)".*$', re.MULTILINE)


class MessageFact(NamedTuple):
    """A message, record or header, of which `parse` tells the rest."""

    name: str
    type: str
    api_key: int
    """-1 if it has none."""
    line: str

    def parse(self) -> Any:
        return json.loads(self.line.removesuffix(","))


def load(name: str) -> Any:
    """The parsed content of `facts/<name>.json`."""
    return json.loads(_text(name))


@cache
def load_messages(name: str) -> tuple[MessageFact, ...]:
    """The messages of `facts/<name>.json`, in its order."""
    return tuple(
        MessageFact(found[3], found[2], int(found[1] or -1), found[0]) for found in _MESSAGE.finditer(_text(name))
    )


def _text(name: str) -> str:
    """Through the loader of this module, from a directory or an archive; `pkgutil` would do the same."""
    loader: Any = __spec__.loader
    return str(loader.get_data(f"{__file__.removesuffix('facts.py')}facts/{name}.json"), "utf-8")
