"""kafka-reassign-partitions prints what Kafka's prints."""

from __future__ import annotations

import json

import pytest

from tests.interop.tools.beside import NAMES, Beside

pytestmark = pytest.mark.interop

TOOL = "kafka-reassign-partitions"
ONE = '{"topic": "move-{me}", "partition": 0, "replicas": [1]}'


@pytest.fixture(scope="module")
def scene(beside: Beside) -> Beside:
    """A topic of two partitions for each of the two."""
    beside.both("kafka-topics {at} --create --topic move-{me} --partitions 2")
    beside.file("topics.json", '{"topics": [{"topic": "move-{me}"}], "version": 1}')
    beside.file("one.json", f'{{"partitions": [{ONE}], "version": 1}}')
    return beside


@pytest.mark.parametrize(
    "words",
    [
        "",
        "--help",
        "--version",
        "{at}",
        "--list",
        "--verify",
        "{at} --list --bootstrap-controller x:1",
        "{at} --list --verify",
        "{at} --generate",
        "{at} --execute",
        "{at} --verify",
        "{at} --cancel",
        "{at} --generate --topics-to-move-json-file x",
        "{at} --throttle 5 --list --additional",
        "{at} --list --timeout 5",
        "{at} --generate --topics-to-move-json-file x --broker-list 1 --throttle 5",
        "{at} --execute --reassignment-json-file x --preserve-throttles --broker-list 5",
        "{at} --verify --reassignment-json-file x --additional",
        "{at} --cancel --reassignment-json-file x --disallow-replication-factor-change",
        "--bootstrap-controller x:1 --verify --reassignment-json-file x",
        "{at} --list --nonsense",
        "{at} --list --command-config /no/such",
        "--list --bootstrap-server x..y:1",
        "{at} --generate --topics-to-move-json-file /no/such --broker-list 1",
        "{at} --verify --reassignment-json-file /no/such",
        "{at} --execute --reassignment-json-file {files}/one.json --throttle x",
        "{at} --execute --reassignment-json-file {files}/one.json --timeout x",
    ],
)
def test_command_lines(scene: Beside, words: str) -> None:
    scene.same(f"{TOOL} {words}")


def test_a_proposal(scene: Beside) -> None:
    """On one broker there is nothing to choose."""
    proposal = scene.same(f"{TOOL} {{at}} --generate --topics-to-move-json-file {{files}}/topics.json --broker-list 1")
    *_, told = proposal.out.splitlines()
    assert [one["log_dirs"] for one in json.loads(told)["partitions"]] == [["any"], ["any"]]


@pytest.mark.parametrize("brokers", ["1,7", "7", "1,1", "x", "1,,2", "1,", " 1", "''"])
def test_lists_of_brokers(scene: Beside, brokers: str) -> None:
    scene.same(f"{TOOL} {{at}} --generate --topics-to-move-json-file {{files}}/topics.json --broker-list={brokers}")


@pytest.mark.parametrize(
    "content",
    [
        '{"topics": [{"topic": "move-{me}"}], "version": 2}',
        '{"topics": [{"topic": "move-{me}"}, {"topic": "move-{me}"}]}',
        '{"topics": [{"topic": "nope"}]}',
        '{"topics": [{}]}',
        '{"topics": [{"topic": 3}]}',
        '{"topics": {"a": 1}}',
        '{"topics": null}',
        '{"version": "x"}',
        "{}",
        "[]",
        "nonsense",
    ],
)
def test_files_of_topics(scene: Beside, content: str) -> None:
    scene.file("some.json", content)
    scene.same(f"{TOOL} {{at}} --generate --topics-to-move-json-file {{files}}/some.json --broker-list 1")


@pytest.mark.parametrize("action", ["--execute", "--verify", "--cancel"])
@pytest.mark.parametrize(
    "content",
    [
        f'{{"partitions": [{ONE}], "version": 2}}',
        f'{{"partitions": [{ONE}]}}',
        f'{{"partitions": [{ONE}, {ONE}]}}',
        f'{{"partitions": [{ONE.replace("0", "9")}]}}',
        f'{{"partitions": [{ONE.replace("move-{me}", "nope")}]}}',
        f'{{"partitions": [{ONE.replace("[1]", "[]")}]}}',
        f'{{"partitions": [{ONE.replace("[1]", "[1, 1]")}, {ONE.replace("[1]", "[1, 1, 1]").replace("0", "1")}]}}',
        f'{{"partitions": [{ONE.replace("[1]", "3")}]}}',
        f'{{"partitions": [{ONE.replace("[1]", "[true]")}]}}',
        f'{{"partitions": [{ONE.replace("[1]", "[3000000000]")}]}}',
        f'{{"partitions": [{ONE.replace("0", "0.5")}]}}',
        '{"partitions": [{"topic": "move-{me}", "partition": 0}]}',
        '{"partitions": [{"topic": "move-{me}", "replicas": [1]}]}',
        f'{{"partitions": [{ONE[:-1]}, "log_dirs": []}}]}}',
        f'{{"partitions": [{ONE[:-1]}, "log_dirs": ["any"]}}]}}',
        f'{{"partitions": [{ONE[:-1]}, "log_dirs": ["/no/such"]}}]}}',
        f'{{"partitions": [{ONE[:-1]}, "log_dirs": null}}]}}',
        f'{{"partitions": [{ONE[:-1]}, "log_dirs": [1]}}]}}',
        '{"partitions": [3]}',
        '{"partitions": {"a": 1}}',
        '{"partitions": []}',
        "{}",
        "3",
        "nonsense",
        "",
    ],
)
def test_files_of_assignments(scene: Beside, content: str, action: str) -> None:
    scene.file("some.json", content)
    scene.same(f"{TOOL} {{at}} {action} --reassignment-json-file {{files}}/some.json")


@pytest.mark.parametrize("topic", ["nope", "move-{me}"])
def test_a_broker_that_is_not_known_is_not_given_replicas(scene: Beside, topic: str) -> None:
    scene.file("some.json", f'{{"partitions": [{ONE.replace("[1]", "[1, 9]").replace("move-{me}", topic)}]}}')
    scene.same(f"{TOOL} {{at}} --execute --reassignment-json-file {{files}}/some.json")


def test_throttles_are_set_and_cleared(scene: Beside) -> None:
    """The broker's are one for both tools: each clears what it has set before the other begins."""
    for me in NAMES:
        shown: list[str] = []
        for action in ("--execute --throttle 5000 --replica-alter-log-dirs-throttle 6000", "--verify"):
            ran = scene.printed(me, f"{TOOL} {{at}} {action} --reassignment-json-file {{files}}/one.json")
            assert ran.exit_code == 0, ran
            shown += [
                scene.printed(me, f"kafka-configs {{at}} --describe {what}").out
                for what in ("--topic move-{me}", "--broker 1")
            ]
        assert "leader.replication.throttled.replicas=0:1 " in shown[0]
        assert "follower.replication.throttled.replicas= " in shown[0]
        assert "leader.replication.throttled.rate=5000 " in shown[1]
        assert "throttled" not in "".join(shown[2:])
