"""Words to values, by the rules that Kafka's tools have."""

import pytest

from ottla.cli.options.reading import MissingOption, OptionError, read
from ottla.cli.options.table import Option, Program

PROGRAM = Program(
    "tool",
    "A tool.",
    (
        Option("list", "A flag."),
        Option("topic", "May be repeated.", "String", "topic"),
        Option("count", "A number.", "Integer", "count", default="7"),
        Option("size", "A long number.", "Long"),
        Option("state", "With or without.", "String", is_optional=True),
        Option("wait", "A number, or none.", "Long", is_optional=True),
        Option("names", "Several.", "String", separator=","),
        Option("gone", "Was there.", "String", why_not="nobody needs it"),
    ),
)


def test_a_value_is_the_next_word_or_after_an_equals_sign_and_one_hyphen_does() -> None:
    assert read(PROGRAM, ["--topic", "a"]).get("topic") == "a"
    assert read(PROGRAM, ["--topic=a=b"]).get("topic") == "a=b"
    assert read(PROGRAM, ["-topic", "a"]).get("topic") == "a"


def test_an_option_that_needs_an_argument_takes_the_next_word_whatever_it_is() -> None:
    given = read(PROGRAM, ["--topic", "--list"])
    assert given.get("topic") == "--list"
    assert "list" not in given


def test_an_optional_argument_is_none_if_the_next_word_is_an_option() -> None:
    assert read(PROGRAM, ["--state", "--list"]).all("state") == []
    assert read(PROGRAM, ["--state", "stable"]).get("state") == "stable"
    assert "state" in read(PROGRAM, ["--state"])


def test_an_optional_number_may_be_negative_and_is_none_if_the_next_word_is_no_number() -> None:
    assert read(PROGRAM, ["--wait", "-1", "--list"]).get_integer("wait") == -1
    assert read(PROGRAM, ["--wait", "soon"]).get_integer("wait") is None


def test_a_flag_ignores_a_value_and_other_words_are_left_over() -> None:
    given = read(PROGRAM, ["one", "--list=yes", "two", "--", "--nonsense"])
    assert "list" in given


def test_repeated_options_are_all_there_and_one_alone_is_not_chosen() -> None:
    given = read(PROGRAM, ["--topic", "a", "--topic", "b"])
    assert given.all("topic") == ["a", "b"]
    with pytest.raises(OptionError, match="Found multiple arguments for option topic, but you asked for only one"):
        given.get("topic")


def test_one_argument_may_be_several_values() -> None:
    assert read(PROGRAM, ["--names", "a,b", "--names", "c"]).all("names") == ["a", "b", "c"]


@pytest.mark.parametrize("word", ["x", "2147483648", "1_0", " 1"])
def test_a_number_is_looked_at_when_it_is_asked_for(word: str) -> None:
    given = read(PROGRAM, ["--count", word])
    with pytest.raises(OptionError, match=f"Cannot parse argument '{word}' of option count"):
        given.integer("count")


def test_a_default_is_the_value_and_the_option_is_not_given() -> None:
    given = read(PROGRAM, [])
    assert given.integer("count") == 7
    assert "count" not in given
    assert read(PROGRAM, ["--size", "2147483648"]).integer("size") == 2**31


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--nonsense"], "nonsense is not a recognized option"),
        (["--lis"], "lis is not a recognized option (did you mean list?)"),
        (["-xyz"], "x is not a recognized option"),
        (["--topic"], "Option topic requires an argument"),
        (["--gone", "x"], "Option gone is not supported: nobody needs it"),
    ],
)
def test_what_cannot_be_read_is_told_by_name(words: list[str], complaint: str) -> None:
    with pytest.raises(OptionError) as told:
        read(PROGRAM, words)
    assert str(told.value) == complaint


def test_a_required_option_is_missed_unless_only_help_is_asked_for() -> None:
    program = Program("tool", "A tool.", (Option("at", "Where.", "String", is_required=True),))
    with pytest.raises(MissingOption, match=r"Missing required option\(s\) \[at\]"):
        read(program, [])
    assert "help" in read(program, ["--help"])
