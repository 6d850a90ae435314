"""Starting with a million committed offsets: until the coordinator of every partition answers for its groups.

Each node wrote its own: ten thousand groups with an offset in each of a hundred partitions, by one commit a group.
"""

import time

from committing import commit_request
from contenders import Contender, contenders
from load import alternating
from report import Row, compared
from wire_client import GROUPS, NOT_COORDINATING, WireClient

from ottla.broker.coordination.placement import partition_of
from ottla.wire.frame import encode_request
from ottla.wire.messages import OffsetFetchRequest

TOPIC = "kept"
PARTITIONS = 100
COORDINATED = 50
COMMITS_IN_FLIGHT = 20
VERSION = 9
WAIT_S = 120.0


def measure_loading(names: list[str], config: dict[str, object], offsets: int, rounds: int) -> list[Row]:
    groups = [f"group-{number}" for number in range(offsets // PARTITIONS)]
    after_start: dict[str, list[float]] = {name: [] for name in names}
    memory: dict[str, list[float]] = {name: [] for name in names}
    with contenders(names, config) as nodes:
        for node in nodes:
            node.start_timed()
            _commit_all(node, groups)
            node.node.stop()

        def one(node: Contender) -> float:
            started = time.perf_counter()
            starting_s = node.start_timed()
            _wait_until_loaded(node, groups)
            took = time.perf_counter() - started
            after_start[node.name].append(max(took - starting_s, 0.001))
            memory[node.name].append(node.rss_mb())
            node.node.stop()
            return took

        results = alternating(rounds, [lambda node=node: one(node) for node in nodes])
    named = dict(zip(names, results, strict=True))
    return [
        compared(f"start until {offsets:,} offsets are loaded", named, _seconds, at_most=1.0),
        compared("  of that, after the first Metadata answer", after_start, _seconds, at_most=1.0),
        compared("  memory then", memory, lambda mb: f"{mb:.0f} MB"),
    ]


def _commit_all(node: Contender, groups: list[str]) -> None:
    with WireClient(node.bootstrap) as client:
        client.create_topic(TOPIC, PARTITIONS)
        client.ready_coordinators(GROUPS)
        frames = [
            encode_request(commit_request(group, TOPIC, range(PARTITIONS)), VERSION, 1, "bench") for group in groups
        ]
        for sent, frame in enumerate(frames):
            client.socket.sendall(frame)
            if sent >= COMMITS_IN_FLIGHT:
                client.read_frame()
        for _ in range(min(COMMITS_IN_FLIGHT, len(frames))):
            client.read_frame()


def _wait_until_loaded(node: Contender, groups: list[str]) -> None:
    """One group of every partition is asked after, until it has its offsets."""
    one_of_each = {partition_of(group, COORDINATED): group for group in groups}
    deadline = time.monotonic() + WAIT_S
    with WireClient(node.bootstrap) as client:
        for group in one_of_each.values():
            while not _has_offsets(client, group):
                if time.monotonic() > deadline:
                    raise RuntimeError(f"{group} is not loaded after {WAIT_S:.0f} s")
                time.sleep(0.005)


def _has_offsets(client: WireClient, group: str) -> bool:
    topic = OffsetFetchRequest.OffsetFetchRequestTopics(name=TOPIC, partition_indexes=[0])
    asked = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=[topic])
    (answer,) = client.ask(OffsetFetchRequest(groups=[asked]), 9).groups
    if answer.error_code in NOT_COORDINATING:
        return False
    if answer.error_code or answer.topics[0].partitions[0].committed_offset < 0:
        raise RuntimeError(f"{group} has lost its offsets: {answer}")
    return True


def _seconds(seconds: float) -> str:
    return f"{seconds:.2f} s"
