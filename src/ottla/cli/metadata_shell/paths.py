"""Paths of the tree: relative to a working directory, with `..`, and with patterns in any part.

`*` is any number of characters, `?` is one, and `{a,b}` is either of them. A backslash takes the meaning from the
character after it. A pattern with a brace that is not closed is a name.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from ottla.cli.metadata_shell.tree import Directory, Node


class Found(NamedTuple):
    """A node, under the path that was typed and under its own."""

    shown: str
    path: tuple[str, ...]
    node: Node


def absolute(path: tuple[str, ...]) -> str:
    return "/" + "/".join(path)


def find(root: Directory, working: tuple[str, ...], pattern: str) -> Iterator[Found]:
    """The nodes that a pattern stands for, in the order of their names; none if there is no such node."""
    is_absolute = pattern.startswith("/")
    start = () if is_absolute else working
    prefix = "/" if is_absolute else ""
    parts = [part for part in pattern.split("/") if part]
    yield from _walk(root, Found(prefix, start, node_at(root, start)), parts)


def node_at(root: Directory, path: tuple[str, ...]) -> Node:
    node: Node = root
    for name in path:
        assert isinstance(node, Directory), "a working directory is one"
        node = node.nodes[name]
    return node


def _walk(root: Directory, at: Found, parts: list[str]) -> Iterator[Found]:
    if not parts:
        yield at
        return
    part, *rest = parts
    if part in (".", ".."):
        path = at.path[:-1] if part == ".." else at.path
        yield from _walk(root, Found(_join(at.shown, part), path, node_at(root, path)), rest)
    elif isinstance(at.node, Directory):
        for name in _matching(at.node, part):
            yield from _walk(root, Found(_join(at.shown, name), (*at.path, name), at.node.nodes[name]), rest)


def _matching(directory: Directory, part: str) -> list[str]:
    expression = _expression(part)
    if expression is not None:
        return [name for name in directory.names() if expression.fullmatch(name)]
    return [part] if part in directory.nodes else []


def _join(path: str, name: str) -> str:
    return f"{path}{name}" if not path or path.endswith("/") else f"{path}/{name}"


_TOKEN = re.compile(r"\\.|.", re.DOTALL)


def _expression(part: str) -> re.Pattern[str] | None:
    """None for a plain name, which is what most parts are."""
    if not any(sign in part for sign in "*?{\\"):
        return None
    text, depth = "", 0
    for token in _TOKEN.findall(part):
        if token == "*":
            text += ".*"
        elif token == "?":
            text += "."
        elif token == "{" and not depth:
            text, depth = text + "(?:", 1
        elif token == "}" and depth:
            text, depth = text + ")", 0
        elif token == "," and depth:
            text += "|"
        else:
            text += re.escape(token[-1])
    return None if depth else re.compile(text, re.DOTALL)
