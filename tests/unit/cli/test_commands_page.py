"""The examples of docs/commands.md, docs/tools.md and docs/backup.md do what the page says, in its order, on one node.

A line that begins with `$ ` is a command; the lines after it are what it prints. `localhost:9092` is the node, and
`ottla-data` its directory. A line of only `...` stands for any lines; `…` inside a line stands for anything.
"""

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ottla.cli.kafka import TOOLS
from ottla.testing import Broker

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

ROOT = Path(__file__).resolve().parents[3]
PAGE = ROOT / "docs" / "commands.md"
TOOLS_PAGE = ROOT / "docs" / "tools.md"
BACKUP_PAGE = ROOT / "docs" / "backup.md"
WAIT_S = 60
SETTINGS = {
    # So that rules of access are kept, and everything is allowed all the same.
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
    "allow.everyone.if.no.acl.found": "true",
    "offsets.topic.num.partitions": 1,
}


class Example(NamedTuple):
    command: str
    printed: list[str]


def examples(page: Path = PAGE) -> Iterator[Example]:
    for block in re.findall(r"^```console\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
        for text in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            # A command goes on where a line ends in a backslash.
            command, *printed = text.replace("\\\n", " ").splitlines()
            yield Example(command, printed)


def commands_in(directory: Path) -> None:
    """Every command of the package, as this interpreter runs it, installed or not."""
    directory.mkdir()
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    for name, target in scripts.items():
        module, _, function = target.partition(":")
        script = directory / name
        script.write_text(f"#!{sys.executable}\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)


def data_directory(node: Path) -> Path:
    return next(node.rglob("meta.properties")).parent


def pattern(line: str) -> str:
    return ".*".join(map(re.escape, line.split("…")))


def matches(printed: list[str], expected: list[str]) -> bool:
    text = "\n".join(printed) + "\n"
    wanted = "".join("(?:.*\n)*" if line == "..." else pattern(line) + "\n" for line in expected)
    return re.fullmatch(wanted, text if printed else "") is not None


@pytest.mark.parametrize("page", [PAGE, TOOLS_PAGE, BACKUP_PAGE], ids=lambda page: page.stem)
def test_the_examples_of_the_page_are_true(page: Path, tmp_path: Path) -> None:
    commands_in(tmp_path / "bin")
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    with Broker(SETTINGS if page == TOOLS_PAGE else {}, directory=work / "node") as broker:
        (work / "ottla-data").symlink_to(data_directory(work / "node"))
        for command, expected in examples(page):
            real = command.replace("localhost:9092", broker.bootstrap)
            done = subprocess.run(
                real, shell=True, cwd=work, env=environment, capture_output=True, text=True, timeout=WAIT_S
            )
            assert done.returncode == 0, f"$ {command}\n{done.stdout}{done.stderr}"
            printed = (done.stdout + done.stderr).replace(broker.bootstrap, "localhost:9092").splitlines()
            assert matches(printed, expected), f"$ {command}\n" + "\n".join(printed)


def test_the_page_has_examples() -> None:
    assert len(list(examples())) >= 4
    assert matches(["a", "b", "c 1 d"], ["a", "...", "c … d"])
    assert not matches(["a"], ["b"])
    assert not matches(["a", "b"], ["a"])


@pytest.mark.parametrize(
    "name", ["ottla start", "ottla verify", "ottla doctor", "kafka-server-stop", "kafka-metadata-shell"]
)
def test_the_page_has_the_command(name: str) -> None:
    assert f"## {name}\n" in PAGE.read_text()


@pytest.mark.parametrize("name", [*TOOLS, "storage", "dump-log", "server-start"])
def test_every_tool_has_an_example(name: str) -> None:
    """Those that need more than a node are on another page."""
    pages = [PAGE, TOOLS_PAGE, ROOT / "docs" / "security.md"]
    assert any(re.search(rf"kafka-{name}(?=[ ,\n])", page.read_text()) for page in pages)
    if name not in ("delegation-tokens", "server-start"):
        shown = [example.command for page in pages[:2] for example in examples(page)]
        assert any(f"kafka-{name} " in command for command in shown)
