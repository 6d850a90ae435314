"""Prometheus' text format, and just enough HTTP to hand it out."""

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from itertools import islice

_MAX_HEAD = 8192
_TIMEOUT_S = 10.0
_WAITING = 4
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_SAMPLES_A_PIECE = 2000

Labels = dict[str, str] | str
"""By name, or as `label_text` has them, for a caller that has many samples with the same labels."""
Sample = tuple[Labels, float]


class Exposition:
    """A page of metrics in the making. One of thousands of samples is taken piece by piece, with time in between."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._last_name = ""

    def add(self, name: str, kind: str, samples: Iterable[Sample]) -> None:
        """One metric with its samples; one without samples is left out."""
        for labels, value in samples:
            if name != self._last_name:
                self._lines.append(f"# TYPE {name} {kind}")
                self._last_name = name
            self._lines.append(f"{name}{label_text(labels)} {_number(value)}")

    def add_in_pieces(self, name: str, kind: str, samples: Iterable[Sample]) -> Iterator[str]:
        """As `add`, for a metric with very many samples: yields the page so far, again and again."""
        remaining = iter(samples)
        while some := list(islice(remaining, _SAMPLES_A_PIECE)):
            self.add(name, kind, some)
            yield self.take()

    def counter(self, name: str, value: float, **labels: str) -> None:
        self.add(name, "counter", [(labels, value)])

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.add(name, "gauge", [(labels, value)])

    def take(self) -> str:
        """What has been added since the last time."""
        lines, self._lines = self._lines, []
        return "".join(f"{line}\n" for line in lines)


def label_text(labels: Labels) -> str:
    if not labels or isinstance(labels, str):
        return str(labels or "")
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


async def serve_metrics(host: str, port: int, page: Callable[[], Iterable[str]]) -> tuple[asyncio.Server, int]:
    """Serves `GET /metrics`; returns the server and the port it got.

    Between two pieces of a page the loop does whatever else there is to do.
    """

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that hangs up, dawdles or sends too much gets nothing, and that is all that happens.
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _TIMEOUT_S)
            writer.write(await _reply(head, page))
            await asyncio.wait_for(writer.drain(), _TIMEOUT_S)
        writer.close()

    # asyncio tries to accept `backlog` times in a row, and complains each time, when descriptors have run out.
    server = await asyncio.start_server(answer, host, port, limit=_MAX_HEAD, backlog=_WAITING)
    return server, server.sockets[0].getsockname()[1]


async def _reply(head: bytes, page: Callable[[], Iterable[str]]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        status, body = "405 Method Not Allowed", "only GET is served here\n"
    elif path in (b"/metrics", b"/"):
        status, pieces = "200 OK", []
        for piece in page():
            pieces.append(piece)
            await asyncio.sleep(0)
        body = "".join(pieces)
    else:
        status, body = "404 Not Found", "the metrics are at /metrics\n"
    content = body.encode()
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {CONTENT_TYPE}", f"Content-Length: {len(content)}")
    reply = "\r\n".join((*lines, "Connection: close", "", "")).encode()
    return reply if method == b"HEAD" else reply + content
