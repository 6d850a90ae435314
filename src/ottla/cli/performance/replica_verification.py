"""`kafka-replica-verification`: fetches the same partitions from all of their replicas, and compares the batches.

Options and lines are those of Apache Kafka 4.3.1. It runs until it is stopped. A batch is verified when all replicas
have sent it, with the same last offset and the same checksum; then the next one is fetched. The lag that is reported is
that of verification: how far the high watermark is ahead of it. Replicas are asked as a debugging consumer, which
followers answer, too. `ReplicaVerifier` is the work, `main` the loop around it.
"""

import re
import sys
import time
from argparse import Namespace
from typing import TYPE_CHECKING, Any

from ottla.base.errors import OttlaError
from ottla.base.ids import TopicPartition
from ottla.cli.performance.tool_options import FAILURES, ToolParser, complain, positive, tell_troubles
from ottla.config.scopes import Scope
from ottla.records.batch import complete_batches

if TYPE_CHECKING:
    from ottla.client.admin.records import ListedOffset
    from ottla.client.cluster.cluster import Cluster
    from ottla.client.io.loop_thread import LoopThread

_DEBUGGING_CONSUMER = -2
_NEWEST_FETCH = 12
"""The last version that names topics; later ones have ids."""
_PAUSE_S = 0.1
Replicas = dict[TopicPartition, tuple[int, ...]]


class VerificationError(OttlaError):
    """There is nothing to verify."""


def main(arguments: list[str] | None = None) -> int:
    parser = argument_parser()
    options = parser.parse_args(arguments)
    try:
        options.pattern = re.compile(options.topics_include)
    except re.error as problem:
        parser.error(f"{options.topics_include} is an invalid regex: {problem}")
    try:
        return _run(options)
    except KeyboardInterrupt:
        return 0
    except FAILURES as problem:
        return complain("kafka-replica-verification", problem)


def argument_parser() -> ToolParser:
    parser = ToolParser("kafka-replica-verification", "Compares what the replicas of partitions have.")
    parser.add_argument("-b", "--broker-list", required=True, metavar="HOST:PORT,…", help="the brokers")
    parser.add_argument("--fetch-size", type=positive, default=1 << 20, metavar="BYTES", help="(default: 1048576)")
    parser.add_argument("--max-wait-ms", type=positive, default=1000, metavar="MS", help="of a fetch (default: 1000)")
    parser.add_argument("--topics-include", default=".*", metavar="PATTERN", help="which topics (default: .*)")
    parser.add_argument("--time", type=int, default=-1, metavar="MS", help="where to begin: -1 the end, -2 the start")
    parser.add_argument("--report-interval-ms", type=positive, default=30_000, metavar="MS", help="(default: 30000)")
    parser.add_version()
    return parser


def _run(options: Namespace) -> int:
    from ottla.client.blocking.admin import Admin
    from ottla.client.cluster.cluster import Cluster
    from ottla.client.io.loop_thread import LoopThread
    from ottla.client.settings import read_settings

    servers = {"bootstrap.servers": options.broker_list}
    tell_troubles()
    with Admin(servers) as admin:
        topics = [
            topic.name for topic in admin.list_topics(include_internal=True) if options.pattern.fullmatch(topic.name)
        ]
        if not topics:
            raise VerificationError(f"No topics found. --topics-include, if specified, is {options.topics_include}.")
        replicas: Replicas = {
            TopicPartition(topic.name, one.partition): one.replicas
            for topic in admin.describe_topics(topics).values()
            for one in topic.partitions
        }
        listed = admin.list_offsets(dict.fromkeys(replicas, options.time))
        # Where no record is as late as `--time`, there is nothing to compare yet.
        ends = admin.list_offsets(dict.fromkeys(replicas, -1))
        offsets = {partition: _offset(listed[partition], ends[partition]) for partition in replicas}
    loop = LoopThread("ottla-replica-verification")
    with loop.lock:
        cluster = Cluster(loop.world, read_settings(Scope.ADMIN, servers))
    try:
        loop.ask(cluster.refresh)
        verifier = ReplicaVerifier(replicas, offsets)
        print(f"{_now()}: verification process is started", flush=True)
        _verify_for_ever(options, loop, cluster, verifier)
    finally:
        with loop.lock:
            cluster.close()
        loop.stop()
    return 0


def _offset(found: "ListedOffset", end: "ListedOffset") -> int:
    offset = found.offset if found.offset is not None else end.offset
    return 0 if offset is None else offset


def _verify_for_ever(options: Namespace, loop: "LoopThread", cluster: "Cluster", verifier: "ReplicaVerifier") -> None:
    reported_s = time.monotonic()
    while True:
        for node_id, partitions in verifier.by_broker().items():
            request = _fetch(options, {partition: verifier.offsets[partition] for partition in partitions})
            response = loop.ask(lambda: cluster.ask(node_id, request, newest=_NEWEST_FETCH))  # noqa: B023 - asked at once
            verifier.take(node_id, response)
        for lines in verifier.verify():
            print(f"{_now()}: {lines}", flush=True)
        if time.monotonic() - reported_s >= options.report_interval_ms / 1000:
            reported_s = time.monotonic()
            print(f"{_now()}: {verifier.report()}", flush=True)
        if verifier.is_idle:
            time.sleep(_PAUSE_S)


def _fetch(options: Namespace, offsets: dict[TopicPartition, int]) -> Any:
    from ottla.wire.messages import FetchRequest

    topics: dict[str, list[FetchRequest.FetchPartition]] = {}
    for partition, offset in offsets.items():
        wanted = FetchRequest.FetchPartition(
            partition=partition.partition, fetch_offset=offset, partition_max_bytes=options.fetch_size
        )
        topics.setdefault(partition.topic, []).append(wanted)
    return FetchRequest(
        replica_id=_DEBUGGING_CONSUMER,
        max_wait_ms=min(options.max_wait_ms, options.report_interval_ms),
        min_bytes=1,
        max_bytes=2**31 - 1,
        topics=[FetchRequest.FetchTopic(topic=topic, partitions=wanted) for topic, wanted in topics.items()],
    )


class ReplicaVerifier:
    """What replicas have sent, and how far it was the same."""

    def __init__(self, replicas: Replicas, offsets: dict[TopicPartition, int]) -> None:
        self.offsets = dict(offsets)
        self.is_idle = False
        self._replicas = replicas
        self._batches: dict[TopicPartition, dict[int, list[tuple[int, int]]]] = {one: {} for one in replicas}
        """By partition and replica: the next offset after each batch, and its checksum."""
        self._high_watermarks: dict[TopicPartition, int] = dict.fromkeys(replicas, -1)

    def by_broker(self) -> dict[int, list[TopicPartition]]:
        found: dict[int, list[TopicPartition]] = {}
        for partition, replicas in self._replicas.items():
            for node_id in replicas:
                found.setdefault(node_id, []).append(partition)
        return found

    def take(self, node_id: int, response: Any) -> None:
        """A replica that cannot answer has sent nothing; verification of its partition waits for it."""
        for topic in response.responses:
            for one in topic.partitions:
                partition = TopicPartition(topic.topic, one.partition_index)
                self._high_watermarks[partition] = max(self._high_watermarks[partition], one.high_watermark)
                begin = self.offsets[partition]
                self._batches[partition][node_id] = [
                    (header.next_offset, header.crc)
                    for _, header in complete_batches(one.records or b"")
                    if header.next_offset > begin
                ]

    def verify(self) -> list[str]:
        """Compares what all replicas have sent, and moves on behind it. Returns the differences."""
        lines: list[str] = []
        self.is_idle = True
        for partition, replicas in self._replicas.items():
            sent = self._batches[partition]
            first = replicas[0]
            for position in range(min((len(sent.get(node_id, ())) for node_id in replicas), default=0)):
                next_offset, checksum = sent[first][position]
                for node_id in replicas[1:]:
                    lines += _difference(partition, first, (next_offset, checksum), node_id, sent[node_id][position])
                self.offsets[partition] = next_offset
                self.is_idle = False
            self._batches[partition] = {}
        return lines

    def report(self) -> str:
        lag, partition = -1, next(iter(self.offsets))
        for one, offset in self.offsets.items():
            behind = self._high_watermarks[one] - offset
            if behind > lag:
                lag, partition = behind, one
        return (
            f"max lag is {lag} for partition {partition} at offset {self.offsets[partition]} "
            f"among {len(self.offsets)} partitions"
        )


def _difference(
    partition: TopicPartition, first: int, expected: tuple[int, int], node_id: int, found: tuple[int, int]
) -> list[str]:
    if expected[0] != found[0]:
        return [
            f"partition {partition}: replica {node_id}'s offset {found[0] - 1} doesn't match "
            f"replica {first}'s offset {expected[0] - 1}"
        ]
    if expected[1] != found[1]:
        return [
            f"partition {partition} has unmatched checksum at offset {found[0] - 1}; replica {first}'s checksum "
            f"{expected[1]}; replica {node_id}'s checksum {found[1]}"
        ]
    return []


def _now() -> str:
    now_ms = time.time_ns() // 1_000_000
    return f"{time.strftime('%Y-%m-%d %H:%M:%S', time.localtime(now_ms // 1000))},{now_ms % 1000:03d}"


if __name__ == "__main__":
    sys.exit(main())
