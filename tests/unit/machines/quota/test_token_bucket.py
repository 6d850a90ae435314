"""The bucket of KIP-599: bursts, overdrawing and waiting."""

from ottla.machines.quota.limits import TokenBucket
from ottla.machines.quota.rates import LONGEST_THROTTLE_MS, Windows

LIMIT = 5.0


def bucket() -> TokenBucket:
    return TokenBucket(Windows(number=11, size_ms=1000))


def test_a_bucket_begins_with_what_all_windows_allow() -> None:
    assert bucket().tokens(LIMIT, 7) == 55


def test_it_may_be_overdrawn_and_is_paid_back_at_the_rate_of_the_limit() -> None:
    tokens = bucket()
    tokens.take(65, LIMIT, 0)
    assert tokens.throttle_ms(LIMIT, 0) == 2000
    assert tokens.throttle_ms(LIMIT, 1500) == 500
    assert tokens.throttle_ms(LIMIT, 2000) == 0
    assert tokens.tokens(LIMIT, 3000) == 5


def test_it_never_holds_more_than_a_burst() -> None:
    tokens = bucket()
    tokens.take(55, LIMIT, 0)
    assert tokens.tokens(LIMIT, 3_600_000) == 55


def test_a_new_limit_counts_from_then_on() -> None:
    tokens = bucket()
    tokens.take(60, LIMIT, 0)
    assert tokens.throttle_ms(1.0, 0) == 5000


def test_the_wait_for_the_smallest_limit_there_is_has_an_end() -> None:
    bucket = TokenBucket(Windows())
    bucket.take(1.0, 5e-324, 0)
    assert bucket.throttle_ms(5e-324, 0) == LONGEST_THROTTLE_MS
