"""The `ottla` command finds its sub-commands, and says what it can do."""

import subprocess
import sys

import pytest

from ottla import __version__
from ottla.cli.main import COMMANDS, main


def test_help_lists_every_command(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    shown = capsys.readouterr().out
    for name, command in COMMANDS.items():
        assert f"  {name} " in shown
        assert command.summary in shown


def test_without_a_command_the_usage_is_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    assert "usage: ottla COMMAND" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["version", "--version", "-V"])
def test_the_version_is_the_packages(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([word]) == 0
    assert capsys.readouterr().out == f"ottla {__version__}\n"


def test_a_mistyped_command_gets_the_nearest_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["dmup-log"]) == 2
    assert capsys.readouterr().err == "ottla: there is no command 'dmup-log'; did you mean `ottla dump-log`?\n"


def test_a_word_like_no_command_gets_the_way_to_the_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["xyzzy"]) == 2
    assert "`ottla --help` lists the commands" in capsys.readouterr().err


def test_a_commands_status_is_the_exit_status(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[str]] = []
    monkeypatch.setattr("ottla.cli.demo.main", lambda arguments: seen.append(arguments) or 3)
    assert main(["demo", "--some", "option"]) == 3
    assert seen == [["--some", "option"]]


def test_a_reader_that_leaves_early_is_no_error() -> None:
    program = "import sys; from ottla.cli.main import main; sys.exit(main(['demo', 'node']))"
    run = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert run.stdout is not None
    assert run.stderr is not None
    run.stdout.close()
    assert run.stderr.read() == b""
    run.stderr.close()
    assert run.wait() == 0


def test_finding_a_command_imports_no_other_part() -> None:
    program = "import sys, ottla.cli.main; print(*sorted(m for m in sys.modules if m.startswith('ottla')))"
    shown = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert shown.split() == ["ottla", "ottla.cli", "ottla.cli.kafka", "ottla.cli.main"]
