"""kafka-reassign-partitions against a node of ours, with one broker: from a proposal to the end of its move."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin
from ottla.admin import NewTopic
from ottla.cli.kafka import run
from ottla.testing.node import RunningNode


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    with RunningNode() as node, Admin(bootstrap_servers=node.bootstrap) as admin:
        admin.create_topics([NewTopic("clicks", 2, 1)]).raise_first()
        yield node


def test_a_proposal_can_be_executed_and_verified(
    node: RunningNode, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    topics, plan = tmp_path / "topics.json", tmp_path / "plan.json"
    topics.write_text('{"topics": [{"topic": "clicks"}], "version": 1}')

    def tool(*words: str) -> list[str]:
        status = run("reassign-partitions", ["--bootstrap-server", node.bootstrap, *words])
        out, err = capsys.readouterr()
        assert (status, err) == (0, ""), out
        return out.splitlines()

    with Admin(bootstrap_servers=node.bootstrap) as admin:
        (broker,) = admin.describe_cluster().nodes
    proposed = tool("--generate", "--topics-to-move-json-file", str(topics), "--broker-list", str(broker.id))
    plan.write_text(proposed[-1])
    assert [one["replicas"] for one in json.loads(proposed[-1])["partitions"]] == [[broker.id], [broker.id]]
    started = tool("--execute", "--reassignment-json-file", str(plan), "--throttle", "5000")
    assert started[-1] == "Successfully started partition reassignments for clicks-0,clicks-1"
    assert tool("--list") == ["No partition reassignments found."]
    assert tool("--verify", "--reassignment-json-file", str(plan)) == [
        "Status of partition reassignment:",
        "Reassignment of partition clicks-0 is completed.",
        "Reassignment of partition clicks-1 is completed.",
        "",
        f"Clearing broker-level throttles on broker {broker.id}",
        "Clearing topic-level throttles on topic clicks",
    ]
    assert tool("--cancel", "--reassignment-json-file", str(plan), "--preserve-throttles") == [
        "None of the specified partition reassignments are active.",
        "None of the specified partition moves are active.",
    ]
