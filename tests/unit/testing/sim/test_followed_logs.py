"""What is new in a log: batches that were appended, and a segment that was put in the place of others."""

from types import SimpleNamespace
from typing import Any

from ottla.log import file_names
from ottla.records.builder import BatchBuilder
from ottla.testing.crash_model import Content
from ottla.testing.sim.invariants.replicas import LogFollower


def batch(offset: int, size: int) -> bytes:
    builder = BatchBuilder(base_offset=offset)
    builder.append(1, None, bytes(size))
    return bytes(builder.build())


class Log:
    """As much of one as is looked at."""

    cut_count, directory = 0, "/data/orders-0"

    def __init__(self) -> None:
        self.segments: list[Any] = []
        self.files: dict[str, Content] = {}
        self.machine: Any = SimpleNamespace(life=1, disk=SimpleNamespace(_find=self.files.get))

    def put(self, base_offset: int, *batches: bytes) -> None:
        """A segment of these, in the place of the one with its offset if there is one, and of all behind it."""
        data = b"".join(batches)
        path = f"{base_offset}{file_names.LOG}"
        self.files[path] = Content(data)
        segment = SimpleNamespace(base_offset=base_offset, size=len(data), path=lambda suffix: f"{base_offset}{suffix}")
        self.segments = [*(one for one in self.segments if one.base_offset < base_offset), segment]


def test_what_was_appended_is_given_out_once() -> None:
    log, follower = Log(), LogFollower()
    log.put(0, batch(0, 10))
    log.put(1, batch(1, 10))
    assert [one.header.base_offset for one in follower.new_batches(log.machine, log)] == [0, 1]  # type: ignore[arg-type]
    log.put(2, batch(2, 10))
    assert [one.header.base_offset for one in follower.new_batches(log.machine, log)] == [2]  # type: ignore[arg-type]


def test_a_segment_that_was_compacted_is_looked_at_from_its_start() -> None:
    """With what came behind it: it is longer than what was there, and its batches begin elsewhere."""
    log, follower = Log(), LogFollower()
    log.put(0, batch(0, 10), batch(1, 10))
    assert len(list(follower.new_batches(log.machine, log))) == 2  # type: ignore[arg-type]
    log.put(0, batch(1, 500))
    found = list(follower.new_batches(log.machine, log))  # type: ignore[arg-type]
    assert [one.header.base_offset for one in found] == [1]
