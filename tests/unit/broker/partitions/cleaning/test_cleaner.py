"""The log cleaner: what is cleaned and when, and what happens when something is in its way."""

import errno

import pytest

from ottla.broker.partitions.background import Background
from ottla.log import file_names
from ottla.log.checkpoint import read_offsets
from ottla.log.cleaning.job import CleaningFailed
from ottla.records.builder import BatchBuilder, build_batch
from ottla.testing.step_cleaner import StepRunner
from tests.unit.broker.brokers import NOW_MS, TestNode
from tests.unit.broker.moving_nodes import move
from tests.unit.runtime.raising_once import Fault

BACKOFF_MS = 15_000
DAY_MS = 86_400_000


class Cleaned(TestNode):
    """A node with a cleaner, whose runners are `runners`."""

    def __init__(self, **settings):
        self.runners = []
        self.is_held = False
        super().__init__(**settings)
        self.broker.start_cleaner()
        self.cleaner = self.broker.cleaner

    def make_cleaner(self):
        runner = StepRunner(self.disk)
        runner.is_held = self.is_held
        self.runners.append(runner)
        return runner

    @property
    def jobs(self):
        return [job for runner in self.runners for job in runner.jobs]

    def write(self, *records, topic="orders", index=0, roll=True):
        builder = BatchBuilder()
        for key, value in records:
            builder.append(NOW_MS, key, value)
        assert not self.produce(builder.build(), topic, index).error_code
        if roll:
            self.partition(topic, index).log.roll()

    def wait(self, ms=BACKOFF_MS + 100):
        self.timers.advance(ms)

    def offsets(self, topic="orders", index=0):
        log = self.partition(topic, index).log
        return [segment.base_offset for segment in log.segments], log.size

    def files(self, suffix, topic="orders"):
        return [name for name in self.disk.list_dir(f"/data/{topic}-0") if name.endswith(suffix)]

    def cleaner_offsets(self):
        return {
            str(name): offset for name, offset in read_offsets(self.disk, f"/data/{file_names.CLEANER_OFFSETS}").items()
        }


@pytest.fixture
def node():
    return Cleaned()


def compacted(node, name="orders", **settings):
    node.create_topic(name, cleanup_policy="compact", **settings)


def test_a_dirty_log_is_cleaned_after_the_rest(node):
    compacted(node)
    node.write((b"a", b"1"))
    node.write((b"a", b"2"))
    node.wait(BACKOFF_MS - 1)
    assert node.offsets()[0] == [0, 1, 2]
    node.wait(101)
    assert node.offsets()[0] == [0, 2]
    assert node.cleaner_offsets() == {"orders-0": 2}


def test_topics_that_are_not_compacted_are_left_alone(node):
    node.create_topic("orders")
    node.write((b"a", b"1"))
    node.wait()
    assert node.jobs == []


def test_nothing_happens_when_the_cleaner_is_off():
    node = Cleaned(log_cleaner_enable="false")
    compacted(node)
    node.write((b"a", b"1"))
    node.wait()
    assert node.jobs == []


def test_what_is_cleaned_is_durable_and_promised_to_be_before(node):
    compacted(node)
    node.write((b"a", b"1"))
    node.is_held = True
    node.wait(BACKOFF_MS + 1000)
    [job] = node.jobs
    assert job.end_offset == 1
    assert read_offsets(node.disk, f"/data/{file_names.RECOVERY_POINTS}")["orders", 0] >= 1


def test_a_log_is_cleaned_again_when_enough_of_it_is_new(node):
    compacted(node)
    node.write(*((b"%d" % number, b"1") for number in range(4)))
    node.wait()
    node.write((b"0", b"2"))
    node.wait()
    assert node.cleaner_offsets() == {"orders-0": 4}, "less than half is new"
    node.write(*((b"%d" % number, b"3") for number in range(4)))
    node.wait()
    assert node.cleaner_offsets() == {"orders-0": 9}
    assert node.jobs[-1].first_dirty_offset == 4


def test_the_dirtiest_log_comes_first(node):
    compacted(node, "clean", min_cleanable_dirty_ratio="0.1")
    compacted(node, "dirty", min_cleanable_dirty_ratio="0.1")
    for topic in ("clean", "dirty"):
        node.write((b"a", b"1"), (b"b", b"1"), topic=topic)
    node.wait()
    node.write((b"a", b"2"), topic="clean")
    node.write(*((b"%d" % number, b"2") for number in range(9)), topic="dirty")
    node.wait()
    assert [job.directory for job in node.jobs[-2:]] == ["/data/dirty-0", "/data/clean-0"]


def test_as_many_are_cleaned_at_once_as_there_are_threads():
    node = Cleaned(log_cleaner_threads="2", log_cleaner_dedupe_buffer_size="4800")
    node.is_held = True
    for topic in ("one", "two", "three"):
        compacted(node, topic)
        node.write((b"a", b"1"), topic=topic)
    node.wait(BACKOFF_MS + 1000)
    assert len(node.jobs) == 2
    assert {job.map_slots for job in node.jobs} == {100}, "they share the memory"


def test_processes_end_when_nothing_is_due(node):
    compacted(node)
    node.write((b"a", b"1"))
    node.wait()
    assert [runner.stops for runner in node.runners] == [1]


def test_files_of_replaced_segments_go_after_the_delay(node):
    compacted(node, file_delete_delay_ms="60000")
    node.write((b"a", b"1"))
    node.write((b"a", b"2"))
    node.wait()
    assert len(node.files(".log.deleted")) == 2
    node.wait(60_000)
    assert node.files(".deleted") == []


def test_tombstones_go_after_their_time(node):
    compacted(node, delete_retention_ms=str(DAY_MS), min_cleanable_dirty_ratio="0")
    node.write((b"a", b"1"))
    node.write((b"a", None))
    node.wait()
    size_with_tombstone = node.partition().log.size
    node.clock.advance(DAY_MS)
    node.write((b"b", b"1"))
    node.wait()
    assert node.partition().log.size < size_with_tombstone + 70


# What may be in the way


def test_damage_makes_a_partition_uncleanable_and_others_go_on(node):
    compacted(node, "broken")
    compacted(node)
    for topic in ("broken", "orders"):
        node.write((b"a", b"1"), topic=topic)
        node.write((b"a", b"2"), topic=topic)
    log = node.partition("broken").log
    log.segments[0].file.write_at(65, b"\xff")
    node.wait()
    node.wait()
    assert [str(partition.name) for partition in node.cleaner.uncleanable] == ["broken-0"]
    assert node.cleaner.uncleanable_bytes(node.partition("broken")) == log.size
    assert node.cleaner_offsets() == {"orders-0": 2}
    assert node.files(file_names.CLEANED, "broken") == []
    assert len(node.jobs) == 2, "it is not tried again"


def test_a_deleted_partition_is_no_longer_uncleanable(node):
    compacted(node)
    node.write((b"a", b"1"))
    node.partition().log.segments[0].file.write_at(65, b"\xff")
    node.wait()
    assert node.cleaner.uncleanable
    node.delete_topic()
    assert node.cleaner.uncleanable == []


def test_a_process_that_crashes_is_tried_again_but_not_for_ever(node):
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    for attempt in range(1, 4):
        node.wait(BACKOFF_MS + 1000)
        assert len(node.jobs) == attempt
        assert not node.cleaner.uncleanable
        node.runners[-1].fail(CleaningFailed("it ended", is_crash=True))
    assert node.cleaner.uncleanable


def test_a_full_disk_is_tried_again_later(node):
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    node.wait(BACKOFF_MS + 1000)
    node.runners[-1].fail(CleaningFailed("no space left", errno.ENOSPC))
    assert not node.cleaner.uncleanable
    node.is_held = False
    for runner in node.runners:
        runner.is_held = False
    node.wait()
    assert node.cleaner_offsets() == {"orders-0": 1}


def test_a_failing_disk_takes_its_directory_offline(node):
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    node.wait(BACKOFF_MS + 1000)
    node.runners[-1].fail(CleaningFailed("input/output error", errno.EIO))
    assert node.broker.partitions.logs.online == {}
    node.wait()


def test_a_topic_that_is_deleted_meanwhile_is_forgotten(node):
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    node.wait(BACKOFF_MS + 1000)
    node.delete_topic()
    node.wait()
    assert node.runners[0].stops >= 1
    assert node.cleaner_offsets() == {}


def test_segments_that_retention_took_meanwhile_are_not_brought_back(node):
    node.is_held = True
    node.create_topic("orders", cleanup_policy="compact,delete", retention_ms=str(DAY_MS))
    node.write((b"a", b"1"))
    node.write((b"b", b"1"))
    node.wait(BACKOFF_MS + 1000)
    [runner] = node.runners
    node.clock.advance(2 * DAY_MS)
    Background(node.broker.partitions, node.broker.world).apply_retention()
    assert node.offsets()[0] == [2]
    runner.step()
    assert node.offsets()[0] == [2]
    assert node.files(file_names.CLEANED) == node.files(file_names.SWAP) == []


def test_a_swap_waits_for_the_disk_and_retention_may_come_in_between(node):
    node.is_held = True
    node.create_topic("orders", cleanup_policy="compact,delete", retention_ms=str(DAY_MS))
    node.write((b"a", b"1"))
    node.write((b"b", b"1"))
    node.wait(BACKOFF_MS + 1000)
    node.workers.hold()
    node.runners[0].step()
    assert node.files(file_names.SWAP)
    node.clock.advance(2 * DAY_MS)
    Background(node.broker.partitions, node.broker.world).apply_retention()
    node.workers.let_go()
    assert node.offsets()[0] == [2]
    assert node.files(file_names.SWAP) == []


def test_what_was_swapped_in_before_the_end_stays(node):
    node.is_held = True
    compacted(node, segment_bytes=str(1 << 20))
    for _ in range(3):
        node.write(*((b"%d" % number, bytes(200_000)) for number in range(3)))
    node.wait(BACKOFF_MS + 1000)
    runner = node.runners[0]
    before = node.partition().log.size
    runner.step()
    node.cleaner.stop()
    assert node.partition().log.size < before
    assert node.cleaner_offsets() == {}, "the next cleaning begins where this one did"


def test_nothing_is_left_running_after_a_stop(node):
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    node.wait(BACKOFF_MS + 1000)
    node.cleaner.stop()
    assert node.runners[0].stops == 1
    jobs = len(node.jobs)
    node.wait()
    assert len(node.jobs) == jobs


def test_a_log_that_moves_to_another_directory_is_cleaned_when_it_is_there():
    node = Cleaned(log_dirs=("/one", "/two"))
    compacted(node)
    for number in range(3):
        node.write((b"a", b"%d" % number))
    node.is_held = True
    node.wait()
    (runner,) = node.runners
    node.workers.hold()
    assert move(node, {"/one": "/two", "/two": "/one"}[node.partition().directory]) == 0
    assert runner.stops == 1
    runner.is_held = node.is_held = False
    node.wait()
    assert len(node.jobs) == 1, "not while it moves"
    node.workers.let_go()
    node.wait(100)
    node.partition().log.roll()  # A copy has the records, and not the segments.
    node.wait()
    assert len(node.jobs) == 2
    assert node.jobs[1].directory == node.partition().log.directory != node.jobs[0].directory
    assert node.offsets()[0] == [0, 3]


def test_a_partition_is_not_cleaned_again_before_what_the_last_cleaning_left_is_gone(node):
    """Both write files of the same names."""
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    node.write((b"a", b"2"))
    node.wait(BACKOFF_MS + 1000)
    node.workers.hold()
    node.runners[-1].fail(CleaningFailed("it ended", is_crash=True))
    node.wait()
    assert len(node.jobs) == 1
    node.workers.let_go()
    node.wait(100)
    assert len(node.jobs) == 2
    for runner in node.runners:
        runner.is_held = False
    node.runners[-1].step()
    assert node.offsets()[0] == [0, 2]


@pytest.mark.parametrize("waits", ["of the broker's", "a bare callback"])
def test_who_waits_for_a_partition_and_raises_keeps_no_place_among_those_that_clean(node, waits):
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    node.wait(BACKOFF_MS + 1000)
    node.workers.hold()
    node.runners[-1].fail(CleaningFailed("it ended", is_crash=True))
    if waits == "a bare callback":
        node.partition().when_idle(fault)
    else:
        node.broker.partitions.when_idle(node.partition(), fault)

    def resume():
        node.workers.let_go()
        node.wait(1)

    with pytest.raises(Fault):
        resume()
    node.wait(BACKOFF_MS + 1000)
    assert len(node.jobs) == 2, "it is cleaned again"


def fault():
    raise Fault


def test_what_was_cleaned_is_not_swapped_in_for_segments_that_were_cut_and_are_there_again(node):
    node.is_held = True
    compacted(node)
    node.write((b"a", b"1"))
    node.write((b"a", b"2"))
    node.write((b"b", b"2"))
    node.wait(BACKOFF_MS + 1000)
    log = node.partition().log
    log.truncate_to(1)
    for key in (b"a", b"c"):
        log.append_as_leader(build_batch(NOW_MS, [key], [b"3"]), 1)
        log.roll()
    log.advance_high_watermark(3)
    log.flush()
    assert node.offsets()[0] == [0, 1, 2, 3], "as when it was planned"
    size = log.size
    node.runners[0].step()
    assert (node.offsets()[0], log.size) == ([0, 1, 2, 3], size)
    assert node.files(file_names.CLEANED) == node.files(file_names.SWAP) == []
