"""A live node whose descriptors have run out: everything in it that opens files or processes survives, and goes on.

The limit is lowered from outside to what the node has open, and raised again. What is tried meanwhile: a write that is
flushed, a new connection, the metrics page, compaction with its process, and the controller with a new topic. The
metadata log's housekeeping is tried on a disk in memory (tests/unit/runtime/metadata).
"""

import os
import resource
import time
import urllib.request
from collections.abc import Callable, Iterator

import pytest

from ottla.records.builder import BatchBuilder
from ottla.testing.node import RunningNode
from ottla.wire.messages import CreateTopicsRequest, ListOffsetsRequest, ProduceRequest
from tests.property.node.raw_connection import RawConnection
from tests.property.node.witness import Witness

TIMEOUT_S = 60.0
COMPACTED = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01", "segment.ms": "100"}
FLUSHED = {"flush.messages": "1"}


@pytest.fixture
def node() -> Iterator[RunningNode]:
    config = {
        "log.cleaner.backoff.ms": "100",
        "log.retention.check.interval.ms": "500",
        "log.segment.delete.delay.ms": 0,
    }
    with RunningNode(config=config, options=("--metrics", "0")) as running:
        yield running
        assert running.is_running, f"the node is gone\n{running.end_of_log()}"


def open_descriptors(node: RunningNode) -> int:
    return len(os.listdir(f"/proc/{node.pid}/fd"))


def allow(node: RunningNode, descriptors: int) -> None:
    assert node.pid is not None
    hard = resource.prlimit(node.pid, resource.RLIMIT_NOFILE)[1]
    resource.prlimit(node.pid, resource.RLIMIT_NOFILE, (descriptors, hard))


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.1)


def make_topic(connection: RawConnection, name: str, settings: dict[str, str]) -> None:
    configs = [CreateTopicsRequest.CreatableTopicConfig(name=key, value=value) for key, value in settings.items()]
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1, configs=configs)
    assert connection.ask(CreateTopicsRequest(topics=[topic], timeout_ms=10_000), 7).topics[0].error_code == 0
    asked = ListOffsetsRequest.ListOffsetsTopic(
        name=name, partitions=[ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)]
    )

    def is_led() -> bool:
        (answer,) = connection.ask(ListOffsetsRequest(replica_id=-1, topics=[asked]), 6).topics
        return not answer.partitions[0].error_code

    wait_for(is_led, f"{name} has no leader")


def write(connection: RawConnection, topic: str) -> int:
    """Ten keys, again and again; the error code."""
    builder = BatchBuilder()
    for key in range(10):
        builder.append(int(time.time() * 1000), b"%d" % key, bytes(200))
    partition = ProduceRequest.PartitionProduceData(index=0, records=builder.build())
    data = ProduceRequest.TopicProduceData(name=topic, partition_data=[partition])
    answer = connection.ask(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data]), 9)
    return int(answer.responses[0].partition_responses[0].error_code)


def test_a_node_without_descriptors_goes_on_when_it_has_some_again(node: RunningNode) -> None:
    (page,) = [word for word in node.log.read_text().split() if word.endswith("/metrics")]
    witness = Witness(node.bootstrap, node.rss_bytes)
    with RawConnection(node.bootstrap, TIMEOUT_S) as connection:
        make_topic(connection, "flushed", FLUSHED)
        make_topic(connection, "compacted", COMPACTED)
        assert write(connection, "flushed") == 0
        allow(node, open_descriptors(node))
        for _ in range(30):
            write(connection, "flushed")  # Refused where a file is needed; what counts is that the node goes on.
            write(connection, "compacted")
            witness.check(growth_bytes=50 << 20)
            time.sleep(0.05)
        with pytest.raises(OSError, match=r".*"), urllib.request.urlopen(page, timeout=1) as answer:
            answer.read()
        assert node.is_running, node.end_of_log()
        allow(node, 4096)
        wait_for(lambda: write(connection, "flushed") == 0, "flushed topics stay out of order")
        wait_for(lambda: write(connection, "compacted") == 0, "compacted topics stay out of order")
        make_topic(connection, "later", {})
        assert write(connection, "later") == 0

    def scraped() -> str:
        with urllib.request.urlopen(page, timeout=TIMEOUT_S) as answer:
            return str(answer.read().decode())

    assert "process_open_fds" in scraped()
    assert node.log.read_text().count("out of system resource") < 40, "once in a while is enough"

    def is_cleaned() -> bool:
        with RawConnection(node.bootstrap, TIMEOUT_S) as connection:
            write(connection, "compacted")
        directory = node.data / "compacted-0"
        return sum(path.stat().st_size for path in directory.glob("*.log")) < 20 * 2500

    wait_for(is_cleaned, "the cleaner did not go on")
    witness.check()
    witness.close()
