"""A part that asks one thing at a time, and again, asks surely (`ottla.runtime.apart`).

Such a part has a flag that says that a question is under way. If hearing the answer raises before the flag is taken
back, nothing is ever asked again. So who has such a flag asks by `ask_surely` or `ask_as_node`, of which one outcome is
heard whatever happens.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ottla"
PARTS = ("broker", "controller", "node", "runtime")
FLAGS = {"is_asking", "is_looking", "is_telling"}
WAYS = {"ask_surely", "ask_as_node"}
ON_A_WORKER = {"node/security/provider_keys.py"}
"""Asks a web server, on a worker, and sets the flag back with its first line."""


def modules() -> list[str]:
    return [path.relative_to(SOURCE).as_posix() for part in PARTS for path in sorted((SOURCE / part).rglob("*.py"))]


def asks_unsurely(source: str) -> bool:
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    has_flag = any(
        isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and node.value.value is True
        and any(isinstance(target, ast.Attribute) and target.attr.lstrip("_") in FLAGS for target in node.targets)
        for node in nodes
    )
    called = {node.func.id for node in nodes if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)}
    return has_flag and not called & WAYS


def test_whoever_asks_one_thing_at_a_time_asks_surely() -> None:
    found = [path for path in modules() if path not in ON_A_WORKER and asks_unsurely((SOURCE / path).read_text())]
    assert found == []


@pytest.mark.parametrize(
    ("body", "is_found"),
    [
        ("self._is_asking = True; self.channel.ask(request, then, failed)", True),
        ("self.is_asking = True; ask_surely(timers, self.send, then, failed)", False),
        ("self._is_asking = True; ask_as_node(timers, channel, request, then, failed)", False),
        ("self._is_open = True; self.channel.ask(request, then, failed)", False),
    ],
)
def test_a_question_that_is_not_asked_surely_is_found(body: str, is_found: bool) -> None:
    assert asks_unsurely(f"def f(self):\n    {body}\n") is is_found
