"""`ottla produce`, `consume`, `tail`, `copy` and `top` against Apache Kafka, and from it to a node of ours and back."""

import json
from pathlib import Path

import pytest

from ottla import Admin, NewTopic
from ottla.cli.main import main
from ottla.testing import Broker
from tests.interop.apache_kafka import ApacheKafka

pytestmark = pytest.mark.interop


def records(bootstrap: str, topic: str, path: Path) -> list[dict[str, object]]:
    """Without their offsets: a transaction's marker takes one."""
    assert main(["consume", topic, "-b", bootstrap, "--json", "-q", "-o", str(path)]) == 0
    found = [json.loads(line) for line in path.read_text().splitlines()]
    kept = ({name: value for name, value in one.items() if name not in ("topic", "offset")} for one in found)
    return sorted(kept, key=lambda one: int(str(one["value"])))


def test_records_go_from_kafka_to_us_and_back(kafka: ApacheKafka, tmp_path: Path) -> None:
    lines = [
        {"key": f"k{number}", "value": str(number), "timestamp": 1_700_000_000_000 + number, "headers": [["n", "x"]]}
        for number in range(500)
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, lines)))
    at = ["-b", kafka.bootstrap, "-q"]
    # The records are years old: with the default retention the node takes them at its next look, every five minutes.
    with Admin(bootstrap_servers=kafka.bootstrap) as admin:
        forever = {"retention.ms": "-1"}
        made = [NewTopic(name, partitions=3, config=forever) for name in ("there", "back")]
        admin.create_topics(made).raise_first()
    assert main(["produce", "there", str(tmp_path / "in.jsonl"), "--json", *at]) == 0
    first = records(kafka.bootstrap, "there", tmp_path / "out")
    assert [one["key"] for one in first] == [line["key"] for line in lines]
    with Broker() as ours:
        once = ["--exactly-once", "--group", "copying", "-q"]
        for _ in range(2):
            assert main(["copy", "there", "here", "-b", kafka.bootstrap, "--to-server", ours.bootstrap, *once]) == 0
            assert main(["copy", "here", "back", "-b", ours.bootstrap, "--to-server", kafka.bootstrap, *once]) == 0
        assert records(ours.bootstrap, "here", tmp_path / "out") == first
    assert records(kafka.bootstrap, "back", tmp_path / "out") == first


def test_a_group_of_kafka_is_shown(kafka: ApacheKafka, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "lines").write_text("a\nb\nc\n")
    at = ["-b", kafka.bootstrap]
    assert main(["produce", "shown", str(tmp_path / "lines"), "-q", "--partition", "0", *at]) == 0
    assert main(["consume", "shown", "--group", "half", "--max", "1", "-q", *at]) == 0
    capfd.readouterr()
    assert main(["top", "--once", "--json", "--interval", "0.2", "--group", "^half$", "--topic", "^shown$", *at]) == 0
    view = json.loads(capfd.readouterr().out)
    [topic], [group] = view["topics"], view["groups"]
    assert (topic["records"], topic["size_bytes"] > 0) == (3, True)
    assert (group["lag_records"], group["lag_seconds"] < 600) == (2, True)
    assert main(["tail", "shown", "--from-beginning", "--no-follow", "--value", "[bc]", *at]) == 0
    assert [line.split()[-1] for line in capfd.readouterr().out.splitlines()] == ["b", "c"]
