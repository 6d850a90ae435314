"""Sends the next megabyte of a file, with its size in front, for every byte received. See `throughput.BareSendfile`."""

import os
import socket
import sys

FETCH_BYTES = 1 << 20


def main(path: str) -> None:
    fd = os.open(path, os.O_RDONLY)
    size = os.fstat(fd).st_size
    with socket.create_server(("127.0.0.1", 0)) as listening:
        print(listening.getsockname()[1], flush=True)
        while True:
            sock, _ = listening.accept()
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            position = 0
            with sock:
                while sock.recv(1):
                    if position + FETCH_BYTES > size:
                        position = 0
                    sock.send(FETCH_BYTES.to_bytes(4, "big"), socket.MSG_MORE)
                    end = position + FETCH_BYTES
                    while position < end:
                        position += os.sendfile(sock.fileno(), fd, position, end - position)


if __name__ == "__main__":
    main(sys.argv[1])
