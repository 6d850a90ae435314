"""Java consumers in groups of both protocols, and kafka-consumer-groups, against a node of ours.

With `OTTLA_TEST_TARGET=apache-kafka` they run against Apache Kafka, which is how these tests are tested.
"""

import re
from collections.abc import Iterator

import pytest

from tests.interop.apache_kafka import MAIN_CLASSES, java
from tests.interop.target import Target, a_target

pytestmark = pytest.mark.interop

LINES = [f"line {number}" for number in range(60)]


@pytest.fixture(scope="module")
def node() -> Iterator[Target]:
    with a_target() as running:
        yield running


class Tools:
    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap

    def __call__(self, name: str, words: str = "", *more: str, input: str | None = None, check: bool = True) -> str:
        address = ("--bootstrap-server", self.bootstrap)
        done = java(MAIN_CLASSES[name], *address, *words.split(), *more, input=input, check=check)
        return done.stdout + done.stderr

    def groups(self, words: str, check: bool = True) -> str:
        return self("kafka-consumer-groups", words, check=check)

    def read(self, topic: str, group: str, protocol: str, count: int) -> list[str]:
        """What a console consumer in the group reads and commits."""
        words = f"--topic {topic} --group {group} --max-messages {count} --timeout-ms 30000 --from-beginning"
        options = ("--command-property", f"group.protocol={protocol}", "--command-property", "group.id=" + group)
        read = self("kafka-console-consumer", words, *options)
        return [line for line in read.splitlines() if line.startswith("line")]


@pytest.fixture(scope="module")
def tool(node: Target) -> Tools:
    tools = Tools(node.bootstrap)
    tools("kafka-topics", "--create --topic lines --partitions 1")
    tools("kafka-console-producer", "--topic lines", input="\n".join(LINES) + "\n")
    return tools


def row(table: str, group: str) -> list[str]:
    """GROUP TOPIC PARTITION CURRENT-OFFSET LOG-END-OFFSET LAG ..."""
    (found,) = (line.split() for line in table.splitlines() if re.match(rf"\s*{group}\s+lines\s", line))
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_java_consumer_goes_on_where_its_group_was(tool: Tools, protocol: str) -> None:
    group = f"{protocol}-readers"
    assert tool.read("lines", group, protocol, 20) == LINES[:20]
    assert tool.read("lines", group, protocol, 40) == LINES[20:]
    assert row(tool.groups(f"--describe --group {group}"), group)[3:6] == ["60", "60", "0"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_kafka_consumer_groups(tool: Tools, protocol: str) -> None:
    group = f"{protocol}-administered"
    tool.read("lines", group, protocol, 25)
    assert group in tool.groups("--list").split()
    assert group in tool.groups("--list --state Empty")
    assert row(tool.groups(f"--describe --group {group}"), group)[3:6] == ["25", "60", "35"]
    assert re.search(rf"{group}\s.*\sEmpty\s+0", tool.groups(f"--describe --group {group} --state"))
    assert "no active members" in tool.groups(f"--describe --group {group} --members")
    for how, offset in (
        ("--to-earliest", 0),
        ("--to-latest", 60),
        ("--to-offset 30", 30),
        ("--shift-by -5", 25),
        ("--to-datetime 2000-01-01T00:00:00.000", 0),
        ("--by-duration P1D", 0),
        ("--to-current", 0),
    ):
        reset = tool.groups(f"--group {group} --reset-offsets --topic lines {how} --execute")
        assert re.search(rf"lines\s+0\s+{offset}\b", reset), how
    deleted = tool.groups(f"--group {group} --delete-offsets --topic lines")
    assert "Successful" in deleted
    assert "Deletion of requested consumer groups" in tool.groups(f"--group {group} --delete")
    assert group not in tool.groups("--list").split()


@pytest.mark.parametrize("what", ["--describe", "--delete"])
def test_groups_that_do_not_exist(tool: Tools, what: str) -> None:
    assert "GroupIdNotFoundException" in tool.groups(f"{what} --group nobody", check=False)
