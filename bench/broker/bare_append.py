"""Receives requests of a known size, sums each up, writes it to a file and replies. See `throughput.BareAppend`.

It decodes nothing, checks nothing and promises nothing: what is left is what the system charges for the bytes.
"""

import os
import socket
import sys
import tempfile

from ottla.base.checksum import crc32c

REPLY = (60).to_bytes(4, "big") + bytes(60)


def main(size: int, directory: str) -> None:
    scratch = bytearray(1 << 20)
    with (
        socket.create_server(("127.0.0.1", 0)) as listening,
        tempfile.TemporaryFile(dir=directory) as file,
        memoryview(scratch) as view,
    ):
        # The buffers are those of a node.
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 102_400)
        print(listening.getsockname()[1], flush=True)
        while True:
            sock, _ = listening.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 102_400)
            os.ftruncate(file.fileno(), 0)
            position = kept = 0
            with sock:
                while count := sock.recv_into(view[kept:]):
                    kept += count
                    whole = kept // size
                    for number in range(whole):
                        request = view[number * size : (number + 1) * size]
                        crc32c(request)
                        position += os.pwrite(file.fileno(), request, position)
                    if whole:
                        view[: kept - whole * size] = view[whole * size : kept]
                        kept -= whole * size
                        sock.sendall(REPLY * whole)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2])
