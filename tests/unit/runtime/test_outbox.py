"""What is brought into memory before, and while, parts of files are sent."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.log.disk import OsDisk
from ottla.log.outcomes import FileSlice
from ottla.runtime import outbox as module
from ottla.runtime.outbox import Outbox, Region, hold

LARGE = 256 << 10


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        yield ours, theirs


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(os.urandom(1 << 10) * (8 << 10))
    return str(path)


class Memory:
    """Stands for the page cache: what is asked about, and the answer."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, up_to: int) -> None:
        self.up_to = up_to
        monkeypatch.setattr(module, "_NO_WAIT", 0)
        monkeypatch.setattr(module, "_in_page_cache", lambda _, position, size: position + size <= self.up_to)


def sent(position: int, size: int, file: str, sockets: tuple[socket.socket, socket.socket]) -> list[Region]:
    """Sends a part, and returns what `prefetch` was told of."""
    told: list[Region] = []
    outbox = Outbox(told.append)
    opened = OsDisk().open(file)
    outbox.add(hold(FileSlice(opened, position, size)))
    while outbox and outbox.send(sockets[0]) is None:
        while True:
            try:
                sockets[1].recv(1 << 20)
            except BlockingIOError:
                break
    outbox.clear()
    opened.close()
    return told


def test_what_comes_after_a_large_part_is_prefetched_once(monkeypatch, file, sockets):
    Memory(monkeypatch, up_to=1 << 20)
    assert len(sent(0, 2 * LARGE, file, sockets)) == 1


def test_nothing_is_prefetched_where_memory_reaches_far_enough(monkeypatch, file, sockets):
    Memory(monkeypatch, up_to=4 << 20)
    assert sent(0, LARGE, file, sockets) == []


def test_who_reads_little_is_not_taken_for_one_who_reads_on(monkeypatch, file, sockets):
    Memory(monkeypatch, up_to=LARGE)
    assert sent(0, LARGE - 1, file, sockets) == []


def test_a_part_that_has_to_be_waited_for_is_prefetched_behind_too(monkeypatch, file, sockets):
    Memory(monkeypatch, up_to=0)
    (region,) = sent(0, LARGE, file, sockets)
    assert (region.position, region.left) == (0, LARGE)


def test_at_the_end_of_a_file_there_is_nothing_to_prefetch(file, sockets):
    OsDisk().open(file).read_at(0, 8 << 20)
    assert sent((8 << 20) - LARGE, LARGE, file, sockets) == []


def test_the_kernel_is_told_in_pieces_that_it_takes(monkeypatch, file):
    told: list[tuple[int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, position, size, advice: told.append((position, size)))
    opened = OsDisk().open(file)
    region = Region(FileSlice(opened, 100, LARGE))
    region.prefetch()()
    opened.close()
    region.file.unpin()
    assert told == [(100 + LARGE + (piece << 20), 1 << 20) for piece in range(4)]
