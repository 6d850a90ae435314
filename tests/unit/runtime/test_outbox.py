"""Parts of files that are not in memory, and who sends them."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.log.disk import OsDisk, OsFile
from ottla.log.outcomes import FileSlice
from ottla.runtime import outbox as module
from ottla.runtime.outbox import OnDiskThread, Outbox, pin_all, pinned
from ottla.runtime.tcp import TcpColdSend, TcpTransport

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
    monkeypatch.setattr(module, "_in_page_cache", lambda file, position, size: False)


def transport(sock: socket.socket) -> TcpTransport:
    return TcpTransport(None, sock, "127.0.0.1")  # type: ignore[arg-type]  # nobody watches it


class Reading:
    """A transport that cannot send files, and takes so many bytes at a time."""

    peer_host = "127.0.0.1"
    can_send_files = False

    def __init__(self, most: int) -> None:
        self.most = most
        self.took = b""

    def send(self, data):
        if len(self.took) >= self.most:
            raise BlockingIOError
        taken = bytes(data[: self.most - len(self.took)])
        self.took += taken
        return len(taken)

    def send_parts(self, parts, *, more):
        return self.send(b"".join(parts))


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
    outbox.add(pinned(FileSlice(file, 0, 100)))
    region = outbox.send(transport(sockets[0]))
    assert (region.position, region.left) == (0, 100)
    outbox.clear()
    sockets[0].close()
    assert sockets[1].recv(100) == b"first"


def test_a_thread_sends_what_the_client_takes(file, sockets):
    ours, theirs = sockets
    job = TcpColdSend(ours, file, 1000, 10_000)
    assert job.run() == 10_000
    job.end()
    assert read(theirs, 10_000) == CONTENT[1000:11_000]


@pytest.mark.slow
def test_a_client_that_does_not_read_does_not_keep_the_thread(file, sockets):
    ours, theirs = sockets
    ours.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 10_000)
    outbox = Outbox()
    outbox.add(pinned(FileSlice(file, 0, 2 * MB)))
    received = b""
    for _ in range(1000):
        if not outbox:
            break
        job = OnDiskThread(outbox, transport(ours), outbox.parts[0])
        count = job.run()
        job.end()
        job.finish(count)
        received += read(theirs, count)
    assert received == CONTENT
    assert outbox.sent == 2 * MB


def test_a_connection_that_is_closed_meanwhile_does_no_harm(file, sockets):
    ours, theirs = sockets
    outbox = Outbox()
    outbox.add(pinned(FileSlice(file, 0, 10_000)))
    job = OnDiskThread(outbox, transport(ours), outbox.parts[0])
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
    job = TcpColdSend(sockets[0], file, 2 * MB - 10, 20)
    with pytest.raises(ConnectionAbortedError, match="ended before"):
        job.run()
    job.end()


def test_a_transport_that_cannot_send_files_is_given_their_bytes(file):
    outbox = Outbox()
    outbox.add(b"first")
    outbox.add(pinned(FileSlice(file, 0, 2 * MB)))
    slow, quick = Reading(1_000_000), Reading(3 * MB)
    assert outbox.send(slow) is None
    assert len(slow.took) == 1_000_000
    assert outbox.buffered <= 256 << 10, "a piece at a time"
    assert outbox.send(quick) is None
    assert slow.took + quick.took == b"first" + CONTENT
    assert (bool(outbox), outbox.buffered, outbox.sent) == (False, 0, 5 + 2 * MB)
    file.close()
    assert file.fileno() < 0, "nobody holds it any more"


@pytest.mark.usefixtures("cold")
def test_what_is_not_in_memory_is_read_by_a_thread_for_such_a_transport(file):
    outbox = Outbox()
    outbox.add(pinned(FileSlice(file, 0, 1 << 20)))
    taking = Reading(3 * MB)
    while (region := outbox.send(taking)) is not None:
        job = OnDiskThread(outbox, taking, region)
        job.finish(job.run())
        job.end()
    assert taking.took == CONTENT[: 1 << 20]


def test_parts_are_let_go_of_when_one_of_them_cannot_be_held(file):
    with pytest.raises(AssertionError, match="no file"):
        pin_all([b"head", FileSlice(file, 0, MB), Sizeable()])
    file.close()
    assert file.fileno() < 0


@pytest.mark.skipif(module._NO_WAIT is None, reason="the system cannot say what is in memory")
def test_a_little_of_a_file_that_is_in_memory_becomes_bytes_and_pins_nothing(file):
    held = pin_all([b"head", FileSlice(file, 5, 100), b"between", FileSlice(file, 500, 200), b""])
    assert held == [b"head" + CONTENT[5:105] + b"between" + CONTENT[500:700]]
    file.close()
    assert file.fileno() < 0


def test_what_was_read_on_the_way_is_not_read_again(file):
    parts = [FileSlice(file, 0, 30_000, b"x" * 30_000) for _ in range(3)]
    assert pin_all([b"head", *parts]) == [b"head" + b"x" * 90_000]


def test_no_more_than_a_megabyte_of_what_was_read_is_kept(file):
    held = pin_all([FileSlice(file, 0, 700_000, bytes(700_000)) for _ in range(2)])
    assert [type(part) for part in held] == [bytes, module.Region]
    module.release(held[1])


def test_more_of_a_file_than_a_little_is_sent_from_it(file):
    parts = [b"head", *(FileSlice(file, 0, 10_000) for _ in range(3))]
    held = pin_all(parts)
    assert sum(isinstance(part, module.Region) for part in held) >= 2
    for part in held:
        module.release(part)


def test_a_part_beyond_the_end_of_its_file_is_left_to_the_sending_to_find_out(file):
    (part,) = pin_all([FileSlice(file, len(CONTENT) - 5, 10)])
    assert isinstance(part, module.Region)
    module.release(part)


class Sizeable:
    """A part that claims to have bytes, and has no file."""

    file = None
    position = size = 5
    data = b""

    def __len__(self) -> int:
        return 5
