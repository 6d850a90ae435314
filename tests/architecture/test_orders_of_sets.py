"""Nothing goes through a set whose order could be seen outside: it differs from one run to the next.

Read from the syntax of each file by itself: what is written as a set, annotated as one or filled with one there is a
set. What only passes by from another file is not seen; tests/sim runs a node under several hash seeds for that.
"""

import ast
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ottla"
PARTS = ("controller", "broker", "runtime", "machines", "log", "node")
TYPES = ("set", "frozenset", "Set", "AbstractSet")
ORDERLESS = {"sorted", "set", "frozenset", "any", "all", "len", "sum", "min", "max", "union", "difference_update"}
"""Calls to which the order of what they are given is nothing."""

DECISIONS = "machines/metadata/decisions"
HARMLESS = {
    ("broker/partitions/logs_in_making.py", "self._names"): "each is told to a list of its own",
    (f"{DECISIONS}/registration.py", "given"): "whether any of them is reserved",
    (f"{DECISIONS}/registration.py", "supported.keys() | finalized.keys()"): "one error, whichever is first",
    ("runtime/timers.py", "self._set"): "timers that are cancelled together",
}


def files() -> list[str]:
    return [path.relative_to(SOURCE).as_posix() for part in PARTS for path in sorted((SOURCE / part).rglob("*.py"))]


class Sets(ast.NodeVisitor):
    """Finds the names of sets in a file, then the places that go through one."""

    def __init__(self, tree: ast.AST) -> None:
        self.found: list[str] = []
        self._names: set[str] = set()
        dotted: set[str] = set()
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            self._names = self._named_in(function)
            dotted |= {name for name in self._named_in(function) if "." in name}
        self._names = dotted | self._named_in(tree, within_functions=False)
        self.visit(tree)

    def _named_in(self, tree: ast.AST, *, within_functions: bool = True) -> set[str]:
        names: set[str] = set()
        for node in ast.walk(tree) if within_functions else ast.iter_child_nodes(tree):
            if isinstance(node, ast.AnnAssign) and self._is_type(node.annotation):
                names.add(ast.unparse(node.target))
            elif isinstance(node, ast.arg) and node.annotation is not None and self._is_type(node.annotation):
                names.add(node.arg)
            elif isinstance(node, ast.Assign) and self.is_set(node.value):
                names.update(ast.unparse(target) for target in node.targets)
        return names

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Its own names count in it, and in the functions within."""
        outside = self._names
        self._names = outside | self._named_in(node)
        self.generic_visit(node)
        self._names = outside

    @staticmethod
    def _is_type(annotation: ast.expr) -> bool:
        named = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        return isinstance(named, ast.Name) and named.id in TYPES

    def is_set(self, node: ast.expr) -> bool:
        match node:
            case ast.Set() | ast.SetComp():
                return True
            case ast.Call(func=ast.Name(id="set" | "frozenset")):
                return True
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.Sub() | ast.BitXor(), right=right):
                return self.is_set(left) or self.is_set(right) or self._is_keys(left)
        return ast.unparse(node) in self._names

    @staticmethod
    def _is_keys(node: ast.expr) -> bool:
        return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "keys"

    def _note(self, node: ast.expr) -> None:
        if self.is_set(node):
            self.found.append(ast.unparse(node))

    def visit_For(self, node: ast.For) -> None:
        self._note(node.iter)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        for argument in node.args:
            if isinstance(argument, ast.GeneratorExp | ast.ListComp) and name in ORDERLESS:
                self.visit(argument.elt)
            elif name in ("list", "tuple", "iter", "next", "fromkeys", "extend", "join", "map", "enumerate"):
                self._note(argument)
                self.visit(argument)
            else:
                self.visit(argument)
        self.visit(node.func)

    def _visit_ordered(self, node: ast.ListComp | ast.GeneratorExp | ast.DictComp) -> None:
        for one in node.generators:
            self._note(one.iter)
        self.generic_visit(node)

    visit_ListComp = visit_GeneratorExp = visit_DictComp = _visit_ordered  # noqa: N815

    def visit_List(self, node: ast.List | ast.Tuple) -> None:
        for one in node.elts:
            if isinstance(one, ast.Starred):
                self._note(one.value)
        self.generic_visit(node)

    visit_Tuple = visit_List  # noqa: N815


def sets_gone_through(source: str) -> list[str]:
    return Sets(ast.parse(source)).found


def test_no_file_goes_through_a_set() -> None:
    found = {path: sets_gone_through((SOURCE / path).read_text()) for path in files()}
    seen = [(path, one) for path, expressions in found.items() for one in expressions if (path, one) not in HARMLESS]
    assert seen == [], "sort it, keep a dict, or say in HARMLESS why its order is nothing"


@pytest.mark.parametrize(
    "source",
    [
        "for name in {'a', 'b'}: tell(name)",
        "names: set[str] = set()\nfor name in names: tell(name)",
        "def tell(names: frozenset[str]): return list(names)",
        "self._names: set[str]\nreplies = [reply(name) for name in self._names]",
        "for name in before.keys() - after.keys(): tell(name)",
        "told = [*{'a', 'b'}]",
        "known = {'a'}\ntable = {name: 1 for name in known}",
    ],
)
def test_what_is_not_to_be_is_found(source: str) -> None:
    assert sets_gone_through(source)


@pytest.mark.parametrize(
    "source",
    [
        "for name in sorted({'a', 'b'}): tell(name)",
        "names: set[str] = set()\nis_there = any(name for name in names)\nothers = {one for one in names}",
        "names: dict[str, None] = {}\nfor name in names: tell(name)",
    ],
)
def test_what_may_be_is_not(source: str) -> None:
    assert sets_gone_through(source) == []


def test_the_exceptions_are_there() -> None:
    for path, expression in HARMLESS:
        assert expression in sets_gone_through((SOURCE / path).read_text()), (path, expression)
