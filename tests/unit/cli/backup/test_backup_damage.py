"""A back-up with flipped bits: what is damaged is named, and nothing else is lost by it."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ottla import Admin, Producer
from ottla.base.ids import TopicPartition
from ottla.cli.main import main
from ottla.testing import Broker
from tests.unit.cli.backup_scenes import AUTHORIZED, Seen, run, seen

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

SMALL = ("--set", "max.partition.fetch.bytes=1500")


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    with Broker(AUTHORIZED) as broker:
        broker.create_topic("plain", partitions=3)
        with Producer(bootstrap_servers=broker.bootstrap, batch_size=500) as producer:
            for number in range(400):
                producer.send("plain", b"value %d" % number, b"%d" % number, partition=number % 2, timestamp_ms=1)
                if number % 5 == 4:
                    producer.flush()
        yield broker


@pytest.fixture(scope="module")
def whole(source: Broker, tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("whole") / "saved"
    run("backup", str(directory), "-b", source.bootstrap, *SMALL)
    return directory


@pytest.fixture
def saved(whole: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(whole, tmp_path / "saved"))


@pytest.fixture(scope="module")
def destination() -> Iterator[Broker]:
    with Broker() as broker:
        yield broker


def flip(path: Path, position: int, bit: int = 3) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def data_file(saved: Path, partition: int = 0) -> Path:
    [found] = saved.glob(f"data/plain/*/{partition}/*.log.zst")
    return found


def values(found: Seen, partition: int) -> list[bytes]:
    return [value for _, _, value, _ in found[partition]]


def test_a_bit_anywhere_in_any_file_is_found(saved: Path, capfd: pytest.CaptureFixture[str]) -> None:
    random = Random(1)
    files = [path for path in saved.rglob("*") if path.is_file() and path.name != ".lock"]
    assert len(files) == 6, files
    for path in files:
        content = path.read_bytes()
        for position in {0, len(content) - 1, *(random.randrange(len(content)) for _ in range(40))}:
            flip(path, position, random.randrange(8))
            assert main(["backup", str(saved), "--verify"]) == 1, (path, position)
            told = "".join(capfd.readouterr())
            assert path.name.partition(".")[0] in told or "plain-" in told, told
            path.write_bytes(content)
    assert main(["backup", str(saved), "--verify"]) == 0


def test_a_restore_stops_before_what_is_damaged_and_goes_on_when_it_is_repaired(
    source: Broker, destination: Broker, saved: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = data_file(saved)
    flip(path, path.stat().st_size // 2)
    expected = seen(source.bootstrap, "plain")
    rename = ("--rename", "plain=repaired")
    run("restore", str(saved), "-b", destination.bootstrap, *rename, "--only", "topics", status=1)
    assert "plain-0: offsets" in (told := capfd.readouterr().err)
    assert "does not match its checksum" in told
    found = seen(destination.bootstrap, "repaired")
    before = values(found, 0)
    assert 0 < len(before) < len(values(expected, 0))
    assert before == values(expected, 0)[: len(before)]
    assert found[1] == expected[1], "the other partition is whole"
    run("backup", str(saved), "-b", source.bootstrap, "--repair", *SMALL)
    assert "plain-0: read again from offset" in capfd.readouterr().err
    assert main(["backup", str(saved), "--verify"]) == 0
    run("restore", str(saved), "-b", destination.bootstrap, *rename, "--only", "topics")
    assert "run 2 is added to what was restored of run 1" in capfd.readouterr().err
    assert seen(destination.bootstrap, "repaired") == expected


def test_damage_can_be_left_out(
    source: Broker, destination: Broker, saved: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Only the records of the damaged blocks are missing, and the exit code says that some are."""
    path = data_file(saved)
    for share in (0.2, 0.5, 0.8):
        flip(path, int(path.stat().st_size * share))
    expected = seen(source.bootstrap, "plain")
    words = ("restore", str(saved), "-b", destination.bootstrap, "--rename", "plain=less", "--only", "topics")
    run(*words, "--skip-damaged", status=1)
    assert capfd.readouterr().err.count("; left out") == 3
    found = seen(destination.bootstrap, "less")
    assert found[1] == expected[1]
    missing = [one for one in values(expected, 0) if one not in set(values(found, 0))]
    kept = [one for one in values(expected, 0) if one not in set(missing)]
    assert values(found, 0) == kept
    assert missing
    assert len(kept) > 20
    # What was left out once is not missed by the same restore again.
    run(*words)


def test_a_damaged_list_of_a_run_is_named_and_the_others_are_of_use(
    source: Broker, destination: Broker, saved: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Its files say themselves what is in them."""
    flip(saved / "runs" / "000001.json", 300)
    run("restore", str(saved), "-b", destination.bootstrap, status=1)
    assert "000001.json: it does not match its checksum" in capfd.readouterr().err
    run("backup", str(saved), "-b", source.bootstrap, *SMALL)
    told = capfd.readouterr().err
    assert "run 1: " in told
    assert "run 2: 0 records" in told, "nothing has to be read again"
    run("restore", str(saved), "-b", destination.bootstrap, "--rename", "plain=listed", "--only", "topics")
    assert seen(destination.bootstrap, "listed") == seen(source.bootstrap, "plain")


@pytest.mark.parametrize("what", ["index", "data"])
def test_a_file_that_is_gone_is_named(
    source: Broker, destination: Broker, saved: Path, what: str, capfd: pytest.CaptureFixture[str]
) -> None:
    path = data_file(saved)
    if what == "index":
        path = path.with_name(path.name.replace(".log.zst", ".blocks"))
    path.unlink()
    rename = ("--rename", f"plain=without-{what}")
    run("restore", str(saved), "-b", destination.bootstrap, *rename, "--only", "topics", status=1)
    assert "plain-0: offsets 0 to " in capfd.readouterr().err
    found = seen(destination.bootstrap, f"without-{what}")
    assert found[1] == seen(source.bootstrap, "plain")[1]
    assert not found[0]


def test_damage_that_the_source_has_deleted_is_named_and_the_rest_is_kept(
    tmp_path: Path, destination: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    saved = tmp_path / "saved"
    with Broker() as one:
        one.create_topic("plain", partitions=1)
        with Producer(bootstrap_servers=one.bootstrap, batch_size=500) as producer:
            for number in range(200):
                producer.send("plain", b"value %d" % number)
                if number % 5 == 4:
                    producer.flush()
        run("backup", str(saved), "-b", one.bootstrap, *SMALL)
        flip(data_file(saved), 10)
        with Admin(bootstrap_servers=one.bootstrap) as admin:
            admin.delete_records({TopicPartition("plain", 0): 150}).raise_first()
        run("backup", str(saved), "-b", one.bootstrap, "--repair", *SMALL)
        assert "read again" not in capfd.readouterr().err
        run("restore", str(saved), "-b", destination.bootstrap, "--rename", "plain=rest", "--only", "topics")
        assert seen(destination.bootstrap, "rest") == seen(one.bootstrap, "plain")


def test_a_batch_that_is_damaged_at_the_broker_is_left_out_and_named(
    tmp_path: Path, destination: Broker, capfd: pytest.CaptureFixture[str]
) -> None:
    with Broker(directory=tmp_path / "node") as one:
        one.create_topic("plain", partitions=1)
        fill_plain_one(one)
        expected = values(seen(one.bootstrap, "plain"), 0)
        one.stop()
        [segment] = (tmp_path / "node").rglob("plain-0/00000000000000000000.log")
        position = segment.read_bytes().index(b"value 7")
        flip(segment, position)
        one.start()
        run("backup", str(tmp_path / "saved"), "-b", one.bootstrap, status=1)
        assert "plain-0: offsets 5 to 9 are damaged at the broker, and left out" in capfd.readouterr().err
        run("restore", str(tmp_path / "saved"), "-b", destination.bootstrap, "--rename", "plain=healed")
        assert values(seen(destination.bootstrap, "healed"), 0) == [*expected[:5], *expected[10:]]


def fill_plain_one(broker: Broker) -> None:
    with Producer(bootstrap_servers=broker.bootstrap, linger_ms=50) as producer:
        for number in range(30):
            producer.send("plain", b"value %d" % number)
            if number % 5 == 4:
                producer.flush()
