"""Replicas move between the log directories of a node (KIP-113, KIP-858)."""

import errno

import pytest

from ottla.base.ids import TopicPartition
from ottla.broker.partitions.background import Background
from ottla.broker.partitions.moves import replica_copy, replica_move, replica_moves
from ottla.log.partition_log import PartitionLog
from ottla.machines.metadata.image.directory_ids import LOST, UNASSIGNED
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConfigRecord, DeleteRecordsRequest
from tests.unit.broker.brokers import (
    TestNode,
    batch,
    broker_settings,
    produce_request,
    produced,
    topic_id_of,
    values_in,
)
from tests.unit.broker.moving_nodes import (
    ENOUGH_MS,
    FILE_DELETE_DELAY_MS,
    IDS,
    described,
    in_one,
    move,
    moving_node,
    names_in,
)
from tests.unit.broker.transactional_nodes import NEW, READ_COMMITTED, TransactionalNode

ONE, TWO = IDS["/one"], IDS["/two"]
SIZE = len(batch(b"0"))


@pytest.fixture
def node(monkeypatch: pytest.MonkeyPatch) -> TestNode:
    """With ten records in /one, of which two fit into a part."""
    monkeypatch.setattr(replica_moves, "_PART_BYTES", 2 * SIZE)
    monkeypatch.setattr(replica_copy, "LAST_PART_BYTES", SIZE)
    monkeypatch.setattr(replica_move, "LAST_PART_BYTES", SIZE)
    node = moving_node()
    in_one(node)
    for number in range(10):
        node.produce(batch(b"%d" % number))
    return node


def numbers(node: TestNode, offset: int = 0) -> list[int]:
    return [int(value or b"") for value in values_in(node.fetch(offset))]


def half_way(node: TestNode) -> None:
    """Some parts of the copy are there, and it is not whole."""
    assert move(node) == ErrorCode.NONE
    node.workers.hold()
    for _ in range(3):
        node.timers.advance(1)
        node.workers.step()
    (future,) = futures(node).values()
    assert 0 < future.log_end_offset < node.partition().log.log_end_offset


def futures(node: TestNode) -> dict[TopicPartition, PartitionLog]:
    return node.broker.partitions.logs.online["/two"].futures.logs


def finish(node: TestNode) -> None:
    node.workers.let_go()
    node.timers.advance(ENOUGH_MS)


def arrived(node: TestNode) -> bool:
    return bool(node.partition().directory == "/two" and names_in(node, "/two") == ["orders-0"])


def test_a_replica_moves_with_all_its_records(node):
    assert move(node) == ErrorCode.NONE
    assert described(node) == {"/one": [("orders", 0, False)], "/two": [("orders", 10, True)]}
    assert names_in(node, "/two") == ["orders-0-future"]
    node.timers.advance(ENOUGH_MS)
    assert described(node) == {"/one": [], "/two": [("orders", 0, False)]}
    assert numbers(node) == list(range(10))
    assert node.produce(batch(b"10")).base_offset == 10
    assert numbers(node, offset=9) == [9, 10]


def test_the_old_files_go_after_a_while(node):
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert names_in(node, "/one") == ["orders-0-delete"]
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert names_in(node, "/one") == []


def test_the_replica_serves_while_it_is_copied(node):
    half_way(node)
    assert node.produce(batch(b"10")).error_code == ErrorCode.NONE
    assert numbers(node) == list(range(11))
    finish(node)
    assert arrived(node)
    assert numbers(node) == list(range(11))


def test_the_swap_waits_until_the_metadata_names_the_new_directory(node):
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    node.produce(batch(b"10"))
    assert node.partition().directory == "/one"
    node.controller.let_go()
    node.timers.advance(ENOUGH_MS)
    assert node.image.topics.by_name["orders"].partitions[0].directory(1) == TWO
    assert arrived(node)
    assert numbers(node) == list(range(11))


def test_the_swap_waits_for_a_disk_thread_that_works_on_the_log(node):
    move(node)
    node.partition().begin_job()
    node.timers.advance(ENOUGH_MS)
    node.produce(batch(b"10"))
    assert node.partition().directory == "/one"
    node.partition().end_job()
    assert arrived(node)
    assert numbers(node) == list(range(11))


def test_there_and_back_again(node):
    for path in ("/two", "/one", "/two"):
        assert move(node, path) == ErrorCode.NONE
        node.timers.advance(ENOUGH_MS)
        assert node.partition().directory == path
        node.produce(batch(b"10"))
    assert numbers(node) == [*range(10), 10, 10, 10]


# What batches do not tell


def test_producers_are_known_afterwards_even_if_their_records_are_gone(node):
    node.produce(produced(5, 0, b"10"))
    node.broker.partitions["orders", 0].log.advance_log_start_offset(11)
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert arrived(node)
    assert node.produce(produced(5, 0, b"10")).base_offset == 10, "a repetition"
    assert node.produce(produced(5, 2, b"12")).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert node.produce(produced(5, 1, b"11")).base_offset == 11


def test_offsets_and_epochs_are_as_before(node):
    node.change_partition(leader=-1)
    node.change_partition(leader=1)
    log = node.partition().log
    log.advance_log_start_offset(4)
    before = log.log_start_offset, log.high_watermark, log.log_end_offset, log.epochs.entries
    assert log.epochs.latest == 2, "an epoch in which nothing was written"
    move(node)
    node.timers.advance(ENOUGH_MS)
    log = node.partition().log
    assert arrived(node)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset, log.epochs.entries) == before


def test_a_log_that_begins_in_the_middle_of_a_batch():
    node = moving_node()
    in_one(node)
    node.produce(batch(b"0", b"1", b"2"))
    node.partition().log.advance_log_start_offset(2)
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert arrived(node)
    assert node.partition().log.log_start_offset == 2
    assert numbers(node, offset=2) == [0, 1, 2], "the whole batch, as before"


def test_aborted_transactions_are_known_and_open_ones_stay_open():
    producer, another = (1000, 0), (1001, 0)
    node = TransactionalNode(NEW, log_dirs=tuple(IDS))
    node.init("x")
    node.init("y")
    node.write(producer, 0, b"aborted")
    node.end(producer, False)
    node.write(another, 0, b"open", name="y")
    before = node.fetch(isolation_level=READ_COMMITTED)
    path = {"/one": "/two", "/two": "/one"}[node.partition().directory]
    assert move(node, path) == ErrorCode.NONE
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == path
    assert node.fetch(isolation_level=READ_COMMITTED) == before
    node.end(another, True, name="y")
    assert node.committed() == [b"open"]


def test_a_log_that_ends_with_offsets_of_which_compaction_has_left_nothing(node):
    log = node.partition().log
    log.roll(15)
    log.log_end_offset = 15
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert arrived(node)
    assert node.produce(batch(b"15")).base_offset == 15
    assert numbers(node) == list(range(10))
    assert numbers(node, offset=10) == [15]


def test_what_the_cleaner_has_done_is_known_in_the_new_directory(node):
    one, two = node.broker.partitions.logs.online.values()
    one.save_cleaner_offset(node.partition().name, 7)
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert (one.cleaner_offset(node.partition().name), two.cleaner_offset(node.partition().name)) == (None, 7)


# Changes during a move


def delete_records(node: TestNode, offset: int) -> None:
    asked = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=offset)
    topics = [DeleteRecordsRequest.DeleteRecordsTopic(name="orders", partitions=[asked])]
    (topic,) = node.send(DeleteRecordsRequest(timeout_ms=1000, topics=topics), 2).topics
    assert (topic.partitions[0].error_code, topic.partitions[0].low_watermark) == (0, offset)


def test_records_that_were_copied_are_deleted(node):
    half_way(node)
    delete_records(node, 1)
    finish(node)
    assert arrived(node)
    assert node.partition().log.log_start_offset == 1
    assert numbers(node, offset=1) == list(range(1, 10))


def test_records_are_deleted_beyond_what_was_copied(node):
    half_way(node)
    delete_records(node, 9)
    finish(node)
    assert names_in(node, "/two") == ["orders-0", "orders-0-delete"]
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert arrived(node)
    assert (node.partition().log.log_start_offset, numbers(node, offset=9)) == (9, [9])


def test_records_are_deleted_right_before_the_swap(node):
    move(node)
    node.partition().begin_job()
    node.timers.advance(ENOUGH_MS)
    assert node.partition().is_changing_log
    for number in range(10, 16):
        node.produce(batch(b"%d" % number))
    delete_records(node, 14)
    node.partition().end_job()
    node.timers.advance(ENOUGH_MS + FILE_DELETE_DELAY_MS)
    assert arrived(node)
    assert (node.partition().log.log_start_offset, numbers(node, offset=14)) == (14, [14, 15])


def test_retention_takes_segments_away_that_are_being_copied(node):
    node.partition().log.roll()
    node.produce(batch(b"10"))
    half_way(node)
    node.configure_topic("orders", retention_bytes="1")
    Background(node.broker.partitions, node.broker.world).apply_retention()
    assert node.partition().log.log_start_offset == 10
    finish(node)
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert arrived(node)
    assert numbers(node, offset=10) == [10]


def test_a_topic_that_is_deleted_takes_its_copy_along(node):
    half_way(node)
    node.delete_topic()
    finish(node)
    assert len(node.broker.replica_moves) == 0
    assert (names_in(node, "/one"), names_in(node, "/two")) == (["orders-0-delete"], ["orders-0-delete"])
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert (names_in(node, "/one"), names_in(node, "/two")) == ([], [])


def test_settings_that_change_count_in_the_new_directory(node):
    half_way(node)
    node.configure_topic("orders", retention_ms="5")
    finish(node)
    assert arrived(node)
    assert node.partition().log.config.retention_ms == 5


def test_writes_that_wait_for_the_disk_are_answered_by_the_new_log(node):
    node.configure_topic("orders", flush_messages="1")
    move(node)
    node.partition().begin_job()
    node.timers.advance(ENOUGH_MS)
    assert node.partition().is_changing_log
    reply = node.ask(produce_request(batch(b"10")), 12)
    assert not reply.is_here, "the old log is not flushed any more"
    node.partition().end_job()
    assert arrived(node)
    assert reply.is_here
    assert node.partition().log.recovery_point == 11


def test_a_copy_is_as_durable_as_the_original_before_it_takes_over(node):
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    node.configure_topic("orders", flush_messages="1")
    node.produce(batch(b"10"))
    assert node.partition().log.recovery_point == 11
    node.controller.let_go()
    node.timers.advance(ENOUGH_MS)
    assert arrived(node)
    assert node.partition().log.recovery_point == 11


# Ending a move


def test_asking_for_the_directory_that_it_is_in_ends_a_move(node):
    half_way(node)
    assert move(node, "/one") == ErrorCode.NONE
    finish(node)
    assert node.partition().directory == "/one"
    assert names_in(node, "/two") == ["orders-0-delete"]
    assert node.controller.assigned == []
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert names_in(node, "/two") == []


def test_a_move_that_ends_late_takes_back_what_the_controller_was_told(node):
    move(node)
    node.partition().begin_job()
    node.timers.advance(ENOUGH_MS)
    assert node.controller.assigned == [TWO]
    assert move(node, "/one") == ErrorCode.NONE
    node.partition().end_job()
    node.timers.advance(ENOUGH_MS)
    assert node.controller.assigned == [TWO, ONE]
    assert node.partition().directory == "/one"
    assert not node.partition().is_changing_log


def test_asking_again_changes_nothing_and_asking_anew_begins_anew(node):
    half_way(node)
    assert move(node, "/two") == ErrorCode.NONE
    assert move(node, "/one") == ErrorCode.NONE
    assert move(node, "/two") == ErrorCode.NONE
    finish(node)
    assert node.partition().directory == "/two"
    assert names_in(node, "/two") == ["orders-0", "orders-0-delete"]
    assert numbers(node) == list(range(10))


# Where it cannot be done


def test_a_move_that_ends_before_it_begins_leaves_the_one_before_to_its_disk_thread(node):
    half_way(node)
    (copied,) = futures(node).values()
    node.timers.advance(1)
    (copying,) = node.workers._jobs  # A slow disk thread has it: others are quicker.
    node.workers._jobs.clear()
    node.workers.let_go()
    move(node, "/one")  # Ends the move, as soon as the thread is done.
    move(node)
    move(node, "/one")  # Ends the next one, which waits for that.
    move(node)
    assert futures(node) == {node.partition().name: copied}
    copying()
    finish(node)
    assert node.partition().directory == "/two"
    assert names_in(node, "/two") == ["orders-0", "orders-0-delete"]
    assert numbers(node) == list(range(10))


def test_a_target_that_fails_ends_the_move_and_the_replica_stays(node):
    half_way(node)
    node.broker.partitions.on_disk_error("/two", OSError(errno.EIO, "gone"))
    finish(node)
    assert node.partition().directory == "/one"
    assert numbers(node) == list(range(10))
    assert move(node) == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_target_that_is_full_ends_the_move_and_goes_on(node):
    move(node)
    node.disk.fail_next("write", errno.ENOSPC)
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/one"
    assert list(node.broker.partitions.logs.online) == ["/one", "/two"]
    assert move(node) == ErrorCode.NONE
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/two"


def test_a_source_that_fails_leaves_the_copy_for_the_next_start(node):
    half_way(node)
    node.broker.partitions.on_disk_error("/one", OSError(errno.EIO, "gone"))
    finish(node)
    assert node.partition() is None
    assert names_in(node, "/two") == ["orders-0-future"]
    node.broker.partitions.logs.close()
    node = moving_node(node.disk, node.image)
    node.timers.advance(ENOUGH_MS)
    assert arrived(node)
    assert numbers(node) == list(range(10))


def test_damage_is_not_copied(node):
    file = node.partition().log.active.file
    file.write_at(5 * SIZE + 70, b"\xff")
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/one"
    assert names_in(node, "/two") == ["orders-0-delete"]


def test_no_move_begins_while_a_directory_is_offline():
    node = TestNode(log_dirs=("/one", "/two", "/three"))
    node.create_topic("orders")
    node.broker.partitions.on_disk_error("/three", OSError(errno.EIO, "gone"))
    assert move(node, "/two") == ErrorCode.KAFKA_STORAGE_ERROR


# Replicas to come


def test_a_replica_that_does_not_exist_yet_is_made_where_it_was_asked_to_be():
    node = moving_node()
    assert move(node, "/two") == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node.create_topic("orders", directories=(UNASSIGNED,))
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/two"
    assert node.controller.assigned == [TWO]


# How many and how fast


def test_as_many_at_a_time_as_there_are_threads(node):
    node.broker.node_settings.effective = broker_settings(num_replica_alter_log_dirs_threads="1")
    in_one(node, "clicks")
    node.produce(batch(b"0", b"1", b"2"), "clicks")
    node.workers.hold()
    move(node)
    move(node, topic="clicks")
    node.workers.step()
    assert names_in(node, "/two") == ["clicks-0-future", "orders-0-future"]
    node.timers.advance(1)
    node.workers.step()
    assert {name.topic: log.log_end_offset > 0 for name, log in futures(node).items()} == {
        "orders": True,
        "clicks": False,
    }
    finish(node)
    node.timers.advance(ENOUGH_MS)
    assert names_in(node, "/two") == ["clicks-0", "orders-0"]


def test_copies_are_no_faster_than_the_rate_that_is_given(node):
    rate = ConfigRecord(resource_type=4, resource_name="1", name=replica_moves.RATE, value=str(2 * SIZE))
    node.commit(rate)
    move(node)
    node.timers.advance(2_500)
    ((_, lag, _),) = described(node)["/two"]
    assert lag == 10 - 6, "two batches a second, the first ones at once"
    node.commit(ConfigRecord(resource_type=4, resource_name="1", name=replica_moves.RATE, value=None))
    node.timers.advance(1_000)
    assert arrived(node)


def test_a_replica_that_is_given_up_while_it_moves_is_where_the_metadata_says_in_the_end(node):
    """As when it moves because its disk is full."""
    assignments = node.broker.directory_assignments
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    assignments.lose(topic_id_of("orders"), 0)
    node.controller.let_go()
    node.controller.hold()
    node.timers.advance(ENOUGH_MS)
    assignments.note(node.partition(), node.image.topics.by_name["orders"].partitions[0])  # Another leads now.
    node.controller.let_go()
    node.timers.advance(ENOUGH_MS)
    assert node.controller.assigned == [TWO, LOST, TWO]
    assert node.partition().directory == "/two"


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_replica_that_is_broken_while_it_moves_stays_where_it_is_until_the_next_start(node, is_asked):
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS if is_asked else 1)
    node.broker.partitions.on_broken(node.partition(), ValueError("of this node's own"))
    node.controller.let_go()
    node.timers.advance(ENOUGH_MS)
    assert (names_in(node, "/one"), names_in(node, "/two")) == (["orders-0"], ["orders-0-future"])
    again = moving_node(node.disk.survivor_of_kill(), node.image)
    again.timers.advance(ENOUGH_MS)
    assert (again.partition().directory, numbers(again)) == ("/two", list(range(10)))
