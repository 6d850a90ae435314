"""Asks a node for ApiVersions without pause until told to stop; prints the longest answer in milliseconds."""

import select
import socket
import sys
import time

REQUEST = (10).to_bytes(4, "big") + bytes([0, 18, 0, 0, 0, 0, 0, 1, 255, 255])


def main(bootstrap: str) -> None:
    host, _, port = bootstrap.rpartition(":")
    longest = 0.0
    with socket.create_connection((host, int(port)), 60) as sock:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ask(sock)
        print("probing", flush=True)
        while not select.select([sys.stdin], [], [], 0)[0]:
            started = time.perf_counter()
            ask(sock)
            longest = max(longest, time.perf_counter() - started)
            time.sleep(0.0005)  # the node has other work to do, and the probe shares its core
    print(longest * 1000)


def ask(sock: socket.socket) -> None:
    sock.sendall(REQUEST)
    received = bytearray()
    while len(received) < 4 or len(received) < 4 + int.from_bytes(received[:4], "big"):
        some = sock.recv(65536)
        if not some:
            raise ConnectionError("the node hung up")
        received += some


if __name__ == "__main__":
    main(sys.argv[1])
