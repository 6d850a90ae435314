"""How far replicas are, and when they were caught up (KIP-836)."""

from ottla.machines.raft.progress import UNKNOWN, ReplicaProgress


def test_a_replica_that_asks_for_the_end_is_caught_up_now() -> None:
    replica = ReplicaProgress()
    replica.note(10, 10, now_ms=100)
    assert (replica.end_offset, replica.last_fetch_ms, replica.last_caught_up_ms) == (10, 100, 100)


def test_a_replica_that_asks_for_what_was_the_end_was_caught_up_at_its_fetch_before() -> None:
    """Under load it never asks for the end."""
    replica = ReplicaProgress()
    replica.note(5, 10, now_ms=100)
    assert replica.last_caught_up_ms == UNKNOWN
    replica.note(10, 20, now_ms=200)
    assert replica.last_caught_up_ms == 100
    replica.note(15, 30, now_ms=300)
    assert (replica.last_fetch_ms, replica.last_caught_up_ms) == (300, 100)


def test_a_clock_that_goes_back_takes_nothing_back() -> None:
    replica = ReplicaProgress()
    replica.note(10, 10, now_ms=100)
    replica.note(10, 10, now_ms=50)
    assert (replica.last_fetch_ms, replica.last_caught_up_ms) == (100, 100)
