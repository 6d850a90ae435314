"""Each class of vulnerability that SECURITY.md tells of has the tests that it names."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROWS = re.findall(r"^\| ([^|`]+) \| (`.*`) \|$", (ROOT / "SECURITY.md").read_text(), re.MULTILINE)


def names_in(file: str) -> set[str]:
    """The tests of the one file whose path ends so."""
    (found,) = (path for path in (ROOT / "tests").rglob(Path(file).name) if str(path).endswith(f"/{file}"))
    return {node.name for node in ast.parse(found.read_text()).body if isinstance(node, ast.FunctionDef)}


def test_the_table_has_its_classes() -> None:
    assert len(ROWS) >= 11


@pytest.mark.parametrize(("what", "tests"), ROWS, ids=[what for what, _ in ROWS])
def test_a_class_has_its_tests(what: str, tests: str) -> None:
    for test in re.findall(r"`([^`]+)`", tests):
        file, _, name = test.partition("::")
        assert name.startswith("test_vulnerability_")
        assert name in names_in(file), test
