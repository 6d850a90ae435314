"""`ottla verify` finds each kind of damage, names it, and finds none where there is none; it changes nothing."""

import json
import os
import shutil
import struct
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla import Producer, TopicPartition
from ottla.cli.verify.batch_order import BatchOrder
from ottla.cli.verify.cluster_check import ClusterPartition, Replicas
from ottla.cli.verify.directory_check import DataDirectory
from ottla.cli.verify.problems import DAMAGE, NOTE, Problem
from ottla.cli.verify.verify import main
from ottla.errors import RequestTimedOut
from ottla.records.batch import assign, complete_batches, read_header
from ottla.records.builder import BatchBuilder, build_batch
from ottla.testing import Broker
from ottla.wire.messages import FetchResponse

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

GOLDEN = Path(__file__).parents[2] / "golden" / "kafka-4.3.1"
FIRST = "00000000000000000000"
HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory that a node of ours has stopped on: segments, transactions, an abort, a compacted topic."""
    directory = tmp_path_factory.mktemp("made")
    settings = {"transaction.state.log.num.partitions": 1, "offsets.topic.num.partitions": 1}
    with Broker(settings, directory=directory, faults=False) as broker:
        broker.create_topic("orders", settings={"segment.ms": 10_000, "index.interval.bytes": 100})
        start_ms = int(time.time() * 1000)
        with Producer({**broker.client_settings, "transactional.id": "t"}) as producer:
            for number in range(12):
                producer.begin()
                producer.send("orders", b"v" * 200, partition=0, timestamp_ms=start_ms + number * 4000)
                producer.flush()
                producer.send("orders", b"w" * 200, partition=0, timestamp_ms=start_ms + number * 4000 + 1)
                if number % 3:
                    producer.commit()
                else:
                    producer.abort()
        broker.stop()
    return directory / "data"


@pytest.fixture
def data(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(made, tmp_path / "data"))


@pytest.fixture
def partition(data: Path) -> Path:
    return data / "orders-0"


def found(path: Path, level: str = DAMAGE, *, deep: bool = False) -> list[Problem]:
    problems: list[Problem] = []
    DataDirectory(str(path), deep=deep).check(problems.append, lambda _partition, _bytes: None)
    return [problem for problem in problems if problem.level == level]


def only(problems: list[Problem]) -> Problem:
    assert len(problems) == 1, problems
    return problems[0]


def logs(partition: Path) -> list[Path]:
    return sorted(partition.glob("*.log"))


def headers(log: Path) -> list[tuple[int, Any]]:
    return list(complete_batches(log.read_bytes()))


def overwrite(path: Path, position: int, content: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


def contents(directory: Path) -> dict[str, tuple[bytes, int]]:
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path): (path.read_bytes(), path.stat().st_mtime_ns) for path in files}


# ---- nothing is wrong ----------------------------------------------------------------------------------------------


def test_a_directory_that_is_as_it_should_be(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert len(logs(data / "orders-0")) > 3
    before = contents(data)
    assert main([str(data), "--deep"]) == 0
    assert "nothing is damaged" in capsys.readouterr().out
    assert contents(data) == before, "nothing is changed, added or removed"


@pytest.mark.parametrize("name", ["clean", "killed", "recovered", "legacy"])
def test_directories_of_apache_kafka(name: str) -> None:
    assert found(GOLDEN / name, deep=True) == []


def test_one_partition(partition: Path) -> None:
    assert found(partition) == []
    assert main([str(partition), "--json"]) == 0


# ---- each kind of damage -------------------------------------------------------------------------------------------


def test_a_checksum_that_does_not_match(partition: Path) -> None:
    log = logs(partition)[1]
    position, header = headers(log)[1]
    overwrite(log, position + header.size - 1, b"!")
    problem = only(found(partition.parent))
    assert problem.partition == "orders-0"
    assert (problem.file, problem.position, problem.offset) == (str(log), position, header.base_offset)
    assert problem.what == "the checksum does not match"
    assert problem.advice


def test_bytes_that_are_no_batch(partition: Path) -> None:
    log = logs(partition)[1]
    position, _ = headers(log)[1]
    overwrite(log, position + 16, b"\x63")
    problem = only([problem for problem in found(partition.parent) if problem.file.endswith(".log")])
    assert problem.position == position
    assert "cannot be read" in problem.what


def test_a_torn_end_is_damage_after_a_clean_stop_and_a_note_after_a_crash(partition: Path) -> None:
    log = logs(partition)[-1]
    with log.open("ab") as file:
        file.write(b"\0" * 20)
    assert "20 bytes" in only(found(partition.parent)).what
    (partition.parent / ".kafka_cleanshutdown").unlink()
    assert found(partition.parent) == []
    assert "not a whole batch" in only(found(partition.parent, NOTE)).what


def test_offsets_that_are_missing(partition: Path) -> None:
    gone = logs(partition)[2]
    first = headers(gone)[0][1].base_offset
    for path in partition.glob(f"{gone.stem}.*"):
        path.unlink()
    assert any(f"offsets {first} to " in problem.what for problem in found(partition.parent))


def test_the_last_segment_is_missing(partition: Path) -> None:
    gone = logs(partition)[-1]
    for path in partition.glob(f"{gone.stem}.*"):
        path.unlink()
    told = [problem.what for problem in found(partition.parent)]
    assert any("the high watermark is offset" in what for what in told)


def test_offsets_that_overlap(partition: Path) -> None:
    log = logs(partition)[1]
    (_, before), (position, _) = headers(log)[:2]
    overwrite(log, position, struct.pack(">q", before.base_offset))
    assert any("the batch before it ends at" in problem.what for problem in found(partition.parent))


def test_a_batch_before_its_segment(partition: Path) -> None:
    log = logs(partition)[1]
    overwrite(log, 0, struct.pack(">q", 0))
    assert any("and its segment at" in problem.what for problem in found(partition.parent))


def test_a_leader_epoch_that_falls(partition: Path) -> None:
    log = logs(partition)[1]
    overwrite(log, 12, struct.pack(">i", 7))
    told = [problem.what for problem in found(partition.parent)]
    assert any("by leader-epoch-checkpoint it is 0" in what for what in told)
    assert any("comes after epoch 7" in what for what in told)


def test_leader_epochs_that_are_not_in_order(partition: Path) -> None:
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n0 5\n")
    assert "comes after epoch 0" in only(found(partition.parent)).what


def test_a_leader_epoch_behind_the_end(partition: Path) -> None:
    (partition / "leader-epoch-checkpoint").write_text("0\n2\n0 0\n3 5000\n")
    assert "begins at offset 5000" in only(found(partition.parent)).what


@pytest.mark.parametrize(
    "name", ["leader-epoch-checkpoint", "partition.metadata", "../recovery-point-offset-checkpoint"]
)
def test_a_small_file_that_cannot_be_read(partition: Path, name: str) -> None:
    (partition / name).write_text("nonsense\n")
    problem = only(found(partition.parent))
    assert problem.file == os.path.normpath(partition / name)


def test_a_producer_snapshot_that_cannot_be_read(partition: Path) -> None:
    snapshot = sorted(partition.glob("*.snapshot"))[-1]
    overwrite(snapshot, 12, b"\xff")
    problem = only(found(partition.parent))
    assert (problem.file, problem.what) == (str(snapshot), "the checksum does not match the content")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("recovery-point-offset-checkpoint", "the recovery point is offset 9999"),
        ("replication-offset-checkpoint", "the high watermark is offset 9999"),
        ("log-start-offset-checkpoint", "the log's start is offset 9999"),
        ("cleaner-offset-checkpoint", "what the cleaner has not seen is offset 9999"),
    ],
)
def test_a_checkpoint_beyond_the_end_of_the_log(partition: Path, name: str, told: str) -> None:
    (partition.parent / name).write_text("0\n1\norders 0 9999\n")
    assert told in only(found(partition.parent)).what


def index_with_entries(partition: Path, suffix: str) -> Path:
    return next(path for path in sorted(partition.glob(f"*{suffix}")) if path.stat().st_size)


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (struct.pack(">ii", 1, 5), "there is no batch at position 5"),
        (struct.pack(">ii", 0x7FFFFFF0, 0x7FFFFFF0), "batches end at"),
        (struct.pack(">ii", 1, -5), "there is no batch at position -5"),
    ],
)
def test_an_offset_index_that_does_not_agree(partition: Path, entry: bytes, told: str) -> None:
    index = index_with_entries(partition, ".index")
    overwrite(index, 0, entry)
    problem = found(partition.parent)[0]
    assert problem.file == str(index)
    assert told in problem.what


def test_an_offset_index_whose_entry_is_before_its_batch(partition: Path) -> None:
    index = index_with_entries(partition, ".index")
    log = index.with_suffix(".log")
    position, _ = headers(log)[-1]
    overwrite(index, index.stat().st_size - 8, struct.pack(">ii", 1, position))
    assert any("begins after it" in problem.what for problem in found(partition.parent))


@pytest.mark.parametrize(
    ("entry", "told"),
    [
        (struct.pack(">qi", 1, 0), "is later than 1"),
        (struct.pack(">qi", 1 << 50, 0x7FFFFFF0), "the segment ends at"),
    ],
)
def test_a_time_index_that_does_not_agree(partition: Path, entry: bytes, told: str) -> None:
    index = index_with_entries(partition, ".timeindex")
    index.write_bytes(entry)
    problem = found(partition.parent)[0]
    assert problem.file == str(index)
    assert told in problem.what


def test_a_time_index_that_tells_of_records_that_are_not_there(partition: Path) -> None:
    """Its segment would be kept for as long, and lookups by time end in it."""
    index = index_with_entries(partition, ".timeindex")
    overwrite(index, index.stat().st_size - 12, struct.pack(">q", 1 << 50))
    problem = only(found(partition.parent))
    assert (problem.file, "and the latest is of" in problem.what) == (str(index), True)


def test_a_time_index_without_the_latest_records_of_a_closed_segment(partition: Path) -> None:
    """Retention would delete the segment too early."""
    index = index_with_entries(partition, ".timeindex")
    index.write_bytes(index.read_bytes()[:-12])
    problem = only(found(partition.parent))
    assert (problem.file, "the segment's latest record is of" in problem.what) == (str(index), True)


def test_times_of_an_index_that_fall(partition: Path) -> None:
    index = index_with_entries(partition, ".timeindex")
    content = index.read_bytes()[:12]
    index.write_bytes(content + content)
    assert any("its time" in problem.what for problem in found(partition.parent))


def test_an_index_of_a_size_that_none_has(partition: Path) -> None:
    index = index_with_entries(partition, ".index")
    with index.open("ab") as file:
        file.write(b"\1")
    assert "not a multiple of 8" in only(found(partition.parent)).what


def test_a_transaction_index_without_an_abort_that_is_in_the_log(partition: Path) -> None:
    index = next(iter(sorted(partition.glob("*.txnindex"))))
    index.write_bytes(b"")
    problem = found(partition.parent)[0]
    assert problem.file == str(index)
    assert "would be shown what was aborted" in problem.what


@pytest.mark.parametrize(
    ("position", "told"), [(2, "the log has no such marker"), (10, "in the log the transaction begins at")]
)
def test_a_transaction_index_that_does_not_agree(partition: Path, position: int, told: str) -> None:
    index = next(iter(sorted(partition.glob("*.txnindex"))))
    overwrite(index, position, struct.pack(">q", 3))
    assert any(told in problem.what for problem in found(partition.parent))


def test_a_transaction_index_that_ends_a_search_too_early(partition: Path) -> None:
    index = next(iter(sorted(partition.glob("*.txnindex"))))
    overwrite(index, 26, struct.pack(">q", 1 << 50))
    problem = only(found(partition.parent))
    assert (problem.file, "readers would miss what was aborted" in problem.what) == (str(index), True)


def test_the_log_of_the_first_segment_is_missing(partition: Path) -> None:
    logs(partition)[0].unlink()
    problems = found(partition.parent)
    assert {problem.what for problem in problems} == {"its segment has no log: records may be missing"}
    (partition.parent / ".kafka_cleanshutdown").unlink()
    assert found(partition.parent) == [], "a node that crashed may have been deleting it"


def test_a_transaction_index_that_cannot_be_read(partition: Path) -> None:
    index = next(iter(sorted(partition.glob("*.txnindex"))))
    with index.open("ab") as file:
        file.write(b"\1")
    assert any("whole number of 34-byte entries" in problem.what for problem in found(partition.parent))


def test_records_that_cannot_be_read_are_found_by_a_deep_look(partition: Path) -> None:
    broken = bytearray(build_batch(1, None, [b"a", b"b"]))
    struct.pack_into(">i", broken, 57, 3)  # three records, it says
    from ottla.base.checksum import crc32c

    struct.pack_into(">I", broken, 17, crc32c(bytes(broken[21:])))
    log = logs(partition)[-1]
    end = headers(log)[-1][1].next_offset
    assign(broken, 0, end, 0)
    with log.open("ab") as file:
        file.write(broken)
    assert found(partition.parent) == []
    assert "record 3 cannot be read" in only(found(partition.parent, deep=True)).what


def test_a_high_watermark_beyond_the_end_is_a_note_after_a_crash(partition: Path) -> None:
    (partition.parent / ".kafka_cleanshutdown").unlink()
    (partition.parent / "replication-offset-checkpoint").write_text("0\n1\norders 0 9999\n")
    assert found(partition.parent) == []
    assert "the high watermark is offset 9999" in only(found(partition.parent, NOTE)).what


@pytest.mark.parametrize(("position", "told"), [(70, "the checksum does not match"), (16, "there is no batch")])
def test_a_snapshot_of_the_metadata_that_is_damaged(data: Path, position: int, told: str) -> None:
    metadata = data / "__cluster_metadata-0"
    snapshot = metadata / "00000000000000000005-0000000001.checkpoint"
    snapshot.write_bytes(bytes(build_batch(1, None, [b"a record of the metadata"])))
    assert found(data) == []
    overwrite(snapshot, position, b"\x63")
    problem = only(found(data))
    assert (problem.partition, problem.file) == ("__cluster_metadata-0", str(snapshot))
    assert told in problem.what


# ---- the order of producers ----------------------------------------------------------------------------------------


def batch(offset: int, sequence: int, epoch: int = 0, timestamp: int = 1, count: int = 2) -> bytes:
    builder = BatchBuilder(
        base_offset=offset, leader_epoch=0, producer_id=7, producer_epoch=epoch, base_sequence=sequence
    )
    for _ in range(count):
        builder.append(timestamp, None, b"v")
    return bytes(builder.build())


@pytest.mark.parametrize(
    ("batches", "told"),
    [
        ([batch(0, 0), batch(2, 2)], ""),
        ([batch(0, 8), batch(2, 10)], ""),
        ([batch(0, 0x7FFFFFFE), batch(2, 0)], ""),
        ([batch(0, 0), batch(2, 0, epoch=1)], ""),
        ([batch(0, 0), batch(2, 7, timestamp=1 + 2 * HOUR_MS)], ""),
        ([batch(0, 0), batch(2, 3)], "goes on with sequence 3 of epoch 0, and not 2"),
        ([batch(0, 0), batch(2, 0)], "goes on with sequence 0 of epoch 0, and not 2"),
        ([batch(0, 0), batch(2, 5, epoch=1)], "goes on with sequence 5 of epoch 1, and not 0"),
        ([batch(0, 0, epoch=3), batch(2, 0, epoch=2)], "writes with epoch 2 after epoch 3"),
        ([batch(0, 0), batch(4, 4)], "offsets 2 to 3 before it are missing"),
    ],
)
def test_the_order_of_a_producer(batches: list[bytes], told: str) -> None:
    order = BatchOrder()
    wrong = [what for one in batches for what in order.take(read_header(one), memoryview(one))]
    assert bool(wrong) == bool(told), wrong
    assert told in "".join(wrong)


def test_a_log_that_was_cleaned_may_have_holes() -> None:
    order = BatchOrder(holes_before=10)
    batches = [batch(0, 0), batch(4, 4), batch(20, 20)]
    wrong = [order.take(read_header(one), memoryview(one)) for one in batches]
    assert wrong[1] == []
    assert len(wrong[2]) == 0, "what is missing begins before offset 10"


# ---- the command ---------------------------------------------------------------------------------------------------


def test_json_names_everything(partition: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = logs(partition)[0]
    overwrite(log, log.stat().st_size - 1, b"!")
    assert main([str(partition.parent), "--json"]) == 1
    shown = json.loads(capsys.readouterr().out)
    assert shown["counts"] == {"damage": 1, "note": 0}
    assert shown["complete"] is True
    (problem,) = shown["problems"]
    assert (problem["partition"], problem["file"]) == ("orders-0", str(log))
    assert set(problem) == {"level", "partition", "file", "position", "offset", "what", "advice"}


def test_only_some_topics(partition: Path) -> None:
    log = logs(partition)[0]
    overwrite(log, log.stat().st_size - 1, b"!")
    assert main([str(partition.parent), "--topic", "__.*"]) == 0
    assert main([str(partition.parent), "--topic", "ord.*"]) == 1


@pytest.mark.parametrize(
    "words", [["/no/such/directory"], ["/usr/lib"], ["--bootstrap-server", "127.0.0.1:1", "--command-config", "/no"]]
)
def test_what_cannot_be_looked_at_is_exit_code_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words) == 2
    assert capsys.readouterr().err.startswith("ottla verify: ")


@pytest.mark.parametrize("words", [[], ["a", "-b", "localhost:9092"], [".", "--topic", "("]])
def test_wrong_command_lines(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


def test_an_interrupt_tells_what_was_found_so_far(
    data: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from ottla.cli.verify import directory_check

    looked: list[str] = []

    def interrupted(name: str, *_: object) -> None:
        looked.append(name)
        if len(looked) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(directory_check, "check_partition", interrupted)
    assert main([str(data)]) == 130
    assert "stopped; so far: 2 partitions" in capsys.readouterr().out


def test_a_large_log_is_read_in_pieces(data: Path) -> None:
    directory = data / "large-0"
    directory.mkdir()
    value = os.urandom(1 << 20)
    with (directory / f"{FIRST}.log").open("wb") as file:
        for number in range(64):
            one = build_batch(number, None, [value])
            assign(one, 0, number, 0)
            file.write(one)
    tracemalloc.start()
    assert found(data) == []
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 8 << 20


def test_help_says_what_the_exit_codes_are(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "0 nothing is damaged, 1 something is, 2 it could" in " ".join(capsys.readouterr().out.split())


# ---- beside a running node -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, Path]]:
    directory = tmp_path_factory.mktemp("running")
    with Broker({"offsets.topic.num.partitions": 1}, directory=directory, faults=False) as broker:
        broker.create_topic("live", partitions=2, settings={"index.interval.bytes": 200})
        yield broker, directory / "data"


def writing(broker: Broker, over: threading.Event) -> Callable[[], None]:
    def write() -> None:
        with Producer({**broker.client_settings, "linger.ms": 0}) as producer:
            number = 0
            while not over.is_set():
                producer.send("live", os.urandom(500), partition=number % 2)
                number += 1

    return write


def test_what_a_running_node_appends_meanwhile_is_no_damage(running: tuple[Broker, Path]) -> None:
    broker, data = running
    over = threading.Event()
    writer = threading.Thread(target=writing(broker, over))
    writer.start()
    try:
        names = {path.name for path in data.iterdir()}
        assert DataDirectory(str(data)).given.is_live
        for _ in range(5):
            assert found(data) == []
        assert {path.name for path in data.iterdir()} == names
    finally:
        over.set()
        writer.join()
    broker.create_topic("after")  # and the node goes on


def test_a_running_cluster(running: tuple[Broker, Path], capsys: pytest.CaptureFixture[str]) -> None:
    broker, _ = running
    assert main(["--bootstrap-server", broker.bootstrap]) == 0
    assert "nothing is damaged" in capsys.readouterr().out


def test_the_command_starts_fast() -> None:
    loaded = "import sys; from ottla.cli.verify.verify import main; main(['--help'])"
    listing = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", loaded], capture_output=True, text=True, check=True
    )
    assert "ottla.client" not in listing.stderr
    assert "ottla.records" not in listing.stderr, "what does the work is imported when there is work"


# ---- replicas ------------------------------------------------------------------------------------------------------


class Brokers:
    """Each has its own copy of one partition; what they are asked is answered from it."""

    def __init__(self, **logs: list[bytes]) -> None:
        self.logs = {int(name.removeprefix("b")): batches for name, batches in logs.items()}
        self.problems: list[Problem] = []

    def ask(self, node_id: int, request: Any) -> Any:
        if node_id not in self.logs:
            raise RequestTimedOut("nobody answers")
        offset = request.topics[0].partitions[0].fetch_offset
        batches = self.logs[node_id]
        rest = [one for one in batches if read_header(one).next_offset > offset]
        end = read_header(self.logs[1][-1]).next_offset
        data = FetchResponse.PartitionData(
            partition_index=0, high_watermark=end, log_start_offset=0, records=b"".join(rest[:2])
        )
        return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="t", partitions=[data])])

    def check(self, *, is_compacted: bool = False, replicas: tuple[int, ...] = (2, 1)) -> list[tuple[str, int, str]]:
        partition = ClusterPartition(TopicPartition("t", 0), 1, replicas, is_compacted)
        Replicas(self.ask, self.problems.append, lambda _partition, _bytes: None).check(partition)
        return [(problem.file, problem.offset, problem.what) for problem in self.problems]


BATCHES = [batch(0, 0), batch(2, 2), batch(4, 4), batch(6, 6)]
OTHER = batch(4, 4, timestamp=2)


def test_replicas_that_are_the_same() -> None:
    assert Brokers(b1=BATCHES, b2=BATCHES).check() == []
    assert Brokers(b1=BATCHES, b2=BATCHES).check(is_compacted=True) == []


@pytest.mark.parametrize("is_compacted", [False, True])
def test_a_replica_that_has_something_else(is_compacted: bool) -> None:
    ((file, offset, what),) = Brokers(b1=BATCHES, b2=[*BATCHES[:2], OTHER, BATCHES[3]]).check(is_compacted=is_compacted)
    assert (file, offset) == ("broker 2", 4)
    assert "is not the one of leader 1" in what


def test_a_replica_that_lacks_a_batch() -> None:
    told = Brokers(b1=BATCHES, b2=[*BATCHES[:2], BATCHES[3]]).check()
    assert ("broker 2", 4, "it has no batch at offset 4, and leader 1 has") in told


def test_a_compacted_replica_may_lack_what_it_has_cleaned() -> None:
    assert Brokers(b1=BATCHES, b2=[BATCHES[0], BATCHES[3]]).check(is_compacted=True) == []
    assert Brokers(b1=[BATCHES[0], BATCHES[3]], b2=BATCHES).check(is_compacted=True) == []


def test_a_replica_with_a_batch_whose_checksum_does_not_match() -> None:
    damaged = bytes([*BATCHES[1][:-1], BATCHES[1][-1] ^ 1])
    told = Brokers(b1=BATCHES, b2=[BATCHES[0], damaged, *BATCHES[2:]]).check()
    assert told == [("broker 2", 2, "the checksum does not match")]


def test_a_replica_that_ends_early() -> None:
    told = Brokers(b1=BATCHES, b2=BATCHES[:3]).check()
    assert ("broker 2", 6, "it ends at offset 6, and its leader was at 8") in told


def test_a_replica_that_does_not_answer() -> None:
    told = Brokers(b1=BATCHES).check()
    assert told[0][0] == "broker 2"
    assert "nobody answers" in told[0][2]
