"""The metrics page of a node with very many partitions and groups: its processor time, and the loop's longest stall.

Partitions have different numbers of records, and every other group is behind, so few lines say the same.

python bench/metrics_page.py [--partitions 10000] [--groups 1000] [--pages 10]
"""

import argparse
import re
import sys
import time
from pathlib import Path
from statistics import median
from urllib.request import urlopen

from compare import print_table

from ottla import Admin, NewTopic, Producer
from ottla.base.ids import TopicPartition
from ottla.testing.node import RunningNode

OFFSETS_OF_A_GROUP = 10
TOPICS = 10


def processor_s(pid: int) -> float:
    """Of the whole process, from the scheduler: to a nanosecond."""
    threads = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(one.read_text().split()[0]) for one in threads) / 1e9


def fill(bootstrap: str, partitions: int, groups: int) -> None:
    with Admin(bootstrap_servers=bootstrap, request_timeout_ms=300_000, default_api_timeout_ms=300_000) as admin:
        for topic in range(TOPICS):
            admin.create_topics([NewTopic(f"topic-{topic}", partitions // TOPICS)]).raise_first()
        with Producer(bootstrap_servers=bootstrap, linger_ms=100, request_timeout_ms=300_000) as producer:
            for topic in range(TOPICS):
                for partition in range(partitions // TOPICS):
                    for _ in range(records_of(topic, partition)):
                        producer.send(f"topic-{topic}", b"a record", partition=partition)
        for group in range(groups):
            numbers = [group * OFFSETS_OF_A_GROUP + one for one in range(OFFSETS_OF_A_GROUP)]
            places = [(one % TOPICS, one // TOPICS % (partitions // TOPICS)) for one in numbers]
            offsets = {
                TopicPartition(f"topic-{topic}", partition): records_of(topic, partition) // (1 + group % 2)
                for topic, partition in places
            }
            admin.alter_consumer_group_offsets(f"group-{group}", offsets).raise_first()


def records_of(topic: int, partition: int) -> int:
    return 2 + (7 * partition + topic) % 23


def sample(page: str, name: str) -> float:
    found = re.search(rf"^{name} (\S+)$", page, re.MULTILINE)
    assert found is not None, name
    return float(found[1])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--pages", type=int, default=10)
    options = parser.parse_args()
    with RunningNode(options=("--metrics", "0")) as node:
        fill(node.bootstrap, options.partitions, options.groups)
        url = re.search(r"^  metrics  (\S+)$", node.log.read_text(), re.MULTILINE)[1]  # type: ignore[index]
        time.sleep(65)  # The stalls of the filling are forgotten after a minute.
        pid = node.pid
        assert pid is not None
        rows = []
        pages: list[float] = []
        for number in range(options.pages):
            before, begun_s = processor_s(pid), time.perf_counter()
            with urlopen(url, timeout=60) as reply:
                text = reply.read().decode()
            took_s, processor = time.perf_counter() - begun_s, processor_s(pid) - before
            if number:
                pages.append(processor)
            else:
                rows.append(["the first page, ms of processor", f"{1000 * processor:.0f}"])
            time.sleep(0.2)
            rows[1:] = [["a page, elapsed ms, the last", f"{1000 * took_s:.0f}"]]
        with urlopen(url, timeout=60) as reply:
            stall_s = sample(reply.read().decode(), "ottla_loop_longest_stall_seconds")
        rows += [
            ["a page, ms of processor, median", f"{1000 * median(pages):.0f}"],
            ["lowest and highest", f"{1000 * min(pages):.0f} to {1000 * max(pages):.0f}"],
            ["the loop's longest stall, ms", f"{1000 * stall_s:.1f}"],
            ["lines", f"{text.count(chr(10)):,}"],
            ["megabytes", f"{len(text) / 1e6:.1f}"],
        ]
    print_table([f"{options.partitions:,} partitions, {options.groups:,} groups", "ottla"], rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
