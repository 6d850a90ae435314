"""The records of many decisions in one append: what is written together, and what becomes of a write that fails."""

from errno import ENOSPC
from typing import Any

import pytest

from ottla.broker.coordination.gathered_batch import GatheredBatch
from ottla.broker.coordination.waiters import ParkedRequest
from ottla.broker.partitions import quick_append
from ottla.broker.partitions.partition import Partition
from ottla.machines.coordinator_machine import Answer, CoordinatorDecision, Timer, TransactionStamp
from ottla.records.control import EndTransactionMarker
from ottla.runtime.attribution import work_for
from ottla.wire.errors import ErrorCode
from tests.unit.broker.coordination.numbers_bench import Bench, Told, follower_fetched, of_two_replicas, record

STAMP = TransactionStamp(7, 3)


class Turns:
    """A node's turns, each of which ends when the test says so."""

    def __init__(self, bench: Bench) -> None:
        self._endings: list[Any] = []
        bench.node.network.at_end_of_turn = self._endings.append

    def end(self) -> None:
        endings, self._endings[:] = list(self._endings), []
        for ending in endings:
            ending()


def in_turns(**topic: Any) -> tuple[Bench, Turns]:
    bench = Bench(**topic)
    return bench, Turns(bench)


def counts(bench: Bench) -> list[int]:
    """The number of records in each batch of the log."""
    return [header.record_count for header in bench.headers()]


def test_what_one_turn_decides_is_one_batch() -> None:
    bench, turns = in_turns()
    told = [bench.put(name, 1) for name in "abc"]
    assert (counts(bench), [one.replies for one in told]) == ([], [[], [], []])
    turns.end()
    assert counts(bench) == [3]
    assert [one.replies for one in told] == [["a: None -> 1"], ["b: None -> 1"], ["c: None -> 1"]]
    bench.put("d", 1)
    turns.end()
    assert counts(bench) == [3, 1]
    assert bench.restarted().made[0].numbers == dict.fromkeys("abcd", 1)


def test_a_decision_sees_what_was_decided_before_it_in_the_same_turn() -> None:
    bench, turns = in_turns()
    first, second, read = bench.put("a", 1), bench.put("a", 2), bench.get("a")
    assert read.replies == [], "it has seen what is not even written"
    turns.end()
    assert (first.replies, second.replies, read.replies) == (["a: None -> 1"], ["a: 1 -> 2"], [2])


def test_a_batch_is_committed_for_all_who_wait_for_it() -> None:
    bench, turns = in_turns(**of_two_replicas())
    told = [bench.put("a", 1), bench.put("b", 2), bench.get("a")]
    turns.end()
    assert len(bench.node.broker.partitions.purgatory) == 1
    assert all(one.replies == [] for one in told)
    follower_fetched(bench)
    assert [one.replies for one in told] == [["a: None -> 1"], ["b: None -> 2"], [1]]


def test_a_read_of_what_is_written_waits_for_no_turn() -> None:
    bench, turns = in_turns()
    bench.put("a", 1)
    turns.end()
    assert bench.get("a").replies == [1]


def test_a_batch_does_not_grow_beyond_what_the_topic_takes() -> None:
    bench, turns = in_turns(max_message_bytes="400")
    told = [bench.put(f"name-{number}", number) for number in range(20)]
    turns.end()
    assert all(one.replies for one in told)
    assert 1 < len(bench.headers()) < 10
    assert all(header.size <= 400 for header in bench.headers())


def test_what_is_too_large_takes_nobody_with_it() -> None:
    bench, turns = in_turns(max_message_bytes="200")
    first, large, last = bench.put("a", 1), bench.put("b" * 300, 2), bench.put("c", 3)
    assert large.errors == [ErrorCode.MESSAGE_TOO_LARGE]
    turns.end()
    assert (first.replies, last.replies) == (["a: None -> 1"], ["c: None -> 3"])
    assert len(bench.made) == 1


def test_records_of_a_transaction_have_a_batch_of_their_own() -> None:
    bench, turns = in_turns()
    bench.put("a", 1)
    bench.put("of 7", 2, transaction=STAMP)
    bench.put("of 7 too", 2, transaction=STAMP)
    bench.put("b", 3)
    told = Told()
    bench.coordinator.partitions[0].end_transaction(STAMP, EndTransactionMarker(True, 0), told.then, told.failed)
    turns.end()
    assert told.replies == [None]
    found = [(header.is_transactional, header.is_control, header.record_count) for header in bench.headers()]
    assert found == [(False, False, 1), (True, False, 2), (False, False, 1), (True, True, 1)]


def test_who_is_told_may_ask_for_more_at_once_and_comes_after_what_is_decided() -> None:
    bench, turns = in_turns(max_message_bytes="300")
    names = [letter * 100 for letter in "abc"]
    late: list[Told] = []
    bench.coordinator.submit(
        "any key",
        lambda machine, now_ms: machine.put(names[0], 1),
        lambda _: late.append(bench.put(names[2], 3)),
        lambda _: None,
    )
    second = bench.put(names[1], 2)  # Which finds no room, so that the first is appended now, and told of later.
    assert (counts(bench), late) == ([1], [])
    turns.end()
    turns.end()
    assert (second.replies, late[0].replies) == ([f"{names[1]}: None -> 2"], [f"{names[2]}: None -> 3"])
    assert list(bench.restarted().made[0].numbers) == names


def test_a_marker_comes_before_what_is_asked_for_when_the_batch_before_it_is_told_of() -> None:
    bench, turns = in_turns()
    bench.put("of 7", 2, transaction=STAMP)
    bench.coordinator.submit(
        "any key",
        lambda machine, now_ms: machine.put("a", 1),
        lambda _: bench.put("of 7", 9),
        lambda _: None,
    )
    told = Told()
    bench.coordinator.partitions[0].end_transaction(STAMP, EndTransactionMarker(True, 0), told.then, told.failed)
    turns.end()
    assert bench.made[0].numbers == bench.restarted().made[0].numbers == {"a": 1, "of 7": 9}


@pytest.mark.parametrize(("linger_ms", "gathered"), [(0, [1, 1]), (20, [2])])
def test_how_long_records_are_gathered_is_a_setting(linger_ms: int, gathered: list[int]) -> None:
    bench, _ = in_turns(linger_ms=linger_ms)
    bench.put("a", 1)
    bench.put("b", 2)
    bench.node.timers.advance(20)
    assert counts(bench) == gathered


def test_a_decision_may_be_followed_by_another_once_its_records_are_replayed() -> None:
    bench, turns = in_turns()

    def decide(machine: Any, now_ms: int) -> CoordinatorDecision[str]:
        return CoordinatorDecision("done", [record("a", 1)], followed_by=lambda machine, now_ms: machine.put("a", 2))

    told = bench.submit(decide)
    turns.end()
    assert (told.replies, bench.made[0].numbers, counts(bench)) == (["done"], {"a": 2}, [2])


def test_what_follows_a_decision_that_is_refused_never_happens() -> None:
    bench, turns = in_turns(max_message_bytes="200")
    follows: list[None] = []
    told = bench.put("a" * 300, 1, followed_by=lambda *_: follows.append(None))
    turns.end()
    assert (told.errors, follows) == ([ErrorCode.MESSAGE_TOO_LARGE], [])


def test_a_node_that_stops_writes_what_is_decided() -> None:
    bench, _ = in_turns()
    told = bench.put("a", 1)
    bench.coordinator.close()
    assert (told.replies, counts(bench)) == (["a: None -> 1"], [1])


def test_a_node_that_loses_the_partition_does_not_write_what_it_has_decided() -> None:
    bench, turns = in_turns(**of_two_replicas())
    told = bench.put("a", 1)
    bench.node.change_partition("numbers", leader=2)
    bench.on_leadership()
    turns.end()
    assert (told.errors, counts(bench)) == ([ErrorCode.NOT_COORDINATOR], [])


# When the append fails


class FullDisk:
    """Appends to the partition fail while it is full."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.is_full = True
        for owner, name in (
            (Partition, "append_as_leader"),
            (Partition, "append_made_here"),
            (quick_append, "append_made_here"),
        ):
            monkeypatch.setattr(owner, name, self._failing(getattr(owner, name)))

    def _failing(self, append: Any) -> Any:
        def fails(partition: Partition, *args: Any) -> Any:
            if self.is_full:
                raise OSError(ENOSPC, "no space")
            return append(partition, *args)

        return fails


def test_a_batch_that_cannot_be_appended_never_was(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, turns = in_turns()
    bench.put("a", 1)
    turns.end()
    disk = FullDisk(monkeypatch)
    waiter, parked = Told(), Told()
    bench.made[0].waiting = [parked]
    told = [bench.put("a", 2), bench.put("b", 3, answers=[Answer(waiter, "never")]), bench.get("a")]
    assert bench.made[0].numbers == {"a": 2, "b": 3}
    turns.end()
    assert [one.errors for one in (*told, waiter, parked)] == [[ErrorCode.NOT_COORDINATOR]] * 5
    assert bench.made[1].numbers == {"a": 1}, "it is loaded anew"
    assert bench.get("a").replies == [1]
    disk.is_full = False


def test_what_was_decided_on_top_of_a_batch_that_fails_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, turns = in_turns(max_message_bytes="300")
    FullDisk(monkeypatch)
    first = bench.put("a" * 100, 1)
    second = bench.put("a" * 100, 2)  # Which finds no room, so that the first is written now.
    assert first.errors == [ErrorCode.NOT_COORDINATOR]
    assert second.errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    turns.end()
    assert [machine.numbers for machine in bench.made] == [{"a" * 100: 1}, {}], "the second machine never saw it"


def test_what_waits_for_an_earlier_batch_is_still_told(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, turns = in_turns(**of_two_replicas())
    earlier = bench.put("a", 1)
    turns.end()
    FullDisk(monkeypatch)
    later = bench.put("b", 2)
    turns.end()
    assert (earlier.replies, later.errors) == ([], [ErrorCode.NOT_COORDINATOR])
    follower_fetched(bench)
    assert earlier.replies == ["a: None -> 1"]


def test_nothing_is_taken_up_for_a_second_after_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, turns = in_turns()
    disk = FullDisk(monkeypatch)
    bench.put("a", 1)
    turns.end()
    disk.is_full = False
    assert bench.put("a", 2).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert len(bench.made) == 2
    bench.node.timers.advance(1000)
    told = bench.put("a", 3)
    turns.end()
    assert told.replies == ["a: None -> 3"]


def test_timers_of_a_machine_that_is_gone_do_not_fire(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, turns = in_turns()
    fired: list[None] = []
    name = "a timer", "a", None
    bench.put("a", 1, timers=[Timer(name, 5000, lambda *_: fired.append(None))])
    turns.end()
    FullDisk(monkeypatch)
    bench.put("a", 2)
    turns.end()
    bench.node.timers.advance(10_000)
    assert fired == []


def test_a_timer_whose_command_cannot_be_written_fires_again() -> None:
    bench = Bench(replicas=(1, 2), isr=(1,))

    def expire(machine: Any, now_ms: int) -> CoordinatorDecision[None]:
        machine.fired.append("timer")
        return CoordinatorDecision(None, [record("timer", now_ms)])

    bench.put("a", 1, timers=[Timer(("a timer", "a", None), 1000, expire)])
    bench.partition.state.on_min_insync_replicas(2)
    bench.node.timers.advance(1400)
    assert (bench.made[0].fired, "timer" in bench.made[0].numbers) == (["timer"], False)
    bench.partition.state.on_min_insync_replicas(1)
    bench.node.timers.advance(100)
    assert (bench.made[0].fired, "timer" in bench.made[0].numbers) == (["timer"] * 2, True)
    bench.node.timers.advance(5000)
    assert len(bench.made[0].fired) == 2


class Request:
    """A client's request that the loop works for."""

    def __init__(self) -> None:
        self.problems: list[str] = []

    def fail(self, problem: Exception) -> None:
        self.problems.append(str(problem))


def breaks(_: object) -> None:
    raise AssertionError("cannot be told")


@pytest.mark.parametrize("is_later", [False, True])
def test_an_outcome_that_cannot_be_told_fails_its_own_request_and_the_others_are_told(is_later: bool) -> None:
    bench, turns = in_turns(**(of_two_replicas() if is_later else {}))
    request, other = Request(), Request()

    def ask() -> None:
        bench.coordinator.submit("any key", lambda machine, _: machine.put("a", 1), breaks, breaks)

    work_for(request, ask)
    told = bench.put("b", 2)
    work_for(other, lambda: bench.put("c", 3))
    turns.end()
    if is_later:
        follower_fetched(bench)
    assert request.problems == ["cannot be told"]
    assert other.problems == []
    assert told.replies == ["b: None -> 2"]


def test_a_waiter_that_cannot_be_told_fails_the_request_that_was_parked() -> None:
    bench, turns = in_turns()
    parked, deciding = Request(), Request()
    waiters: list[ParkedRequest] = []
    work_for(parked, lambda: waiters.append(ParkedRequest(breaks, breaks)))  # type: ignore[arg-type]
    answers = [Answer(waiters[0], "a reply")]
    work_for(deciding, lambda: bench.put("a", 1, answers=answers))
    turns.end()
    assert (parked.problems, deciding.problems) == (["cannot be told"], [])


def test_a_batch_that_cannot_be_made_is_an_append_that_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    bench, turns = in_turns()
    told = bench.put("a", 1)
    monkeypatch.setattr(GatheredBatch, "build", breaks)
    turns.end()
    assert told.errors == [ErrorCode.UNKNOWN_SERVER_ERROR]
    monkeypatch.undo()
    assert bench.made[-1].numbers == {}, "loaded anew, without what is not in the log"
