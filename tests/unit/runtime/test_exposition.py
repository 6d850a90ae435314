import asyncio
import gc
import tracemalloc
import weakref
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

import pytest

from ottla.runtime.exposition import Exposition, serve_metrics
from ottla.runtime.http.pages import in_pieces
from ottla.runtime.network import LoopNetwork
from ottla.runtime.timers import LoopTimers
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers


def test_a_page_has_a_type_per_metric_and_a_line_per_sample() -> None:
    page = Exposition()
    page.counter("kafka_server_brokertopicmetrics_bytesin_total", 12)
    page.add("kafka_log_log_size", "gauge", [({"topic": "a", "partition": "0"}, 1.5), ({"topic": 'b"\\\n'}, 2)])
    page.add("never", "gauge", [])
    assert page.take() == (
        "# TYPE kafka_server_brokertopicmetrics_bytesin_total counter\n"
        "kafka_server_brokertopicmetrics_bytesin_total 12\n"
        "# TYPE kafka_log_log_size gauge\n"
        'kafka_log_log_size{topic="a",partition="0"} 1.5\n'
        'kafka_log_log_size{topic="b\\"\\\\\\n"} 2\n'
    )


def test_a_metric_of_very_many_samples_comes_in_pieces() -> None:
    page = Exposition()
    page.gauge("before", 1)
    pieces = list(page.add_in_pieces("many", "gauge", (({"number": str(n)}, n) for n in range(5000))))
    page.gauge("after", 2)
    text = "".join([*pieces, page.take()])
    assert len(pieces) == 3
    assert text.startswith('# TYPE before gauge\nbefore 1\n# TYPE many gauge\nmany{number="0"} 0\n')
    assert text.endswith('many{number="4999"} 4999\n# TYPE after gauge\nafter 2\n')
    assert text.count("# TYPE many") == 1


def test_a_column_has_a_line_for_each_label_whether_its_numbers_differ_or_not() -> None:
    page = Exposition()
    labels = [f'{{n="{n}"}} ' for n in range(5001)]
    for values in ([7] * 5001, [1.5, *range(5000)]):
        text = "".join(page.add_column("rows", "gauge", labels, values))
        lines = [f"rows{label}{value}\n" for label, value in zip(labels, values, strict=True)]
        assert text.removeprefix("# TYPE rows gauge\n") == "".join(lines)


def test_a_page_is_let_go_when_it_is_made() -> None:
    """Without the garbage collector: a page may have megabytes, and is asked for every few seconds."""

    def pieces() -> Iterator[str]:
        yield from ("one", "two")

    clock = FixedClock()
    timers = StepTimers(clock)
    made: list[bytes] = []
    page = pieces()
    is_kept = weakref.ref(page)
    gc.disable()
    try:
        in_pieces(timers, page, made.extend, lambda _problem: made.clear())
        del page
        while len(made) < 2:
            timers.advance(1)
        assert is_kept() is None
    finally:
        gc.enable()


def test_other_work_is_done_between_two_pieces() -> None:
    turns: list[str] = []

    def page() -> Iterator[str]:
        for number in range(3):
            turns.append("page")
            asyncio.get_running_loop().call_soon(turns.append, "other")
            yield f"{number}\n"

    async def main() -> None:
        with served(page) as port:
            assert (await get(port, b"GET /metrics HTTP/1.0\r\n\r\n")).endswith(b"\r\n\r\n0\n1\n2\n")

    asyncio.run(main())
    assert turns == ["page", "other"] * 3


@contextmanager
def served(page: Callable[[], Iterable[str]]) -> Iterator[int]:
    loop = asyncio.get_running_loop()
    network, timers = LoopNetwork(loop), LoopTimers(loop)
    server, port = serve_metrics(network, timers, "127.0.0.1", 0, page)
    yield port
    server.close()
    network.close()
    timers.close()


async def get(port: int, request: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    reply = await asyncio.wait_for(reader.read(), 5)
    writer.close()
    return reply


@pytest.mark.slow
def test_metrics_are_served_over_http() -> None:
    async def main() -> None:
        with served(lambda: ["up", " 1\n"]) as port:
            reply = await get(port, b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            assert reply.startswith(b"HTTP/1.1 200 OK\r\n")
            assert reply.endswith(b"\r\n\r\nup 1\n")
            assert b"Content-Length: 5\r\n" in reply
            assert (await get(port, b"HEAD /metrics HTTP/1.0\r\n\r\n")).endswith(b"\r\n\r\n")
            assert (await get(port, b"GET /other HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 404")
            assert (await get(port, b"POST /metrics HTTP/1.0\r\n\r\n")).startswith(b"HTTP/1.1 405")
            assert (await get(port, b"GET /" + b"x" * 20_000)).startswith(b"HTTP/1.1 431")

    asyncio.run(main())


@pytest.mark.slow
def test_hundreds_of_slow_clients_keep_no_scraper_out() -> None:
    """300 that never end their request, and come back when they are closed; a scraper asks as Prometheus does."""
    closed = 0

    async def slow(port: int) -> None:
        nonlocal closed
        while True:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
            await reader.read()
            writer.close()
            closed += 1

    async def main() -> None:
        with served(lambda: ["up 1\n"]) as port:
            clients = [asyncio.ensure_future(slow(port)) for _ in range(300)]
            for _ in range(3):
                reply = await asyncio.wait_for(get(port, b"GET /metrics HTTP/1.0\r\n\r\n"), 5)
                assert reply.endswith(b"up 1\n")
            for client in clients:
                client.cancel()
            await asyncio.gather(*clients, return_exceptions=True)

    asyncio.run(main())
    assert closed


def test_a_page_is_in_memory_once_for_all_who_read_it_slowly() -> None:
    async def main() -> None:
        page_bytes, readers = 20 << 20, 12
        with served(lambda: ["x" * page_bytes]) as port:
            tracemalloc.start()
            streams = [await asyncio.open_connection("127.0.0.1", port, limit=1024) for _ in range(readers)]
            for number, (_, writer) in enumerate(streams):
                writer.write(b"GET /metrics HTTP/1.%d\r\nHost: x\r\n\r\n" % (number % 2))
            for reader, _ in streams:
                assert await asyncio.wait_for(reader.readline(), 10) == b"HTTP/1.1 200 OK\r\n"
            held_bytes = tracemalloc.get_traced_memory()[0]
            tracemalloc.stop()
            for _, writer in streams:
                writer.transport.abort()
        assert held_bytes < 3 * page_bytes

    asyncio.run(main())
