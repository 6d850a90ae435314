"""Makes `tests/unit/connect/worker/golden_topics.json`: all that Kafka Connect 4.3.1 writes to its three topics.

    python -m tests.interop.connect.make_golden_topics

Starts a node of ours and a worker of Kafka Connect's from Maven's jars, does with connectors what people do, and keeps
every committed record as it is, in the order of its partition. Needs Java and Maven.
"""

import json
import tempfile
import time
from pathlib import Path
from typing import Any

from ottla import Admin, Consumer, NewTopic, TopicPartition
from tests.cluster.processes_of_a_cluster import ClusterOfProcesses
from tests.interop.apache_kafka import VERSION
from tests.interop.connect.kafka_connect import FILE_SINK, FILE_SOURCE, ConnectCluster

GOLDEN = Path(__file__).parents[2] / "unit" / "connect" / "worker" / "golden_topics.json"
TOPICS = {"config.storage.topic": 1, "status.storage.topic": 2, "offset.storage.topic": 3}
NAMES = {name: f"connect-{name.partition('.')[0]}{'' if name.startswith('status') else 's'}" for name in TOPICS}


def committed(bootstrap: str, topic: str, partitions: int) -> list[list[str | None]]:
    """Keys and values."""
    found: list[list[str | None]] = []
    with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        all_of_them = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(all_of_them)
        consumer.seek_to_beginning(*all_of_them)
        ends = consumer.end_offsets(all_of_them)
        while any(consumer.position(partition) < end for partition, end in ends.items()):
            for record in consumer.poll(1.0):
                assert record.key is not None
                value = None if record.value is None else record.value.decode()
                found.append([record.key.decode(), value])
    return found


def drive(connect: ConnectCluster, directory: Path) -> None:
    lines = directory / "lines.txt"
    lines.write_text("one\ntwo\n")
    source = {"connector.class": FILE_SOURCE, "file": str(lines), "topic": "lines", "tasks.max": 1}
    connect.create("source", source)
    connect.create("sink-1", {"connector.class": FILE_SINK, "topics": "lines", "file": directory / "é", "tasks.max": 2})
    connect.create("gone", source)
    connect.ask("PUT", "/connectors/source/pause")
    time.sleep(2)
    connect.ask("PUT", "/connectors/source/resume")
    time.sleep(2)
    connect.ask("POST", "/connectors/source/restart?includeTasks=true")
    time.sleep(2)
    connect.ask("DELETE", "/connectors/gone")
    stopped = {"name": "stopped", "config": {**source, "tasks.max": "1"}, "initial_state": "STOPPED"}
    connect.wait(lambda: connect.ask("POST", "/connectors", stopped), "a connector is created")
    time.sleep(3)
    offsets = {"offsets": [{"partition": {"filename": str(lines)}, "offset": {"position": 2}}]}
    connect.wait(lambda: connect.ask("PATCH", "/connectors/stopped/offsets", offsets), "offsets are changed")
    connect.ask("PUT", "/connectors/source/stop")
    time.sleep(3)
    unreadable = {"connector.class": FILE_SINK, "topics": "lines", "file": str(directory / "no" / "such")}
    connect.ask("PUT", "/connectors/failing/config", unreadable)
    time.sleep(5)


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        with (
            ClusterOfProcesses(directory / "nodes", 1) as cluster,
            Admin(bootstrap_servers=cluster.bootstrap) as admin,
            ConnectCluster(directory, cluster.bootstrap, workers=1, replicas=1) as connect,
        ):
            admin.create_topics(NewTopic("lines", 1, 1))
            drive(connect, directory)
            found: dict[str, Any] = {
                topic: committed(cluster.bootstrap, NAMES[topic], count) for topic, count in TOPICS.items()
            }
    text = json.dumps({"made by": f"Kafka Connect {VERSION}", **found}, indent=1, ensure_ascii=False)
    GOLDEN.write_text(text.replace(str(directory), "/data") + "\n")
    print(f"{GOLDEN.name}: {', '.join(f'{topic} {len(found[topic])}' for topic in TOPICS)}")


if __name__ == "__main__":
    main()
