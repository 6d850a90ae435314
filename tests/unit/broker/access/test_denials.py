"""The audit log: what a line says, that a name cannot make two of it, and that there are never too many."""

import json
import logging

import pytest

from ottla.serving.access.denials import LONGEST_NAME, MOST_PER_SECOND, Denials
from ottla.wire.acls import AclOperation, AclResource

NASTY = 'x"}\n{"event": "allowed"}\r\x1b[2J\u2028end'


class Clock:
    now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


def note(denials: Denials, name: str = "orders", principal: str = "User:alice") -> None:
    denials.note(principal, "10.0.0.1", AclOperation.READ, AclResource.TOPIC, name, "FETCH")


@pytest.fixture(autouse=True)
def at_info(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "ottla.audit")


def test_a_line_says_who_was_refused_what(caplog: pytest.LogCaptureFixture) -> None:
    note(Denials(Clock()))
    assert [json.loads(message) for message in caplog.messages] == [
        {
            "event": "denied",
            "principal": "User:alice",
            "host": "10.0.0.1",
            "operation": "READ",
            "resource": "TOPIC",
            "name": "orders",
            "api": "FETCH",
        }
    ]


def test_vulnerability_log_injection_makes_no_second_line(caplog: pytest.LogCaptureFixture) -> None:
    note(Denials(Clock()), NASTY, f"User:{NASTY}")
    (message,) = caplog.messages
    assert len(message.splitlines()) == 1
    assert message.isprintable()
    assert message.isascii()
    assert json.loads(message)["name"] == NASTY


def test_a_long_name_is_cut(caplog: pytest.LogCaptureFixture) -> None:
    note(Denials(Clock()), "x" * 30_000)
    assert json.loads(caplog.messages[0])["name"] == "x" * LONGEST_NAME


def test_a_flood_is_counted_and_not_written(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    denials = Denials(clock)
    for _ in range(MOST_PER_SECOND + 50):
        note(denials)
    assert len(caplog.messages) == MOST_PER_SECOND
    clock.now_s += 1
    note(denials)
    note(denials)
    after, next_one = (json.loads(message) for message in caplog.messages[MOST_PER_SECOND:])
    assert after["left_out"] == 50
    assert "left_out" not in next_one
