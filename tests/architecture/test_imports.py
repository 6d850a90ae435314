"""Parts start fast, because they import little; the import contracts themselves are in pyproject.toml."""

import subprocess
import sys

import pytest

COSTLY = ["asyncio", "dataclasses", "pyarrow", "numpy", "rich", "ssl", "socket", "json", "logging", "subprocess"]


@pytest.mark.parametrize(
    ("module", "may_import"),
    [
        ("ottla", []),
        ("ottla.cli.main", []),
        ("ottla.config.parse", []),
        ("ottla.config.topic", []),
    ],
)
def test_importing_a_part_does_not_import_what_is_slow(module: str, may_import: list[str]) -> None:
    program = f"import sys; old = set(sys.modules); import {module}; print(*sorted(set(sys.modules) - old))"
    run = subprocess.run([sys.executable, "-S", "-c", program], capture_output=True, text=True, check=True, env=paths())
    assert set(run.stdout.split()) & set(COSTLY) <= set(may_import)


@pytest.mark.parametrize(
    ("command", "may_import"),
    [
        ("ottla.cli.start", []),
        ("ottla.cli.storage", ["json", "dataclasses"]),
        ("ottla.cli.dump_log", ["json", "dataclasses"]),
        ("ottla.cli.metadata_shell.shell", []),
        ("ottla.cli.server_stop", []),
        ("ottla.cli.doctor.doctor", []),
        ("ottla.cli.records.tail", []),
        ("ottla.cli.records.consume", []),
        ("ottla.cli.records.produce", ["json"]),
        ("ottla.cli.records.copy_command", ["json"]),
        ("ottla.cli.top.top", []),
        ("ottla.cli.short.topic", []),
        ("ottla.cli.short.group", []),
        ("ottla.cli.short.config", []),
        ("ottla.cli.completion", []),
        ("ottla.cli.performance.producer_perf", []),
        ("ottla.cli.performance.consumer_perf", []),
        ("ottla.cli.performance.e2e_latency", []),
        ("ottla.cli.performance.verifiable_producer", ["json"]),
        ("ottla.cli.performance.verifiable_consumer", ["json"]),
        ("ottla.cli.performance.replica_verification", []),
    ],
)
def test_a_command_imports_no_more_than_it_needs_to_say_how_it_is_used(command: str, may_import: list[str]) -> None:
    program = f"import sys; old = set(sys.modules); import {command}; print(*sorted(set(sys.modules) - old))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(run.stdout.split()) & set(COSTLY) <= set(may_import)


def paths() -> dict[str, str]:
    """-S leaves out what site-packages adds at start, editable installs included; so the way to `src` is given."""
    from pathlib import Path

    return {"PYTHONPATH": str(Path(__file__).resolve().parents[2] / "src")}
