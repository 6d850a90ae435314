"""A group or a transactional id that contradicts itself goes offline by name, and takes nobody with it."""

import logging
from typing import Any

import pytest

from ottla.machines.coordinator_machine import Broken, CoordinatorDecision, Timer
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from tests.unit.broker.coordination.numbers_bench import Bench, Numbers, Told, record

BAD = -13
"""A number that a machine cannot take."""


@pytest.fixture(autouse=True)
def superstition(monkeypatch: pytest.MonkeyPatch) -> None:
    replay = Numbers.replay

    def checked(machine: Numbers, key: Message, value: Message | None) -> None:
        assert value is None or value.offset != BAD, "nobody has this number"  # type: ignore[attr-defined]
        replay(machine, key, value)

    monkeypatch.setattr(Numbers, "replay", checked)


def put(bench: Bench, name: str, number: int) -> Told:
    told = Told()
    bench.coordinator.submit(name, lambda machine, now_ms: machine.put(name, number), told.then, told.failed)
    return told


def raises(*_: Any) -> Any:
    raise RuntimeError("this cannot be")


def test_a_command_that_raises_takes_its_subject_offline(caplog: pytest.LogCaptureFixture) -> None:
    bench = Bench()
    put(bench, "a", 1), put(bench, "b", 1)
    waiting, told = Told(), Told()
    bench.made[0].waiting = [waiting]
    bench.coordinator.submit("a", raises, told.then, told.failed)
    assert told.errors == waiting.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert put(bench, "a", 2).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert put(bench, "b", 2).replies == ["b: 1 -> 2"]
    assert [entry.getMessage() for entry in caplog.records if entry.levelno == logging.ERROR] == [
        "a failed, and is unavailable until numbers-0 is loaded again"
    ]


@pytest.mark.parametrize("is_known_by", ["the command", "the machine"])
def test_a_command_that_only_reads_costs_its_client_alone(
    is_known_by: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    put(bench, "a", 1)
    waiting, told = Told(), Told()
    bench.made[0].waiting = [waiting]
    monkeypatch.setattr(Numbers, "has_soft_state", is_known_by == "the command")
    bench.coordinator.submit("a", raises, told.then, told.failed, only_reads=is_known_by == "the command")
    assert told.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert waiting.errors == []
    assert put(bench, "a", 2).replies == ["a: 1 -> 2"]
    [logged] = [entry for entry in caplog.records if entry.levelno == logging.ERROR]
    assert logged.getMessage() == "a command about a of numbers-0 failed"
    assert logged.exc_info is not None


def test_an_assertion_takes_its_subject_offline_whatever_the_command() -> None:
    bench = Bench()
    put(bench, "a", 1)

    def contradicts(*_: Any) -> Any:
        raise AssertionError("a state that cannot be")

    told = Told()
    bench.coordinator.submit("a", contradicts, told.then, told.failed, only_reads=True)
    assert told.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert put(bench, "a", 2).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_a_record_that_raises_takes_its_subject_offline_and_is_not_written() -> None:
    bench = Bench()
    put(bench, "a", 1), put(bench, "b", 1)
    assert put(bench, "a", BAD).errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert put(bench, "b", 2).replies == ["b: 1 -> 2"]
    assert bench.restarted().made[0].numbers == {"a": 1, "b": 2}, "the log has nothing of it"


def test_of_a_decision_about_all_of_them_the_others_are_written() -> None:
    bench = Bench()
    records = [record("a", 1), record("b", BAD), record("b", 2), record("c", 3)]
    told = Told()
    bench.coordinator.partitions[0].submit(
        lambda machine, now_ms: CoordinatorDecision("done", records), told.then, told.failed
    )
    assert told.replies == ["done"]
    assert bench.restarted().made[0].numbers == {"a": 1, "c": 3}
    assert bench.coordinator.partitions[0].offline == {"b"}


def test_a_command_for_all_of_them_may_come_upon_a_broken_one() -> None:
    bench = Bench()
    put(bench, "a", 1)
    bench.submit(lambda machine, now_ms: CoordinatorDecision(None, broken=[Broken("a", ValueError("odd"))]))
    assert put(bench, "a", 2).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert put(bench, "b", 2).replies == ["b: None -> 2"]


def test_a_timer_that_raises_takes_its_subject_offline_and_does_not_fire_again() -> None:
    bench = Bench()
    fired: list[None] = []

    def expire(*_: Any) -> Any:
        fired.append(None)
        raise RuntimeError("this cannot be")

    bench.put("a", 1, timers=[Timer(("a timer", "a", None), 1000, expire)])
    bench.node.timers.advance(5000)
    assert len(fired) == 1
    assert put(bench, "a", 2).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert put(bench, "b", 2).replies == ["b: None -> 2"]


def test_what_follows_a_decision_may_raise() -> None:
    bench = Bench()
    told = Told()
    bench.coordinator.submit(
        "a",
        lambda machine, now_ms: machine.put("a", 1, followed_by=raises),
        told.then,
        told.failed,
    )
    assert (told.replies, told.errors) == ([], [ErrorCode.UNKNOWN_SERVER_ERROR])
    assert bench.coordinator.partitions[0].offline == {"a"}


def test_a_log_with_a_record_that_raises_is_loaded_without_its_subject(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as before:
        before.setattr(Numbers, "replay", lambda *_: None)
        bench = Bench()
        for name, number in (("a", 1), ("b", BAD), ("c", 3)):
            put(bench, name, number)
    again = bench.restarted()
    assert again.made[0].numbers == {"a": 1, "c": 3}
    assert put(again, "b", 1).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert put(again, "a", 2).replies == ["a: 1 -> 2"]


def test_what_is_offline_is_tried_again_when_the_partition_is_loaded_anew() -> None:
    bench = Bench()
    put(bench, "a", 1)
    bench.coordinator.submit("a", raises, lambda _: None, lambda _: None)
    bench.node.change_partition("numbers", leader=1)
    bench.on_leadership()
    assert put(bench, "a", 2).replies == ["a: 1 -> 2"]


def test_what_has_no_form_in_the_log_is_refused_and_breaks_nothing() -> None:
    bench = Bench()
    name = "a" * 40_000  # Strings have at most 32,767 bytes.
    assert put(bench, name, 1).errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert (bench.made[0].refused, bench.made[0].numbers) == ([name], {})
    assert bench.coordinator.partitions[0].offline == set()


def test_a_read_that_raises_is_the_readers_affair() -> None:
    bench = Bench()
    put(bench, "a", 1)
    told = Told()
    bench.coordinator.query("a", raises, told.then, told.failed)
    assert told.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert put(bench, "a", 2).replies == ["a: 1 -> 2"]


def test_a_partition_that_is_broken_as_a_whole_is_not_coordinated_any_more() -> None:
    bench = Bench()
    bench.coordinator.partitions[0].submit(raises, lambda _: None, lambda _: None)
    assert put(bench, "a", 1).errors == [ErrorCode.NOT_COORDINATOR]


def test_a_partition_that_is_found_to_be_broken_while_it_is_loaded_stays_closed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its log has a record that raises and is about nobody; more of the log comes after it."""
    with monkeypatch.context() as before:
        before.setattr(Numbers, "replay", lambda *_: None)
        bench = Bench()
        for name, number in (("a", 1), ("b", BAD), ("c", 3)):
            put(bench, name, number)
    monkeypatch.setattr(Numbers, "subject_of", lambda *_: None)
    again = bench.restarted()
    assert again.coordinator.partitions[0].is_closed
    assert "c" not in again.made[0].numbers, "nothing is replayed after that"
    assert put(again, "a", 2).errors == [ErrorCode.NOT_COORDINATOR]


def test_a_record_that_raises_and_is_about_nobody_closes_the_partition_and_its_client_is_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = Bench()
    monkeypatch.setattr(Numbers, "subject_of", lambda *_: None)
    assert put(bench, "a", BAD).errors == [ErrorCode.NOT_COORDINATOR]
    assert bench.coordinator.partitions[0].is_closed


def test_a_client_that_cannot_be_told_keeps_nobody_from_being_told() -> None:
    bench = Bench()
    endings: list[Any] = []
    bench.node.network.at_end_of_turn = endings.append
    bench.coordinator.submit("a", lambda machine, now_ms: machine.put("a", 1), raises, raises)
    told = put(bench, "b", 2)
    endings.pop()()
    assert told.replies == ["b: None -> 2"]
