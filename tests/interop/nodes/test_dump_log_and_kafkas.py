"""Our dump-log and Apache Kafka's, on the same files with the same options, print the same."""

import re
from pathlib import Path

import pytest

from ottla.base.ids import TopicPartition, Uuid
from ottla.cli.dump_log import main
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.log_dirs import LogDirs
from ottla.records.builder import BatchBuilder
from ottla.records.header import Compression
from ottla.testing.clock import FixedClock
from tests.interop.apache_kafka import MAIN_CLASSES, java

pytestmark = pytest.mark.interop

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1"
T0 = 1_700_000_000_000
KNOWN = {".log", ".index", ".timeindex", ".txnindex", ".snapshot"}
HEADING = re.compile(r"^(?=\S.* in :?)", re.MULTILINE)


def segment_files(directory: Path) -> list[str]:
    """But for the deleted topic's, whose empty index is more than Kafka's tool can bear."""
    partitions = [path for path in sorted(directory.iterdir()) if path.is_dir() and "-delete" not in path.name]
    return [
        str(file.relative_to(directory))
        for partition in partitions
        for file in sorted(partition.iterdir())
        if file.suffix in KNOWN
    ]


def assert_the_same_is_printed(
    arguments: list[str], directory: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    kafkas = java(MAIN_CLASSES["kafka-dump-log"], *arguments, cwd=directory)
    monkeypatch.chdir(directory)
    assert main(arguments) == 0
    ours = capsys.readouterr()
    assert ours.out.splitlines() == kafkas.stdout.splitlines()
    assert sorted(HEADING.split(ours.err)) == sorted(HEADING.split(kafkas.stderr))


@pytest.mark.parametrize("name", ["clean", "recovered"])
@pytest.mark.parametrize(
    "options",
    [
        [],
        ["--deep-iteration"],
        ["--print-data-log"],
        ["--print-data-log", "--skip-record-metadata"],
        ["--deep-iteration", "--skip-record-metadata"],
        ["--verify-index-only"],
        ["--index-sanity-check"],
        ["--max-bytes", "1000"],
        ["--value-decoder-class", "--key-decoder-class", "org.apache.kafka.tools.api.StringDecoder"],
    ],
    ids=" ".join,
)
def test_golden_directories(
    options: list[str],
    name: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    directory = GOLDEN / name
    files = segment_files(directory)
    assert len(files) > 100
    assert_the_same_is_printed([*options, "--files", ",".join(files)], directory, capsys, monkeypatch)


def test_a_segment_of_numbers(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """With LongDecoder, on a log whose values are eight bytes or more."""
    arguments = [
        "--value-decoder-class",
        "org.apache.kafka.tools.api.LongDecoder",
        "--files",
        "gzip-0/" + "0" * 20 + ".log",
    ]
    log = GOLDEN / "clean"
    # The last record's value has three bytes, which both tools refuse; the six batches before it take 1,596 bytes.
    assert_the_same_is_printed([*arguments, "--max-bytes", "1596"], log, capsys, monkeypatch)


def test_a_segment_cut_short(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "0" * 20 + ".log"
    whole = (GOLDEN / "clean" / "lz4-0" / name).read_bytes()
    for cut in (1, 17, 18, 60, 61, 62):
        (tmp_path / name).write_bytes(whole[:-cut])
        assert_the_same_is_printed(["--print-data-log", "--files", name], tmp_path, capsys, monkeypatch)
    last = len(whole) - 40
    for left in (5, 16, 17, 18):
        (tmp_path / name).write_bytes(whole + whole[:left])
        assert_the_same_is_printed(["--files", name], tmp_path, capsys, monkeypatch)
    (tmp_path / name).write_bytes(whole[:last] + bytes([whole[last] ^ 1]) + whole[last + 1 :])
    assert_the_same_is_printed(["--files", name], tmp_path, capsys, monkeypatch)


def test_a_partition_that_our_log_wrote(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Kafka's tool reads it, and finds nothing wrong with its indexes."""
    config = LogConfig(segment_bytes=20_000, index_interval_bytes=1000)
    directories = LogDirs(OsDisk(), [str(tmp_path)], FixedClock(T0), config_of=lambda topic: config)
    directories.open_all()
    log = directories.create(TopicPartition("ours", 0), Uuid(b"ottla-interop-01"))
    for number, compression in enumerate([*Compression] * 20):
        rows = range(number * 10, number * 10 + 10)
        builder = BatchBuilder(compression=compression, producer_id=7, producer_epoch=0, base_sequence=number * 10)
        builder.extend(
            [T0 + row for row in rows],
            [b"key %d" % row for row in rows],
            [None if row % 7 == 0 else b"value %d" % row for row in rows],
            [(("row", b"%d" % row),) for row in rows],
        )
        log.append_as_leader(builder.build(), leader_epoch=0)
    directories.close()

    files = segment_files(tmp_path)
    assert {Path(file).suffix for file in files} == {".log", ".index", ".timeindex", ".snapshot"}
    assert_the_same_is_printed(["--print-data-log", "--files", ",".join(files)], tmp_path, capsys, monkeypatch)
    assert_the_same_is_printed(["--index-sanity-check", "--files", ",".join(files)], tmp_path, capsys, monkeypatch)
    assert main(["--check", "."]) == 0
