"""The driver of log-backed coordinators: deciding, waiting for the commit, loading, transactions, timers, placement."""

from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.broker.coordination.loading import Loading
from ottla.broker.coordination.placement import java_string_hash, partition_of
from ottla.log.partition_log import PartitionLog
from ottla.machines.coordinator_machine import Answer, CoordinatorDecision, Timer, TransactionStamp
from ottla.records.control import EndTransactionMarker
from ottla.wire.errors import ErrorCode
from ottla.wire.record_values import CoordinatorTopic
from tests.unit.broker.brokers import NODE_ID
from tests.unit.broker.coordination.numbers_bench import (
    TOPIC,
    Bench,
    Numbers,
    T,
    Told,
    follower_fetched,
    of_two_replicas,
    record,
)


class Silent:
    """Nobody is interested in how a loading goes."""

    def on_loaded(self) -> None: ...

    def on_unreadable(self, problem: Exception) -> None:
        raise problem

    def take_offline(self, subject: str | None, problem: Exception) -> None:
        raise problem


def test_a_decision_is_in_the_log_and_in_the_machine_when_its_reply_is_given() -> None:
    bench = Bench()
    assert bench.put("a", 1).replies == ["a: None -> 1"]
    assert bench.put("a", 2).replies == ["a: 1 -> 2"]
    assert bench.get("a").replies == [2]
    assert bench.partition.log.log_end_offset == 2


def test_a_batch_looks_as_kafkas_coordinators_write_it() -> None:
    bench = Bench()
    bench.submit(lambda machine, now_ms: CoordinatorDecision(None, [record("a", 1), record("b", 2)]))
    (header,) = bench.headers()
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (-1, -1, 0)
    assert (header.record_count, header.base_timestamp, header.max_timestamp) == (2, *[bench.node.clock.now_ms()] * 2)


def test_a_reply_waits_until_the_records_are_replicated() -> None:
    bench = Bench(**of_two_replicas())
    told = bench.put("a", 1)
    assert told.replies == []
    follower_fetched(bench)
    assert told.replies == ["a: None -> 1"]


def test_a_read_waits_for_what_it_has_seen() -> None:
    bench = Bench(**of_two_replicas())
    bench.put("a", 1)
    read = bench.get("a")
    assert read.replies == [], "what it has seen may still be lost"
    follower_fetched(bench)
    assert read.replies == [1]
    assert bench.get("a").replies == [1]


def test_the_next_decision_sees_what_is_not_replicated_yet() -> None:
    bench = Bench(**of_two_replicas())
    first, second = bench.put("a", 1), bench.put("a", 2)
    follower_fetched(bench)
    assert first.replies + second.replies == ["a: None -> 1", "a: 1 -> 2"]


def test_who_waits_too_long_is_told_that_there_is_no_coordinator_now() -> None:
    bench = Bench(**of_two_replicas())
    told = bench.put("a", 1)
    bench.node.timers.advance(5000)
    assert told.errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]


def test_nothing_is_written_while_too_few_replicas_are_in_sync() -> None:
    bench = Bench(replicas=(NODE_ID, 2), isr=(NODE_ID,), min_insync_replicas="2")
    assert bench.put("a", 1).errors == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
    assert bench.get("a").replies == [None]


def test_a_disk_that_syncs_first_holds_the_reply_back() -> None:
    bench = Bench(flush_messages="1")
    bench.node.workers.hold()
    told = bench.put("a", 1)
    assert told.replies == []
    bench.node.workers.let_go()
    assert told.replies == ["a: None -> 1"]


def test_a_decision_that_is_too_large_changes_nothing() -> None:
    bench = Bench(max_message_bytes="200")
    told = bench.submit(lambda machine, now_ms: CoordinatorDecision(None, [record("a" * 300, 1)]))
    assert told.errors == [ErrorCode.MESSAGE_TOO_LARGE]
    assert bench.made[0].numbers == {}
    assert bench.partition.log.log_end_offset == 0


def test_records_that_need_not_stay_together_go_into_several_batches() -> None:
    bench = Bench(max_message_bytes="200")
    records = [record(f"name-{number}", number) for number in range(20)]
    bench.submit(lambda machine, now_ms: CoordinatorDecision(None, records, atomic=False))
    assert len(bench.headers()) > 1
    assert all(header.size <= 200 for header in bench.headers())
    assert bench.made[0].numbers == {f"name-{number}": number for number in range(20)}


def test_a_machine_is_told_of_a_decision_that_is_refused() -> None:
    bench = Bench(max_message_bytes="200")
    waiter = Told()
    told = bench.put("a" * 300, 1, answers=[Answer(waiter, "never")])
    assert told.errors == waiter.errors == [ErrorCode.MESSAGE_TOO_LARGE]
    assert waiter.replies == []
    assert bench.made[0].refused == ["a" * 300]


def test_answers_go_to_whoever_waited() -> None:
    bench = Bench(**of_two_replicas())
    joined, refused = Told(), Told()
    answers = [Answer(joined, "welcome"), Answer(refused, ErrorCode.GROUP_MAX_SIZE_REACHED)]
    bench.put("a", 1, answers=answers)
    assert joined.replies == []
    follower_fetched(bench)
    assert joined.replies == ["welcome"]
    assert refused.errors == [ErrorCode.GROUP_MAX_SIZE_REACHED]


# Loading and leaving


def test_a_machine_is_loaded_from_its_log() -> None:
    bench = Bench()
    for number in range(10):
        bench.put(f"name-{number % 4}", number)
    bench.submit(lambda machine, now_ms: CoordinatorDecision(None, [record("name-0", None)]))
    before = bench.made[0].numbers
    again = bench.restarted()
    assert again.made[0].numbers == before == {"name-1": 9, "name-2": 6, "name-3": 7}
    assert again.put("name-1", 1).replies == ["name-1: 9 -> 1"]


def test_a_log_is_loaded_in_pieces() -> None:
    bench = Bench()
    for number in range(50):
        bench.put(f"name-{number}", number)
    again = Bench(bench.stopped(offsets_load_buffer_size="300"))
    assert len(again.made[0].numbers) == 50


@pytest.mark.parametrize(
    ("topic", "setting"),
    [
        (CoordinatorTopic.CONSUMER_OFFSETS, "offsets_load_buffer_size"),
        (CoordinatorTopic.TRANSACTION_STATE, "transaction_state_log_load_buffer_size"),
    ],
)
def test_each_topic_has_its_own_buffer_size(
    topic: CoordinatorTopic, setting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes = []
    read = PartitionLog.read

    def noted(log: PartitionLog, offset: int, max_bytes: int, *more: Any, **named: Any) -> Any:
        sizes.append(max_bytes)
        return read(log, offset, max_bytes, *more, **named)

    bench = Bench()
    bench.put("a", 1)
    node = bench.stopped(**{setting: "777"})
    monkeypatch.setattr(PartitionLog, "read", noted)
    Loading(node.broker.partitions, node.broker.world, node.partition(TOPIC), topic, Numbers(), Silent()).read_on()
    assert sizes[0] == 777


def test_commands_are_refused_while_the_log_is_read() -> None:
    bench = Bench()
    bench.put("a", 1)
    node = bench.stopped()
    node.workers.hold()
    again = Bench(node)
    assert again.put("a", 2).errors == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
    node.workers.let_go()
    assert again.put("a", 2).replies == ["a: 1 -> 2"]


def test_a_node_that_loses_the_partition_forgets_its_machine() -> None:
    bench = Bench(**of_two_replicas())
    told = bench.put("a", 1)
    bench.made[0].waiting = [waiter := Told()]
    bench.node.change_partition(TOPIC, leader=2)
    bench.on_leadership()
    assert told.errors == waiter.errors == [ErrorCode.NOT_COORDINATOR]
    assert bench.put("a", 2).errors == [ErrorCode.NOT_COORDINATOR]
    bench.node.change_partition(TOPIC, leader=NODE_ID)
    bench.on_leadership()
    assert bench.made[1].numbers == {"a": 1}, "it was in the log all the time"


def test_a_new_epoch_of_the_same_leader_loads_anew() -> None:
    bench = Bench()
    bench.put("a", 1)
    bench.on_leadership()
    assert len(bench.made) == 1
    bench.node.change_partition(TOPIC, leader=NODE_ID)
    bench.on_leadership()
    assert len(bench.made) == 2
    assert bench.get("a").replies == [1]


def test_leadership_that_is_lost_while_loading_ends_the_loading() -> None:
    bench = Bench(**of_two_replicas())
    bench.put("a", 1)
    bench.node.workers.hold()
    bench.node.change_partition(TOPIC, leader=NODE_ID)
    bench.on_leadership()
    bench.node.change_partition(TOPIC, leader=2)
    bench.on_leadership()
    bench.node.workers.let_go()
    assert bench.made[1].numbers == {}


# Transactions


def test_what_a_transaction_writes_counts_when_its_marker_says_so() -> None:
    bench = Bench()
    for producer_id, committed in ((7, True), (8, False)):
        stamp = TransactionStamp(producer_id, 3)
        bench.put(f"of {producer_id}", producer_id, transaction=stamp)
        assert bench.get(f"of {producer_id}").replies == [None]
        told = Told()
        marker = EndTransactionMarker(committed, 0)
        bench.coordinator.partitions[0].end_transaction(stamp, marker, told.then, told.failed)
        assert told.replies == [None]
    assert bench.made[0].numbers == {"of 7": 7}
    assert [(h.is_transactional, h.is_control) for h in bench.headers()] == [(True, False), (True, True)] * 2
    assert bench.restarted().made[0].numbers == {"of 7": 7}


def test_a_transaction_stays_open_across_a_restart() -> None:
    bench = Bench()
    bench.put("a", 1, transaction=TransactionStamp(7, 3))
    again = bench.restarted()
    assert again.made[0].open == {7: {"a": 1}}


# Timers


def fires(name: str) -> Any:
    def expire(machine: Numbers, now_ms: int) -> CoordinatorDecision[None]:
        machine.fired.append(name)
        return CoordinatorDecision(None, [record(name, now_ms)])

    return expire


def test_a_timer_is_another_command() -> None:
    bench = Bench()
    bench.put("a", 1, timers=[Timer(T, 1000, fires("late"))])
    bench.node.timers.advance(999)
    assert bench.made[0].fired == []
    bench.node.timers.advance(1)
    assert bench.get("late").replies == [bench.node.clock.now_ms()]
    assert bench.coordinator.partitions[0].timer_count == 0


def test_a_timer_that_is_set_again_is_moved() -> None:
    bench = Bench()
    bench.put("a", 1, timers=[Timer(T, 1000, fires("first"))])
    bench.node.timers.advance(900)
    bench.put("a", 1, timers=[Timer(T, 1000, fires("second"))])
    bench.node.timers.advance(900)
    assert bench.made[0].fired == []
    bench.node.timers.advance(100)
    assert bench.made[0].fired == ["second"]


def test_a_timer_that_is_moved_to_earlier_fires_then_and_once() -> None:
    bench = Bench()
    bench.put("a", 1, timers=[Timer(T, 1000, fires("late"))])
    bench.put("a", 1, timers=[Timer(T, 100, fires("early"))])
    bench.node.timers.advance(100)
    assert bench.made[0].fired == ["early"]
    bench.node.timers.advance(2000)
    assert bench.made[0].fired == ["early"]


def test_moving_a_timer_to_later_again_and_again_costs_the_loop_nothing() -> None:
    bench = Bench()
    bench.put("a", 1, timers=[Timer(T, 1000, fires("first"))])
    on_the_loop = len(bench.node.timers)
    for _ in range(50):
        bench.node.timers.advance(300)
        bench.put("a", 1, timers=[Timer(T, 1000, fires("last"))])
        assert len(bench.node.timers) == on_the_loop
    assert bench.made[0].fired == []
    bench.node.timers.advance(1000)
    assert bench.made[0].fired == ["last"]


def test_a_timer_that_is_set_as_it_fires_is_a_new_one() -> None:
    bench = Bench()

    def again(machine: Numbers, now_ms: int) -> CoordinatorDecision[None]:
        machine.fired.append("again")
        return CoordinatorDecision(None, timers=[Timer(T, 1000, again)])

    bench.put("a", 1, timers=[Timer(T, 1000, again)])
    bench.node.timers.advance(3500)
    assert bench.made[0].fired == ["again"] * 3


def test_a_timer_can_be_dropped() -> None:
    bench = Bench()
    bench.put("a", 1, timers=[Timer(T, 1000, fires("never"))])
    bench.put("a", 1, timers=[Timer(T)])
    bench.node.timers.advance(2000)
    assert bench.made[0].fired == []


def test_timers_go_with_the_leadership() -> None:
    bench = Bench(replicas=(NODE_ID, 2), isr=(NODE_ID,))
    bench.put("a", 1, timers=[Timer(T, 1000, fires("never"))])
    bench.node.change_partition(TOPIC, leader=2)
    bench.on_leadership()
    bench.node.timers.advance(2000)
    assert bench.made[0].fired == []


# Placement


@pytest.mark.parametrize(
    ("text", "hashed"),
    [("", 0), ("a", 97), ("group", 98629247), ("polygenelubricants", -(1 << 31)), ("grün", 3185949), ("🍇", 1773195)],
)
def test_keys_are_hashed_as_java_does(text: str, hashed: int) -> None:
    assert java_string_hash(text) == hashed


def test_the_one_hash_without_an_absolute_value_goes_to_partition_0() -> None:
    assert partition_of("polygenelubricants", 50) == 0
    assert partition_of("group", 50) == 47


def test_the_size_of_a_topic_that_does_not_exist_yet_is_known() -> None:
    bench = Bench()
    assert bench.coordinator.partition_count == 1
    bench.node.delete_topic(TOPIC)
    assert bench.coordinator.partition_count == 50
    assert TopicPartition(TOPIC, 0) not in bench.node.broker.partitions


def test_however_many_decisions_are_committed_at_once_each_may_lead_to_another(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """As the end of a transaction leads to its completion: where nothing is gathered, it is written at once."""
    bench = Bench(linger_ms=0, **of_two_replicas())
    told: list[str] = []

    def then(reply: Any) -> None:
        told.append(reply)
        bench.put("more", len(told))

    for number in range(300):
        bench.coordinator.submit("any key", lambda machine, _, at=number: machine.put("a", at), then, told.append)
    assert told == []
    follower_fetched(bench)
    assert told == [f"a: {number - 1 if number else None} -> {number}" for number in range(300)]
    assert caplog.records == []
