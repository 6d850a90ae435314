"""kafka-reassign-partitions beside Kafka's while replicas really move: over three brokers, and two directories of one.

What moves is told for the whole cluster, so each tool plays its scene to the end before the other begins. Throttles
keep a move from ending too soon: a megabyte at 1024 bytes a second.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from ottla import Admin, Producer, TopicPartition
from ottla.admin import NewTopic
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.tools.beside import NAMES, Beside
from tests.interop.tools.kafkas_tools import KafkasTools

pytestmark = pytest.mark.interop

MOVE = "kafka-reassign-partitions {at}"
BROKERS = (1, 2, 3)
SMALL_STEPS = {"replica.fetch.max.bytes": 20_000}
"""A throttle is looked at after a fetch: one that takes all at once is not held up."""


@pytest.fixture(scope="module")
def brokers() -> Iterator[list[ApacheKafka]]:
    with ExitStack() as running:
        first = ApacheKafka(config=SMALL_STEPS)
        first.config["log.dirs"] = f"{first.data},{first.data}-too"
        nodes = [running.enter_context(first)]
        for node_id in BROKERS[1:]:
            node = ApacheKafka(config=SMALL_STEPS, java_options=("-Xmx256m",))
            node.config["controller.quorum.voters"] = first.config["controller.quorum.voters"]
            node.config.update(
                {"process.roles": "broker", "node.id": node_id, "listeners": f"PLAINTEXT://{node.bootstrap}"}
            )
            nodes.append(running.enter_context(node))
        yield nodes


@pytest.fixture(scope="module")
def scene(brokers: list[ApacheKafka], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Beside]:
    """A topic for each of the two, with a megabyte in either partition."""
    bootstrap = brokers[0].bootstrap
    with Admin(bootstrap_servers=bootstrap) as admin, Producer(bootstrap_servers=bootstrap) as producer:
        deadline = time.monotonic() + 60
        while len(admin.describe_cluster().nodes) < len(BROKERS):
            assert time.monotonic() < deadline, "a broker has not come"
            time.sleep(0.1)
        for me in NAMES:
            admin.create_topics([NewTopic(f"trek-{me}", assignment={0: [1, 2], 1: [2, 3]})]).raise_first()
            for number in range(200):
                producer.send(f"trek-{me}", b"v" * 10_000, partition=number % 2)
        producer.flush()
    controller = str(brokers[0].config["controller.quorum.voters"]).partition("@")[2]
    with KafkasTools() as tools:
        beside = Beside(tools, bootstrap, controller, tmp_path_factory.mktemp("files"))
        beside.file("both.json", _assignment((0, [2, 3]), (1, [3, 1])))
        beside.file("first.json", _assignment((0, [2, 3])))
        beside.file("back.json", _assignment((0, [2, 1])))
        beside.file("fewer.json", _assignment((1, [3])))
        beside.file("topics.json", '{"topics": [{"topic": "trek-{me}"}]}')
        yield beside


def test_a_move_between_brokers_is_begun_watched_changed_and_cancelled(scene: Beside) -> None:
    told = [
        scene.transcript(
            me,
            [
                f"{MOVE} --execute --reassignment-json-file {{files}}/both.json --throttle 1024",
                f"{MOVE} --list",
                "kafka-reassign-partitions --bootstrap-controller {controller} --list",
                f"{MOVE} --verify --reassignment-json-file {{files}}/both.json",
                "kafka-configs {at} --describe --topic trek-{me}",
                "kafka-configs {at} --describe --broker 3",
                f"{MOVE} --execute --reassignment-json-file {{files}}/first.json",
                f"{MOVE} --execute --reassignment-json-file {{files}}/first.json --additional --throttle 2048",
                "kafka-configs {at} --describe --broker 3",
                f"{MOVE} --execute --reassignment-json-file {{files}}/back.json --additional --throttle 1024",
                "kafka-configs {at} --describe --topic trek-{me}",
                f"{MOVE} --execute --reassignment-json-file {{files}}/fewer.json --additional "
                "--disallow-replication-factor-change",
                f"{MOVE} --cancel --reassignment-json-file {{files}}/both.json --preserve-throttles",
                "kafka-configs {at} --describe --topic trek-{me}",
                "kafka-reassign-partitions --bootstrap-controller {controller} --cancel "
                "--reassignment-json-file {files}/both.json",
                "kafka-configs {at} --describe --topic trek-{me}",
                f"{MOVE} --list",
            ],
        )
        for me in NAMES
    ]
    # In which of its directories a broker has put a new topic is another matter.
    kafkas, ours = ([one._replace(out=one.out.replace("data-too", "data")) for one in printed] for printed in told)
    for left, right in zip(kafkas, ours, strict=True):
        assert right == left
    assert "trek-{me}-0: replicas: 2,3,1. adding: 3. removing: 1." in told[0][1].out
    assert "is still in progress" in told[0][3].out
    assert told[0][-1].out == "No partition reassignments found."


def test_a_move_between_directories_is_begun_watched_and_cancelled(scene: Beside, brokers: list[ApacheKafka]) -> None:
    told = []
    for me in NAMES:
        with Admin(bootstrap_servers=scene.bootstrap) as admin:
            admin.create_topics([NewTopic(f"stay-{me}", assignment={0: [1]})]).raise_first()
            with Producer(bootstrap_servers=scene.bootstrap) as producer:
                for _ in range(100):
                    producer.send(f"stay-{me}", b"v" * 10_000)
            held = {
                path: TopicPartition(f"stay-{me}", 0) in directory.replicas
                for path, directory in admin.describe_log_dirs([1])[1].items()
            }
        (here,) = (path for path, is_here in held.items() if is_here)
        (there,) = (path for path, is_here in held.items() if not is_here)
        for name, path in (("there.json", there), ("here.json", here)):
            entry = {"topic": "stay-{me}", "partition": 0, "replicas": [1], "log_dirs": [path]}
            scene.file(name, json.dumps({"partitions": [entry]}))
        printed = scene.transcript(
            me,
            [
                f"{MOVE} --verify --reassignment-json-file {{files}}/there.json",
                f"{MOVE} --execute --reassignment-json-file {{files}}/there.json "
                "--replica-alter-log-dirs-throttle 1024",
                "kafka-configs {at} --describe --broker 1",
                f"{MOVE} --verify --reassignment-json-file {{files}}/there.json",
                f"{MOVE} --verify --reassignment-json-file {{files}}/here.json",
                f"{MOVE} --cancel --reassignment-json-file {{files}}/there.json",
                f"{MOVE} --verify --reassignment-json-file {{files}}/here.json",
            ],
        )
        # One path is the beginning of the other.
        for path, name in sorted(((here, "<here>"), (there, "<there>")), key=lambda one: -len(one[0])):
            printed = [one._replace(out=one.out.replace(path, name)) for one in printed]
        told.append(printed)
    for left, right in zip(*told, strict=True):
        assert right == left
    assert "Reassignment of replica stay-{me}-0-1 is still in progress." in told[0][3].out
    assert "is being moved to log dir <there> instead of <here>." in told[0][4].out


def test_proposals_differ_by_chance_alone(scene: Beside) -> None:
    for me in NAMES:
        printed = scene.printed(
            me, f"{MOVE} --generate --topics-to-move-json-file {{files}}/topics.json --broker-list 1,3"
        )
        lines = printed.out.splitlines()
        assert [lines[0], *lines[2:4]] == [
            "Current partition replica assignment", "", "Proposed partition reassignment configuration",
        ]  # fmt: skip
        proposal = json.loads(lines[4])
        assert [sorted(one["replicas"]) for one in proposal["partitions"]] == [[1, 3], [1, 3]]
        assert {one["replicas"][0] for one in proposal["partitions"]} == {1, 3}


def _assignment(*partitions: tuple[int, list[int]]) -> str:
    entries = [
        {"topic": "trek-{me}", "partition": partition, "replicas": replicas} for partition, replicas in partitions
    ]
    return json.dumps({"partitions": entries, "version": 1})
