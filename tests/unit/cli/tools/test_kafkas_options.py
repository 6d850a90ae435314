"""Every option that a tool of Apache Kafka 4.3.1 names in its help has a place in the help of ours.

`kafkas_options.txt` has a line for each tool, or each command of a tool, with those names. That an option does what
Kafka's does is for `tests/interop/tools`; one that is known and not supported says so in its help.
"""

from contextlib import suppress
from importlib import import_module
from pathlib import Path

import pytest

from ottla.cli.kafka import TOOLS

LINES = (Path(__file__).parent / "kafkas_options.txt").read_text().splitlines()
MODULES = {
    **{f"kafka-{name}": tool.module for name, tool in TOOLS.items()},
    "kafka-dump-log": "ottla.cli.dump_log",
    "kafka-storage": "ottla.cli.storage",
}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.partition(":")[0])
def test_help_has_every_option_of_kafkas(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Of a command, in its own help or in that of its tool, whose options stand before it."""
    name, _, options = line.partition(": ")
    tool, *command = name.split()
    for words in ([*command, "--help"], ["--help"]):
        with suppress(SystemExit):
            import_module(MODULES[tool]).main(words)
    out, err = capsys.readouterr()
    printed = {word.strip("[],.") for word in f"{out}{err}".replace("=", " ").split()}
    assert set(options.split()) - printed == set()
