"""Rates over sampled windows, with the figures of Apache Kafka's `Rate`.

`tests/interop/nodes/test_quotas_and_javas.py` asks for them.
"""

import pytest

from ottla.machines.quota.rates import LONGEST_THROTTLE_MS, Measured, SampledRate, Windows

WINDOWS = Windows(number=11, size_ms=1000)


def rate_of(*recorded: tuple[float, int]) -> SampledRate:
    rate = SampledRate(WINDOWS)
    for value, now_ms in recorded:
        rate.record(value, now_ms)
    return rate


def test_a_first_burst_is_spread_over_all_windows_but_one() -> None:
    measured = rate_of((1000, 0)).measure(0)
    assert measured == (100, 10_000)


def test_the_window_that_is_under_way_counts_by_the_part_that_has_passed() -> None:
    rate = rate_of((1000, 0))
    assert rate.measure(500) == (pytest.approx(1000 / 10.5), 10_500)
    assert rate.measure(1000) == (100, 10_000)


def test_with_all_windows_filled_the_rate_is_over_the_time_since_the_oldest() -> None:
    rate = rate_of(*((100, second * 1000) for second in range(11)))
    assert rate.measure(10_500) == (pytest.approx(1100 / 10.5), 10_500)


def test_what_is_older_than_all_windows_does_not_count() -> None:
    rate = rate_of((1000, 0))
    assert rate.measure(10_999).rate > 0
    assert rate.measure(11_000).rate == 0


def test_what_is_taken_back_does_not_count() -> None:
    rate = rate_of((1000, 0), (-1000, 0))
    assert rate.measure(0).rate == 0


@pytest.mark.parametrize(("limit", "throttle_ms"), [(100, 0), (50, 10_000), (99, 101), (1, 990_000)])
def test_the_wait_is_the_time_in_which_the_rate_falls_to_the_limit(limit: float, throttle_ms: int) -> None:
    assert rate_of((1000, 0)).measure(0).throttle_ms(limit) == throttle_ms


def test_a_client_that_waits_as_told_keeps_to_its_limit() -> None:
    """Over 10 s and more, whatever the size of its requests."""
    for size in (100, 1000, 30_000):
        rate, now_ms, sent = SampledRate(WINDOWS), 0, 0
        while now_ms < 60_000:  # longer than the first burst weighs
            rate.record(size, now_ms)
            sent += size
            now_ms += 1 + rate.measure(now_ms).throttle_ms(10_000)
        assert sent / (now_ms / 1000) == pytest.approx(10_000, rel=0.2)


def test_the_wait_for_the_smallest_limit_there_is_has_an_end() -> None:
    assert Measured(rate=1.0, elapsed_ms=10_000).throttle_ms(5e-324) == LONGEST_THROTTLE_MS
