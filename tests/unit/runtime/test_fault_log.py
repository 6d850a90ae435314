"""Faults that come again and again are told of now and then."""

import logging

import pytest

from ottla.runtime.rate_limited_log import FaultLog
from ottla.testing.clock import FixedClock

LOG = logging.getLogger("faults")


class Scene:
    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.clock = FixedClock()
        self.faults = FaultLog(LOG, self.clock.elapsed_s)
        self.caplog = caplog

    def fault(self, kind: int) -> None:
        try:
            if kind == 1:
                raise ValueError("one")
            raise ValueError("another")
        except ValueError as problem:
            self.faults.error("a loop broke", problem)

    @property
    def lines(self) -> list[str]:
        return [record.getMessage() for record in self.caplog.records]


@pytest.fixture
def scene(caplog: pytest.LogCaptureFixture) -> Scene:
    return Scene(caplog)


def test_a_fault_is_told_with_its_traceback(scene: Scene) -> None:
    scene.fault(1)
    (record,) = scene.caplog.records
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "one"


def test_one_that_comes_again_is_told_once_a_minute_with_its_count(scene: Scene) -> None:
    for _ in range(1000):
        scene.fault(1)
        scene.clock.advance(100)
    assert scene.lines == ["a loop broke", "a loop broke (599 more like it in the last 60 s)"]


def test_another_is_told_at_once(scene: Scene) -> None:
    scene.fault(1)
    scene.fault(2)
    assert scene.lines == ["a loop broke"] * 2


def test_faults_without_an_exception_are_known_by_their_words(scene: Scene) -> None:
    for words in ("one", "two", "one"):
        scene.faults.error(words, None)
    assert scene.lines == ["one", "two"]
