"""Which part of a log can be cleaned, and when it is time to."""

import pytest

from ottla.log.cleaning.planning import cleanable
from tests.unit.log.cleaned_logs import NOW_MS, append, begun, keyed
from tests.unit.log.partition_logs import CONFIG, in_transaction, marker, open_log

HOUR_MS = 3_600_000
COMPACTED = CONFIG._replace(cleanup_policy=("compact",))


def three_segments(config=COMPACTED, **options):
    """Offsets 0, 1 and 2 in a segment each; the last is active."""
    log = open_log(config=config, **options)
    for offset in range(3):
        append(log, keyed(f"k{offset}=1", timestamp=NOW_MS + offset * HOUR_MS))
        if offset < 2:
            begun(log)
    return log


def test_all_before_the_active_segment_can_be_cleaned():
    log = three_segments()
    part = cleanable(log, None, NOW_MS)
    assert (part.first_dirty_offset, part.end_offset) == (0, 2)
    assert (part.clean_bytes, part.cleanable_bytes) == (0, log.segments[0].size + log.segments[1].size)
    assert part.ratio == 1.0


def test_what_was_cleaned_before_is_not_dirty():
    part = cleanable(three_segments(), 1, NOW_MS)
    assert part.first_dirty_offset == 1
    assert part.ratio == 0.5


@pytest.mark.parametrize(("ratio", "is_due"), [(0.4, True), (0.5, False), (0.6, False)])
def test_the_dirty_part_must_be_more_than_the_ratio(ratio, is_due):
    assert cleanable(three_segments(), 1, NOW_MS).is_due(ratio) is is_due


def test_an_empty_or_clean_log_is_never_due():
    assert not cleanable(open_log(config=COMPACTED), None, NOW_MS).is_due(0.0)
    assert not cleanable(three_segments(), 2, NOW_MS).is_due(0.0)


@pytest.mark.parametrize("checkpoint", [-1, 0, 99])
def test_a_checkpoint_outside_of_the_log_is_not_believed(checkpoint):
    log = three_segments()
    log.advance_log_start_offset(1)
    assert cleanable(log, checkpoint, NOW_MS).first_dirty_offset == 1


def test_nothing_at_or_past_the_last_stable_offset_is_cleaned():
    log = open_log(config=COMPACTED)
    append(log, keyed("a=1"))
    begun(log)
    append(log, keyed("a=2"), in_transaction(7, 0))
    begun(log)
    append(log, keyed("a=3"))
    begun(log)
    assert cleanable(log, None, NOW_MS).end_offset == 1, "its segment has a part of the open transaction"
    append(log, marker(7, committed=True))
    assert cleanable(log, None, NOW_MS).end_offset == 4


def test_nothing_that_may_be_lost_in_a_crash_is_cleaned():
    log = three_segments()
    assert cleanable(log, None, NOW_MS, durable_offset=0).cleanable_bytes == 0
    assert cleanable(log, None, NOW_MS, durable_offset=1).end_offset == 1
    assert cleanable(log, None, NOW_MS, durable_offset=3).end_offset == 2


def test_young_records_are_left_for_their_readers():
    log = three_segments(COMPACTED._replace(min_compaction_lag_ms=HOUR_MS))
    assert cleanable(log, None, NOW_MS + HOUR_MS - 1).end_offset == 0
    assert cleanable(log, None, NOW_MS + HOUR_MS).end_offset == 1
    assert cleanable(log, None, NOW_MS + 2 * HOUR_MS).end_offset == 2


def test_old_records_are_cleaned_whatever_the_ratio():
    log = three_segments(COMPACTED._replace(max_compaction_lag_ms=HOUR_MS))
    assert not cleanable(log, None, NOW_MS + HOUR_MS).is_due(1.0)
    part = cleanable(log, None, NOW_MS + HOUR_MS + 1)
    assert part.is_due(1.0)
    assert part.overdue_ms == 1
    assert not cleanable(log, 1, NOW_MS + HOUR_MS + 1).is_due(1.0), "the old ones are clean"
