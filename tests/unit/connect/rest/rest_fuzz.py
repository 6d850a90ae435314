"""Throws what no tool would send at a live REST interface, and looks at every reply.

    python -m tests.unit.connect.rest.rest_fuzz --seconds 60 --seed 7

Every reply must be whole, have a status that the interface knows, and JSON where it refuses. 500 is a fault of the
worker's. Beside the requests, clients that send half of one and wait. What is found is printed with the seed.
"""

import argparse
import http.client
import json
import random
import socket
import string
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final
from urllib.parse import quote, urlsplit

from ottla.connect.rest.api import OPERATIONS

METHODS: Final = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS", "TRACE", "PROPFIND")
KNOWN: Final = {200, 201, 202, 204, 400, 401, 403, 404, 405, 406, 408, 409, 413, 414, 415, 431, 501, 503}
PATHS: Final = (
    "/",
    "/health",
    "/metrics",
    "/connectors",
    "/connectors/{}",
    "/connectors/{}/config",
    "/connectors/{}/status",
    "/connectors/{}/tasks",
    "/connectors/{}/tasks/{}/status",
    "/connectors/{}/tasks/{}/restart",
    "/connectors/{}/restart",
    "/connectors/{}/pause",
    "/connectors/{}/resume",
    "/connectors/{}/stop",
    "/connectors/{}/topics",
    "/connectors/{}/topics/reset",
    "/connectors/{}/offsets",
    "/connectors/{}/fence",
    "/connector-plugins",
    "/connector-plugins/{}/config",
    "/connector-plugins/{}/config/validate",
    "/admin/loggers",
    "/admin/loggers/{}",
    "/{}",
)
NAMES: Final = (
    "lines",
    "a",
    "..",
    ".",
    "",
    " ",
    "-1",
    "0",
    "99999999999",
    "%2F",
    "%25",
    "%00",
    "%zz",
    "ü",
    "日本",
    "a b",
    "a/b",
    "a%20b",
    "%ff",
    "FileStreamSource",
    "org.apache.kafka.connect.file.FileStreamSourceConnector",
    "x" * 300,
    "'; --",
    "${env:PATH}",
    "__proto__",
    "root",
    "ottla.connect",
    "\u202e",
    "%E2%80%AE",
    "a?b",
    "a#b",
    "NaN",
    "true",
)
KEYS: Final = (
    "name",
    "config",
    "initial_state",
    "connector.class",
    "file",
    "topic",
    "topics",
    "topics.regex",
    "tasks.max",
    "transforms",
    "transforms.a.type",
    "predicates",
    "errors.tolerance",
    "key.converter",
    "value.converter",
    "offsets",
    "partition",
    "offset",
    "kafka_topic",
    "kafka_partition",
    "kafka_offset",
    "level",
    "filename",
    "position",
    "consumer.override.group.id",
    "config.action.reload",
    "header.converter",
    "connector.plugin.version",
)


class Fuzz:
    """`random` decides everything. `kept` are names of connectors that may exist."""

    def __init__(self, url: str, chance: random.Random, authorization: str | None = None) -> None:
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 0
        self._chance = chance
        self._authorization = authorization
        self.statuses: Counter[int] = Counter()
        self.slow: list[socket.socket] = []
        self.longest_s = 0.0

    # --- what is sent ---

    def name(self) -> str:
        chance = self._chance
        if chance.random() < 0.8:
            return "lines" if chance.random() < 0.4 else chance.choice(NAMES)
        return quote("".join(chance.choices(string.printable + "äß€", k=chance.randrange(1, 40))), safe="")

    def asked(self) -> tuple[str, str]:
        """Method and path: half of the time of an operation that there is."""
        chance = self._chance
        if chance.random() < 0.5:
            operation = chance.choice(OPERATIONS)
            return operation.method, self.path(operation.path.replace("{name}", "{}").replace("{task}", "{}"))
        return chance.choice(METHODS), self.path(chance.choice(PATHS))

    def path(self, path: str) -> str:
        chance = self._chance
        while "{}" in path:
            path = path.replace("{}", quote(self.name(), safe="%/?"), 1)
        if chance.random() < 0.3:
            pairs = [
                "expand=status",
                "expand=info",
                "expand=x",
                "includeTasks=true",
                "onlyFailed=true",
                "scope=cluster",
                "connectorsOnly=false",
                "scope=",
                "=",
                "&&",
                "forward=false",
                "reset=true",
                "%ff=%00",
            ]
            path += "?" + "&".join(chance.choices(pairs, k=chance.randrange(1, 4)))
        if chance.random() < 0.03:
            path += "/" * chance.randrange(1, 2000)
        return path

    def value(self, depth: int = 0) -> Any:
        chance = self._chance
        made: list[Callable[[], Any]] = [
            lambda: None,
            lambda: True,
            lambda: chance.randrange(-(2**70), 2**70),
            lambda: chance.random() * 1e300,
            lambda: chance.choice(NAMES),
            lambda: "x" * chance.choice((0, 1, 1000, 100_000)),
            lambda: -1,
            lambda: "\x00\ud800",
            lambda: chance.choice(
                ("STOPPED", "paused", "RUNNING", "all", "none", "DEBUG", "1", "-1", "${file:/etc/passwd:a}")
            ),
        ]
        if depth < 4:
            made += [
                lambda: {self.key(): self.value(depth + 1) for _ in range(chance.randrange(5))},
                lambda: [self.value(depth + 1) for _ in range(chance.randrange(4))],
            ]
        return chance.choice(made)()

    def key(self) -> str:
        return self._chance.choice(KEYS) if self._chance.random() < 0.85 else self.name()

    def config(self) -> dict[str, Any]:
        chance = self._chance
        config: dict[str, Any] = {
            "connector.class": chance.choice(("FileStreamSource", "FileStreamSink", "NoSuch", "", 5)),
            "file": "/in",
            "topic": "t",
            "topics": "t",
        }
        if chance.random() < 0.3:
            return config
        for _ in range(chance.randrange(6)):
            config[self.key()] = self.value(2)
        for key in chance.sample(sorted(config), chance.randrange(3)):
            config.pop(key, None)
        return config

    def body(self) -> bytes | None:
        chance = self._chance
        kind = chance.randrange(12)
        if kind < 3:
            return None
        if kind < 6:
            return json.dumps(self.config()).encode()
        if kind == 6:
            return json.dumps({"name": self.name(), "config": self.config()}).encode()
        if kind == 7:
            offsets = [{"partition": self.value(3), "offset": self.value(3)} for _ in range(chance.randrange(4))]
            return json.dumps({"offsets": offsets}).encode()
        if kind == 8:
            return json.dumps(self.value()).encode()
        if kind == 9:
            return b"[" * chance.choice((10, 1000, 200_000))
        if kind == 10:
            return b'{"a":' * 50_000 + b"1" + b"}" * 50_000
        return chance.randbytes(chance.choice((1, 100, 10_000, 3 << 20)))

    # --- sending, and looking ---

    def one(self) -> None:
        """One request. Raises `AssertionError` that has it."""
        chance = self._chance
        (method, path), body = self.asked(), self.body()
        headers = {"Connection": chance.choice(("close", "keep-alive"))}
        if body is not None:
            headers["Content-Type"] = chance.choice(("application/json", "application/json", "text/plain", "x", ""))
        if chance.random() < 0.1:
            headers["Accept"] = chance.choice(("application/json", "text/html", "*/*", "", ",;,", "a/" * 500))
        if chance.random() < 0.05:
            headers[chance.choice(("X-Ottla-Forwarded", "Host", "Expect", "Upgrade"))] = chance.choice(
                ("true", "", "h2c", "é")
            )
        if self._authorization is not None and chance.random() < 0.8:
            headers["Authorization"] = self._authorization
        what = f"{method} {path[:300]!r} {headers} {len(body or b'')} bytes {(body or b'')[:300]!r}"
        began_s = time.monotonic()
        connection = http.client.HTTPConnection(self._host, self._port, timeout=120)
        try:
            try:
                connection.putrequest(
                    method, path.encode("utf-8", "surrogatepass").decode("latin-1").replace(" ", "%20")
                )
            except (http.client.InvalidURL, ValueError):
                return
            if body is not None:
                headers["Content-Length"] = str(len(body))
            for key, value in headers.items():
                connection.putheader(key, value.encode())
            with suppress(OSError):  # It may be refused before all of it is sent.
                connection.endheaders(body)
            try:
                response = connection.getresponse()
                content = response.read()
            except (http.client.HTTPException, ConnectionError) as problem:
                if len(body or b"") > 1 << 20:
                    return  # It was refused, and the connection closed before it was all there.
                raise AssertionError(f"no reply to {what}: {problem!r}") from None
            self._look(method, response, content, what)
        finally:
            connection.close()
            self.longest_s = max(self.longest_s, time.monotonic() - began_s)

    def _look(self, method: str, response: http.client.HTTPResponse, content: bytes, what: str) -> None:
        self.statuses[response.status] += 1
        assert response.status in KNOWN, f"{response.status} {content[:500]!r} to {what}"
        if response.status >= 400 and method != "HEAD":
            said = json.loads(content)
            assert said["error_code"] == response.status, f"{said} to {what}"
            assert isinstance(said["message"], str), f"{said} to {what}"
            assert "Traceback" not in said["message"], f"{said} to {what}"
            assert len(content) < 300_000, f"{len(content)} bytes to {what}"

    def stall(self) -> None:
        """A client that sends a part of a request, and no more."""
        part = self._chance.choice(
            (
                b"",
                b"G",
                b"GET / HTTP/1.1\r\nHost:",
                b"PUT /connectors/a/config HTTP/1.1\r\nContent-Length: 100\r\n\r\n{",
            )
        )
        client = socket.create_connection((self._host, self._port), timeout=30)
        client.sendall(part)
        self.slow.append(client)
        if len(self.slow) > 100:
            self.slow.pop(0).close()

    def rounds(self, count: int) -> None:
        for number in range(count):
            self.one()
            if number % 20 == 0:
                self.stall()

    def close(self) -> None:
        for client in self.slow:
            client.close()


def main() -> int:
    from ottla.testing.node import RunningNode
    from tests.unit.connect.worker.worker_in_a_thread import WorkerInAThread, wait_for

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 30))
    options = parser.parse_args()
    print(f"seed {options.seed}")
    with (
        RunningNode(config={"group.initial.rebalance.delay.ms": 0}) as node,
        WorkerInAThread(node.bootstrap, "fuzz") as worker,
    ):
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "it leads")
        fuzz = Fuzz(worker.url, random.Random(options.seed))
        ends_s = time.monotonic() + options.seconds
        found = 0
        while time.monotonic() < ends_s:
            try:
                fuzz.rounds(20)
            except AssertionError as problem:
                found += 1
                print(problem, flush=True)
        print(f"{fuzz.statuses.total()} replies: {dict(sorted(fuzz.statuses.items()))}; longest {fuzz.longest_s:.1f} s")
        fuzz.close()
        assert worker.ask("GET", "/health").status == 200
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
