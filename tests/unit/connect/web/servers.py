"""HTTP servers of tests, on loopback: one that is strict about what it is asked, and one that says any bytes."""

import socket
import ssl
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class Asked(NamedTuple):
    method: str
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes


class Answer(NamedTuple):
    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = {}


class WebServer:
    """Answers with what a function says of each request; remembers requests and counts connections.

    It refuses what a careful server refuses: a body without a length, a Host that is not its own.
    """

    def __init__(self, answer: Callable[[Asked], Answer], tls: ssl.SSLContext | None = None) -> None:
        self.asked: list[Asked] = []
        self.connections = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                outer.connections += 1
                super().setup()

            def _answer(self) -> None:
                headers = {name.lower(): value for name, value in self.headers.items()}
                length = headers.get("content-length")
                if self.command in ("POST", "PUT", "PATCH") and (length is None or not length.isdecimal()):
                    said = Answer(411)
                elif headers.get("host") != f"127.0.0.1:{outer.port}":
                    said = Answer(421, b"misdirected")
                else:
                    body = self.rfile.read(int(length or 0))
                    asked = Asked(self.command, self.path, headers, body)
                    outer.asked.append(asked)
                    said = answer(asked)
                self.send_response(said.status)
                for name, value in said.headers.items():
                    self.send_header(name, value)
                content = b"" if self.command == "HEAD" else said.body
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_HEAD = _answer  # noqa: N815  # http.server's names

            def log_message(self, *_: Any) -> None:
                """Quietly."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port = self._server.server_port
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(10)

    def __enter__(self) -> "WebServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class RawServer:
    """Says these bytes to each connection after it has sent something; then closes, or stays silent."""

    def __init__(self, said: bytes, *, stays: bool = False) -> None:
        self._said, self._stays = said, stays
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.connections: list[socket.socket] = []
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections.append(connection)
            try:
                connection.recv(65536)
                connection.sendall(self._said)
                if not self._stays:
                    connection.close()
            except OSError:
                pass

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self.connections:
            one.close()
        self._thread.join(10)

    def __enter__(self) -> "RawServer":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
