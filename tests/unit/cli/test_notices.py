"""What tools say on standard error while they cannot reach the cluster."""

import io

import pytest

from ottla.cli import notices
from ottla.cli.failures import error_text
from ottla.cli.java_names import java_error_text
from ottla.cli.notices import Notices
from ottla.client.client_log import ERROR, INFO, WARNING, Line
from ottla.client.errors import NoBrokerReachable

HERE, THERE = ("broker", "here:9092"), ("broker", "there:9092")


class Screen:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, timeout_s: float | None = 60, *, is_live: bool = False) -> None:
        self.now_s = 100.0
        monkeypatch.setattr(notices, "monotonic", lambda: self.now_s)
        self.stream = io.StringIO()
        self.notices = Notices("kafka-topics", timeout_s, self.stream, is_live=is_live)

    def tell(self, level: int, about: object, text: str) -> None:
        self.notices.write(Line(level, about, text, "admin-1"), 0.0)  # type: ignore[arg-type]

    def shown(self) -> list[str]:
        """The lines of the terminal, as the control sequences leave them."""
        lines = [""]
        text = self.stream.getvalue()
        while text:
            if text.startswith("\x1b[A"):
                lines.pop()
                text = text[3:]
            elif text.startswith("\r\x1b[K"):
                lines[-1] = ""
                text = text[4:]
            elif text.startswith("\n"):
                lines.append("")
                text = text[1:]
            else:
                lines[-1] += text[0]
                text = text[1:]
        return [line for line in lines if line]


def test_a_refused_connection_is_told_at_once_with_how_long_it_is_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.tell(WARNING, HERE, "cannot connect to here:9092: connection refused; next try in 0.1 s")
    screen.now_s += 14.2
    screen.tell(WARNING, HERE, "cannot connect to here:9092: connection refused; next try in 0.9 s (5 more like it)")
    screen.tell(INFO, HERE, "connected to here:9092 after 15.0 s")
    assert screen.stream.getvalue().splitlines() == [
        "kafka-topics: cannot connect to here:9092: connection refused; trying again for 60 s",
        "kafka-topics: cannot connect to here:9092: connection refused; trying again for 46 s",
    ]


def test_on_a_terminal_it_is_one_line_that_goes_away(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, is_live=True)
    screen.stream.write("12 records consumed")  # a line of progress, which has no end
    screen.tell(WARNING, HERE, "cannot connect to here:9092: connection refused; next try in 0.1 s")
    screen.now_s += 1
    screen.tell(WARNING, HERE, "cannot connect to here:9092: connection refused; next try in 0.2 s")
    assert screen.shown() == ["cannot connect to here:9092: connection refused; trying again for 59 s"]
    screen.tell(INFO, HERE, "connected to here:9092 after 1.0 s")
    assert screen.shown() == []


@pytest.mark.parametrize("width", [20, 40, 79])
def test_a_line_never_is_wider_than_the_terminal_and_keeps_its_end(width: int) -> None:
    text = "cannot connect to broker-12.kafka.eu-west-1.example.com:9092: connection refused; trying again for 59 s"
    line = notices._fitted("kafka-topics", text, width)
    assert len(line) <= width
    assert line.endswith(" 59 s")


def test_several_brokers_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch, timeout_s=None)
    screen.tell(WARNING, HERE, "cannot connect to here:9092: connection refused; next try in 0.1 s")
    screen.tell(WARNING, THERE, "cannot connect to there:9092: connection refused; next try in 0.1 s")
    assert screen.shown()[1:] == [
        "kafka-topics: cannot connect to there:9092: connection refused (and 1 more); trying again"
    ]


def test_what_is_not_tried_again_is_left_to_the_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.tell(ERROR, HERE, "here:9092 is not a Kafka broker: it speaks HTTP")
    assert screen.shown() == []


def test_other_warnings_of_clients_are_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(monkeypatch)
    screen.tell(WARNING, ("topic", "ordres"), "topic 'ordres' does not exist")
    screen.tell(INFO, ("group", "shop"), "joined")
    assert screen.shown() == ["kafka-topics: topic 'ordres' does not exist"]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        ("list_topics", "Timed out waiting for a node assignment. Call: listTopics"),
        ("incremental_alter_configs", "Timed out waiting for a node assignment. Call: incrementalAlterConfigs"),
        (
            "describe_consumer_groups",
            "Timed out waiting for a node assignment. Call: describeConsumerGroups(api=FIND_COORDINATOR)",
        ),
        (
            "list_consumer_groups",
            "Failed to find brokers to send ListGroups: Timed out waiting for a node assignment. Call: findAllBrokers",
        ),
    ],
)
def test_a_cluster_that_is_not_reached_is_told_in_the_words_of_kafkas_tools(call: str, words: str) -> None:
    """As Apache Kafka 4.3.1 prints them; with the reason, which it does not tell."""
    problem = NoBrokerReachable("cannot connect to here:9092: connection refused")
    problem.call = call
    assert error_text(problem) == f"{words} (cannot connect to here:9092: connection refused)"
    assert java_error_text(problem).startswith(f"org.apache.kafka.common.errors.TimeoutException: {words}")
