"""Nothing that a back-up has is lost by what happens to its directory, nor deleted by the destination's defaults."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.base.checksum import crc32c
from ottla.base.ids import TopicPartition
from ottla.cli.backup.block_files import checksum_of
from ottla.cli.main import main
from ottla.client.admin.configs import ConfigResource
from ottla.testing import Broker
from tests.unit.cli.backup_scenes import LONG_AGO_MS, run, seen

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

WEEK_MS = "604800000"
RUNS = 3


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    """Which by its own default keeps records for ever."""
    with Broker({"log.retention.ms": -1}) as broker:
        broker.create_topic("orders", partitions=1)
        yield broker


@pytest.fixture(scope="module")
def whole(source: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole") / "saved"
    for number in range(RUNS):
        with Producer(bootstrap_servers=source.bootstrap) as producer:
            producer.send("orders", b"%d" % number, timestamp_ms=LONG_AGO_MS)
        run("backup", str(directory), "-b", source.bootstrap, "-q")
    return directory


@pytest.fixture
def saved(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "saved"))


@pytest.fixture(scope="module")
def destination() -> Iterator[Broker]:
    with Broker({"log.retention.ms": WEEK_MS}) as broker:
        yield broker


def list_of(saved: Path, number: int) -> Path:
    return saved / "runs" / f"{number:06d}.json"


def retention(broker: Broker, topic: str) -> str | None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        resource = ConfigResource.topic(topic)
        return admin.describe_configs([resource])[resource]["retention.ms"].value


# Lists that are gone


def test_a_list_that_is_gone_is_damage_and_its_files_are_found(
    saved: Path, destination: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    list_of(saved, 1).unlink()
    run("backup", str(saved), "--verify", "-q", status=1)
    assert "000001.json: it is missing" in capfd.readouterr().out
    run("restore", str(saved), "-b", destination.bootstrap, "--rename", "orders=found", "-q")
    assert [value for _, _, value, _ in seen(destination.bootstrap, "found")[0]] == [b"0", b"1", b"2"]


def test_no_file_is_removed_when_all_lists_are_gone(
    saved: Path, tmp_path: Path, destination: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    """Although the cluster has deleted the records."""
    with Broker() as one:
        directory = tmp_path / "lists"
        one.create_topic("orders", partitions=1)
        for number in range(RUNS):
            with Producer(bootstrap_servers=one.bootstrap) as producer:
                producer.send("orders", b"%d" % number)
            run("backup", str(directory), "-b", one.bootstrap, "-q")
        with Admin(bootstrap_servers=one.bootstrap) as admin:
            admin.delete_records({TopicPartition("orders", 0): 3}).raise_first()
        before = set(directory.rglob("*.zst"))
        assert len(before) == RUNS
        shutil.rmtree(directory / "runs")
        run("backup", str(directory), "-b", one.bootstrap, "-q")
        assert "000003.json: it is missing; what it saved is found by its files" in capfd.readouterr().err
        assert before <= set(directory.rglob("*.zst"))


def test_files_of_a_topic_that_the_cluster_has_no_more_stay(tmp_path: Path) -> None:
    """The only list is gone: the run looks like one that did not finish."""
    with Broker() as one:
        directory = tmp_path / "lists"
        for topic in ("gone", "other"):
            one.create_topic(topic, partitions=1)
            with Producer(bootstrap_servers=one.bootstrap) as producer:
                producer.send(topic, b"value")
        run("backup", str(directory), "-b", one.bootstrap, "-q")
        before = set(directory.rglob("*.zst"))
        list_of(directory, 1).unlink()
        with Admin(bootstrap_servers=one.bootstrap) as admin:
            admin.delete_topics(["gone"]).raise_first()
        run("backup", str(directory), "-b", one.bootstrap, "-q")
        assert before <= set(directory.rglob("*.zst"))


# What deletes what was restored


def test_a_default_of_the_destination_does_not_delete_what_was_restored(
    saved: Path, destination: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    run("restore", str(saved), "-b", destination.bootstrap, "--rename", "orders=kept", "-q")
    assert "topic kept: retention.ms=-1 is set on the topic" in capfd.readouterr().err
    assert retention(destination, "kept") == "-1"


def test_defaults_that_keep_longer_stay_defaults(tmp_path: Path, destination: Broker) -> None:
    directory = tmp_path / "short"
    destination.create_topic("short", partitions=1)
    run("backup", str(directory), "-b", destination.bootstrap, "--topic", "short", "-q")
    with Broker({"log.retention.ms": -1}) as archive:
        run("restore", str(directory), "-b", archive.bootstrap, "-q")
        assert retention(archive, "short") == "-1"


def test_a_topic_that_was_there_keeps_what_it_was_set_to(saved: Path, destination: Broker) -> None:
    with Admin(bootstrap_servers=destination.bootstrap) as admin:
        config = {"retention.ms": "12345678901234", "segment.bytes": "10000000"}
        admin.create_topics([NewTopic("ready", 1, config=config)]).raise_first()
    run("restore", str(saved), "-b", destination.bootstrap, "--rename", "orders=ready", "-q")
    assert retention(destination, "ready") == "12345678901234"
    with Admin(bootstrap_servers=destination.bootstrap) as admin:
        resource = ConfigResource.topic("ready")
        found = admin.describe_configs([resource])[resource]
    assert found["segment.bytes"].value == "10000000"
    assert found["compression.type"].source is not found["segment.bytes"].source, "nothing of the restore's is left"


def test_what_an_operator_sets_on_a_standby_topic_stays(tmp_path: Path, destination: Broker) -> None:
    directory = tmp_path / "standby"
    with Broker() as one:
        with Admin(bootstrap_servers=one.bootstrap) as admin:
            admin.create_topics([NewTopic("standby", 1, config={"retention.ms": "1000000"})]).raise_first()
        words = ("restore", str(directory), "-b", destination.bootstrap, "-q")
        run("backup", str(directory), "-b", one.bootstrap, "-q")
        run(*words)
        resource = ConfigResource.topic("standby")
        with Admin(bootstrap_servers=destination.bootstrap) as admin:
            admin.incremental_alter_configs({resource: {"segment.bytes": "10000000"}}).raise_first()
        with Admin(bootstrap_servers=one.bootstrap) as admin:
            admin.incremental_alter_configs({resource: {"retention.ms": "2000000"}}).raise_first()
        with Producer(bootstrap_servers=one.bootstrap) as producer:
            producer.send("standby", b"more")
        run("backup", str(directory), "-b", one.bootstrap, "-q")
        run(*words)
    with Admin(bootstrap_servers=destination.bootstrap) as admin:
        found = admin.describe_configs([resource])[resource]
    assert (found["retention.ms"].value, found["segment.bytes"].value) == ("2000000", "10000000")


# Directories that somebody has made


def write_list(path: Path, document: object) -> None:
    text = json.dumps(document).encode()
    path.write_bytes(b"ottla-backup %s\n%s" % (checksum_of(text).encode(), text))


def read_list(path: Path) -> Any:
    return json.loads(path.read_bytes().partition(b"\n")[2])


@pytest.mark.parametrize("stem", ["../../outside", "/etc/passwd", "data/link/x"])
def test_a_list_does_not_lead_out_of_the_directory(
    saved: Path, tmp_path: Path, destination: Broker, stem: str, capfd: pytest.CaptureFixture[str]
) -> None:
    (saved / "data" / "link").symlink_to(tmp_path)
    document = read_list(list_of(saved, RUNS))
    document["topics"][0]["partitions"][0]["files"][0]["stem"] = stem
    write_list(list_of(saved, RUNS), document)
    for words in (["backup", str(saved), "--verify"], ["restore", str(saved), "-b", destination.bootstrap]):
        assert main([*words, "-q"]) == 1
        assert f"{stem} is outside of it" in capfd.readouterr().err


def test_a_link_is_not_written_through(
    saved: Path, source: Broker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (saved / "runs" / f"{RUNS + 1:06d}.json.new").symlink_to(victim)
    run("backup", str(saved), "-b", source.bootstrap, "-q", status=1)
    assert "is a link: remove it" in capfd.readouterr().err
    assert victim.read_text() == "precious"
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    shutil.rmtree(saved / "data" / "orders")
    (saved / "data" / "orders").symlink_to(elsewhere)
    run("backup", str(saved), "-b", source.bootstrap, "--full", "-q", status=1)
    assert "is outside of it" in capfd.readouterr().err
    assert not list(elsewhere.rglob("*"))


NONSENSE: list[Any] = [None, "", -1, 10**30, 1.5, [], {}, [[]], "../..", True]


def mutations(document: Any) -> Iterator[None]:
    """Puts nonsense into every place, one after the other, and what was there back."""
    places = document.items() if isinstance(document, dict) else enumerate(document)
    for place, value in list(places):
        for nonsense in NONSENSE:
            document[place] = nonsense
            yield
        document[place] = value
        if isinstance(value, dict | list):
            yield from mutations(value)


def test_nonsense_with_the_right_checksum_is_named(
    saved: Path, destination: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    """In any place of a list: it is of no use, or says so, and never costs more than a line."""
    path = list_of(saved, RUNS)
    document = read_list(path)
    for number, _ in enumerate(mutations(document)):
        write_list(path, document)
        for words in (["--verify"], ["--list"]):
            assert main(["backup", str(saved), *words, "-q"]) in (0, 1), document
        if number % 50 == 0:
            assert main(["restore", str(saved), "-b", destination.bootstrap, "-q", "--rename", "orders=x"]) in (0, 1)
    assert "Traceback" not in "".join(capfd.readouterr())


def test_nonsense_in_an_index_is_named(saved: Path, capfd: pytest.CaptureFixture[str]) -> None:
    [path] = saved.glob("data/orders/*/0/000001-*.blocks")
    lines = path.read_bytes().splitlines(keepends=True)
    for which, line in enumerate(lines):
        document = json.loads(line.partition(b"\t")[0])
        for _ in mutations(document):
            text = json.dumps(document).encode()
            path.write_bytes(b"".join([*lines[:which], b"%s\t%08x\n" % (text, crc32c(text)), *lines[which + 1 :]]))
            assert main(["backup", str(saved), "--verify", "-q"]) in (0, 1), document
        deep = b"[" * 100_000
        path.write_bytes(b"".join([*lines[:which], b"%s\t%08x\n" % (deep, crc32c(deep))]))
        assert main(["backup", str(saved), "--verify", "-q"]) == 1
    assert "Traceback" not in "".join(capfd.readouterr())
