"""The driver with real disk threads under it: the same order, whatever the disk's pace."""

import asyncio
from pathlib import Path

from ottla.log.disk import OsDisk
from ottla.machines.decision import Decision
from ottla.machines.metadata.controller.controller import Controller
from ottla.runtime.metadata.metadata_log import MetadataLog
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.store import MetadataStore, StoreConfig
from ottla.runtime.workers import ThreadWorkers
from ottla.testing.clock import FixedClock
from tests.unit.runtime.metadata.metadata_logs import BOOTSTRAP, ME, STATIC_VOTERS, make_controller, topic_records

TOPICS = [f"topic-{number:03}" for number in range(300)]


def open_log(directory: Path, workers: ThreadWorkers) -> MetadataLog[Controller]:
    clock = FixedClock()
    return MetadataLog(
        MetadataStore(OsDisk(), str(directory), clock, StoreConfig(segment_bytes=20_000, retention_bytes=60_000)),
        ME,
        STATIC_VOTERS,
        bootstrap=BOOTSTRAP,
        make_controller=make_controller,
        workers=workers,
        clock=clock,
        failed=lambda problem: raise_it(problem),
        snapshots=SnapshotConfig(max_bytes=5_000),
    )


def raise_it(problem: Exception) -> None:
    raise problem


async def create_all(directory: Path) -> list[str]:
    """Creates the topics, all at once; returns them in the order in which they were acknowledged."""
    loop = asyncio.get_running_loop()
    workers = ThreadWorkers(loop)
    log = open_log(directory, workers)
    await until(log.start)
    created: list[str] = []
    done = loop.create_future()

    def on_created(name: str) -> None:
        assert name in log.image.topics.by_name
        created.append(name)
        if len(created) == len(TOPICS):
            done.set_result(None)

    for name in TOPICS:
        log.submit(
            lambda _controller, _now_ms, name=name: Decision(name, topic_records(name)),
            on_created,
            lambda error: raise_it(AssertionError(error)),
        )
        if name.endswith("0"):
            await asyncio.sleep(0)  # lets flushes end between decisions
    await done
    await until(log.stop)
    workers.close()
    return created


async def topics_of(directory: Path) -> list[str]:
    workers = ThreadWorkers(asyncio.get_running_loop())
    log = open_log(directory, workers)
    await until(log.start)
    found = sorted(log.image.topics.by_name)
    await until(log.stop)
    workers.close()
    return found


async def until(begin: object) -> None:
    done = asyncio.get_running_loop().create_future()
    assert callable(begin)
    begin(lambda: done.set_result(None))
    await done


def test_replies_come_in_order_and_a_restart_finds_everything(tmp_path: Path) -> None:
    assert asyncio.run(create_all(tmp_path)) == TOPICS
    assert asyncio.run(topics_of(tmp_path)) == TOPICS
    assert len(list((tmp_path / "__cluster_metadata-0").glob("*.checkpoint"))) > 0
