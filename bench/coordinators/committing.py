"""Commits of offsets: one after the other, pipelined on one connection, and from many connections at once."""

from contenders import Contender
from load import alternating, run_window
from report import Row, compared
from windows import connected, run_windows, the_same
from wire_client import GROUPS, WireClient

from ottla.wire.errors import ErrorCode
from ottla.wire.frame import encode_request
from ottla.wire.messages import OffsetCommitRequest

TOPIC = "committed"
PARTITIONS = 10
WINDOW = 32
CONNECTIONS = 50
VERSION = 9
WARM_UP_S = 4.0
WARM_UP_REQUESTS = 200_000


def measure_commits(nodes: list[Contender], rounds: int, seconds: float) -> list[Row]:
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic(TOPIC, PARTITIONS)
            client.ready_coordinators(GROUPS)
        for in_flight in (1, WINDOW):
            _commits(node, in_flight, WARM_UP_S)
        _commits_of_many(node, CONNECTIONS, 60, WARM_UP_REQUESTS)
    names = [node.name for node in nodes]
    rows = []
    for what, run in {
        "closed loop": lambda node: _commits(node, 1, seconds),
        f"{WINDOW} in flight": lambda node: _commits(node, WINDOW, seconds),
        f"{CONNECTIONS} connections, closed loop each": lambda node: _commits_of_many(node, CONNECTIONS, seconds),
    }.items():
        cpu: dict[str, list[float]] = {name: [] for name in names}

        def one(node: Contender, run=run, cpu=cpu) -> float:
            before = node.cpu_s()
            commits, took = run(node)
            cpu[node.name].append((node.cpu_s() - before) / commits)
            return commits / took

        results = alternating(rounds, [lambda node=node, one=one: one(node) for node in nodes])
        named = dict(zip(names, results, strict=True))
        rows.append(compared(f"commits, {what}", named, lambda rate: f"{rate / 1000:.1f} k/s", at_least=1.0))
        rows.append(compared("  processor time of a commit", cpu, lambda s: f"{s * 1e6:.0f} us"))
    return rows


def _commits(node: Contender, in_flight: int, seconds: float) -> tuple[int, float]:
    """Commits answered, and the seconds that they took."""
    request = commit_request(f"window-{in_flight}")
    with WireClient(node.bootstrap) as client:
        _check(client, request)
        return run_window(client.socket, encode_request(request, VERSION, 1, "bench"), in_flight, seconds, 1 << 30)


def _commits_of_many(node: Contender, connections: int, seconds: float, most: int = 1 << 30) -> tuple[int, float]:
    """Each commits for a group of its own."""
    requests = [commit_request(f"one-of-many-{number}") for number in range(connections)]
    with WireClient(node.bootstrap) as client:
        for request in requests:
            _check(client, request)
    frames = [encode_request(request, VERSION, 1, "bench") for request in requests]
    with connected(node.bootstrap, connections) as opened:
        return run_windows(opened, the_same(frames, 1), 1, seconds, most)


def commit_request(group: str, topic: str = TOPIC, partitions: range = range(1)) -> OffsetCommitRequest:
    committed = [
        OffsetCommitRequest.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1_000_000 + index, committed_metadata=""
        )
        for index in partitions
    ]
    topics = [OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=committed)]
    return OffsetCommitRequest(group_id=group, topics=topics)


def _check(client: WireClient, request: OffsetCommitRequest) -> None:
    """That the node takes such a commit: the answers of the load are counted and not looked at."""
    for topic in client.ask(request, VERSION).topics:
        for partition in topic.partitions:
            if partition.error_code:
                raise RuntimeError(f"a commit is answered with {ErrorCode(partition.error_code).name}")
