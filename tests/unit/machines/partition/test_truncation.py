"""Where a follower cuts its log, written out as the two logs' epochs."""

from random import Random

import pytest

from ottla.machines.partition.following import (
    EpochEnd,
    NewStart,
    Pauses,
    Step,
    start_within,
    step_after,
    truncation_offset,
)
from ottla.wire.errors import ErrorCode


@pytest.mark.parametrize(
    ("leader", "own", "end", "expected"),
    [
        (EpochEnd(3, 10), EpochEnd(3, 14), 14, 10),  # the leader's epoch ended earlier
        (EpochEnd(3, 20), EpochEnd(3, 14), 18, 14),  # the follower's did, and another one of its followed
        (EpochEnd(3, 20), EpochEnd(2, 8), 14, 8),  # the follower has no epoch 3: back to the end of its 2
        (EpochEnd(3, 10), EpochEnd(-1, -1), 14, 10),  # the follower knows no epochs
        (EpochEnd(3, 20), EpochEnd(-1, -1), 14, 14),
    ],
)
def test_a_follower_cuts_back_to_where_an_epoch_ends_in_both_logs(leader, own, end, expected):
    assert truncation_offset(leader, own, end) == expected


@pytest.mark.parametrize(
    ("leader_start", "leader_end", "end", "expected"),
    [
        (0, 5, 9, NewStart(5, False)),  # an unclean election
        (20, 30, 9, NewStart(20, True)),  # the leader has deleted what the follower missed
        (2, 30, 9, NewStart(9, False)),  # it has moved on meanwhile: nothing is wrong
    ],
)
def test_where_a_follower_goes_on_that_is_out_of_range(leader_start, leader_end, end, expected):
    assert start_within(leader_start, leader_end, end) == expected


@pytest.mark.parametrize("seed", range(200))
def test_rounds_of_cutting_end_where_the_logs_first_differ(seed):
    """Logs as lists of epochs, one a record: what is left is the beginning that both share, and nothing more goes."""
    random = Random(seed)
    shared = sorted(random.choices(range(5), k=random.randrange(8)))
    first = shared[-1] if shared else 0
    leader = shared + sorted(random.choices(range(first, 12, 2), k=random.randrange(6)))
    follower = shared + sorted(random.choices(range(first + 1, 12, 2), k=random.randrange(6)))
    same = next((i for i, (a, b) in enumerate(zip(leader, follower, strict=False)) if a != b), None)
    same = min(len(leader), len(follower)) if same is None else same
    for _ in range(20):
        if not follower:
            break
        known = end_of(leader, follower[-1])
        if known.epoch == follower[-1] and known.end_offset >= len(follower):
            break
        if known.epoch < 0:
            known = EpochEnd(leader[-1], len(leader)) if leader else EpochEnd(follower[-1], 0)
        follower = follower[: truncation_offset(known, end_of(follower, known.epoch), len(follower))]
    assert follower == leader[: len(follower)]
    assert len(follower) == same or not follower


def end_of(log: list[int], epoch: int) -> EpochEnd:
    """What a log answers about an epoch: the largest up to it that it has, and where that ends."""
    known = [one for one in log if one <= epoch]
    if not log or epoch > log[-1]:
        return EpochEnd(-1, -1)
    return EpochEnd(known[-1] if known else epoch, len(known))


def test_what_follows_from_an_answer():
    assert step_after(ErrorCode.NONE, is_diverging=False) is Step.TAKE
    assert step_after(ErrorCode.NONE, is_diverging=True) is Step.TRUNCATE
    assert step_after(ErrorCode.OFFSET_OUT_OF_RANGE, is_diverging=False) is Step.FIND_START
    assert step_after(ErrorCode.FENCED_LEADER_EPOCH, is_diverging=False) is Step.WAIT


def test_pauses_grow_up_to_the_longest_and_begin_anew_after_a_success():
    pauses = Pauses(100)
    assert [pauses.next_ms() for _ in range(5)] == [20, 40, 80, 100, 100]
    pauses.on_success()
    assert pauses.next_ms() == 20
