"""Prometheus' text format, and just enough HTTP to hand it out."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress

_MAX_HEAD = 8192
_TIMEOUT_S = 10.0
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"

Sample = tuple[dict[str, str], float]


class Exposition:
    """A page of metrics in the making."""

    def __init__(self) -> None:
        self._lines: list[str] = []

    def add(self, name: str, kind: str, samples: Iterable[Sample]) -> None:
        """One metric with its samples; one without samples is left out."""
        first = True
        for labels, value in samples:
            if first:
                self._lines.append(f"# TYPE {name} {kind}")
                first = False
            self._lines.append(f"{name}{_labels(labels)} {_number(value)}")

    def counter(self, name: str, value: float, **labels: str) -> None:
        self.add(name, "counter", [(labels, value)])

    def gauge(self, name: str, value: float, **labels: str) -> None:
        self.add(name, "gauge", [(labels, value)])

    def text(self) -> str:
        return "\n".join(self._lines) + "\n"


def _labels(labels: dict[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items()) + "}"


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


async def serve_metrics(host: str, port: int, page: Callable[[], str]) -> tuple[asyncio.Server, int]:
    """Serves `GET /metrics`; returns the server and the port it got."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # A client that hangs up, dawdles or sends too much gets nothing, and that is all that happens.
        with suppress(OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), _TIMEOUT_S)
            writer.write(_reply(head, page))
            await asyncio.wait_for(writer.drain(), _TIMEOUT_S)
        writer.close()

    server = await asyncio.start_server(answer, host, port, limit=_MAX_HEAD)
    return server, server.sockets[0].getsockname()[1]


def _reply(head: bytes, page: Callable[[], str]) -> bytes:
    method, _, rest = head.partition(b" ")
    path = rest.partition(b" ")[0].partition(b"?")[0]
    if method not in (b"GET", b"HEAD"):
        status, body = "405 Method Not Allowed", "only GET is served here\n"
    elif path in (b"/metrics", b"/"):
        status, body = "200 OK", page()
    else:
        status, body = "404 Not Found", "the metrics are at /metrics\n"
    content = body.encode()
    lines = (f"HTTP/1.1 {status}", f"Content-Type: {CONTENT_TYPE}", f"Content-Length: {len(content)}")
    reply = "\r\n".join((*lines, "Connection: close", "", "")).encode()
    return reply if method == b"HEAD" else reply + content
