"""The same server and connections over a network in memory: frames in pieces, slow readers, clients that go."""

import errno
from collections.abc import Callable

import pytest

from ottla.log.outcomes import FileSlice
from ottla.runtime.server import Limits
from ottla.testing.memory_disk import MemoryDisk
from ottla.wire.messages import FetchRequest, FetchResponse, MetadataRequest, MetadataResponse
from tests.unit.runtime.memory_server import Client, Scene

METADATA = 12
ASKED = MetadataRequest(topics=[]), METADATA


def reply_of(size: int, text: str = "") -> MetadataResponse:
    """Each letter of the cluster id is a byte of the reply."""
    return MetadataResponse(cluster_id=text or "x" * size)


def answer_at_once(scene: Scene, size: int) -> None:
    scene.handle = lambda context, message, respond: respond(reply_of(size))


def test_requests_are_answered_in_order_over_a_network_in_memory() -> None:
    scene = Scene()
    client = scene.connect()
    client.ask(ASKED, ASKED, ASKED)
    for place in (2, 0, 1):
        scene.waiting[place][2](reply_of(0, f"reply {place}"))
        scene.network.run()
    assert [(asked, reply.cluster_id) for asked, reply in client.replies()] == [
        (0, "reply 0"),
        (1, "reply 1"),
        (2, "reply 2"),
    ]
    assert scene.server.unanswered == 0


@pytest.mark.parametrize("piece", [1, 3, 7, 50])
def test_a_frame_may_come_in_pieces(piece: int) -> None:
    scene = Scene()
    answer_at_once(scene, 5)
    client = scene.connect()
    stream = client.bytes_of(ASKED, ASKED, ASKED)
    for at in range(0, len(stream), piece):
        client.end.send(stream[at : at + piece])
        scene.network.run()
    assert [asked for asked, _ in client.replies()] == [0, 1, 2]


def test_replies_of_one_turn_leave_at_its_end_together() -> None:
    scene = Scene()
    clients = [scene.connect() for _ in range(3)]
    sent_before_the_last: list[int] = []

    def handle(context, message, respond) -> None:
        sent_before_the_last.append(scene.server.bytes_sent)
        respond(reply_of(5))

    scene.handle = handle
    for client in clients:
        client.end.send(client.bytes_of(ASKED))
    turns = scene.network.turns
    scene.network.run()
    assert scene.network.turns == turns + 1
    assert sent_before_the_last == [0, 0, 0], "nobody is woken before all have been handled"
    assert [len(client.replies()) for client in clients] == [1, 1, 1]


def test_a_reply_that_another_client_brings_about_leaves_at_the_end_of_that_turn() -> None:
    scene = Scene()
    waiting, other = scene.connect(), scene.connect()
    waiting.ask(ASKED)

    def handle(context, message, respond) -> None:
        scene.waiting[0][2](reply_of(1))
        assert not waiting.end.receive(), "not from inside another client's request"
        respond(reply_of(2))

    scene.handle = handle
    other.end.send(other.bytes_of(ASKED))
    assert scene.network.turn()
    assert len(waiting.replies()) == len(other.replies()) == 1


def test_a_slow_reader_gets_everything_and_holds_nobody_up() -> None:
    scene = Scene(pipe_bytes=1000)
    answer_at_once(scene, 10_000)
    slow, other = scene.connect(), scene.connect()
    slow.ask(ASKED, ASKED)
    other.ask(ASKED)
    assert [len(reply.cluster_id) for _, reply in other.replies()] == [10_000]
    assert [len(reply.cluster_id) for _, reply in slow.replies()] == [10_000, 10_000]


def test_a_client_that_does_not_read_is_made_to_wait_before_its_replies_fill_the_memory() -> None:
    scene = Scene(pipe_bytes=30_000)
    answered = 0

    def handle(context, message, respond) -> None:
        nonlocal answered
        answered += 1
        respond(reply_of(0, "x" * 32_000))

    scene.handle = handle
    client = scene.connect()
    for _ in range(60):
        client.ask(*[ASKED] * 20)
        if len(client.end._outward.data):
            break
    [connection] = scene.server.connections
    assert answered < 140, "4 MB of replies, and the one that goes beyond"
    assert connection.session.unsent_bytes < (4 << 20) + 33_000
    sent = client._asked
    assert [asked for asked, _ in client.replies()] == list(range(sent)), "and all come when it reads"
    assert connection.session.unsent_bytes == 0


def test_replies_count_before_their_turn_has_come() -> None:
    """The first request waits; what is behind it is answered at once, and must not fill the memory."""
    scene = Scene()
    answered = []

    def handle(context, message, respond) -> None:
        answered.append(respond)
        if len(answered) > 1:
            respond(reply_of(32_000))

    scene.handle = handle
    client = scene.connect()
    client.ask(*[ASKED] * 240)
    assert len(answered) < 140
    answered[0](reply_of(1))
    scene.network.run()
    assert [asked for asked, _ in client.replies()] == list(range(240))


def test_a_client_that_does_not_read_is_closed_when_nothing_has_moved_for_as_long_as_idle_ones_are() -> None:
    scene = Scene(Limits(max_idle_ms=10_000), pipe_bytes=1000)
    answer_at_once(scene, 10_000)
    stuck, slow = scene.connect(), scene.connect()
    stuck.ask(ASKED)
    slow.ask(ASKED)
    for _ in range(4):
        scene.timers.advance(4_000)
        assert slow.end.receive(100)
        scene.network.run()
    assert stuck.end.is_closed
    assert not slow.end.is_closed


@pytest.mark.parametrize("code", [errno.ECONNRESET, errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.ENETDOWN, errno.EIO])
def test_any_error_of_a_socket_is_the_end_of_its_connection_and_of_no_other(code: int) -> None:
    scene = Scene()
    answer_at_once(scene, 5)
    broken, other = scene.connect(), scene.connect()
    broken.end.send(broken.bytes_of(ASKED))
    broken.end.fail(code)
    other.ask(ASKED)
    assert len(other.replies()) == 1
    assert broken.end.is_closed
    assert len(scene.server.connections) == 1


def test_an_error_while_sending_is_the_end_of_the_connection() -> None:
    scene = Scene()
    client = scene.connect()
    client.ask(ASKED)
    client.end.fail(errno.EHOSTUNREACH)
    scene.waiting[0][2](reply_of(5))
    scene.network.run()
    assert not scene.server.connections


def test_a_client_that_goes_in_the_middle_of_a_request_is_forgotten() -> None:
    scene = Scene()
    client = scene.connect()
    client.end.send(client.bytes_of(ASKED)[:11])
    client.end.close()
    scene.network.run()
    assert not scene.server.connections


def test_a_client_that_goes_before_its_answer_is_forgotten() -> None:
    scene = Scene()
    client = scene.connect()
    client.ask(ASKED)
    client.end.close()
    scene.network.run()
    scene.waiting[0][2](reply_of(5))
    scene.network.run()
    assert not scene.server.connections
    assert scene.server._queued_bytes == 0


@pytest.mark.parametrize("code", [errno.EMFILE, errno.ENOMEM, errno.EPERM, errno.EIO])
def test_accepting_is_tried_again_whatever_the_error(code: int) -> None:
    scene = Scene()
    answer_at_once(scene, 5)
    [listening] = scene.server._listening
    listening.listener.problems.append(OSError(code, "cannot"))
    client = Client(scene, scene.network.connect(*scene.address))
    client.end.send(client.bytes_of(ASKED))
    scene.network.run()
    assert not scene.server.connections
    scene.timers.advance(1_000)
    scene.network.run()
    assert len(client.replies()) == 1


def test_files_on_a_disk_in_memory_are_read_and_sent() -> None:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    file = disk.open("/data/segment", create=True)
    content = bytes(range(256)) * 4000
    file.write_at(0, content)
    scene = Scene()

    def handle(context, message, respond) -> None:
        partition = FetchResponse.PartitionData(records=FileSlice(file, 0, len(content)))
        respond(FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])]))

    scene.handle = handle
    client = scene.connect()
    client.ask((FetchRequest(), 16))
    [(_, reply)] = client.replies()
    assert bytes(reply.responses[0].partitions[0].records) == content


def test_the_same_run_twice_is_the_same() -> None:
    def transcript() -> list[object]:
        scene = Scene(pipe_bytes=500)
        seen: list[object] = []

        def handle(context, message, respond) -> None:
            seen.append((context.connection.connection_id, context.correlation_id, scene.network.turns))
            respond(reply_of(700))

        scene.handle = handle
        clients = [scene.connect() for _ in range(5)]
        for round_number in range(3):
            for client in clients[round_number:]:
                client.end.send(client.bytes_of(ASKED, ASKED))
            scene.network.run()
            seen += [len(client.replies()) for client in clients]
        return seen

    assert transcript() == transcript()


def test_requests_that_are_never_answered_take_no_room_when_their_client_has_gone() -> None:
    """Work in steps for a client that has gone is dropped. If its request still counted against
    `queued.max.request.bytes`, a few such clients would stop the node for all.
    """
    scene, resumed = Scene(Limits(max_queued_bytes=100)), list[Callable[[], None]]()

    class Pause:
        def when_over(self, callback: Callable[[], None]) -> None:
            resumed.append(callback)

    scene.handle = lambda context, message, respond: context.go_through(iter([Pause()]), in_order=False)
    for _ in range(10):
        client = scene.connect()
        client.ask(ASKED)
        client.end.close()
        scene.network.run()
        assert scene.server._queued_bytes > 0, "it is in memory for as long as it waits"
        resumed.pop()()
        scene.network.run()
    assert (scene.server._queued_bytes, scene.server.is_full) == (0, False)
    scene.handle = scene.wait
    scene.connect().ask(ASKED)
    assert len(scene.waiting) == 1
