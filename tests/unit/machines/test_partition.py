"""The leader's view of its replicas, with the events of their fetches written out."""

import pytest

from ottla.machines.partition_leader import LeaderState
from ottla.wire.errors import ErrorCode

NOW_MS = 1_000


def leader(
    replicas: tuple[int, ...] = (1,), isr: tuple[int, ...] | None = None, end: int = 10, high_watermark: int = 4
) -> LeaderState:
    """Node 1 becomes leader with a log that ends at 10, and knows from before that all up to 4 is replicated."""
    return LeaderState(
        1,
        leader_epoch=3,
        partition_epoch=5,
        replicas=replicas,
        isr=replicas if isr is None else isr,
        log_end_offset=end,
        local_end_offset=end,
        high_watermark=high_watermark,
        now_ms=NOW_MS,
    )


def test_a_leader_without_followers_has_replicated_all_it_has():
    state = leader()
    assert state.high_watermark == 10
    assert state.on_local_end(12)
    assert state.high_watermark == 12


def test_a_new_leader_keeps_its_high_watermark_until_every_follower_in_sync_has_fetched():
    state = leader(replicas=(1, 2, 3))
    assert state.high_watermark == 4
    assert not state.on_fetched(2, 10, 0, NOW_MS)
    assert state.on_fetched(3, 8, 0, NOW_MS)
    assert state.high_watermark == 8


def test_followers_out_of_sync_do_not_hold_the_high_watermark_back():
    state = leader(replicas=(1, 2, 3), isr=(1, 2))
    assert state.on_fetched(2, 10, 0, NOW_MS)
    assert state.high_watermark == 10
    assert not state.on_fetched(3, 1, 0, NOW_MS)


def test_the_high_watermark_does_not_go_back_when_a_lagging_follower_joins_the_isr():
    state = leader(replicas=(1, 2), isr=(1,))
    assert state.high_watermark == 10
    state.on_fetched(2, 7, 0, NOW_MS)
    assert not state.on_committed_isr((1, 2), 6)
    assert state.high_watermark == 10


def test_a_shrunk_isr_lets_the_high_watermark_go_on():
    state = leader(replicas=(1, 2))
    assert state.on_committed_isr((1,), 6)
    assert state.high_watermark == 10


def test_an_isr_of_an_older_partition_epoch_changes_nothing():
    state = leader(replicas=(1, 2))
    assert not state.on_committed_isr((1,), 5)
    assert state.isr == (1, 2)


def test_a_fetch_of_a_node_that_is_no_replica_changes_nothing():
    state = leader(replicas=(1, 2))
    assert not state.on_fetched(9, 10, 0, NOW_MS)
    assert 9 not in state.followers


def test_a_follower_is_caught_up_when_it_asks_for_the_end():
    state = leader(replicas=(1, 2))
    state.on_fetched(2, 9, 0, NOW_MS + 50)
    assert state.followers[2].caught_up_ms == NOW_MS
    state.on_fetched(2, 10, 0, NOW_MS + 60)
    assert state.followers[2].caught_up_ms == NOW_MS + 60


@pytest.mark.parametrize(
    ("replicas", "isr", "min_insync", "enough"),
    [
        ((1,), (1,), 1, True),
        ((1,), (1,), 2, True),  # the topic has only one
        ((1, 2, 3), (1, 2), 2, True),
        ((1, 2, 3), (1,), 2, False),
        ((1, 2, 3), (1, 2, 3), 5, True),
    ],
)
def test_acks_all_needs_min_insync_replicas_or_all_there_are(replicas, isr, min_insync, enough):
    assert leader(replicas, isr).has_enough_replicas(min_insync) is enough


def test_a_write_is_acknowledged_when_the_high_watermark_has_passed_it():
    state = leader(replicas=(1, 2))
    assert state.acknowledgement(10, min_insync_replicas=2) is None
    state.on_fetched(2, 10, 0, NOW_MS)
    assert state.acknowledgement(10, min_insync_replicas=2) is ErrorCode.NONE


def test_a_write_whose_replicas_were_lost_meanwhile_is_told_so():
    state = leader(replicas=(1, 2))
    state.on_committed_isr((1,), 6)
    assert state.acknowledgement(10, min_insync_replicas=2) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_the_low_watermark_is_the_smallest_start_among_replicas_in_sync():
    state = leader(replicas=(1, 2, 3), isr=(1, 2, 3))
    state.on_fetched(2, 10, 5, NOW_MS)
    state.on_fetched(3, 10, 3, NOW_MS)
    assert state.low_watermark == 3
    assert leader().low_watermark is None


def test_a_leader_is_one_of_the_replicas():
    with pytest.raises(AssertionError, match="one of the replicas"):
        leader(replicas=(2, 3))
