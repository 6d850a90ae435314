"""The leader's view of its replicas, with the events of their fetches written out."""

import pytest

from ottla.machines.partition.leader import IsrProposal, LeaderState
from ottla.wire.errors import ErrorCode

NOW_MS = 1_000_000
MAX_LAG_MS = 30_000


class KnownBrokers:
    """By id, the epochs of brokers that are alive. Those in `stopping` are about to go."""

    def __init__(self, *ids: int) -> None:
        self.epochs = {id: 70 + id for id in ids}
        self.stopping: set[int] = set()

    def active_epoch(self, broker_id: int) -> int | None:
        return None if broker_id in self.stopping else self.epochs.get(broker_id)

    def is_alive(self, broker_id: int) -> bool:
        return broker_id in self.epochs


def leader(
    replicas: tuple[int, ...] = (1,),
    isr: tuple[int, ...] | None = None,
    end: int = 10,
    high_watermark: int = 4,
    min_insync: int = 1,
    brokers: KnownBrokers | None = None,
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
        min_insync_replicas=min_insync,
        max_lag_ms=MAX_LAG_MS,
        brokers=brokers or KnownBrokers(1, 2, 3),
        now_ms=NOW_MS,
    )


def fetch(state: LeaderState, replica: int, offset: int, after_ms: int = 0, *, start: int = 0, epoch: int = -1) -> bool:
    return state.on_fetched(replica, offset, start, NOW_MS + after_ms, epoch)


# The high watermark


def test_a_leader_without_followers_has_replicated_all_it_has():
    state = leader()
    assert state.high_watermark == 10
    assert state.on_local_end(12)
    assert state.high_watermark == 12


def test_a_new_leader_keeps_its_high_watermark_until_every_follower_in_sync_has_fetched():
    state = leader(replicas=(1, 2, 3))
    assert state.high_watermark == 4
    assert not fetch(state, 2, 10)
    assert fetch(state, 3, 8)
    assert state.high_watermark == 8


def test_followers_that_lag_and_are_out_of_sync_do_not_hold_the_high_watermark_back():
    state = leader(replicas=(1, 2, 3), isr=(1, 2))
    assert fetch(state, 2, 10)
    assert state.high_watermark == 10
    assert not fetch(state, 3, 1)


def test_the_high_watermark_does_not_go_back_when_a_lagging_follower_joins_the_isr():
    state = leader(replicas=(1, 2), isr=(1,))
    assert state.high_watermark == 10
    fetch(state, 2, 7)
    assert not state.on_image((1, 2), (1, 2), 6)
    assert state.high_watermark == 10


def test_a_shrunk_isr_lets_the_high_watermark_go_on():
    state = leader(replicas=(1, 2))
    assert state.on_image((1, 2), (1,), 6)
    assert state.high_watermark == 10


def test_a_follower_that_the_controller_takes_out_is_not_waited_for_until_it_fetches():
    """Its log directory has failed, for one: it was caught up a moment ago, and will not be soon."""
    state = leader(replicas=(1, 2, 3))
    for replica in (2, 3):
        fetch(state, replica, 10)
    state.on_image((1, 2, 3), (1, 2), 6)
    state.on_local_end(12)
    assert fetch(state, 2, 12, 1)
    assert state.high_watermark == 12
    fetch(state, 3, 12, 2)
    state.on_local_end(14)
    assert not fetch(state, 2, 14, 3), "it is about to join again"


def test_an_image_of_an_older_partition_epoch_changes_nothing():
    state = leader(replicas=(1, 2))
    assert not state.on_image((1, 2), (1,), 5)
    assert state.isr == (1, 2)


def test_a_fetch_of_a_node_that_is_no_replica_changes_nothing():
    state = leader(replicas=(1, 2))
    assert not fetch(state, 9, 10)
    assert 9 not in state.followers


def test_below_min_insync_replicas_the_high_watermark_stays():
    """KIP-966: what is before it is on that many replicas."""
    state = leader(replicas=(1, 2, 3), min_insync=2, brokers=KnownBrokers(1))
    fetch(state, 2, 10)
    fetch(state, 3, 10)
    assert not state.on_image((1, 2, 3), (1,), 6)
    assert not state.on_local_end(12)
    assert state.high_watermark == 10
    assert state.on_min_insync_replicas(1)
    assert state.high_watermark == 12


def test_a_topic_with_fewer_replicas_than_min_insync_replicas_goes_on():
    state = leader(replicas=(1, 2), min_insync=3)
    fetch(state, 2, 10)
    assert state.high_watermark == 10


def test_replicas_that_are_added_by_a_reassignment_count_when_they_are_in_sync():
    state = leader(replicas=(1, 2))
    fetch(state, 2, 10)
    state.on_image((1, 2, 3), (1, 2), 6)
    assert fetch(state, 3, 5) is False
    assert state.on_local_end(12) is False
    assert fetch(state, 2, 12), "the added one does not hold it back"
    assert state.on_image((2, 1), (1, 2), 7) is False
    assert 3 not in state.followers


# Caught up


def test_a_follower_is_caught_up_when_it_asks_for_the_end():
    state = leader(replicas=(1, 2))
    fetch(state, 2, 9, 50)
    assert state.followers[2].caught_up_ms == NOW_MS
    fetch(state, 2, 10, 60)
    assert state.followers[2].caught_up_ms == NOW_MS + 60


def test_a_follower_is_caught_up_as_of_its_previous_fetch_when_it_asks_for_what_was_the_end_then():
    state = leader(replicas=(1, 2))
    fetch(state, 2, 5, 50)
    state.on_local_end(20)
    fetch(state, 2, 10, 90)
    assert state.followers[2].caught_up_ms == NOW_MS + 50
    state.on_local_end(30)
    fetch(state, 2, 15, 95)
    assert state.followers[2].caught_up_ms == NOW_MS + 50, "20 was the end then"


# Who is in sync


def test_a_follower_that_lags_for_too_long_is_proposed_to_leave():
    state = leader(replicas=(1, 2, 3))
    for after_ms in (0, MAX_LAG_MS):
        fetch(state, 2, 10, after_ms, epoch=72)
    fetch(state, 3, 8)
    assert state.propose_to_shrink(NOW_MS + MAX_LAG_MS) is None
    proposal = state.propose_to_shrink(NOW_MS + MAX_LAG_MS + 1)
    assert proposal == IsrProposal((1, 2), (-1, 72), leader_epoch=3, partition_epoch=5)
    assert state.high_watermark == 8, "until it is known to have left"
    assert state.propose_to_shrink(NOW_MS + 2 * MAX_LAG_MS) is None, "one proposal at a time"
    assert not state.on_proposal_taken(proposal, 6)
    assert state.high_watermark == 8, "until the metadata say so, which may raise min.insync.replicas too"
    assert state.propose_to_shrink(NOW_MS + 2 * MAX_LAG_MS) is None, "it still stands"
    assert state.on_image((1, 2, 3), (1, 2), 6)
    assert (state.high_watermark, state.isr) == (10, (1, 2))


def test_a_follower_at_the_end_of_an_idle_partition_never_lags():
    state = leader(replicas=(1, 2))
    fetch(state, 2, 10)
    assert state.propose_to_shrink(NOW_MS + 100 * MAX_LAG_MS) is None


def test_a_follower_that_has_everything_is_proposed_and_counts_from_then_on():
    state = leader(replicas=(1, 2), isr=(1,))
    fetch(state, 2, 10, epoch=72)
    proposal = state.propose_to_expand(2)
    assert proposal == IsrProposal((1, 2), (-1, 72), leader_epoch=3, partition_epoch=5)
    assert state.maximal_isr == (1, 2)
    assert not state.on_local_end(12)
    assert state.high_watermark == 10, "the controller may have taken it by now"
    assert not state.on_proposal_taken(proposal, 6)
    assert not state.on_image((1, 2), (1, 2), 6)
    assert fetch(state, 2, 12, epoch=72)
    assert state.high_watermark == 12


def test_a_follower_that_is_proposed_counts_though_its_broker_goes_meanwhile():
    """The controller may have taken it before (KIP-497)."""
    brokers = KnownBrokers(1, 2)
    state = leader(replicas=(1, 2), isr=(1,), brokers=brokers)
    fetch(state, 2, 10, epoch=72)
    proposal = state.propose_to_expand(2)
    brokers.stopping.add(2)
    assert not state.on_local_end(12)
    assert state.high_watermark == 10
    state.on_proposal_refused(proposal, ErrorCode.INELIGIBLE_REPLICA)
    assert state.on_time(NOW_MS)
    assert state.high_watermark == 12


def test_a_follower_must_have_all_that_there_was_when_the_epoch_began():
    state = leader(replicas=(1, 2, 3), isr=(1, 3))
    fetch(state, 2, 9)
    assert state.high_watermark == 4
    assert state.propose_to_expand(2) is None
    fetch(state, 2, 10)
    assert state.propose_to_expand(2) is not None


def test_a_follower_that_is_about_to_join_holds_the_high_watermark():
    state = leader(replicas=(1, 2), isr=(1,))
    state.on_local_end(20)
    fetch(state, 2, 20)
    assert not state.on_local_end(25)
    assert state.high_watermark == 20
    assert state.on_time(NOW_MS + MAX_LAG_MS + 1), "it did not come again in time"
    assert state.high_watermark == 25


@pytest.mark.parametrize("why", ["fenced", "stopping", "restarted"])
def test_a_follower_whose_broker_may_not_be_in_the_isr_is_not_proposed(why):
    brokers = KnownBrokers(1, 2)
    state = leader(replicas=(1, 2), isr=(1,), brokers=brokers)
    if why == "fenced":
        del brokers.epochs[2]
    elif why == "stopping":
        brokers.stopping.add(2)
    else:
        brokers.epochs[2] = 90
    fetch(state, 2, 10, epoch=72)
    assert state.propose_to_expand(2) is None
    assert state.on_local_end(12), "nor waited for"


def test_a_fetch_from_before_a_restart_is_of_the_past():
    state = leader(replicas=(1, 2))
    fetch(state, 2, 10, epoch=90)
    assert state.is_of_the_past(2, 72)
    assert not state.is_of_the_past(2, 90)
    assert not state.is_of_the_past(2, -1)


def test_a_proposal_that_the_metadata_overtakes_is_over():
    state = leader(replicas=(1, 2), isr=(1,))
    fetch(state, 2, 10)
    proposal = state.propose_to_expand(2)
    assert proposal is not None
    state.on_image((1, 2), (1,), 6)
    assert state.maximal_isr == (1,)
    assert not state.on_proposal_taken(proposal, 6)
    assert state.isr == (1,)
    assert not state.on_proposal_refused(proposal, ErrorCode.INVALID_UPDATE_VERSION)


@pytest.mark.parametrize(
    ("error", "is_proposed_again", "still_stands"),
    [
        (ErrorCode.INELIGIBLE_REPLICA, False, False),
        (ErrorCode.OPERATION_NOT_ATTEMPTED, False, False),
        (ErrorCode.INVALID_UPDATE_VERSION, False, True),
        (ErrorCode.FENCED_LEADER_EPOCH, False, True),
        (ErrorCode.UNKNOWN_SERVER_ERROR, True, True),
        (ErrorCode.REQUEST_TIMED_OUT, True, True),
    ],
)
def test_what_becomes_of_a_proposal_that_is_not_taken(error, is_proposed_again, still_stands):
    state = leader(replicas=(1, 2), isr=(1,))
    fetch(state, 2, 10)
    proposal = state.propose_to_expand(2)
    assert proposal is not None
    assert state.on_proposal_refused(proposal, error) is is_proposed_again
    assert (state.proposal is proposal) is still_stands


# Acknowledgements


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
    assert leader(replicas, isr, min_insync=min_insync).has_enough_replicas is enough


def test_a_write_is_acknowledged_when_the_high_watermark_has_passed_it():
    state = leader(replicas=(1, 2), min_insync=2)
    assert state.acknowledgement(10) is None
    fetch(state, 2, 10)
    assert state.acknowledgement(10) is ErrorCode.NONE


def test_a_write_whose_replicas_were_lost_meanwhile_is_told_so():
    state = leader(replicas=(1, 2), min_insync=2)
    fetch(state, 2, 10)
    state.on_image((1, 2), (1,), 6)
    assert state.acknowledgement(10) is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND


def test_the_low_watermark_is_the_smallest_start_among_live_followers():
    state = leader(replicas=(1, 2, 3), isr=(1,))
    fetch(state, 2, 10, start=5)
    fetch(state, 3, 10, start=3)
    assert state.low_watermark == 3
    assert leader().low_watermark is None
    state = leader(replicas=(1, 2, 3), brokers=KnownBrokers(1, 2))
    fetch(state, 2, 10, start=5)
    assert state.low_watermark == 5, "the third is not there to delete anything"


def test_a_leader_is_one_of_the_replicas():
    with pytest.raises(AssertionError, match="one of the replicas"):
        leader(replicas=(2, 3))
