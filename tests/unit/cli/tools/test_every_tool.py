"""What holds for all of Kafka's tools: names, help, and that they start fast because of what they do not import."""

import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from ottla.cli.kafka import OTHERS, TOOLS

ROOT = Path(__file__).resolve().parents[4]
COSTLY = {"asyncio", "dataclasses", "ssl", "socket", "logging", "subprocess", "rich", "pyarrow"}

every_tool = pytest.mark.parametrize("name", TOOLS)
of_our_tables = pytest.mark.parametrize(
    "name",
    [name for name in TOOLS if {"run_program", "run_command"} & vars(import_module(TOOLS[name].module)).keys()],
)


@pytest.mark.parametrize("name", [*TOOLS, *OTHERS])
def test_a_tool_goes_by_its_name_with_and_without_sh(name: str) -> None:
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    assert scripts[f"kafka-{name}"] == scripts[f"kafka-{name}.sh"] == "ottla.cli.kafka:main"


@pytest.mark.slow
@every_tool
def test_importing_a_tool_imports_nothing_slow(name: str) -> None:
    module = TOOLS[name].module
    program = f"import sys; old = set(sys.modules); import {module}; print(*sorted(set(sys.modules) - old))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) & COSTLY == set()


@of_our_tables
def test_help_names_every_option(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    tool = import_module(TOOLS[name].module)
    status = tool.main(["--help"])
    out, err = capsys.readouterr()
    assert status in (0, 1)
    if program := getattr(tool, "PROGRAM", None):
        assert err.startswith(f"{program.summary}\nOption")
        assert all(f"--{option.name}" in err for option in program.options)
    else:
        assert out.startswith("usage: kafka-")


@of_our_tables
def test_an_option_that_is_none_is_refused_by_name(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert import_module(TOOLS[name].module).main(["--nonsense"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert "nonsense" in err or "too few arguments" in err or "is required" in err
