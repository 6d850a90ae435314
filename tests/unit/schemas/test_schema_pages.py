"""The examples of docs/registry/serializers.md and compatibility.md, run."""

import re
from pathlib import Path

import pytest

import ottla
from tests.unit.schemas.registry_in_memory import RegistryInMemory

PAGES = Path(__file__).parents[3] / "docs" / "registry"
EXAMPLES = [
    pytest.param(example, id=f"{name}-{number}")
    for name in ("serializers", "compatibility")
    for number, example in enumerate(re.findall(r"```python\n(.*?)```", (PAGES / f"{name}.md").read_text(), re.DOTALL))
]


@pytest.mark.parametrize("example", EXAMPLES)
def test_an_example_runs(example: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ottla, "SchemaRegistryClient", lambda url: RegistryInMemory(), raising=False)
    module = {"__name__": "example"}
    exec(compile(example, "example", "exec"), module)
