"""Instructions that a node takes for a request, counted by valgrind: the same on a busy machine as on a quiet one.

For changes of a few per cent, which the clock of a shared machine cannot show. What is counted is the node's process
without the kernel, so writing and sending do not appear here: `bench/broker` has the whole. Each tree is a checkout
whose compiled modules are built; the first is what the others are compared with. The loop does not spin, and all
requests of a round are sent before the first answer is read, so that a tree cannot gain by waiting. What the node does
by the clock alone is counted first, and taken off. Its monotonic clock is slowed down as valgrind slows the node down:
or else every request would seem to take longer than a node gives to one among others.

    python bench/instructions.py [TREE ...]           needs valgrind and a C compiler; two minutes a tree
    python bench/instructions.py ../before .          this checkout beside another one
"""

import argparse
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final

sys.path[:0] = [str(Path(__file__).parent / "broker")]

from compare import print_table  # noqa: E402
from load import LARGE, SMALL  # noqa: E402
from wire_client import GROUPS, WireClient, fetch_request, produce_request  # noqa: E402

from ottla.testing.free_ports import free_ports  # noqa: E402
from ottla.wire.frame import encode_request  # noqa: E402
from ottla.wire.messages import HeartbeatRequest, OffsetCommitRequest  # noqa: E402

HERE: Final = Path(__file__).resolve().parents[1]
START_S: Final = 300.0
SLOWER: Final = 50
SLOW_CLOCK: Final = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *now) {{
  static int (*real)(clockid_t, struct timespec *);
  if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
  int outcome = real(clock, now);
  if (outcome == 0 && clock == CLOCK_MONOTONIC) {{
    long long ns = (now->tv_sec * 1000000000LL + now->tv_nsec) / {SLOWER};
    now->tv_sec = ns / 1000000000LL;
    now->tv_nsec = ns % 1000000000LL;
  }}
  return outcome;
}}
"""
WARM_UP_ROUNDS: Final = 20
IDLE_S: Final = 10.0

Requests = list[tuple[socket.socket, bytes]]


class CountedNode:
    """A node under callgrind. `count` says how many instructions it takes for what is done in between."""

    def __init__(self, tree: Path, place: Path) -> None:
        self._place = place
        (port,) = free_ports(1)
        self.bootstrap = f"127.0.0.1:{port}"
        self._out = place / "counts"
        words = ["valgrind", "--quiet", "--tool=callgrind", f"--callgrind-out-file={self._out}", sys.executable]
        words += ["-m", "ottla.cli.main", "start", "--data", str(place / "data"), "--port", str(port)]
        words += ["--set", "ottla.spin.max.us=0", "--set", "log.retention.check.interval.ms=3600000"]
        clock = place / "slow_clock.so"
        compiler = ["cc", "-shared", "-fPIC", "-O2", "-x", "c", "-", "-o", str(clock), "-ldl"]
        subprocess.run(compiler, input=SLOW_CLOCK.encode(), check=True)
        environment = os.environ | {"PYTHONPATH": str(tree / "src"), "PYTHONHASHSEED": "0", "LD_PRELOAD": str(clock)}
        with (place / "log").open("wb") as log:
            self._process = subprocess.Popen(words, env=environment, stdout=log, stderr=log, cwd=place)
        self._wait_until_it_listens()

    def _wait_until_it_listens(self) -> None:
        deadline = time.monotonic() + START_S
        while True:
            try:
                WireClient(self.bootstrap).socket.close()
                return
            except OSError:
                if self._process.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit((self._place / "log").read_text()) from None
                time.sleep(0.2)

    def count(self, work: Callable[[], object]) -> int:
        self._control("--zero")
        work()
        before = set(self._place.glob("counts.*"))
        self._control("--dump")
        (dumped,) = set(self._place.glob("counts.*")) - before
        found = re.search(r"^(?:summary|totals): (\d+)", dumped.read_text(), re.MULTILINE)
        assert found is not None, dumped
        return int(found[1])

    def _control(self, order: str) -> None:
        words = ["callgrind_control", order, str(self._process.pid)]
        subprocess.run(words, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=120)

    def end(self) -> None:
        self._process.send_signal(signal.SIGKILL)
        self._process.wait()


def connections(bootstrap: str, count: int) -> list[socket.socket]:
    return [WireClient(bootstrap).socket for _ in range(count)]


def rounds(requests: Requests, in_flight: int, count: int) -> None:
    """Every request so many times at once, then every answer, so many times over."""
    for _ in range(count):
        for sock, request in requests:
            sock.sendall(request * in_flight)
        for sock, _ in requests:
            for _ in range(in_flight):
                read_answer(sock)


def read_answer(sock: socket.socket) -> None:
    left = struct.unpack(">i", sock.recv(4, socket.MSG_WAITALL))[0]
    while left:
        some = len(sock.recv(min(left, 1 << 20)))
        if not some:
            raise ConnectionError("the node hung up")
        left -= some


def rows_of(bootstrap: str) -> list[tuple[str, Requests, int]]:
    """What is counted: a name, what each connection sends, and how many at once."""
    with WireClient(bootstrap) as client:
        client.create_topic("bench", 50)
        client.ready_coordinators(GROUPS)
    found: list[tuple[str, Requests, int]] = []
    for name, batch in (("10 x 100 B", SMALL), ("64 x 1 KB", LARGE)):
        for number, in_flight in ((1, 1), (1, 5), (8, 1), (50, 1), (50, 5)):
            requests = [
                (sock, produce_request("bench", batch, 1, partition))
                for partition, sock in enumerate(connections(bootstrap, number))
            ]
            found.append((f"produce {name}, {number} x {in_flight}", requests, in_flight))
    for name, make in (("fetch 1 KB", _fetch), ("commit an offset", _commit), ("heartbeat of no member", _heartbeat)):
        requests = [(sock, make(number)) for number, sock in enumerate(connections(bootstrap, 50))]
        found.append((f"{name}, 50 x 1", requests, 1))
    return found


def _fetch(number: int) -> bytes:
    return fetch_request("bench", 0, 1000)


def _commit(number: int) -> bytes:
    partition: Any = OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=0, committed_offset=1)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic(name="bench", partitions=[partition])
    return encode_request(OffsetCommitRequest(group_id=f"group-{number}", topics=[topic]), 8, 1, "bench")


def _heartbeat(number: int) -> bytes:
    return encode_request(HeartbeatRequest(group_id=f"group-{number}", member_id="x", generation_id=1), 4, 1, "bench")


def measure(tree: Path, requests_a_row: int, only: str) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="ottla-instructions-") as place:
        node = CountedNode(tree, Path(place))
        try:
            idle = node.count(lambda: time.sleep(IDLE_S)) / IDLE_S
            found: dict[str, float] = {"idle, a second": idle}
            for name, requests, in_flight in rows_of(node.bootstrap):
                if only not in name:
                    continue
                rounds(requests, in_flight, max(WARM_UP_ROUNDS // len(requests), 2))
                at_once = len(requests) * in_flight
                count = max(requests_a_row // at_once, 2)
                begun_s = time.monotonic()
                taken = node.count(lambda: rounds(requests, in_flight, count))  # noqa: B023  (it is called here)
                found[name] = (taken - idle * (time.monotonic() - begun_s)) / (at_once * count)
                print(f"{tree}: {name}: {found[name]:,.0f}", file=sys.stderr)
            return found
        finally:
            node.end()


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trees", metavar="TREE", nargs="*", type=Path, default=[HERE])
    parser.add_argument("--requests", type=int, default=500, help="for each row (500)")
    parser.add_argument("--only", default="", metavar="TEXT", help="rows that have this in their names")
    options = parser.parse_args(arguments)
    trees = [tree.resolve() for tree in options.trees]
    counted = [measure(tree, options.requests, options.only) for tree in trees]
    table = [
        [
            name,
            *(f"{each[name] / 1000:.1f}" for each in counted),
            *(f"{each[name] / first:.2f}" for each in counted[1:]),
        ]
        for name, first in counted[0].items()
    ]
    names = [str(tree) for tree in trees]
    print_table(["thousand instructions a request", *names, *(f"{name}, ratio" for name in names[1:])], table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
