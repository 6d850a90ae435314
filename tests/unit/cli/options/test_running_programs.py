"""What all tools do alike: help, version, complaints, exit status."""

import pytest

from ottla.cli.options.checks import UsageError, refuse, refuse_combination, require, run_program
from ottla.cli.options.reading import Given, read
from ottla.cli.options.subcommands import ToolParser, integer, run_command
from ottla.cli.options.table import Option, Program
from ottla.client.errors import GroupIdNotFound

PROGRAM = Program("tool", "A tool.", (Option("a", "A."), Option("b", "B."), Option("c", "C.", "String")))


def fine(given: Given) -> int:
    return 0


def test_no_words_and_help_print_the_help_and_end_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--help"]):
        assert run_program(PROGRAM, words, fine) == 1
        out, err = capsys.readouterr()
        assert out == ""
        assert err.startswith("A tool.\nOption ")


def test_the_version_is_kafkas_first(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(PROGRAM, ["--version"], fine) == 0
    assert capsys.readouterr().out.startswith("4.3.1 ")


def test_an_unknown_option_is_one_line_or_one_line_and_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_program(PROGRAM, ["--x"], fine) == 1
    assert capsys.readouterr().err == "x is not a recognized option\n"
    assert run_program(PROGRAM, ["--x"], fine, help_with_options=True) == 1
    assert capsys.readouterr().err.startswith("x is not a recognized option\nOption ")


def test_a_brokers_refusal_goes_by_javas_name(capsys: pytest.CaptureFixture[str]) -> None:
    def refused(given: Given) -> int:
        raise GroupIdNotFound("Group g not found.")

    assert run_program(PROGRAM, ["--a"], refused) == 1
    assert capsys.readouterr().err == ("org.apache.kafka.common.errors.GroupIdNotFoundException: Group g not found.\n")


def test_the_reader_that_left_is_the_callers_affair() -> None:
    def broken(given: Given) -> int:
        raise BrokenPipeError

    with pytest.raises(BrokenPipeError):
        run_program(PROGRAM, ["--a"], broken)


def test_what_does_not_go_together_is_named() -> None:
    given = read(PROGRAM, ["--a", "--b"])
    with pytest.raises(UsageError, match=r'Missing required argument "\[c\]"'):
        require(given, "a", "c")
    with pytest.raises(UsageError, match=r'Option "\[a\]" can\'t be used with option "\[b\]"'):
        refuse(given, "a", ["c", "b"])
    with pytest.raises(UsageError, match=r'Option combination "\[\[a\]\]" can\'t be used with option "\[b\]" \(so\)'):
        refuse_combination(given, ["a"], ["b"], "(so)")
    refuse(given, "c", ["a", "b"])


@pytest.fixture
def parser() -> ToolParser:
    parser = ToolParser("kafka-thing", "A thing.")
    commands = parser.add_subparsers(metavar="{do}", required=True)
    do = commands.add_parser("do")
    do.add_argument("--id", "-i", type=integer, required=True)
    do.set_defaults(action=lambda options: options.id)
    return parser


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ([], "too few arguments"),
        (["nope"], "invalid choice: 'nope' (choose from 'do')"),
        (["do"], "argument --id/-i is required"),
        (["do", "--id", "x"], "argument --id/-i: could not convert 'x' to Integer (For input string: \"x\")"),
        (["do", "--id", "1", "--x"], "unrecognized arguments: '--x'"),
    ],
)
def test_sub_commands_complain_in_kafkas_words(
    parser: ToolParser, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(parser, words) == 1
    usage, _, last = capsys.readouterr().err.rpartition("kafka-thing: error: ")
    assert usage.startswith("usage: kafka-thing")
    assert last == f"{complaint}\n"


def test_the_action_of_a_sub_command_gives_the_status(parser: ToolParser) -> None:
    assert run_command(parser, ["do", "--i", "3"]) == 3
    assert run_command(parser, ["do", "--help"]) == 1
    assert run_command(parser, ["--help"], help_status=0) == 0
