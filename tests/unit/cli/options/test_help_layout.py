"""Help is laid out as Kafka's tools lay theirs out."""

from ottla.cli.options.help_text import help_text
from ottla.cli.options.table import Option, Program
from ottla.cli.topics.topic_options import PROGRAM as TOPICS


def test_columns_are_as_wide_as_they_need_and_long_cells_go_on_below() -> None:
    program = Program(
        "tool",
        "A tool.",
        (
            Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "server to connect to"),
            Option("count", "How many of them there are to be, all in all, at the end.", "Integer", default="3"),
        ),
    )
    assert [line.rstrip() for line in help_text(program).splitlines()] == [
        "Option                                 Description",
        "------                                 -----------",
        "--bootstrap-server <String: server to  REQUIRED: Brokers to begin with.",
        "  connect to>",
        "--count <Integer>                      How many of them there are to be, all",
        "                                         in all, at the end. (default: 3)",
        "--help                                 Print how the tool is used.",
        "--timeout <Seconds>                    How long to try to reach the cluster,",
        "                                         and for answers. Kafka's own tool",
        "                                         has no such option.",
        "--version                              Print the version of Kafka whose tool",
        "                                         this is.",
    ]


def test_words_are_broken_after_hyphens() -> None:
    left = [line[:39].rstrip() for line in help_text(TOPICS).splitlines()]
    at = left.index("--partition-size-limit-per-response")
    assert left[at : at + 3] == [
        "--partition-size-limit-per-response",
        "  <Integer: maximum number of",
        "  partitions per response>",
    ]


def test_required_options_are_marked_and_unsupported_ones_say_why() -> None:
    program = Program(
        "tool", "A tool.", (Option("at", "Where.", is_required=True), Option("old", "Gone.", why_not="so it is"))
    )
    lines = help_text(program).splitlines()
    assert lines[0].startswith("Option (* = required)  Description")
    assert lines[2].startswith("* --at")
    assert "Gone. Not supported: so it is." in "".join(lines)


def test_no_line_is_longer_than_a_terminal() -> None:
    assert max(map(len, help_text(TOPICS).splitlines())) <= 80
