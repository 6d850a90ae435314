"""A real process on a real disk, killed with SIGKILL at moments of chance."""

import os
import subprocess
import sys
import time
from pathlib import Path
from random import Random

import pytest

from ottla.log.directory import LogDirectory
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.records.batch import BatchHeader
from ottla.testing.clock import FixedClock
from tests.unit.log.partition_logs import NOW_MS, PARTITION, append, batch, contiguous, headers_in

CONFIG = LogConfig(segment_bytes=20_000, index_interval_bytes=500)
ROUNDS = 6

# Appends what some producers would send, and prints the log end offset after each flush. Never stops by itself.
WRITER = """
import sys
from random import Random
from ottla.base.ids import Uuid
from tests.unit.log.test_log_kill import CONFIG, PARTITION, opened
from ottla.testing.history import BatchSource

directory = opened(sys.argv[1])
log = directory.logs.get(PARTITION) or directory.create(PARTITION, Uuid(bytes(16)))
source = BatchSource(Random(int(sys.argv[2])))
for _ in range(int(sys.argv[2])):
    source.forget_producers()
while True:
    for _ in range(source.random.randint(1, 5)):
        appended = log.append_as_leader(source.next_batch(), int(sys.argv[2]))
        assert not appended.error and not appended.repeated
    log.advance_high_watermark(log.log_end_offset)
    log.flush()
    if source.random.random() < 0.2:
        directory.checkpoint()
    print(log.log_end_offset, flush=True)
"""


def opened(path: str) -> LogDirectory:
    directory = LogDirectory(OsDisk(), path, FixedClock(NOW_MS), config_of=lambda topic: CONFIG)
    directory.open_all()
    return directory


def flushed_before_the_kill(path: Path, round_: int, after_s: float) -> int:
    """Lets a writer write for a while, kills it, and returns the last offset that it said was flushed."""
    writer = subprocess.Popen(
        [sys.executable, "-c", WRITER, str(path), str(round_)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert writer.stdout is not None
    try:
        flushed = int(writer.stdout.readline())
        time.sleep(after_s)
    finally:
        writer.kill()
        rest, _ = writer.communicate()
    # The kill may have come within a line.
    return int((rest.splitlines() or [b""])[-1] or flushed) if rest.endswith(b"\n") else flushed


@pytest.mark.slow
def test_every_flushed_record_survives_every_kill(tmp_path: Path) -> None:
    chance = Random(4711)
    written: list[BatchHeader] = []
    for round_ in range(ROUNDS):
        flushed = flushed_before_the_kill(tmp_path, round_, after_s=chance.uniform(0.02, 0.25))
        directory = opened(str(tmp_path))
        assert not directory.was_clean
        log = directory.logs[PARTITION]
        found = list(headers_in(log))
        assert log.log_end_offset >= flushed > 0
        assert contiguous(found)
        assert found[: len(written)] == written, "what was there after the last kill is there after this one"
        assert append(log, batch(), leader_epoch=round_) == found[-1].next_offset
        written = list(headers_in(log))
        if round_ % 2:
            directory.abandon()
        else:
            directory.close()
            opened(str(tmp_path)).abandon()
    assert len(written) > ROUNDS
