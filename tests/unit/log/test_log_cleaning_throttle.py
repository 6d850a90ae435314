"""Cleaning is not faster than it may be."""

import pytest

from ottla.log.cleaning.throttle import Throttle


class Time:
    def __init__(self):
        self.now_s = 100.0

    def wait(self, seconds):
        self.now_s += seconds

    def throttle(self, bytes_per_s):
        return Throttle(bytes_per_s, lambda: self.now_s, self.wait)


@pytest.fixture
def time():
    return Time()


def test_bytes_take_as_long_as_they_should(time):
    throttle = time.throttle(1000.0)
    for _ in range(99):
        throttle.on_bytes(100)
    assert time.now_s == pytest.approx(109.9)


def test_work_that_is_slow_by_itself_is_not_slowed_down(time):
    throttle = time.throttle(1000.0)
    for _ in range(10):
        time.now_s += 1
        throttle.on_bytes(500)
    assert time.now_s == 110.0


def test_time_that_was_not_used_is_not_made_up_for(time):
    throttle = time.throttle(1000.0)
    time.now_s += 60
    throttle.on_bytes(1000)
    throttle.on_bytes(5000)
    assert time.now_s == pytest.approx(165.0)
