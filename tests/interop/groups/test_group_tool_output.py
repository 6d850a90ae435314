"""kafka-consumer-groups and kafka-groups print the same of a node of ours as of Apache Kafka.

Both nodes have the same topics, records, groups and members. Lines are compared in order of their text, since Kafka
prints in the order of hash maps; ids that are made up, ports and the width of columns are not compared.
"""

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest
from confluent_kafka import Producer

from ottla.testing.node import RunningNode
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConsumerProtocolAssignment
from ottla.wire.record_values import encode_versioned
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.group_scenes import Talk, commit, fetch, new_member, subscription, sync
from tests.interop.groups.consumers_of_groups import ConsumerMember
from tests.interop.groups.many_tools import ManyTools
from tests.interop.groups.raw_producer import until

pytestmark = pytest.mark.interop

CONFIG = {
    "group.consumer.session.timeout.ms": 600_000,
    "group.consumer.max.session.timeout.ms": 600_000,
    "group.consumer.assignment.interval.ms": 0,
    "offsets.topic.num.partitions": 3,
    "log.retention.ms": -1,
}
RECORDS = 10
NEW_YEAR_2024_MS = 1_704_067_200_000
MINUTE_MS = 60_000
GENERATED = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
OF_A_STACK = re.compile(r"at [\w.$/]+\(|\.\.\. \d+ more")


Told = TypeVar("Told")


class Stage:
    """One node, with two topics of two partitions, ten records in each: one a minute since 2024 began."""

    def __init__(self, bootstrap: str, directory: Path, tools: ManyTools) -> None:
        self.bootstrap = bootstrap
        self.tools = tools
        self.directory = directory
        self.talk = Talk(bootstrap)
        self.talk.create_topics(lines=2, words=2)
        self.talk.find_coordinator("any")
        self._produce()
        self.make_group("offsets-alone", lines=(3, 5), words=(1, 10))
        self._join_classic("live-classic")
        self._join_consumer("live-consumer")

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.bootstrap, "partitioner": "random"})
        for topic in ("lines", "words"):
            for partition in (0, 1):
                for number in range(RECORDS):
                    timestamp_ms = NEW_YEAR_2024_MS + number * MINUTE_MS
                    producer.produce(topic, b"x", partition=partition, timestamp=timestamp_ms)
        assert producer.flush(30) == 0

    def make_group(self, group_id: str, **offsets: tuple[int, int]) -> None:
        """A group without members: whoever has committed assigns itself."""
        for topic, of_topic in offsets.items():
            for index, offset in enumerate(of_topic):
                self._must_commit(group_id, topic, index, offset)

    def _must_commit(self, group_id: str, topic: str, index: int, offset: int, **who: object) -> None:
        request = commit(group_id, (topic, index, offset), metadata="", **who)
        (answered,) = self.talk.ask(request, 9).topics
        assert answered.partitions[0].error_code == ErrorCode.NONE, answered

    def offsets(self, group_id: str) -> dict[str, list[int]]:
        (group,) = self.talk.ask(fetch(group_id, lines=(0, 1), words=(0, 1)), 8).groups
        return {topic.name: [one.committed_offset for one in topic.partitions] for topic in group.topics}

    def _join_classic(self, group_id: str) -> None:
        options = {"session_timeout_ms": 600_000, "protocols": {"range": subscription("lines")}}
        member_id = new_member(self.talk, "ann", group_id, **options)
        self.talk.receive("ann")
        places = [ConsumerProtocolAssignment.TopicPartition(topic="lines", partitions=[0, 1])]
        assignment = encode_versioned(ConsumerProtocolAssignment(assigned_partitions=places, user_data=None), 1)
        self.talk.ask(sync(group_id, member_id, 1, (member_id, assignment)), 5, "ann")
        self._must_commit(group_id, "lines", 0, 7, member_id=member_id, generation_id_or_member_epoch=1)

    def _join_consumer(self, group_id: str) -> None:
        cid, dora = (ConsumerMember(name, group_id, "lines") for name in ("cid", "dora"))

        def share() -> bool:
            cid.beat(self.talk)
            dora.beat(self.talk)
            return sorted([cid.partitions, dora.partitions]) == [[0], [1]] and cid.epoch == dora.epoch

        until(share, bool)
        cid.commit(self.talk)

    def tool(self, name: str, words: str) -> list[str]:
        """What is printed, and the exit code."""
        done = self.tools(name, "--bootstrap-server", self.bootstrap, *words.format(here=self.directory).split())
        text = done.text.replace(self.bootstrap, "<node>")
        lines = [" ".join(GENERATED.sub("<id>", line).split()) for line in text.splitlines()]
        return [f"exit {done.exit_code}", *sorted(line for line in lines if line and not OF_A_STACK.match(line))]


@pytest.fixture(scope="module")
def stages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Stage, Stage]]:
    with ApacheKafka(config=CONFIG) as kafka, RunningNode(config=CONFIG) as ours, ManyTools() as tools:
        first, second = (Stage(node.bootstrap, tmp_path_factory.mktemp("at"), tools) for node in (kafka, ours))
        yield first, second
        for stage in (first, second):
            stage.talk.close()


def at_both(stages: tuple[Stage, Stage], scene: Callable[[Stage], Told]) -> Told:
    kafkas, ours = (scene(stage) for stage in stages)
    assert ours == kafkas
    return ours


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("--list", "live-consumer"),
        ("--list --state", "live-classic Stable"),
        ("--list --state empty", "offsets-alone Empty"),
        ("--list --state Stable,Empty --type", "live-consumer Consumer Stable"),
        ("--list --type", "live-classic Classic"),
        ("--list --type consumer", "live-consumer Consumer"),
        ("--list --state rotten", "exit 1"),
        ("--describe --all-groups --offsets", "offsets-alone lines 0 3 10 7 - - -"),
        ("--describe --all-groups --offsets --verbose", "offsets-alone lines 0 - 3 10 7 - - -"),
        ("--describe --all-groups --members", "live-classic ann-<id> /127.0.0.1 ann 2"),
        ("--describe --all-groups --members --verbose", "lines:0,1"),
        ("--describe --all-groups --state", "live-classic <node> (1) range Stable 1"),
        ("--describe --all-groups --state --verbose", "live-consumer"),
        ("--describe --group live-classic --group offsets-alone", "live-classic lines 0 7 10 3 ann-<id>"),
        ("--describe --group nobody --state", "GroupIdNotFoundException"),
        ("--group live-classic --reset-offsets --topic lines --to-earliest --execute", "Stable"),
        ("--group live-consumer --delete", "NON_EMPTY|not empty|GroupNotEmptyException"),
        ("--group live-classic --delete-offsets --topic lines", "GroupSubscribedToTopicException|subscribed"),
    ],
)
def test_groups_are_shown_alike(stages: tuple[Stage, Stage], words: str, found: str) -> None:
    printed = at_both(stages, lambda stage: stage.tool("kafka-consumer-groups", words))
    assert any(re.search(found if "|" in found else re.escape(found), line) for line in printed), printed


@pytest.mark.parametrize("words", ["", "--consumer", "--group-type classic", "--protocol consumer", "--share"])
def test_kafka_groups(stages: tuple[Stage, Stage], words: str) -> None:
    printed = at_both(stages, lambda stage: stage.tool("kafka-groups", f"--list {words}"))
    assert any("live-classic" in line for line in printed) is (words != "--share")


@pytest.mark.parametrize(
    ("words", "lines"),
    [
        ("--topic lines --to-earliest", [0, 0]),
        ("--topic lines --to-latest", [10, 10]),
        ("--topic lines:1 --to-offset 4", [3, 4]),
        ("--topic lines --to-offset 99", [10, 10]),
        ("--topic lines --shift-by 4", [7, 9]),
        ("--topic lines --shift-by -4", [0, 1]),
        ("--topic lines --to-datetime 2024-01-01T00:06:30.000", [7, 7]),
        ("--topic lines --to-datetime 2000-01-01T00:00:00.000+02:00", [0, 0]),
        ("--topic lines --by-duration P1D", [10, 10]),
        ("--topic lines --by-duration P9000D", [0, 0]),
        ("--topic lines --topic words --to-current", [3, 5]),
        ("--all-topics --to-latest", [10, 10]),
        ("--from-file {here}/offsets.csv", [6, 2]),
    ],
)
def test_offsets_are_reset_alike(stages: tuple[Stage, Stage], words: str, lines: list[int]) -> None:
    group_id = "reset" + re.sub(r"\W+", "-", words)

    def scene(stage: Stage) -> list[object]:
        (stage.directory / "offsets.csv").write_text("lines,0,6\nlines,1,2\n")
        stage.make_group(group_id, lines=(3, 5), words=(1, 2))
        reset = f"--group {group_id} --reset-offsets {words}"
        planned = stage.tool("kafka-consumer-groups", f"{reset} --dry-run")
        exported = stage.tool("kafka-consumer-groups", f"{reset} --export")
        before = stage.offsets(group_id)
        done = stage.tool("kafka-consumer-groups", f"{reset} --execute")
        return [before["lines"], stage.offsets(group_id)["lines"], planned, exported, done]

    before, after, *_ = at_both(stages, scene)
    assert before == [3, 5]
    assert after == lines


def test_what_is_exported_can_be_read_again_for_several_groups(stages: tuple[Stage, Stage]) -> None:
    def scene(stage: Stage) -> list[object]:
        groups = "--group exported-a --group exported-b"
        for name in ("a", "b"):
            stage.make_group(f"exported-{name}", lines=(3, 5))
        printed = stage.tool("kafka-consumer-groups", f"{groups} --reset-offsets --all-topics --shift-by 1 --export")
        rows = [line for line in printed if line.count(",") == 3]
        (stage.directory / "several.csv").write_text("".join(row.replace('"', "") + "\n" for row in rows))
        reset = f"{groups} --reset-offsets --from-file {{here}}/several.csv"
        done = [stage.tool("kafka-consumer-groups", f"{reset} {how}") for how in ("--dry-run", "--execute")]
        return [rows, *done, stage.offsets("exported-a"), stage.offsets("exported-b")]

    rows, _, _, first, second = at_both(stages, scene)
    assert isinstance(rows, list)
    assert len(rows) == 4
    assert first == second == {"lines": [4, 6], "words": [-1, -1]}


def test_offsets_and_groups_are_deleted_alike(stages: tuple[Stage, Stage]) -> None:
    def scene(stage: Stage) -> list[object]:
        for name in "ab":
            stage.make_group(f"gone-{name}", lines=(3, 5), words=(1, 2))
        delete = "--group gone-a --delete-offsets"
        return [
            stage.tool("kafka-consumer-groups", f"{delete} --topic lines:1 --topic words"),
            stage.offsets("gone-a"),
            stage.tool("kafka-consumer-groups", f"{delete} --topic lines:7"),
            stage.tool("kafka-consumer-groups", "--group nobody --delete-offsets --topic lines"),
            stage.tool("kafka-consumer-groups", "--group gone-a --group gone-b --group nobody --delete"),
            stage.tool("kafka-consumer-groups", "--list --state"),
        ]

    _, offsets, *_, listed = at_both(stages, scene)
    assert offsets == {"lines": [3, -1], "words": [-1, -1]}
    assert isinstance(listed, list)
    assert not [line for line in listed if line.startswith("gone")]
