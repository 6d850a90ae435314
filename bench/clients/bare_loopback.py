"""What the machine has to give: the bytes of as many records, from a file through one connection into memory, no more.

A child sends a file by `sendfile`, as our node does, and this process receives into the same megabyte again and again.
A client that reads from one broker is about as quick at best: "ratio" in its row is the share that ours reaches.
"""

import os
import socket
import tempfile
from typing import Any

from metering import Meter

OVERHEAD_BYTES = 10
"""Of a record within a batch, about."""
_PIECE_BYTES = 1 << 20


def run(records: int, size: int) -> Any:
    wanted = records * (size + OVERHEAD_BYTES)
    ours, theirs = _connected()
    if (child := os.fork()) == 0:
        try:
            ours.close()
            _send(theirs, wanted)
        finally:
            os._exit(0)
    theirs.close()
    room, meter, seen = bytearray(_PIECE_BYTES), None, 0
    while count := ours.recv_into(room):
        if meter is None:
            meter, wanted = Meter(), wanted - count
            continue
        seen += count
    assert meter is not None
    read = meter.read(records)
    assert seen == wanted
    ours.close()
    os.waitpid(child, 0)
    return read


def _connected() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        ours = socket.create_connection(server.getsockname())
        return ours, server.accept()[0]


def _send(connection: socket.socket, wanted: int) -> None:
    with tempfile.TemporaryFile() as file:
        file.write(os.urandom(_PIECE_BYTES) * (wanted // _PIECE_BYTES + 1))
        file.flush()
        sent = 0
        while sent < wanted:
            sent += os.sendfile(connection.fileno(), file.fileno(), sent, min(_PIECE_BYTES, wanted - sent))
    connection.close()
