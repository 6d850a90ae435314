"""`controller.quorum.append.linger.ms`: a leader gathers decisions, and writes them together when the time is over."""

from ottla.machines.raft.machine import Role
from ottla.runtime.metadata.metadata_decisions import Gathering
from ottla.runtime.metadata.storage.metadata_batches import MAX_BATCH_BYTES
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import Agenda, StepTimers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import KRaftVersionRecord
from tests.unit.runtime.metadata.quorum_of_replicas import Quorum


def gathering_quorum(linger_ms: int, voters: int = 3) -> Quorum:
    quorum = Quorum(voters, linger_ms=linger_ms)
    quorum.run(10_000)  # What a cluster begins with is gathered, too.
    assert quorum.leader.events == ["ready"]
    return quorum


def ends(quorum: Quorum) -> set[int]:
    return {replica.log.log_end_offset for replica in quorum.followers()}


def test_decisions_of_the_time_to_gather_are_answered_together_when_it_is_over() -> None:
    quorum = gathering_quorum(25)
    leader, before = quorum.leader, ends(quorum)
    leader.create("first")
    quorum.run(20)
    leader.create("second")
    quorum.run(4)
    assert (leader.events, ends(quorum)) == (["ready"], before)
    quorum.run(2)
    assert leader.events == ["ready", "first", "second"]
    assert ends(quorum) == {leader.log.log_end_offset}


def test_the_time_begins_anew_with_the_first_decision_after_a_write() -> None:
    quorum = gathering_quorum(25)
    leader = quorum.leader
    leader.create("first")
    quorum.run(100)
    leader.create("second")
    quorum.run(24)
    assert leader.events == ["ready", "first"]
    quorum.run(2)
    assert leader.events == ["ready", "first", "second"]


def test_a_quorum_of_one_gathers_too() -> None:
    quorum = gathering_quorum(25, voters=1)
    quorum.leader.create("first")
    quorum.run(24)
    assert quorum.leader.events == ["ready"]
    quorum.run(2)
    assert quorum.leader.events == ["ready", "first"]


def test_without_a_time_to_gather_a_decision_waits_for_nothing() -> None:
    quorum = gathering_quorum(0)
    quorum.leader.create("first")
    quorum.run(0)
    assert quorum.leader.events == ["ready", "first"]


def test_records_of_the_quorum_itself_are_written_at_once_with_what_was_gathered_before_them() -> None:
    quorum = gathering_quorum(1000)
    leader = quorum.leader
    leader.create("gathered")
    leader.log.write_control(
        [KRaftVersionRecord(k_raft_version=0)], lambda: leader.events.append("control"), leader.events.append
    )
    quorum.run(10)
    assert leader.events == ["ready", "gathered", "control"]


def test_what_a_leader_gathered_when_another_took_over_is_refused_and_cut_away() -> None:
    quorum = gathering_quorum(4000)
    old = quorum.leader
    quorum.isolate(old.node_id)
    old.create("lost")
    quorum.run(8000)
    assert old.events[-1] is ErrorCode.NOT_CONTROLLER
    quorum.cut.clear()
    quorum.run(8000)
    assert old.log.raft.role is not Role.LEADER
    assert old.log.log_end_offset == quorum.leader.log.log_end_offset
    assert old.topics == []


def test_a_whole_batch_is_not_gathered_any_longer() -> None:
    clock = FixedClock()
    gathering = Gathering(25, StepTimers(clock, Agenda(clock)), lambda: None)
    gathering.add(7, 100)
    assert gathering.from_offset == 7
    gathering.add(8, MAX_BATCH_BYTES)
    assert gathering.from_offset is None
