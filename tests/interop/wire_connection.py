"""One connection to a broker, for tests that look at single replies."""

import socket
import struct
from types import TracebackType
from typing import Any, Self

from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message

_TIMEOUT_S = 30


class WireConnection:
    """Requests may be sent ahead; replies come in their order."""

    def __init__(self, bootstrap: str, client_id: str = "wire") -> None:
        host, _, port = bootstrap.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), _TIMEOUT_S)
        self._client_id = client_id
        self._sent: list[tuple[Message, int]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._socket.close()

    def send(self, request: Message, version: int) -> None:
        self._socket.sendall(encode_request(request, version, 1, self._client_id))
        self._sent.append((request, version))

    def receive(self) -> Any:
        """The next reply; raises `ConnectionError` when the broker hangs up instead."""
        request, version = self._sent.pop(0)
        (size,) = struct.unpack(">i", self._receive(4))
        return decode_response(response_type(request._schema.api_key), self._receive(size), version)[1]

    def has_reply(self, within_s: float) -> bool:
        self._socket.settimeout(within_s)
        try:
            return len(self._socket.recv(1, socket.MSG_PEEK)) > 0
        except TimeoutError:
            return False
        finally:
            self._socket.settimeout(_TIMEOUT_S)

    def ask(self, request: Message, version: int) -> Any:
        self.send(request, version)
        return self.receive()

    def _receive(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self._socket.recv(count - len(data))
            if not more:
                raise ConnectionResetError("the broker hung up")
            data += more
        return data
