"""Conversations over sockets: a connection to each node that a lane talks to, plain or with TLS.

Where nodes are killed meanwhile, a connection that breaks gives `LOST` for all that was asked on it and not answered.
"""

import socket
import ssl
import struct
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, TypeVar

from ottla.testing.workload.conversations import LOST, Ask, Unexpected
from ottla.wire.frame import decode_response, encode_request, response_type

T = TypeVar("T")
Address = tuple[str, int]

_TIMEOUT_S = 45.0
_MOMENT_S = 0.005


class LaneSockets:
    """`address_of` a node, and `tls` where the connections are encrypted. `expects_kills`: nodes may be gone."""

    def __init__(
        self,
        address_of: Callable[[int], Address],
        tls: ssl.SSLContext | None,
        name: str,
        *,
        expects_kills: bool = False,
    ) -> None:
        self._expects_kills = expects_kills
        self._address_of = address_of
        self._tls = tls
        self._name = name
        self._sockets: dict[int, socket.socket] = {}

    def drive(self, conversation: Generator[Sequence[Ask], list[Any], T]) -> T:
        """Sends what the conversation asks, gives it the replies, and returns what it returns."""
        replies: list[Any] | None = None
        while True:
            try:
                asked = next(conversation) if replies is None else conversation.send(replies)
            except StopIteration as end:
                return end.value  # type: ignore[no-any-return]
            if not asked:
                time.sleep(_MOMENT_S)
            replies = self._exchange(asked)

    def close(self) -> None:
        for one in self._sockets.values():
            one.close()
        self._sockets.clear()

    def _exchange(self, asked: Sequence[Ask]) -> list[Any]:
        lost: set[int] = set()
        for number, one in enumerate(asked):
            data = encode_request(one.request, one.version, number, self._name)
            self._attempt(one.node, lost, lambda one=one, data=data: self._socket(one.node).sendall(data))
        return [
            self._attempt(one.node, lost, lambda one=one: self._receive(one) if one.has_response else None)
            for one in asked
        ]

    def _attempt(self, node: int, lost: set[int], do: Callable[[], Any]) -> Any:
        if node in lost:
            return LOST
        try:
            return do()
        except TimeoutError:
            raise
        except OSError:
            if not self._expects_kills:
                raise
            lost.add(node)
            if (broken := self._sockets.pop(node, None)) is not None:
                broken.close()
            return LOST

    def _receive(self, asked: Ask) -> Any:
        connection = self._socket(asked.node)
        try:
            (size,) = struct.unpack(">i", _receive(connection, 4))
            frame = _receive(connection, size)
        except TimeoutError:
            told = f"{type(asked.request).__name__} of version {asked.version}"
            raise Unexpected(f"{told} has no reply from node {asked.node} after {_TIMEOUT_S:.0f} s") from None
        return decode_response(response_type(asked.request._schema.api_key), frame, asked.version)[1]

    def _socket(self, node: int) -> socket.socket:
        found = self._sockets.get(node)
        if found is None:
            host, port = self._address_of(node)
            found = socket.create_connection((host, port), _TIMEOUT_S)
            found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                found = self._tls.wrap_socket(found, server_hostname=host)
            self._sockets[node] = found
        return found


def _receive(connection: socket.socket, count: int) -> bytes:
    data = bytearray(count)
    view = memoryview(data)
    while view:
        taken = connection.recv_into(view)
        if not taken:
            raise ConnectionResetError("the node hung up")
        view = view[taken:]
    return bytes(data)
