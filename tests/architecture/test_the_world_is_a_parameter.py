"""The parts below `node` have no clock or chance of their own, whatever the module that it would come from.

The import contract names modules. This looks for what could slip by: a function that is reached through another module,
and the two built-in functions whose values differ from one run to the next, which would bring chance into every order
that is made of them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ottla"
ADAPTERS = {"log/disk.py"}
PARTS = ("controller", "broker", "log", "machines")

CHANCE = {"urandom", "getrandom", "getrandbits", "SystemRandom", "token_bytes", "token_hex", "uuid1", "uuid4"}
TIME = {"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "thread_time", "process_time", "time_ns"}
ADDRESSES = {"id", "hash"}
LOOKED_UP_ONLY = {"broker/data/batch_checks.py", "broker/data/produce.py"}
"""A dict of theirs has addresses for keys. Nothing follows from the order that they are in."""


def files() -> list[str]:
    found = [path.relative_to(SOURCE).as_posix() for part in PARTS for path in sorted((SOURCE / part).rglob("*.py"))]
    return [path for path in found if path not in ADAPTERS]


def forbidden_in(source: str, addresses: set[str] = ADDRESSES) -> list[str]:
    """What a module does that it is not to do, with the line."""
    found: list[str] = []
    for node in walked(ast.parse(source)):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in CHANCE | TIME:
                found.append(f"line {node.lineno}: {name}")
            case ast.ImportFrom(names=names):
                found += [f"line {node.lineno}: {one.name}" for one in names if one.name in CHANCE | TIME]
            case ast.Call(func=ast.Name(id=name)) if name in addresses:
                found.append(f"line {node.lineno}: {name}(), which differs from run to run")
    return found


def walked(node: ast.AST) -> Iterator[ast.AST]:
    """All of a module but its `__hash__` methods."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not (isinstance(child, ast.FunctionDef) and child.name == "__hash__"):
            yield from walked(child)


def test_no_file_has_a_clock_or_chance_of_its_own() -> None:
    found = [
        f"{path}, {one}"
        for path in files()
        for one in forbidden_in(
            (SOURCE / path).read_text(), ADDRESSES - {"id"} if path in LOOKED_UP_ONLY else ADDRESSES
        )
    ]
    assert found == []


@pytest.mark.parametrize(
    "source",
    ["from os import urandom", "import os\nos.urandom(16)", "random.getrandbits(8)", "hash('orders')", "key = id(one)"],
)
def test_what_is_forbidden_is_found(source: str) -> None:
    assert forbidden_in(source)


def test_the_adapters_are_there() -> None:
    assert all((SOURCE / path).exists() for path in ADAPTERS)
