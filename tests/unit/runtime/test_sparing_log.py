"""Log lines that come as often as something is tried."""

import logging

import pytest

from ottla.runtime.rate_limited_log import RateLimitedLog, TroubleLog


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_a_full_disk_is_told_once_a_minute_in_the_end(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = TroubleLog(logging.getLogger("ottla.test"), clock)
    for half_second in range(2 * 3600):
        clock.now_s = half_second / 2
        log.error("/data", "%s is full: %s", "/data", "no space left")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) < 70
    assert lines[0] == "/data is full: no space left"
    assert lines[-1] == "/data is full: no space left (119 more like it since the last line)"


def test_lines_about_many_things_are_ten_in_ten_seconds(caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    log = RateLimitedLog(logging.getLogger("ottla.test"), clock)
    for number in range(1000):
        log.warning("partition %s was truncated", number)
    clock.now_s = 10
    log.warning("the next one")
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 12
    assert lines[10:] == ["suppressed 990 more lines like these", "the next one"]
