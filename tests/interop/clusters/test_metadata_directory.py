"""The metadata of a node goes back and forth between Apache Kafka and us, and neither finds anything amiss."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random

import pytest

from ottla.base.ids import TopicPartition, Uuid, uuid_text
from ottla.cli.storage import main as kafka_storage
from ottla.config.parse import parse
from ottla.config.scopes import Scope
from ottla.log.disk import OsDisk
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller import Controller
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from ottla.node.storage.bootstrap import read_bootstrap
from ottla.node.storage.meta_properties import load_storage
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.store import MetadataStore
from ottla.testing.clock import FixedClock
from ottla.testing.step_workers import StepWorkers
from ottla.wire.messages import ConfigRecord, PartitionRecord, TopicRecord
from tests.interop.apache_kafka import CLUSTER_ID, ApacheKafka

pytestmark = pytest.mark.interop

NODE_ID = 1
NOW_MS = 1_800_000_000_000


def make_controller(image: MetadataImage) -> Controller:
    given = {"process.roles": "broker,controller", "node.id": str(NODE_ID), "controller.listener.names": "CONTROLLER"}
    config = parse(Scope.BROKER, given).values
    return Controller(
        image,
        node_id=NODE_ID,
        cluster_id=CLUSTER_ID,
        config=config,
        new_uuid=lambda: Uuid(os.urandom(16)),
        random=Random(0),
    )


class OurNode:
    """Our metadata log on a data directory, and nothing else of a node."""

    def __init__(self, kafka: ApacheKafka, snapshots: SnapshotConfig | None = None) -> None:
        disk, data = OsDisk(), str(kafka.data)
        storage = load_storage(disk, [data], data, NODE_ID, new_uuid=lambda: Uuid(os.urandom(16)), date="")
        assert storage.cluster_id == CLUSTER_ID
        self.directory_id = storage.directory_ids[data]
        host, _, port = str(kafka.config["listeners"]).rpartition("CONTROLLER://")[2].rpartition(":")
        me = Voter(ReplicaKey(NODE_ID, self.directory_id), (Endpoint("CONTROLLER", host, int(port)),))
        static = VoterSet([Voter(ReplicaKey(NODE_ID))]) if kafka.config["controller.quorum.voters"] else None
        self.problems: list[Exception] = []
        self.log: MetadataLog[Controller] = MetadataLog(
            MetadataStore(disk, data, FixedClock(NOW_MS)),
            me,
            static,
            bootstrap=read_bootstrap(disk, data),
            make_controller=make_controller,
            workers=StepWorkers(),
            clock=FixedClock(NOW_MS),
            failed=self.problems.append,
            snapshots=snapshots,
        )
        self.log.start(lambda: None)

    @property
    def topics(self) -> dict[str, str]:
        return {name: uuid_text(topic.id) for name, topic in self.log.image.topics.by_name.items()}

    def create(self, name: str) -> None:
        topic_id = Uuid(os.urandom(16))
        records = [
            VersionedRecord(TopicRecord(name=name, topic_id=topic_id), 0),
            VersionedRecord(
                ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="86400000"), 0
            ),
            VersionedRecord(
                PartitionRecord(
                    topic_id=topic_id,
                    partition_id=0,
                    leader_epoch=0,
                    partition_epoch=0,
                    replicas=(NODE_ID,),
                    isr=(NODE_ID,),
                    leader=NODE_ID,
                    directories=(self.directory_id,),
                ),
                2,
            ),
        ]
        created: list[str] = []
        self.log.submit(lambda *_: Decision(name, records), created.append, lambda error: pytest.fail(str(error)))
        assert created == [name]

    def stop(self) -> None:
        stopped: list[bool] = []
        self.log.stop(lambda: stopped.append(True))
        assert stopped == [True]
        assert self.problems == []


@contextmanager
def our_node(kafka: ApacheKafka, snapshots: SnapshotConfig | None = None) -> Iterator[OurNode]:
    node = OurNode(kafka, snapshots)
    yield node
    node.stop()


@pytest.fixture(params=["static", "dynamic"])
def kafka(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ApacheKafka]:
    """A node with a directory that we have formatted: with voters from a setting, and with voters that are data."""
    node = ApacheKafka(tmp_path)
    options = []
    if request.param == "dynamic":
        voters = str(node.config["controller.quorum.voters"])
        node.config |= {
            "controller.quorum.voters": None,
            "controller.quorum.bootstrap.servers": voters.partition("@")[2],
        }
        options = ["--standalone"]
    node.data.mkdir()
    (node.data / "meta.properties").touch()  # keeps Kafka's tool from formatting
    node.format()
    (node.data / "meta.properties").unlink()
    config = str(tmp_path / "server.properties")
    assert kafka_storage(["format", "-t", CLUSTER_ID, "-c", config, *options]) == 0
    yield node
    node.close()


def topics_of(kafka: ApacheKafka) -> dict[str, str]:
    described = kafka.tool("kafka-topics", "--bootstrap-server", kafka.bootstrap, "--describe").stdout
    return dict(re.findall(r"Topic: (\S+)\s+TopicId: (\S+)\s+PartitionCount", described))


def dumped(kafka: ApacheKafka, pattern: str) -> str:
    files = sorted((kafka.data / "__cluster_metadata-0").glob(pattern))
    assert files
    printed = kafka.tool("kafka-dump-log", "--cluster-metadata-decoder", "--files", ",".join(map(str, files)))
    assert printed.stderr == ""
    assert "isvalid: false" not in printed.stdout
    return printed.stdout


def test_kafka_tells_the_same_of_a_directory_that_we_formatted(kafka: ApacheKafka) -> None:
    config = str(kafka.directory / "server.properties")
    theirs = kafka.tool("kafka-storage", "info", "-c", config).stdout
    assert re.search(f"Found metadata: {{cluster.id={CLUSTER_ID}, directory.id=.{{22}}, node.id=1, version=1}}", theirs)
    assert "problem" not in theirs


def test_metadata_goes_from_us_to_kafka_to_us_and_back(kafka: ApacheKafka) -> None:
    with our_node(kafka) as ours:
        ours.create("made-by-us")
        first = ours.topics
    assert '"type":"TOPIC_RECORD","version":0,"data":{"name":"made-by-us"' in dumped(kafka, "*.log")

    kafka.start()
    assert topics_of(kafka) == first
    server = ("--bootstrap-server", kafka.bootstrap)
    kafka.tool("kafka-console-producer", *server, "--topic", "made-by-us", input="hello\n")
    kafka.tool("kafka-topics", *server, "--create", "--topic", "made-by-kafka", "--partitions", "3")
    kafka.tool("kafka-configs", *server, "--alter", "--topic", "made-by-kafka", "--add-config", "retention.ms=60000")
    theirs = topics_of(kafka)
    kafka.stop()

    with our_node(kafka, SnapshotConfig(max_bytes=1)) as ours:
        assert ours.topics == theirs
        image = ours.log.image
        assert sorted(image.topics.by_name["made-by-kafka"].partitions) == [0, 1, 2]
        assert image.configs.of_topic("made-by-kafka") == {"retention.ms": "60000"}
        ours.create("made-by-us-later")
        everything = ours.topics
    snapshots = dumped(kafka, "*.checkpoint")
    assert "SnapshotFooter" in snapshots
    assert all(f'"name":"{name}"' in snapshots for name in everything)

    # Kafka begins with our snapshot, and has what both have made.
    kafka.start()
    assert topics_of(kafka) == everything
    kafka.tool(
        "kafka-console-producer", *("--bootstrap-server", kafka.bootstrap), "--topic", "made-by-us", input="two\n"
    )
    read = kafka.tool(
        "kafka-console-consumer",
        *("--bootstrap-server", kafka.bootstrap, "--topic", "made-by-us", "--partition", "0"),
        *("--offset", "earliest", "--max-messages", "2", "--timeout-ms", "20000"),
    )
    assert read.stdout.splitlines() == ["hello", "two"]
    kafka.stop()
    assert (kafka.data / str(TopicPartition("made-by-us-later", 0))).is_dir()


def test_our_log_is_bootstrapped_as_kafka_bootstraps_its_own(kafka: ApacheKafka) -> None:
    with our_node(kafka):
        pass
    ours = _first_batches(dumped(kafka, "*.log"))
    for path in (kafka.data / "__cluster_metadata-0").iterdir():
        if not path.name.endswith(f"{0:010}.checkpoint"):
            path.unlink()
    kafka.start()
    kafka.stop()
    theirs = _first_batches(dumped(kafka, "*.log"))
    assert ours == theirs[: len(ours)]
    assert len(ours) >= 10


def _first_batches(text: str) -> list[str]:
    """The batches and records of a dump, without times and checksums."""
    lines = [line for line in text.splitlines() if line.startswith(("baseOffset", "| offset"))]
    return [re.sub(r"(CreateTime|crc): \d+", r"\1", line) for line in lines]
