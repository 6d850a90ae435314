"""`ottla backup` and `ottla restore` against nodes: what was there is there again, record for record."""

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.base.ids import TopicPartition
from ottla.cli.main import main
from ottla.client.admin.configs import ConfigResource, ConfigSource
from ottla.testing import Broker
from tests.unit.cli.backup_scenes import (
    AUTHORIZED,
    TOPICS,
    committed,
    fill_plain,
    make_everything,
    next_of_group,
    run,
    seen,
)

pytestmark = pytest.mark.slow  # they start nodes in processes of their own


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    with Broker(AUTHORIZED) as broker:
        make_everything(broker.bootstrap)
        yield broker


@pytest.fixture
def destination() -> Iterator[Broker]:
    with Broker(AUTHORIZED) as broker:
        yield broker


def own_settings(bootstrap: str, topic: str) -> dict[str, str | None]:
    with Admin(bootstrap_servers=bootstrap) as admin:
        found = admin.describe_configs([ConfigResource.topic(topic)])[ConfigResource.topic(topic)]
    return {name: one.value for name, one in found.items() if one.source is ConfigSource.DYNAMIC_TOPIC}


@pytest.mark.parametrize("isolation", ["committed", "raw"])
@pytest.mark.parametrize("compression", ["zstd", "none"])
def test_everything_comes_back_in_another_cluster(
    source: Broker,
    destination: Broker,
    tmp_path: Path,
    isolation: str,
    compression: str,
    capfd: pytest.CaptureFixture[str],
) -> None:
    directory = str(tmp_path / "saved")
    raw = ["--raw"] if isolation == "raw" else []
    run("backup", directory, "-b", source.bootstrap, "--compression", compression, *raw)
    (tmp_path / "passwords").write_text("alice=other\n")
    run("restore", directory, "-b", destination.bootstrap, "--passwords", str(tmp_path / "passwords"))
    for topic in TOPICS:
        assert seen(destination.bootstrap, topic) == seen(source.bootstrap, topic), topic
        assert own_settings(destination.bootstrap, topic) == own_settings(source.bootstrap, topic)
    for group, topic in (("shop", "plain"), ("shop", "short"), ("bank", "paid"), ("view", "latest")):
        expected = next_of_group(source.bootstrap, group, topic)
        assert expected
        assert next_of_group(destination.bootstrap, group, topic) == expected, (group, topic)
    noted = committed(destination.bootstrap, "shop")[TopicPartition("plain", 2)]
    assert noted is not None
    assert noted.metadata == "noted"
    with Admin(bootstrap_servers=source.bootstrap) as one, Admin(bootstrap_servers=destination.bootstrap) as other:
        assert sorted(other.describe_acls()) == sorted(one.describe_acls())
        assert other.describe_client_quotas() == one.describe_client_quotas()
        assert dict(other.describe_user_scram_credentials()) == dict(one.describe_user_scram_credentials())
    assert "saved without the password" in capfd.readouterr().err


def test_what_was_not_committed_stays_out(source: Broker, destination: Broker, tmp_path: Path) -> None:
    run("backup", str(tmp_path / "saved"), "-b", source.bootstrap, "--topic", "paid", "--raw")
    run("restore", str(tmp_path / "saved"), "-b", destination.bootstrap, "--topic", "paid")
    everything = seen(source.bootstrap, "paid", isolation="read_uncommitted")
    restored = seen(destination.bootstrap, "paid", isolation="read_uncommitted")
    assert restored == seen(source.bootstrap, "paid")
    assert sum(map(len, restored.values())) < sum(map(len, everything.values()))


def test_an_open_transaction_is_left_to_the_next_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    with Broker(AUTHORIZED) as one, Broker() as other:
        one.create_topic("t")
        with Producer(bootstrap_servers=one.bootstrap, transactional_id="slow") as slow:
            slow.init_transactions()
            with Producer(bootstrap_servers=one.bootstrap) as plain:
                plain.send("t", b"before")
                plain.flush()
                slow.begin()
                slow.send("t", b"in it")
                slow.flush()
                plain.send("t", b"behind")
            for name, more in (("saved", []), ("raw", ["--raw"])):
                run("backup", str(tmp_path / name), "-b", one.bootstrap, *more)
            assert "a transaction is open, and 2 offsets from 1 on are left" in capfd.readouterr().err
            run("restore", str(tmp_path / "saved"), "-b", other.bootstrap)
            assert [value for _, _, value, _ in seen(other.bootstrap, "t")[0]] == [b"before"]
            run("restore", str(tmp_path / "raw"), "-b", other.bootstrap, "--rename", "t=raw")
            assert [value for _, _, value, _ in seen(other.bootstrap, "raw")[0]] == [b"before", b"behind"]
            slow.commit()
        for name, more in (("saved", []), ("raw", ["--raw"])):
            run("backup", str(tmp_path / name), "-b", one.bootstrap, *more)
            run("restore", str(tmp_path / name), "-b", other.bootstrap, "--rename", f"t={name}-2")
            assert seen(other.bootstrap, f"{name}-2") == seen(one.bootstrap, "t")


def test_a_further_run_adds_what_came_since(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    directory = str(tmp_path / "saved")
    with Broker() as one, Broker() as other:
        one.create_topic("plain", partitions=3)
        fill_plain(one.bootstrap, count=300)
        run("backup", directory, "-b", one.bootstrap)
        first = seen(one.bootstrap, "plain")
        run("backup", directory, "-b", one.bootstrap)
        assert "run 2: 0 records" in capfd.readouterr().err
        fill_plain(one.bootstrap, first=1000, count=100)
        run("backup", directory, "-b", one.bootstrap)
        assert "run 3: 100 records" in capfd.readouterr().err
        run("restore", directory, "-b", other.bootstrap, "--run", "1", "--rename", "plain=first")
        run("restore", directory, "-b", other.bootstrap)
        assert seen(other.bootstrap, "first") == first
        assert seen(other.bootstrap, "plain") == seen(one.bootstrap, "plain")
        run("backup", directory, "--list")
        assert len(capfd.readouterr().out.splitlines()) == 3


def test_a_later_run_is_added_to_what_was_restored(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A standby: back-up and restore, again and again. Records that were deleted in the source since are kept there."""
    directory = str(tmp_path / "saved")
    at = TopicPartition("plain", 0)
    with (
        Broker() as one,
        Broker() as other,
        Admin(bootstrap_servers=one.bootstrap) as admin,
        Admin(bootstrap_servers=other.bootstrap) as there,
    ):
        one.create_topic("plain", partitions=3)
        everything: dict[int, list[object]] = {}
        for turn in range(3):
            fill_plain(one.bootstrap, first=1000 * turn, count=100)
            for number, records in seen(one.bootstrap, "plain").items():
                known = everything.setdefault(number, [])
                known += [record for record in records if record not in known]
            end = admin.list_offsets({at: -1})[at].offset or 0
            admin.alter_consumer_group_offsets("shop", {at: end - 5}).raise_first()
            run("backup", directory, "-b", one.bootstrap)
            run("restore", directory, "-b", other.bootstrap)
            assert seen(other.bootstrap, "plain") == everything
            assert next_of_group(other.bootstrap, "shop", "plain") == next_of_group(one.bootstrap, "shop", "plain")
            admin.delete_records({at: end - 20}).raise_first()
            admin.create_partitions({"plain": 4 + turn}).raise_first()
        assert "run 3 is added to what was restored of run 2" in capfd.readouterr().err
        assert len(there.describe_topics(["plain"])["plain"].partitions) == 5
        with Producer(bootstrap_servers=other.bootstrap) as producer:
            producer.send("plain", b"its own", partition=0)
        run("backup", directory, "-b", one.bootstrap)
        run("restore", directory, "-b", other.bootstrap, status=1)
        assert "somebody has written to it" in capfd.readouterr().err


def test_a_topic_that_was_made_anew_begins_anew(tmp_path: Path) -> None:
    directory = str(tmp_path / "saved")
    with Broker() as one, Broker() as other:
        for turn in range(2):
            one.create_topic("t")
            with Producer(bootstrap_servers=one.bootstrap) as producer:
                producer.send("t", b"%d" % turn)
            run("backup", directory, "-b", one.bootstrap)
            one.delete_topic("t")
        run("restore", directory, "-b", other.bootstrap)
        run("restore", directory, "-b", other.bootstrap, "--run", "1", "--rename", "t=before")
        assert [value for _, _, value, _ in seen(other.bootstrap, "t")[0]] == [b"1"]
        assert [value for _, _, value, _ in seen(other.bootstrap, "before")[0]] == [b"0"]


def test_records_that_are_deleted_between_two_runs(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Those that were saved are not restored as of a later run, and those that were not are named."""
    directory = str(tmp_path / "saved")
    with Broker() as one, Broker() as other, Admin(bootstrap_servers=one.bootstrap) as admin:
        at = TopicPartition("t", 0)
        one.create_topic("t")
        for turn in range(3):
            with Producer(bootstrap_servers=one.bootstrap, linger_ms=20) as producer:
                for number in range(10):
                    producer.send("t", b"%d %d" % (turn, number))
            if turn == 0:
                run("backup", directory, "-b", one.bootstrap)
        admin.delete_records({at: 13}).raise_first()
        run("backup", directory, "-b", one.bootstrap)
        assert "t-0: offsets 10 to 12 were deleted before they were saved" in capfd.readouterr().err
        run("restore", directory, "-b", other.bootstrap)
        assert seen(other.bootstrap, "t") == seen(one.bootstrap, "t")
        run("restore", directory, "-b", other.bootstrap, "--run", "1", "--rename", "t=before")
        assert len(seen(other.bootstrap, "before")[0]) == 10


def test_tombstones_that_may_be_gone_have_the_topic_saved_in_full(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Else a deleted key would come back: its value is saved, and its tombstone never was."""
    directory = str(tmp_path / "saved")
    with Broker({"log.cleaner.backoff.ms": 100}) as one, Broker() as other:
        config = {
            "cleanup.policy": "compact",
            "segment.ms": "50",
            "min.cleanable.dirty.ratio": "0",
            "delete.retention.ms": "1",
        }
        with Admin(bootstrap_servers=one.bootstrap) as admin:
            admin.create_topics([NewTopic("t", 1, config=config)]).raise_first()
        with Producer(bootstrap_servers=one.bootstrap) as producer:
            producer.send("t", b"value", b"gone")
            producer.flush()
            run("backup", directory, "-b", one.bootstrap)
            producer.send("t", None, b"gone")

            def is_clean() -> bool:
                producer.send("t", b"rolls the segment", b"other")
                producer.flush()
                return all(key != b"gone" for _, key, _, _ in seen(one.bootstrap, "t")[0])

            from tests.unit.cli.backup_scenes import until

            until(is_clean, "the tombstone is gone")
        run("backup", directory, "-b", one.bootstrap)
        assert "saved in full again" in capfd.readouterr().err
        run("restore", directory, "-b", other.bootstrap)
        assert {key for _, key, _, _ in seen(other.bootstrap, "t")[0]} == {b"other"}


def test_the_files_are_segments_of_kafka(source: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    import cramjam

    directory = tmp_path / "saved"
    run("backup", str(directory), "-b", source.bootstrap, "--topic", "plain", "--set", "max.partition.fetch.bytes=1000")
    [packed] = directory.glob("data/plain/*/0/*.log.zst")
    segment = tmp_path / "00000000000000000000.log"
    segment.write_bytes(bytes(cramjam.zstd.decompress(packed.read_bytes())))
    capfd.readouterr()
    run("dump-log", "--files", str(segment), "--print-data-log")
    printed = capfd.readouterr().out
    assert printed.count("isvalid: true") >= 5
    expected = [value.decode() for _, _, value, _ in seen(source.bootstrap, "plain")[0] if value]
    assert re.findall(r"payload: (.*)$", printed, re.MULTILINE) == expected


def test_batches_larger_than_usual_come_back(tmp_path: Path) -> None:
    with Broker() as one, Broker() as other:
        with Admin(bootstrap_servers=one.bootstrap) as admin:
            admin.create_topics([NewTopic("large", 1, config={"max.message.bytes": "9000000"})]).raise_first()
        with Producer(bootstrap_servers=one.bootstrap, max_request_size=9_000_000, buffer_memory=64 << 20) as producer:
            for number in range(3):
                producer.send("large", bytes([number]) * 6_000_000)
        run("backup", str(tmp_path / "saved"), "-b", one.bootstrap)
        run("restore", str(tmp_path / "saved"), "-b", other.bootstrap)
        assert seen(other.bootstrap, "large") == seen(one.bootstrap, "large")
        assert own_settings(other.bootstrap, "large") == {"max.message.bytes": "9000000"}


def test_only_some_of_it(source: Broker, destination: Broker, tmp_path: Path) -> None:
    directory = str(tmp_path / "saved")
    run("backup", directory, "-b", source.bootstrap, "--exclude", "p.*")
    with Admin(bootstrap_servers=destination.bootstrap) as admin:
        run("restore", directory, "-b", destination.bootstrap, "--topic", "short|latest", "--group", "view")
        assert [one.name for one in admin.list_topics()] == ["latest", "short"]
        assert [one.group_id for one in admin.list_consumer_groups()] == ["view"]
        assert admin.describe_acls() == []
        run("restore", directory, "-b", destination.bootstrap, "--only", "acls,groups")
        assert len(admin.describe_acls()) == 2
        assert {one.group_id for one in admin.list_consumer_groups()} == {"view", "shop"}
        assert admin.describe_client_quotas() == {}


def test_users_without_a_password_are_named(
    source: Broker, destination: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    directory = str(tmp_path / "saved")
    run("backup", directory, "-b", source.bootstrap, "--topic", "empty")
    assert "1 credential of users saved without the password" in capfd.readouterr().err
    run("restore", directory, "-b", destination.bootstrap, status=1)
    assert "1 user without a password: alice. No back-up can have it" in capfd.readouterr().err


# What is refused


@pytest.fixture(scope="module")
def saved(source: Broker, tmp_path_factory: pytest.TempPathFactory) -> str:
    directory = str(tmp_path_factory.mktemp("refusals") / "saved")
    run("backup", directory, "-b", source.bootstrap)
    return directory


def refused(capfd: pytest.CaptureFixture[str], *words: str) -> str:
    capfd.readouterr()
    assert main(list(words)) == 1
    return capfd.readouterr().err


def test_a_topic_with_records_is_not_written_to(saved: str, source: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    told = refused(capfd, "restore", saved, "-b", source.bootstrap, "--topic", "plain")
    assert "topic plain exists and has records: delete it first, use --rename plain=NAME" in told


def test_unless_that_is_asked_for(saved: str, source: Broker, destination: Broker) -> None:
    destination.create_topic("plain", partitions=3)
    with Producer(bootstrap_servers=destination.bootstrap) as producer:
        producer.send("plain", b"before", partition=0)
    before = seen(destination.bootstrap, "plain")
    run("restore", saved, "-b", destination.bootstrap, "--topic", "plain", "--append")
    after = {one: [*before[one], *of] for one, of in seen(source.bootstrap, "plain").items()}
    assert seen(destination.bootstrap, "plain") == after
    assert next_of_group(destination.bootstrap, "shop", "plain") == next_of_group(source.bootstrap, "shop", "plain")


def test_a_topic_with_fewer_partitions(saved: str, destination: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    destination.create_topic("plain", partitions=1)
    told = refused(capfd, "restore", saved, "-b", destination.bootstrap, "--topic", "plain")
    assert "topic plain exists with 1 partition, and the back-up has 3" in told


def test_a_directory_that_is_no_backup(source: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "letters.txt").write_text("dear")
    told = refused(capfd, "backup", str(tmp_path), "-b", source.bootstrap)
    assert "is not a back-up, and letters.txt is in it" in told
    told = refused(capfd, "restore", str(tmp_path), "-b", source.bootstrap)
    assert "is not a back-up: it has no backup.json" in told


def test_a_directory_of_another_cluster(saved: str, destination: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    told = refused(capfd, "backup", saved, "-b", destination.bootstrap)
    assert "has the back-up of cluster" in told


def test_a_run_a_topic_or_a_replication_factor_that_cannot_be(
    saved: str, destination: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    at = ["-b", destination.bootstrap]
    assert "there is no run 7: it has runs 1 to 1" in refused(capfd, "restore", saved, *at, "--run", "7")
    told = refused(capfd, "restore", saved, *at, "--rename", "plan=x")
    assert "--rename plan: run 1 has no such topic; did you mean plain?" in told
    told = refused(capfd, "restore", saved, *at, "--topic", "none.*")
    assert "no topic of run 1 matches it" in told
    told = refused(capfd, "restore", saved, *at, "--topic", "plain", "--replication-factor", "3")
    assert "--replication-factor N takes another one" in told


def test_two_runs_at_once(saved: str, source: Broker, capfd: pytest.CaptureFixture[str]) -> None:
    from ottla.log.disk import OsDisk

    lock = OsDisk().lock(f"{saved}/.lock")
    try:
        told = refused(capfd, "backup", saved, "-b", source.bootstrap)
    finally:
        lock.release()
    assert "another process is writing a back-up to it" in told


def test_somebody_else_who_writes_is_noticed(
    tmp_path: Path,
    source: Broker,
    destination: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from ottla.client.blocking.forwarding_producer import ForwardingProducer

    run("backup", str(tmp_path / "saved"), "-b", source.bootstrap, "--topic", "plain")
    forward = ForwardingProducer.forward
    calls = []

    def meanwhile(self: ForwardingProducer, topic: str, *rest: object) -> object:
        calls.append(topic)
        if len(calls) == 5:
            self.flush()
            with Producer(bootstrap_servers=destination.bootstrap) as stranger:
                for partition in range(3):
                    stranger.send(topic, b"a stranger's", partition=partition)
        return forward(self, topic, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(ForwardingProducer, "forward", meanwhile)
    run("restore", str(tmp_path / "saved"), "-b", destination.bootstrap, "--topic", "plain", status=1)
    assert "somebody else writes to plain" in capfd.readouterr().err


def test_a_difference_is_found_and_the_topic_keeps_what_it_has(
    tmp_path: Path,
    source: Broker,
    destination: Broker,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A node that stored another byte than it was sent, for instance."""
    from ottla.cli.backup import comparing

    run("backup", str(tmp_path / "saved"), "-b", source.bootstrap, "--topic", "plain")
    fields = comparing._fields
    monkeypatch.setattr(comparing, "_are_same", lambda *_: False)
    count = []

    def other(record: object) -> tuple[object, ...]:
        count.append(record)
        found = fields(record)  # type: ignore[arg-type]
        return (*found, "another byte") if len(count) == 101 else found

    monkeypatch.setattr(comparing, "_fields", other)
    run("restore", str(tmp_path / "saved"), "-b", destination.bootstrap, "--topic", "plain", status=1)
    assert "is another one than the back-up has at offset" in capfd.readouterr().err
    # Nothing is deleted before it is known to be right.
    assert own_settings(destination.bootstrap, "plain")["cleanup.policy"] == "delete"
    assert own_settings(destination.bootstrap, "plain")["retention.bytes"] == "-1"
    monkeypatch.undo()
    run("restore", str(tmp_path / "saved"), "-b", destination.bootstrap, "--topic", "plain")
    assert own_settings(destination.bootstrap, "plain") == own_settings(source.bootstrap, "plain")


def test_the_list_of_a_run_says_what_it_has(source: Broker, tmp_path: Path) -> None:
    run("backup", str(tmp_path), "-b", source.bootstrap, "--topic", "short")
    head, _, text = (tmp_path / "runs" / "000001.json").read_text().partition("\n")
    assert head.startswith("ottla-backup ")
    listed = json.loads(text)
    [topic] = listed["topics"]
    assert (topic["name"], topic["config"]) == ("short", {"retention.ms": "-1"})
    assert [(one["log_start"], one["end"]) for one in topic["partitions"]] == [(7, 25), (25, 25)]
    assert [one["group"] for one in listed["cluster"]["groups"] if one["offsets"]] == ["shop"]
