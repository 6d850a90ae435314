"""A back-up that is killed at any step, or loses its power there, goes on; and so does a restore."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ottla import Admin, NewTopic, Producer
from ottla.base.ids import TopicPartition
from ottla.base.ports import Disk
from ottla.cli.backup import restoring
from ottla.cli.backup.block_files import ZSTD
from ottla.cli.backup.runs import BackupDirectory
from ottla.cli.backup.saved_records import SavedBatch, SavedRecords
from ottla.cli.backup.saving import RAW, READ_COMMITTED, Saved, Saving, Wish
from ottla.cli.bars import ProgressBar
from ottla.cli.records.connecting import Cluster
from ottla.client.blocking.forwarding_producer import ForwardingProducer
from ottla.config.scopes import Scope
from ottla.records.reader import read_records
from ottla.testing import Broker
from ottla.testing.memory_disk import Crashed, MemoryDisk
from tests.unit.cli.backup_scenes import AUTHORIZED, Seen, fill_compacted, fill_plain, fill_transactions, run, seen

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

TOPICS = ("plain", "paid", "latest", "short")
PATH = "/saved"


@pytest.fixture(scope="module")
def source() -> Iterator[Broker]:
    """Transactions, compaction and deleted records."""
    with Broker(AUTHORIZED) as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        compacted = {"cleanup.policy": "compact", "segment.ms": "50", "min.cleanable.dirty.ratio": "0"}
        topics = [NewTopic("plain", 3, config={"retention.ms": "-1"}), NewTopic("paid", 2), NewTopic("short", 1)]
        admin.create_topics([*topics, NewTopic("latest", 1, config=compacted)]).raise_first()
        fill_plain(broker.bootstrap, count=300)
        fill_transactions(broker.bootstrap)
        fill_compacted(broker.bootstrap)
        with Producer(bootstrap_servers=broker.bootstrap, linger_ms=20) as producer:
            for number in range(40):
                producer.send("short", b"%d" % number)
        admin.delete_records({TopicPartition("short", 0): 13}).raise_first()
        admin.alter_consumer_group_offsets("shop", {TopicPartition("plain", 0): 17}).raise_first()
        yield broker


def saving(source: Broker, disk: Disk, isolation: str, **more: object) -> Saved:
    cluster = Cluster(source.bootstrap, None, {}, (Scope.CONSUMER, Scope.ADMIN))
    wish = Wish(lambda _: True, isolation, ZSTD, writers=0, fetch_bytes=1500, file_bytes=3000, **more)  # type: ignore[arg-type]
    return Saving(cluster, disk, PATH, wish, ProgressBar("saved", is_quiet=True)).run()


def held(disk: Disk, run_number: int) -> dict[str, Seen]:
    """What a restore of that run would write."""
    directory = BackupDirectory.open(disk, PATH)
    found: dict[str, Seen] = {}
    for key, chain in directory.chains(run_number).items():
        records = []
        for piece in SavedRecords(directory, chain).pieces():
            assert isinstance(piece, SavedBatch), piece
            records += [(one.timestamp, one.key, one.value, one.headers) for one in read_records(piece.encoded)]
        found.setdefault(key.topic, {})[key.partition] = records
    return found


def as_lists(found: dict[str, Seen]) -> dict[str, Seen]:
    """Headers are a tuple here and a list there."""
    return {
        topic: {one: [(*record[:3], tuple(record[3])) for record in records] for one, records in of.items()}
        for topic, of in found.items()
    }


@pytest.mark.parametrize("isolation", [READ_COMMITTED, RAW])
def test_a_backup_that_is_killed_at_any_step_goes_on(source: Broker, isolation: str) -> None:
    """A power cut is worse than a kill: of what was not synced, chance decides."""
    expected = as_lists({topic: seen(source.bootstrap, topic) for topic in TOPICS})
    whole = MemoryDisk()
    saving(source, whole, isolation)
    assert as_lists(held(whole, 1)) == expected
    steps = whole.calls
    assert steps > 90
    for step in range(1, steps):
        disk = MemoryDisk(Random(step))
        disk.crash_at(step)
        with pytest.raises(Crashed):
            saving(source, disk, isolation)
        disk = disk.survivor(Random(step))
        saving(source, disk, isolation)
        assert as_lists(held(disk, 1)) == expected, f"killed at step {step} of {steps}"
        assert disk.open_files == 0


def test_a_further_run_that_is_killed_leaves_the_runs_before_it_whole(source: Broker) -> None:
    with Broker() as growing:
        growing.create_topic("plain", partitions=3)
        fill_plain(growing.bootstrap, count=60)
        first = MemoryDisk()
        saving(growing, first, READ_COMMITTED)
        before = as_lists({"plain": seen(growing.bootstrap, "plain")})
        calls = first.calls
        fill_plain(growing.bootstrap, first=500, count=60)
        after = as_lists({"plain": seen(growing.bootstrap, "plain")})
        step = 0
        while True:
            step += 1
            disk = first.survivor(Random(0))
            disk.crash_at(disk.calls + step)
            try:
                saving(growing, disk, READ_COMMITTED)
                break
            except Crashed:
                disk = disk.survivor(Random(step))
            assert as_lists(held(disk, 1)) == before, step
            saving(growing, disk, READ_COMMITTED)
            assert as_lists(held(disk, 1)) == before, step
            assert as_lists(held(disk, 2)) == after, step
        assert step > 20, calls


class Killed(BaseException):
    pass


def test_a_restore_that_is_killed_at_any_step_goes_on(
    source: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A step is a batch that is sent, a file that is written, or a change of the cluster."""
    monkeypatch.setattr(restoring, "_STABLE_S", 0.01)
    directory = str(tmp_path / "saved")
    run("backup", directory, "-b", source.bootstrap, "--set", "max.partition.fetch.bytes=6000", "-q")
    expected = {topic: seen(source.bootstrap, topic) for topic in TOPICS}
    steps = 0
    kill_at = 0

    def counted(do: object, *, is_after: bool) -> object:
        def one(*args: object, **keywords: object) -> object:
            nonlocal steps
            steps += 1
            if steps == kill_at and not is_after:
                raise Killed
            done = do(*args, **keywords)  # type: ignore[operator]
            if steps == kill_at:
                raise Killed
            return done

        return one

    with Broker() as destination:
        for is_after in (False, True):
            with monkeypatch.context() as patched:
                for owner, name in (
                    (ForwardingProducer, "forward"),
                    (BackupDirectory, "write_json"),
                    (Admin, "create_topics"),
                    (Admin, "incremental_alter_configs"),
                    (Admin, "alter_consumer_group_offsets"),
                ):
                    patched.setattr(owner, name, counted(getattr(owner, name), is_after=is_after))
                kill_at = 0 if is_after else -1
                while True:
                    kill_at += 2  # at the odd ones before they are done, at the others after
                    steps = 0
                    with Admin(bootstrap_servers=destination.bootstrap) as admin:
                        admin.delete_topics([one.name for one in admin.list_topics()]).raise_first()
                    for path in Path(directory, "restores").glob("*"):
                        path.unlink()
                    try:
                        run("restore", directory, "-b", destination.bootstrap, "-q")
                        break
                    except Killed:
                        run("restore", directory, "-b", destination.bootstrap, "-q")
                    for topic in TOPICS:
                        assert seen(destination.bootstrap, topic) == expected[topic], (topic, kill_at)
                assert steps > 60


def test_processes_that_are_killed(tmp_path: Path) -> None:
    """The commands themselves, with SIGKILL, again and again until they get through."""
    directory = str(tmp_path / "saved")
    random = Random(7)
    with Broker() as source, Broker() as destination:
        source.create_topic("plain", partitions=3)
        with Producer(bootstrap_servers=source.bootstrap, linger_ms=5) as producer:
            for number in range(60_000):
                producer.send("plain", b"%d" % number * 60, b"%d" % number, partition=number % 3)
        for command, bootstrap in (("backup", source.bootstrap), ("restore", destination.bootstrap)):
            kills = 0
            while True:
                process = subprocess.Popen(
                    [sys.executable, "-m", "ottla.cli.main", command, directory, "-b", bootstrap, "-q"],
                    stderr=subprocess.PIPE,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
                )
                try:
                    _, told = process.communicate(timeout=0.15 + random.random() * 0.1 + kills * 0.15)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
                    process.communicate()
                    kills += 1
                    time.sleep(0.05)
                    continue
                assert process.returncode == 0, told
                break
            assert kills, command
        assert seen(destination.bootstrap, "plain") == seen(source.bootstrap, "plain")
