"""From `kill -9` of a member until the one that is left has all partitions: a real client, the same timeouts.

The session ends six seconds after the last heartbeat, of which there is one every 300 ms, so that is what the time
mostly is; both nodes are waited for at once. The members are those of the tests: librdkafka in processes of their own.
"""

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import count

from contenders import ROOT, Contender
from report import Row, compared
from wire_client import WireClient

sys.path.append(str(ROOT))

from tests.clients.group_member import GroupMember

TOPIC = "bereaved"
PARTITIONS = 6
SESSION_MS = 6000
WAIT_S = 60.0

_numbers = count()


def measure_killing(nodes: list[Contender], rounds: int) -> list[Row]:
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic(TOPIC, PARTITIONS)
    rows = []
    for protocol in ("classic", "consumer"):
        found: dict[str, list[float]] = {node.name: [] for node in nodes}
        for _ in range(rounds):
            with ThreadPoolExecutor(len(nodes)) as pool:
                times = pool.map(lambda node, protocol=protocol: _killed(node, protocol), nodes)
                for node, took in zip(nodes, times, strict=True):
                    found[node.name].append(took)
        what = f"{protocol} protocol, kill -9 to partitions moved, session {SESSION_MS // 1000} s"
        # Where in its interval the last heartbeat fell is chance.
        rows.append(compared(what, found, lambda s: f"{s:.2f} s", at_most=1.1))
    return rows


def _killed(node: Contender, protocol: str) -> float:
    group = f"bereaved-{next(_numbers)}"
    options = {"protocol": protocol, "session_ms": SESSION_MS}
    with (
        GroupMember("confluent-kafka", node.bootstrap, group, TOPIC, **options) as one,
        GroupMember("confluent-kafka", node.bootstrap, group, TOPIC, **options) as other,
    ):
        _until(one, other, lambda: len(one.partitions) == len(other.partitions) == PARTITIONS // 2)
        started = time.perf_counter()
        one.kill()
        _until(other, other, lambda: len(other.partitions) == PARTITIONS)
        took = time.perf_counter() - started
        other.leave()
    return took


def _until(one: GroupMember, other: GroupMember, is_so) -> None:
    deadline = time.monotonic() + WAIT_S
    while not is_so():
        if time.monotonic() > deadline:
            raise RuntimeError(f"members have {one.partitions} and {other.partitions} after {WAIT_S:.0f} s")
        time.sleep(0.005)
        one.listen()
        other.listen()
