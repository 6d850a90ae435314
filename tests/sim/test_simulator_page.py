"""The example of docs/simulator.md runs, as it stands there."""

import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/simulator.md"


def test_a_record_is_acknowledged_though_a_machine_loses_its_power(capsys: pytest.CaptureFixture[str]) -> None:
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    exec(compile(example, str(PAGE), "exec"), {})
    offset, _ = capsys.readouterr().out.split()
    assert offset == "0"
