"""A server over real sockets on loopback, with handlers that answer now, later, or never."""

import asyncio
import errno
import socket
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from ottla.log.disk import OsDisk
from ottla.log.outcomes import FileSlice
from ottla.runtime import outbox, tcp
from ottla.runtime.admission import Admission, ConnectionLimits
from ottla.runtime.network import EpollPoller, LoopNetwork, LoopPoller
from ottla.runtime.request import RefusedRequest, RequestContext, Respond
from ottla.runtime.server import Limits, Server
from ottla.runtime.timers import LoopTimers
from ottla.runtime.workers import ThreadWorkers
from ottla.wire import ApiKey, decode_response, encode_request
from ottla.wire.message import Message
from ottla.wire.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    FetchRequest,
    FetchResponse,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
)

METADATA = 12
POLLER: type[EpollPoller] | type[LoopPoller] = EpollPoller


@pytest.fixture(autouse=True, params=[EpollPoller, LoopPoller], ids=["epoll", "the loop's selector"])
def poller(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "POLLER", request.param)


class Answering:
    """A handler that writes down what it is asked, and by default answers Metadata at once."""

    def __init__(self) -> None:
        self.asked: list[tuple[RequestContext, Message]] = []
        self.waiting: list[Respond] = []
        self.answers_now = True
        self.unsupported: list[RequestContext] = []

    def handle(self, context: RequestContext, message: Message, respond: Respond) -> None:
        self.asked.append((context, message))
        if self.answers_now:
            respond(MetadataResponse(cluster_id=str(context.correlation_id)))
        else:
            self.waiting.append(respond)

    def handle_unsupported(self, context: RequestContext, respond: Respond) -> None:
        self.unsupported.append(context)
        if context.api_key != ApiKey.API_VERSIONS:
            raise RefusedRequest("not served")
        respond(ApiVersionsResponse(error_code=35))


class Client:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def read_frame(self) -> bytes:
        size = int.from_bytes(await self.reader.readexactly(4), "big")
        return await self.reader.readexactly(size)

    async def read_reply(self) -> tuple[int, Any]:
        return decode_response(MetadataResponse, await self.read_frame(), METADATA)

    async def is_closed(self) -> bool:
        return await self.reader.read(1) == b""


def metadata_request(correlation_id: int, topics: int = 0) -> bytes:
    named = [MetadataRequest.MetadataRequestTopic(name="t" * 200) for _ in range(topics)]
    return encode_request(MetadataRequest(topics=named), METADATA, correlation_id, "client")


@asynccontextmanager
async def serving(
    answering: Answering, limits: Limits | None = None, admission: Admission | None = None
) -> AsyncIterator[tuple[Server, Callable[[], Coroutine[Any, Any, Client]]]]:
    loop = asyncio.get_running_loop()
    workers = ThreadWorkers(loop)
    timers, network = LoopTimers(loop), LoopNetwork(loop, POLLER)
    server = Server(
        network,
        timers,
        workers,
        lambda *request: answering.handle(*request),
        answering.handle_unsupported,
        limits,
        admission=admission,
    )
    host, port = server.listen("127.0.0.1", 0, "PLAINTEXT")
    server.start_accepting()
    clients: list[Client] = []

    async def connect() -> Client:
        client = Client(*await asyncio.open_connection(host, port))
        clients.append(client)
        return client

    try:
        yield server, connect
    finally:
        server.close()
        network.close()
        timers.close()
        workers.close()
        for client in clients:
            client.writer.close()
    assert not server.connections


def run(test: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(test(), 20))


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


def test_a_request_is_answered_with_its_correlation_id() -> None:
    async def test() -> None:
        answering = Answering()
        async with serving(answering) as (_, connect):
            client = await connect()
            client.writer.write(metadata_request(42))
            assert await client.read_reply() == (42, MetadataResponse(cluster_id="42"))
        [(context, _)] = answering.asked
        assert (context.api_key, context.api_version, context.client_id) == (ApiKey.METADATA, METADATA, "client")
        assert context.connection.client_host == "127.0.0.1"

    run(test)


def test_replies_leave_in_the_order_of_requests_whatever_the_order_they_are_given() -> None:
    async def test() -> None:
        answering = Answering()
        answering.answers_now = False
        async with serving(answering) as (server, connect):
            client = await connect()
            client.writer.write(b"".join(map(metadata_request, range(3))))
            await until(lambda: len(answering.waiting) == 3)
            assert server.unanswered == 3
            for number in (2, 0, 1):
                answering.waiting[number](MetadataResponse(cluster_id=f"reply {number}"))
            replies = [await client.read_reply() for _ in range(3)]
        assert [(number, reply.cluster_id) for number, reply in replies] == [
            (0, "reply 0"),
            (1, "reply 1"),
            (2, "reply 2"),
        ]

    run(test)


@pytest.mark.parametrize("piece", [1, 3, 7, 1000])
def test_requests_may_arrive_in_pieces_of_any_size(piece: int) -> None:
    async def test() -> None:
        answering = Answering()
        async with serving(answering) as (_, connect):
            client = await connect()
            stream = metadata_request(1) + metadata_request(2, topics=5) + metadata_request(3)
            for at in range(0, len(stream), piece):
                client.writer.write(stream[at : at + piece])
                await client.writer.drain()
                await asyncio.sleep(0)
            assert [(await client.read_reply())[0] for _ in range(3)] == [1, 2, 3]

    run(test)


def test_a_request_larger_than_the_scratch_buffer_is_put_together() -> None:
    async def test() -> None:
        answering = Answering()
        async with serving(answering) as (server, connect):
            client = await connect()
            request = metadata_request(9, topics=3 * len(server.scratch) // 200)
            assert len(request) > 3 * len(server.scratch)
            client.writer.write(request)
            assert (await client.read_reply())[0] == 9
        [(_, message)] = answering.asked
        assert len(message.topics) == 3 * len(server.scratch) // 200

    run(test)


def test_produce_without_acks_gets_no_reply_and_holds_nothing_up() -> None:
    async def test() -> None:
        answering = Answering()

        def handle(context: RequestContext, message: Message, respond: Respond) -> None:
            respond(None if context.api_key == ApiKey.PRODUCE else MetadataResponse())

        answering.handle = handle  # type: ignore[method-assign]
        async with serving(answering) as (_, connect):
            client = await connect()
            client.writer.write(encode_request(ProduceRequest(acks=0), 9, 1, None) + metadata_request(2))
            assert (await client.read_reply())[0] == 2

    run(test)


def test_a_request_beyond_the_size_limit_closes_the_connection_before_it_arrives() -> None:
    async def test() -> None:
        async with serving(Answering(), Limits(max_request_bytes=1000)) as (_, connect):
            for announced in (1001, 2**31 - 1, -1):
                client = await connect()
                client.writer.write(announced.to_bytes(4, "big", signed=True))
                assert await client.is_closed()

    run(test)


def test_memory_is_not_given_to_what_is_only_announced() -> None:
    async def test() -> None:
        async with serving(Answering()) as (server, connect):
            client = await connect()
            client.writer.write((100 << 20).to_bytes(4, "big") + bytes(100))
            await until(lambda: any(c._frames.has_begun for c in server.connections))
            [connection] = server.connections
            assert connection._frames.kept_bytes <= 16 << 10

    run(test)


def test_bytes_that_are_no_request_close_the_connection_and_no_other() -> None:
    async def test() -> None:
        answering = Answering()
        async with serving(answering) as (_, connect):
            bystander = await connect()
            for garbage in (b"\0\0\0\x04\0\x03\0\x0c", b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n", bytes(50)):
                client = await connect()
                client.writer.write(garbage)
                client.writer.write_eof()
                assert await client.is_closed()
            bystander.writer.write(metadata_request(5))
            assert (await bystander.read_reply())[0] == 5

    run(test)


def test_a_version_that_is_not_known_is_the_handlers_to_answer() -> None:
    async def test() -> None:
        answering = Answering()
        async with serving(answering) as (_, connect):
            client = await connect()
            request = bytearray(encode_request(ApiVersionsRequest(), 0, 7, "new"))
            request[6:8] = (999).to_bytes(2, "big")
            client.writer.write(request)
            correlation_id, reply = decode_response(ApiVersionsResponse, (await client.read_frame()), 0)
            assert (correlation_id, reply.error_code) == (7, 35)
        assert answering.unsupported[0].api_version == 999

    run(test)


@pytest.mark.parametrize("is_in_memory", [True, False])
def test_files_are_sent_between_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_in_memory: bool) -> None:
    monkeypatch.setattr(outbox, "_NO_WAIT", 0)
    monkeypatch.setattr(outbox, "_in_page_cache", lambda file, position, size: is_in_memory)
    content = bytes(range(256)) * 20_000
    (tmp_path / "segment").write_bytes(content)
    file = OsDisk().open(str(tmp_path / "segment"))

    async def test() -> None:
        answering = Answering()

        def handle(context: RequestContext, message: Message, respond: Respond) -> None:
            pieces = [FileSlice(file, 100 * index, 2_000_000) for index in range(2)]
            partitions = [
                FetchResponse.PartitionData(partition_index=index, records=piece) for index, piece in enumerate(pieces)
            ]
            respond(FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=partitions)]))

        answering.handle = handle  # type: ignore[method-assign]
        async with serving(answering) as (_, connect):
            client = await connect()
            client.writer.write(encode_request(FetchRequest(), 16, 3, None))
            correlation_id, reply = decode_response(FetchResponse, await client.read_frame(), 16)
        assert correlation_id == 3
        [topic] = reply.responses
        assert [bytes(partition.records) for partition in topic.partitions] == [
            content[:2_000_000],
            content[100:2_000_100],
        ]

    run(test)
    file.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.size()


def test_a_client_is_hung_up_on_when_there_are_no_descriptors_to_send_a_cold_file_with(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_NO_WAIT", 0)
    monkeypatch.setattr(outbox, "_in_page_cache", lambda file, position, size: False)
    (tmp_path / "segment").write_bytes(bytes(100_000))
    file = OsDisk().open(str(tmp_path / "segment"))

    def no_more(fd: int) -> int:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(tcp.os, "dup", no_more)

    async def test() -> None:
        answering = Answering()

        def handle(context: RequestContext, message: Message, respond: Respond) -> None:
            if context.api_key == ApiKey.METADATA:
                respond(MetadataResponse())
                return
            partition = FetchResponse.PartitionData(records=FileSlice(file, 0, 100_000))
            respond(FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])]))

        answering.handle = handle  # type: ignore[method-assign]
        async with serving(answering) as (_, connect):
            client, other = await connect(), await connect()
            client.writer.write(encode_request(FetchRequest(), 16, 3, None))
            while await client.reader.read(1000):
                """What came before the file."""
            other.writer.write(metadata_request(1))
            assert (await other.read_reply())[0] == 1

    run(test)
    file.close()
    assert file.fileno() < 0, "nobody holds it any more"


def test_a_file_stays_open_until_what_was_promised_of_it_is_sent_or_the_client_is_gone(tmp_path: Path) -> None:
    (tmp_path / "segment").write_bytes(bytes(30 << 20))
    file = OsDisk().open(str(tmp_path / "segment"))

    async def test() -> None:
        answering = Answering()

        def handle(context: RequestContext, message: Message, respond: Respond) -> None:
            partition = FetchResponse.PartitionData(records=FileSlice(file, 0, 30 << 20))
            respond(FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])]))

        answering.handle = handle  # type: ignore[method-assign]
        async with serving(answering) as (server, connect):
            client = await connect()
            client.writer.write(encode_request(FetchRequest(), 16, 3, None))
            await until(lambda: any(c.is_stuck for c in server.connections))
            file.close()
            assert file.size() == 30 << 20
            client.writer.transport.abort()
            await until(lambda: not server.connections)

    run(test)
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.size()


@pytest.mark.slow
def test_a_client_that_does_not_read_a_cold_file_keeps_no_thread_busy_and_is_closed_like_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outbox, "_NO_WAIT", 0)
    monkeypatch.setattr(outbox, "_in_page_cache", lambda file, position, size: False)
    (tmp_path / "segment").write_bytes(bytes(30 << 20))
    file = OsDisk().open(str(tmp_path / "segment"))

    async def test() -> None:
        answering = Answering()

        def handle(context: RequestContext, message: Message, respond: Respond) -> None:
            partition = FetchResponse.PartitionData(records=FileSlice(file, 0, 30 << 20))
            respond(FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])]))

        answering.handle = handle  # type: ignore[method-assign]
        async with serving(answering, Limits(max_idle_ms=400)) as (server, connect):
            client = await connect()
            client.writer.transport.pause_reading()  # type: ignore[attr-defined]
            client.writer.write(encode_request(FetchRequest(), 16, 3, None))
            await until(lambda: any(c.is_stuck for c in server.connections))
            await until(lambda: not server.connections)

    run(test)
    file.close()
    assert file.fileno() < 0, "nobody holds it any more"


def test_a_reply_that_waits_for_its_turn_keeps_its_file(tmp_path: Path) -> None:
    """The log may go while an earlier request of the same client is still waiting."""
    (tmp_path / "segment").write_bytes(b"records!")
    file = OsDisk().open(str(tmp_path / "segment"))

    async def test() -> None:
        answering = Answering()
        answering.answers_now = False
        async with serving(answering) as (_, connect):
            client = await connect()
            client.writer.write(metadata_request(1) + encode_request(FetchRequest(), 16, 2, None))
            await until(lambda: len(answering.waiting) == 2)
            partition = FetchResponse.PartitionData(records=FileSlice(file, 0, 8))
            fetched = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
            answering.waiting[1](fetched)
            file.close()
            answering.waiting[0](MetadataResponse())
            assert (await client.read_reply())[0] == 1
            _, reply = decode_response(FetchResponse, await client.read_frame(), 16)
            assert bytes(reply.responses[0].partitions[0].records) == b"records!"

    run(test)
    with pytest.raises(OSError, match="Bad file descriptor"):
        file.size()


@pytest.mark.slow
def test_a_client_that_sends_without_reading_is_paused_and_loses_nothing() -> None:
    async def test() -> None:
        answering = Answering()

        def handle(context: RequestContext, message: Message, respond: Respond) -> None:
            answering.asked.append((context, message))
            respond(MetadataResponse(cluster_id="x" * 30_000))

        answering.handle = handle  # type: ignore[method-assign]
        async with serving(answering) as (server, connect):
            client = await connect()
            client.writer.write(b"".join(map(metadata_request, range(2000))))
            await until(lambda: bool(server.paused))
            assert len(answering.asked) < 2000
            assert [(await client.read_reply())[0] for _ in range(2000)] == list(range(2000))

    run(test)


def test_reading_stops_while_too_much_is_queued() -> None:
    async def test() -> None:
        answering = Answering()
        answering.answers_now = False
        async with serving(answering, Limits(max_queued_bytes=100)) as (server, connect):
            client = await connect()
            for number in range(20):
                client.writer.write(metadata_request(number))
            await until(lambda: server.is_full)
            await asyncio.sleep(0.02)
            assert len(answering.waiting) < 20
            for number in range(20):
                await until(lambda number=number: len(answering.waiting) > number)
                answering.waiting[number](MetadataResponse())
            assert [(await client.read_reply())[0] for _ in range(20)] == list(range(20))

    run(test)


@pytest.mark.parametrize("at_once", [True, False])
def test_what_comes_behind_a_request_that_pauses_its_connection_waits(at_once: bool) -> None:
    async def test() -> None:
        answering = Answering()
        answering.answers_now = False
        async with serving(answering) as (_, connect):
            client, other = await connect(), await connect()
            plain_handle = answering.handle

            def hold(context: RequestContext, message: Message, respond: Respond) -> None:
                plain_handle(context, message, respond)
                if context.correlation_id == 1:
                    context.connection.pause()

            answering.handle = hold  # type: ignore[method-assign]
            for number in range(3):
                client.writer.write(metadata_request(number))
                if not at_once:
                    await client.writer.drain()
                    await asyncio.sleep(0.005)
            other.writer.write(metadata_request(7))
            await until(lambda: len(answering.asked) == 3)
            assert {context.correlation_id for context, _ in answering.asked} == {0, 1, 7}
            for respond in answering.waiting:
                respond(MetadataResponse())
            assert [(await client.read_reply())[0] for _ in range(2)] == [0, 1]
            await asyncio.sleep(0.005)
            assert len(answering.asked) == 3, "an answer is not a release"
            held = next(context.connection for context, _ in answering.asked if context.correlation_id == 1)
            held.resume()
            await until(lambda: len(answering.asked) == 4)
            answering.waiting[-1](MetadataResponse())
            assert (await client.read_reply())[0] == 2

    run(test)


def test_a_connection_that_was_closed_while_held_stays_closed() -> None:
    async def test() -> None:
        answering = Answering()
        answering.answers_now = False
        async with serving(answering) as (server, connect):
            client = await connect()
            client.writer.write(metadata_request(0))
            await until(lambda: bool(answering.asked))
            (connection,) = server.connections
            connection.session.client.pause()
            connection.close()
            connection.session.client.resume()
            answering.waiting[0](MetadataResponse())
            assert not server.connections
            assert await client.is_closed()

    run(test)


def test_connections_from_one_address_beyond_its_limit_are_turned_away() -> None:
    async def test() -> None:
        admission = Admission(ConnectionLimits(max_per_ip=2))
        async with serving(Answering(), admission=admission) as (server, connect):
            clients = [await connect() for _ in range(2)]
            await until(lambda: len(server.connections) == 2)
            assert await (await connect()).is_closed()
            clients[0].writer.close()
            await until(lambda: len(server.connections) == 1)
            client = await connect()
            client.writer.write(metadata_request(1))
            assert (await client.read_reply())[0] == 1

    run(test)


def test_connections_beyond_the_limit_wait_until_another_has_gone_or_the_limit_is_raised() -> None:
    async def test() -> None:
        answering = Answering()
        admission = Admission(ConnectionLimits(max_connections=2))
        async with serving(answering, admission=admission) as (server, connect):
            clients = [await connect() for _ in range(4)]
            for number, client in enumerate(clients):
                client.writer.write(metadata_request(number))
            assert [(await client.read_reply())[0] for client in clients[:2]] == [0, 1]
            await asyncio.sleep(0.01)
            assert len(answering.asked) == len(server.connections) == 2
            clients[0].writer.close()
            assert (await clients[2].read_reply())[0] == 2
            server.set_connection_limits(ConnectionLimits(max_connections=3))
            assert (await clients[3].read_reply())[0] == 3

    run(test)


def test_a_protected_listener_takes_one_more_and_the_longest_idle_elsewhere_has_to_go() -> None:
    async def test() -> None:
        admission = Admission(ConnectionLimits(max_connections=2), protected=frozenset({"BROKERS"}))
        async with serving(Answering(), admission=admission) as (server, connect):
            address = server.listen("127.0.0.1", 0, "BROKERS")
            server.start_accepting()
            clients = [await connect() for _ in range(2)]
            for number in (0, 1, 0):
                clients[number].writer.write(metadata_request(number))
                await clients[number].read_reply()
            broker = Client(*await asyncio.open_connection(*address))
            broker.writer.write(metadata_request(9))
            assert (await broker.read_reply())[0] == 9
            assert await clients[1].is_closed()
            clients[0].writer.write(metadata_request(7))
            assert (await clients[0].read_reply())[0] == 7
            broker.writer.close()

    run(test)


def test_an_idle_connection_is_closed_and_a_waiting_one_is_not() -> None:
    async def test() -> None:
        answering = Answering()
        answering.answers_now = False
        async with serving(answering, Limits(max_idle_ms=200)) as (server, connect):
            waiting = await connect()
            waiting.writer.write(metadata_request(1))
            await until(lambda: bool(answering.waiting))
            idle = await connect()
            assert await idle.is_closed()
            assert len(server.connections) == 1
            answering.waiting[0](MetadataResponse())
            assert (await waiting.read_reply())[0] == 1

    run(test)


def test_a_port_in_use_is_an_error() -> None:
    async def test() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            loop = asyncio.get_running_loop()
            answering = Answering()
            network = LoopNetwork(loop)
            server = Server(
                network, LoopTimers(loop), ThreadWorkers(loop), answering.handle, answering.handle_unsupported
            )
            with pytest.raises(OSError, match="in use"):
                server.listen("127.0.0.1", taken.getsockname()[1], "PLAINTEXT")
            server.close()
            network.close()

    run(test)
