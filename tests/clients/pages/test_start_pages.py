"""The programs of README.md and some pages run as they stand, but for the port; and the commands of docs/logging.md."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.node import RunningNode

ROOT = Path(__file__).parents[3]
PORT = "127.0.0.1:9092"
EXAMPLES = [
    (page, number)
    for page, count in (
        ("README.md", 3),
        ("docs/start/python-programs.md", 1),
        ("docs/chaos.md", 1),
        ("docs/logging.md", 1),
    )
    for number in range(count)
]


def programs(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    with RunningNode() as node:
        yield node


def test_each_program_is_among_them() -> None:
    assert [(page, n) for page in dict(EXAMPLES) for n in range(len(programs(page)))] == EXAMPLES


@pytest.mark.parametrize(("page", "number"), EXAMPLES)
def test_a_program_of_a_page_runs(page: str, number: int, node: RunningNode, tmp_path: Path) -> None:
    program = programs(page)[number].replace(PORT, node.bootstrap)
    command = [sys.executable, "-c", program]
    if "def test_" in program:
        (tmp_path / "test_page.py").write_text(program)
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr
    if "print(" in program:
        assert done.stdout, "it has something to show"


def test_levels_of_loggers_change_as_the_page_says(node: RunningNode, tmp_path: Path) -> None:
    (block,) = re.findall(r"^```sh\n(.*?)^```", (ROOT / "docs/logging.md").read_text(), re.MULTILINE | re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    shown = [
        subprocess.run(
            ["sh", "-ec", line.replace("localhost:9092", node.bootstrap)],
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        ).stdout
        for line in (*block.replace("\\\n", "").splitlines(), block.splitlines()[0])
    ]
    assert "ottla.broker.replication.fetcher=DEBUG" not in shown[0]
    assert "ottla.broker.replication.fetcher=DEBUG" in shown[-1]
