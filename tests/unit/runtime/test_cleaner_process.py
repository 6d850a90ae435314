"""Cleaning in a process of its own, on a real disk."""

import asyncio
import errno
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress

import pytest

from ottla.base.ids import TopicPartition
from ottla.log import file_names
from ottla.log.cleaning.job import CleanedSegment, CleaningDone, CleaningFailed
from ottla.log.cleaning.planning import CleanerLimits, cleanable, plan_cleaning
from ottla.log.disk import OsDisk
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.records.builder import build_batch
from ottla.runtime.cleaner_process import CleanerProcess
from ottla.testing.clock import FixedClock

NOW_MS = 1_700_000_000_000
TIMEOUT_S = 60


@pytest.fixture
def log(tmp_path):
    config = LogConfig(cleanup_policy=("compact",))
    log = PartitionLog.open(OsDisk(), str(tmp_path / "orders-0"), TopicPartition("orders", 0), config, FixedClock())
    for number in range(20):
        keys = [b"%d" % key for key in range(10)]
        log.append_as_leader(build_batch(NOW_MS, keys, [b"%d" % number] * 10), 0)
    log.advance_high_watermark(log.log_end_offset)
    log.roll()
    log.flush()
    yield log
    log.release()


@pytest.fixture
def job(log):
    return plan_cleaning(log, cleanable(log, None, NOW_MS), CleanerLimits(map_bytes=4800), NOW_MS, bytes(16))


def steps_of(*jobs, meanwhile=None):
    """Runs jobs one after the other in one process; returns what was told of each."""

    async def work():
        process = CleanerProcess(asyncio.get_running_loop())
        told = []
        try:
            for job in jobs:
                steps, ended = [], asyncio.Event()

                def on_step(step, steps=steps, ended=ended):
                    steps.append(step)
                    if not isinstance(step, CleanedSegment):
                        ended.set()

                process.run(job, on_step)
                if meanwhile:
                    meanwhile(process)
                await asyncio.wait_for(ended.wait(), TIMEOUT_S)
                told.append(steps)
        finally:
            process.stop()
        assert process.process_id is None
        return told

    return asyncio.run(work())


def test_finished_segments_are_on_the_disk_when_they_are_told_of(log, job):
    [[cleaned, done]] = steps_of(job)
    assert cleaned == CleanedSegment((0,))
    assert isinstance(done, CleaningDone)
    assert done.clean_offset == 200
    assert done.stats.records_read == 200
    assert done.stats.records_written == 10
    replacement = log.start_replacement(cleaned.base_offsets)
    replacement.run()
    assert log.finish_replacement(replacement)
    assert log.size == done.stats.bytes_written


def test_a_process_does_one_job_after_the_other(job):
    assert [[type(step) for step in told] for told in steps_of(job, job)] == [[CleanedSegment, CleaningDone]] * 2


def test_what_is_wrong_with_the_disk_is_told(job):
    [[failed]] = steps_of(job._replace(directory=job.directory + "-gone"))
    assert isinstance(failed, CleaningFailed)
    assert failed.errno == errno.ENOENT


def test_what_is_wrong_with_a_log_is_told(log, job):
    log.segments[0].file.write_at(70, b"\xff")
    [[failed], [again]] = steps_of(job, job)
    assert "checksum" in failed.reason
    assert (failed.errno, failed.is_crash) == (0, False)
    assert again == failed, "the process goes on"


def test_a_process_that_is_killed_fails_its_job(job):
    def kill(process):
        os.kill(process.process_id, signal.SIGKILL)

    [[failed]] = steps_of(job, meanwhile=kill)
    assert failed.is_crash


def test_a_slow_cleaning_can_be_stopped(log, job):
    """It would take an hour."""

    async def work():
        process = CleanerProcess(asyncio.get_running_loop())
        process.run(job._replace(bytes_per_s=1.0), lambda step: told.append(step))
        while not os.listdir(job.directory):
            await asyncio.sleep(0.01)
        process.stop()

    told = []
    asyncio.run(work())
    assert told == []
    assert not [name for name in os.listdir(job.directory) if name.endswith(file_names.SWAP)]


@pytest.mark.slow
def test_a_job_that_is_larger_than_a_pipe_gets_through(job):
    many = {number: (number, 0) for number in range(20_000)}
    [[_, done]] = steps_of(job._replace(producers=many))
    assert isinstance(done, CleaningDone)


@pytest.mark.slow
@pytest.mark.parametrize("error", [errno.EMFILE, errno.EAGAIN, errno.ENOMEM])
def test_a_process_that_cannot_be_started_puts_the_job_off(error, job, monkeypatch):
    """The next job finds a process again."""
    real = subprocess.Popen

    def refuse(*_, **__):
        raise OSError(error, os.strerror(error))

    async def work():
        process = CleanerProcess(asyncio.get_running_loop())
        told = asyncio.Queue()
        monkeypatch.setattr(subprocess, "Popen", refuse)
        process.run(job, told.put_nowait)
        put_off = await asyncio.wait_for(told.get(), TIMEOUT_S)
        monkeypatch.setattr(subprocess, "Popen", real)
        process.run(job, told.put_nowait)
        steps = [put_off]
        while not isinstance(steps[-1], CleaningDone):
            steps.append(await asyncio.wait_for(told.get(), TIMEOUT_S))
        process.stop()
        return steps

    first, *others = asyncio.run(work())
    assert isinstance(first, CleaningFailed)
    assert first.is_put_off
    assert all(isinstance(step, CleanedSegment | CleaningDone) for step in others)


NODE = """
import asyncio, sys
from ottla.log.cleaning.job import CleaningJob
from ottla.runtime.cleaner_process import CleanerProcess

async def main():
    cleaner = CleanerProcess(asyncio.get_running_loop())
    cleaner.run(CleaningJob.of_json(sys.stdin.readline()), print)
    while cleaner._to_write:
        await asyncio.sleep(0.01)
    print(cleaner.process_id, flush=True)
    await asyncio.sleep(3600)

asyncio.run(main())
"""


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="waiting for the process of another needs Linux")
def test_a_cleaning_ends_with_a_node_that_is_killed(job):
    """However slow it is: at a byte a second it waits for hours at a time."""
    node = subprocess.Popen([sys.executable, "-c", NODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert node.stdin
    assert node.stdout
    node.stdin.write(job._replace(bytes_per_s=1.0).to_json() + "\n")
    node.stdin.flush()
    cleaner = os.pidfd_open(int(node.stdout.readline()))
    try:
        node.kill()
        node.wait()
        ended, _, _ = select.select([cleaner], [], [], TIMEOUT_S)
        assert ended, "the cleaner goes on"
    finally:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(cleaner, signal.SIGKILL)
        os.close(cleaner)
        node.stdin.close()
        node.stdout.close()
