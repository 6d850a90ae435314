"""A load on a registry, in a process of its own: as many connections, each with one request at a time.

    python bench/registry/http_load.py HOST:PORT/PREFIX CONNECTIONS SECONDS read|register RUN

Prints JSON: requests a second, and the times that half and 99 of 100 requests took at most, in milliseconds. `read`
asks for the schemas with the ids 1 to 100; `register` registers a new schema under a new subject each time, named for
RUN.
"""

import json
import selectors
import socket
import sys
from time import perf_counter

KNOWN = 100
TYPE = "application/vnd.schemaregistry.v1+json"


class Load:
    def __init__(self, place: str, connections: int, kind: str, run: str) -> None:
        address, slash, prefix = place.partition("/")
        host, _, port = address.rpartition(":")
        self._prefix = slash + prefix
        self._kind = kind
        self._run = run
        self._count = 0
        self._selector = selectors.DefaultSelector()
        self.times_s: list[float] = []
        self._connections = [Connection(host, int(port)) for _ in range(connections)]
        for connection in self._connections:
            self._selector.register(connection.socket, selectors.EVENT_READ, connection)

    def run(self, seconds: float) -> float:
        """Returns how long it took."""
        began_s = perf_counter()
        for connection in self._connections:
            connection.send(self._request())
        while perf_counter() < began_s + seconds:
            for key, _ in self._selector.select(1.0):
                connection = key.data
                if connection.has_reply():
                    self.times_s.append(perf_counter() - connection.sent_s)
                    connection.send(self._request())
        return perf_counter() - began_s

    def _request(self) -> bytes:
        self._count += 1
        if self._kind == "read":
            path = f"{self._prefix}/schemas/ids/{1 + self._count % KNOWN}"
            return f"GET {path} HTTP/1.1\r\nHost: registry\r\nAccept: {TYPE}\r\n\r\n".encode()
        name = f"r{self._run}_{self._count}"
        fields = [{"name": "id", "type": "long"}, {"name": name, "type": ["null", "string"], "default": None}]
        body = json.dumps({"schema": json.dumps({"type": "record", "name": "Order", "fields": fields})})
        head = f"POST {self._prefix}/subjects/{name}-value/versions HTTP/1.1\r\nHost: registry\r\n"
        return f"{head}Content-Type: {TYPE}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


class Connection:
    def __init__(self, host: str, port: int) -> None:
        self.socket = socket.create_connection((host, port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sent_s = 0.0
        self._received = b""

    def send(self, request: bytes) -> None:
        self.sent_s = perf_counter()
        self.socket.sendall(request)

    def has_reply(self) -> bool:
        self._received += self.socket.recv(1 << 16)
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank or not _is_whole(head.lower(), body):
            return False
        if not head.startswith(b"HTTP/1.1 200"):
            raise SystemExit(f"refused: {self._received!r}")
        self._received = b""
        return True


def _is_whole(head: bytes, body: bytes) -> bool:
    if b"transfer-encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    return len(body) >= int(head.partition(b"content-length:")[2].split(b"\r\n")[0])


def main() -> None:
    place, connections, seconds, kind, run = sys.argv[1:]
    load = Load(place, int(connections), kind, run)
    took_s = load.run(float(seconds))
    times = sorted(load.times_s)
    p50, p99 = (1000 * times[int(len(times) * part)] for part in (0.5, 0.99))
    print(json.dumps({"rate": len(times) / took_s, "p50": p50, "p99": p99}))


if __name__ == "__main__":
    main()
