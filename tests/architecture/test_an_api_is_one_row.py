"""What is to be said of an API is said in its row, `ottla.apis.table`: no other table of APIs grows beside it."""

import ast
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "ottla"
SERVERS = ("apis", "broker", "controller", "machines", "node", "runtime", "security", "wire")
TABLE = SOURCE / "apis" / "table.py"
FEW = 2


def api_keys(nodes: list[ast.expr | None]) -> int:
    return sum(isinstance(one, ast.Attribute) and ast.unparse(one.value) == "ApiKey" for one in nodes)


def tables_of(source: str) -> list[str]:
    """The literals that say something of more than a few APIs."""
    found = []
    for node in ast.walk(ast.parse(source)):
        entries = node.keys if isinstance(node, ast.Dict) else []
        if isinstance(node, ast.Set | ast.Tuple | ast.List):
            entries = [*node.elts]
        if api_keys(entries) > FEW:
            found.append(f"line {node.lineno}")
    return found


def test_a_table_is_known_when_it_is_seen() -> None:
    assert tables_of("A = {ApiKey.PRODUCE: 1, ApiKey.FETCH: 2, ApiKey.METADATA: 3}")
    assert tables_of("A = frozenset({ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.METADATA})")
    assert not tables_of("A = (ApiKey.PRODUCE, ApiKey.FETCH)")


def test_no_other_table_of_apis_grows_beside_the_rows() -> None:
    paths = [path for part in SERVERS for path in sorted((SOURCE / part).rglob("*.py")) if path != TABLE]
    assert len(paths) > 300
    tables = {str(path.relative_to(SOURCE)): tables_of(path.read_text()) for path in paths}
    assert {path: found for path, found in tables.items() if found} == {}
