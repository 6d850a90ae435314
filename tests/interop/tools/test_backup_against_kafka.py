"""`ottla backup` and `ottla restore` with Apache Kafka: from it to us, from us to it, record for record."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, NewTopic
from ottla.base.ids import TopicPartition
from ottla.testing import Broker
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.old_kafka import OldKafka
from tests.unit.cli.backup_scenes import (
    AUTHORIZED,
    TOPICS,
    fill_plain,
    fill_transactions,
    make_everything,
    next_of_group,
    run,
    seen,
)

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def apache() -> Iterator[ApacheKafka]:
    with ApacheKafka(config=AUTHORIZED) as node:
        make_everything(node.bootstrap)
        yield node


def hold_against(source: str, destination: str) -> None:
    for topic in TOPICS:
        assert seen(destination, topic) == seen(source, topic), topic
    for group, topic in (("shop", "plain"), ("shop", "short"), ("bank", "paid"), ("view", "latest")):
        expected = next_of_group(source, group, topic)
        assert expected
        assert next_of_group(destination, group, topic) == expected, (group, topic)
    with Admin(bootstrap_servers=source) as one, Admin(bootstrap_servers=destination) as other:
        assert sorted(other.describe_acls()) == sorted(one.describe_acls())
        assert other.describe_client_quotas() == one.describe_client_quotas()
        assert dict(other.describe_user_scram_credentials()) == dict(one.describe_user_scram_credentials())


@pytest.mark.parametrize("mode", [[], ["--raw"]], ids=["committed", "raw"])
def test_from_kafka_to_us_and_back_to_kafka(apache: ApacheKafka, tmp_path: Path, mode: list[str]) -> None:
    (tmp_path / "passwords").write_text("alice=other\n")
    passwords = ["--passwords", str(tmp_path / "passwords")]
    run("backup", str(tmp_path / "kafkas"), "-b", apache.bootstrap, *mode)
    with Broker(AUTHORIZED) as ours:
        run("restore", str(tmp_path / "kafkas"), "-b", ours.bootstrap, *passwords)
        hold_against(apache.bootstrap, ours.bootstrap)
        run("backup", str(tmp_path / "ours"), "-b", ours.bootstrap, *mode)
    with ApacheKafka(config=AUTHORIZED) as other:
        run("restore", str(tmp_path / "ours"), "-b", other.bootstrap, *passwords)
        hold_against(apache.bootstrap, other.bootstrap)
        # Into the cluster itself, beside what it has; and what came since, behind it.
        run("restore", str(tmp_path / "ours"), "-b", other.bootstrap, "--topic", "paid", "--rename", "paid=paid-2")
        assert seen(other.bootstrap, "paid-2") == seen(apache.bootstrap, "paid")


def test_kafkas_own_tool_reads_the_files(apache: ApacheKafka, tmp_path: Path) -> None:
    run("backup", str(tmp_path), "-b", apache.bootstrap, "--topic", "plain", "--compression", "none", "--raw")
    [file] = tmp_path.glob("data/plain/*/0/*.log")
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(file.read_bytes())
    printed = apache.tool("kafka-dump-log", "--files", str(segment), "--print-data-log", "--deep-iteration").stdout
    assert printed.count("isvalid: true") >= 5
    assert printed.count("| offset:") == len(seen(apache.bootstrap, "plain")[0])


def test_from_the_oldest_kafka(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """It has no topic ids, and tells of no users and settings of groups."""
    with OldKafka() as old, Broker() as ours, Admin(bootstrap_servers=old.bootstrap) as admin:
        admin.create_topics(
            [NewTopic("plain", 3, 1, config={"retention.ms": "-1"}), NewTopic("paid", 2, 1)]
        ).raise_first()
        fill_plain(old.bootstrap)
        fill_transactions(old.bootstrap)
        admin.alter_consumer_group_offsets("shop", {TopicPartition("plain", 0): 17, TopicPartition("paid", 0): 23})
        for turn in range(2):
            run("backup", str(tmp_path / "old"), "-b", old.bootstrap)
            run(
                "restore",
                str(tmp_path / "old"),
                "-b",
                ours.bootstrap,
                "--rename",
                f"plain=plain-{turn}",
                "--rename",
                f"paid=paid-{turn}",
            )
            for topic in ("plain", "paid"):
                assert seen(ours.bootstrap, f"{topic}-{turn}") == seen(old.bootstrap, topic)
                expected = next_of_group(old.bootstrap, "shop", topic)
                assert next_of_group(ours.bootstrap, "shop", f"{topic}-{turn}") == expected
            fill_plain(old.bootstrap, first=5000)
        run("backup", str(tmp_path / "ours"), "-b", ours.bootstrap, "--topic", ".*-1")
        run("restore", str(tmp_path / "ours"), "-b", old.bootstrap, status=1)
        assert "a restore needs Kafka 3.6 or later" in capfd.readouterr().err
