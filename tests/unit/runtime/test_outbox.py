"""Parts of files that are not in memory, and who sends them."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.log.disk import OsDisk, OsFile
from ottla.log.outcomes import FileSlice
from ottla.runtime import outbox as module
from ottla.runtime.outbox import ColdSend, Outbox, Region, hold

MB = 1 << 20
CONTENT = os.urandom(1 << 10) * (2 << 10)


@pytest.fixture
def sockets() -> Iterator[tuple[socket.socket, socket.socket]]:
    """Ours does not wait; theirs is the client's."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        theirs = socket.create_connection(listening.getsockname(), 10)
        ours, _ = listening.accept()
    with ours, theirs:
        ours.setblocking(False)
        yield ours, theirs


@pytest.fixture
def file(tmp_path: Path) -> Iterator[OsFile]:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(CONTENT)
    opened = OsDisk().open(str(path))
    yield opened
    if opened.fileno() >= 0:
        opened.close()


@pytest.fixture
def cold(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_NO_WAIT", 0)
    monkeypatch.setattr(module, "_in_page_cache", lambda fd, position, size: False)


def read(sock: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = sock.recv(size - len(data))
        assert part, "hung up"
        data += part
    return bytes(data)


@pytest.mark.usefixtures("cold")
def test_what_comes_before_a_cold_part_is_sent_and_the_part_is_given_back(file, sockets):
    outbox = Outbox()
    outbox.add(b"first")
    outbox.add(hold(FileSlice(file, 0, 100)))
    region = outbox.send(sockets[0])
    assert (region.position, region.left) == (0, 100)
    outbox.clear()
    sockets[0].close()
    assert sockets[1].recv(100) == b"first"


def test_a_thread_sends_what_the_client_takes(file, sockets):
    ours, theirs = sockets
    region = Region(FileSlice(file, 1000, 10_000))
    job = ColdSend(ours, region)
    assert job.run() == 10_000
    job.end()
    assert read(theirs, 10_000) == CONTENT[1000:11_000]


def test_a_client_that_does_not_read_does_not_keep_the_thread(file, sockets):
    ours, theirs = sockets
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10_000)
    outbox = Outbox()
    outbox.add(hold(FileSlice(file, 0, 2 * MB)))
    received = b""
    for _ in range(1000):
        if not outbox:
            break
        job = ColdSend(ours, outbox._parts[0])
        count = job.run()
        job.end()
        outbox.advance(count)
        received += read(theirs, count)
    assert received == CONTENT
    assert outbox.sent == 2 * MB


def test_a_connection_that_is_closed_meanwhile_does_no_harm(file, sockets):
    ours, theirs = sockets
    outbox = Outbox()
    outbox.add(hold(FileSlice(file, 0, 10_000)))
    job = ColdSend(ours, outbox._parts[0])
    outbox.clear()
    ours.close()
    file.close()
    assert file.fileno() >= 0, "the thread still needs it"
    assert job.run() == 10_000
    job.end()
    assert file.fileno() < 0
    assert read(theirs, 10_000) == CONTENT[:10_000]
    assert theirs.recv(1) == b""


def test_a_file_that_ends_before_its_part_does_is_an_error(file, sockets):
    job = ColdSend(sockets[0], Region(FileSlice(file, 2 * MB - 10, 20)))
    with pytest.raises(ConnectionAbortedError, match="ended before"):
        job.run()
    job.end()
