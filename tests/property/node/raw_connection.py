"""A client that says whatever bytes it likes."""

import socket
import struct
from typing import Any, Self

from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message

TIMEOUT_S = 20.0


class RawConnection:
    def __init__(self, bootstrap: str, timeout_s: float = TIMEOUT_S) -> None:
        host, _, port = bootstrap.rpartition(":")
        self.socket = socket.create_connection((host, int(port)), timeout_s)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    @classmethod
    def over(cls, connected: socket.socket) -> Self:
        connection = cls.__new__(cls)
        connection.socket = connected
        return connection

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        """A node may have hung up already: what it does is seen when its answer is read."""
        try:
            self.socket.sendall(data)
        except (BrokenPipeError, ConnectionResetError):
            return

    def read(self, count: int) -> bytes:
        """As many bytes, or fewer when the node hangs up."""
        data = bytearray()
        while len(data) < count:
            try:
                some = self.socket.recv(count - len(data))
            except ConnectionResetError:
                break
            if not some:
                break
            data += some
        return bytes(data)

    def read_frame(self) -> bytes | None:
        """The next answer without its size, or None when the node hung up."""
        head = self.read(4)
        if len(head) < 4:
            return None
        (size,) = struct.unpack(">i", head)
        frame = self.read(size)
        return frame if len(frame) == size else None

    def ask(self, message: Message, version: int) -> Any:
        """Request and response, when all goes well."""
        self.send(encode_request(message, version, 7, "raw"))
        frame = self.read_frame()
        assert frame is not None, f"the node hung up on {type(message).__name__}"
        correlation_id, response = decode_response(response_type(message._schema.api_key), frame, version)
        assert correlation_id == 7
        return response

    def is_hung_up(self) -> bool:
        """Waits until the node hangs up; answers before that are skipped."""
        try:
            while self.read(65536):
                pass
        except TimeoutError:
            return False
        return True

    def is_answered(self, within_s: float) -> bool:
        """Whether anything came before the node hung up."""
        self.socket.settimeout(within_s)
        try:
            return len(self.read(1)) > 0
        except TimeoutError:
            return False

    def say_no_more(self) -> None:
        try:
            self.socket.shutdown(socket.SHUT_WR)
        except OSError:
            return
