r"""Expressions of clients: what Kafka takes and refuses, and how long they may take.

The verdicts are those of Apache Kafka 4.3.1, asked with ConsumerGroupHeartbeat and ListTransactions; its library is
RE2/J 1.8.
"""

import re
import time
from random import Random

import pytest

from ottla.machines.patterns import ClientPattern, InvalidPattern

EXPRESSIONS = [
    "pl.*n", "a|b|cd", "(ab)*c", r"[a-c]+\d{2,3}", "^foo$", "foo.*|^$", "(?i)AbC", "(?:x|y)?z{2}", "[^a-z]+", "a{0}b",
    "(a|b){2,}", "x*", "", "a?b?c?", r"[a\-z]+", r"orders[.]v\d+", "(a(b(c)?)?)?", "^(a|^b)c$", "(?i:a)b", r"\w+\.\w+",
    "a-b", "[.-]+", "[a-]", "(|a)b", "(?P<name>a+)b*?", r"\S\D", "(a+)+b", "[]a]+",
]  # fmt: skip

REFUSED_BY_KAFKA = [
    "(", ")", "a)", "[a", "[a-", "[b-a]", "*", "+", "*a", "a**", "a*+", "a{2}{3}", "a{5,2}", "a{1001}", "a{2000}",
    "a{99999999}", "a{99999999999}", "a{1,99999999999}", r"\1", r"\8", r"\Z", r"\G", r"\R", r"\h", r"\x", r"\x{110000}",
    r"\p{Foo}", "[[:foo:]]", "(?", "(?=a)", "(?!a)", "(?<=a)b", "(?<!a)b", "(?>a)", "(?x)a", "(?#c)", "(?i", "(?P<n>a",
    "(?<name", "(?P=n)", "(?P<>a)", "\\",
]  # fmt: skip

TAKEN_BY_KAFKA = [
    ("(" * 400 + "a" + ")" * 400, "a"),
    ("(" * 2000 + "a" + ")" * 2000, "a"),
    ("(a+)+", "a" * 60),
    ("a{1000}", "a" * 1000),
    ("a{,5}", "a{,5}"),
    ("{", "{"),
    (r"\pN+", "7"),
    (r"\p{Greek}", "λ"),
    (r"\bfoo\b", "foo"),
    ("[[:alpha:]]+", "orders"),
    (r"\Qa.b\E+", "a.bbb"),
    (r"\Aorders\z", "orders"),
    ("(?<name>a)", "a"),
    ("(?s).", "\n"),
    ("(?i)É", "é"),
    ("x" * 32000, "x" * 32000),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_match_what_they_match_elsewhere(expression: str) -> None:
    random = Random(1)
    names = ["".join(random.choice("abcxyz01._-ABC") for _ in range(random.randint(0, 5))) for _ in range(2000)]
    names += ["plain", "foo", "orders.v12", "a.b", "zz", "xzz"]
    elsewhere, ours = re.compile(expression), ClientPattern(expression)
    assert [name for name in names if ours.matches(name)] == [name for name in names if elsewhere.fullmatch(name)]


@pytest.mark.parametrize("expression", REFUSED_BY_KAFKA)
def test_what_kafka_refuses_is_refused(expression: str) -> None:
    with pytest.raises(InvalidPattern):
        ClientPattern(expression)


@pytest.mark.parametrize(("expression", "text"), TAKEN_BY_KAFKA, ids=lambda text: text[:20])
def test_what_kafka_takes_is_taken(expression: str, text: str) -> None:
    assert ClientPattern(expression).matches(text)
    assert not ClientPattern(expression).matches(f"{text}\n{text}")


def test_the_whole_text_must_match() -> None:
    assert not ClientPattern("order").matches("orders")
    assert not ClientPattern("rders").matches("orders")


def test_a_list_of_three_thousand_topics_is_an_expression() -> None:
    names = [f"topic-{number}" for number in range(3000)]
    assert ClientPattern("|".join(names)).matches(names[-1])


def test_what_needs_too_much_memory_is_refused() -> None:
    with pytest.raises(InvalidPattern):
        ClientPattern("(a{1000}){1000}")
    with pytest.raises(InvalidPattern):
        ClientPattern(r"[\pL\pN]{1000}")


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("(a+)+b", "a" * 249),
        ("(a*)*(a*)*(a|a)*b", "a" * 249),
        ("(.*a.{20}){40}c", "ab" * 124),
        (".*a" * 2000, "b" * 249),
    ],
)
def test_an_expression_cannot_hold_the_node_up(expression: str, name: str) -> None:
    """Where backtracking takes for ever, this takes less than 2 ms of the processor for a topic's name."""
    pattern = ClientPattern(expression)
    started = time.process_time()
    for _ in range(50):
        assert not pattern.matches(name)
    assert time.process_time() - started < 50 * 0.002
