"""What a stop in the middle of a move leaves, and what the next start makes of it."""

import errno
import re

import pytest

from ottla.broker.partitions.moves import interrupted_moves, replica_copy, replica_move
from ottla.machines.metadata.image.directory_ids import UNASSIGNED
from ottla.wire.errors import ErrorCode
from tests.unit.broker.brokers import TestNode, batch, topic_id_of, values_in
from tests.unit.broker.moving_nodes import ENOUGH_MS, FILE_DELETE_DELAY_MS, IDS, in_one, move, moving_node, names_in

UNIQUE = "0123456789abcdef" * 2
ONE, TWO = IDS["/one"], IDS["/two"]


@pytest.fixture(autouse=True)
def nothing_is_left_for_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Copies are whole when the controller is asked."""
    for module in (replica_copy, replica_move):
        monkeypatch.setattr(module, "LAST_PART_BYTES", 0)


def written(count: int = 5) -> TestNode:
    node = moving_node()
    in_one(node)
    write(node, count)
    return node


def write(node: TestNode, count: int) -> None:
    first = node.partition().log.log_end_offset
    for number in range(first, first + count):
        assert node.produce(batch(b"%d" % number)).error_code == ErrorCode.NONE


def numbers(node: TestNode) -> list[int]:
    return [int(value or b"") for value in values_in(node.fetch())]


def killed(node: TestNode) -> TestNode:
    """The node after it was killed, and started again."""
    return moving_node(node.disk.survivor_of_kill(), node.image)


def moved(node: TestNode) -> TestNode:
    assert move(node) == ErrorCode.NONE
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/two"
    return node


def rename(node: TestNode, path: str, pattern: str, to: str) -> None:
    """Gives a directory another name, as if a power cut had undone a rename."""
    (name,) = (name for name in node.disk.list_dir(path) if re.fullmatch(pattern, name))
    node.disk.rename(f"{path}/{name}", f"{path}/{to}")


@pytest.mark.parametrize("promotion_lasts", [False, True])
@pytest.mark.parametrize("retirement_lasts", [False, True])
def test_the_names_of_a_swap_become_durable_in_any_order(promotion_lasts: bool, retirement_lasts: bool) -> None:
    node = moved(written())
    write(node, 3)
    if not promotion_lasts:
        rename(node, "/two", "orders-0", f"orders-0.{UNIQUE}-future")
    if not retirement_lasts:
        rename(node, "/one", r"orders-0\..*-delete", "orders-0")
    node = killed(node)
    assert (node.partition().directory, numbers(node)) == ("/two", list(range(8)))
    node.timers.advance(ENOUGH_MS + FILE_DELETE_DELAY_MS)
    assert (names_in(node, "/one"), names_in(node, "/two")) == ([], ["orders-0"])


def test_a_move_goes_on_where_it_was():
    node = written()
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    write(node, 2)
    node = killed(node)
    assert node.partition().directory == "/one"
    node.timers.advance(ENOUGH_MS)
    assert (node.partition().directory, numbers(node)) == ("/two", list(range(7)))


def test_a_move_goes_on_after_a_clean_stop():
    node = written()
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    node.broker.replica_moves.stop()
    node.broker.partitions.logs.close()
    assert node.disk.open_files == 0
    node = moving_node(node.disk, node.image)
    assert all(directory.was_clean for directory in node.broker.partitions.logs.online.values())
    node.timers.advance(ENOUGH_MS)
    assert (node.partition().directory, numbers(node)) == ("/two", list(range(5)))


def test_what_was_written_after_the_metadata_named_the_new_directory_is_not_lost():
    node = written()
    move(node)
    node.partition().begin_job()  # So that the swap waits.
    node.timers.advance(ENOUGH_MS)
    assert node.image.topics.by_name["orders"].partitions[0].directory(1) == TWO
    write(node, 3)
    node = killed(node)
    assert (node.partition().directory, numbers(node)) == ("/one", list(range(8)))
    node.timers.advance(ENOUGH_MS)
    assert (node.partition().directory, numbers(node)) == ("/two", list(range(8)))


def test_a_copy_that_has_more_than_the_log_is_cut():
    """A power cut took what the current log had not flushed, and the copy had."""
    node = written(3)
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    assert node.broker.partitions.logs.online["/two"].futures.logs[node.partition().name].log_end_offset == 3
    node.partition().log.truncate_to(2)
    node = killed(node)
    node.change_partition(leader=1)
    node.produce(batch(b"20"))
    node.timers.advance(ENOUGH_MS)
    assert node.partition().directory == "/two"
    assert numbers(node) == [0, 1, 20]


def test_a_copy_of_a_topic_that_is_gone_is_set_aside():
    node = written()
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    node.image.topics.by_name.clear()
    node.image.topics.by_id.clear()
    node = killed(node)
    assert (names_in(node, "/one"), names_in(node, "/two")) == (["orders-0-stray"], ["orders-0-stray"])


def test_a_copy_whose_log_is_missing_is_set_aside():
    node = written()
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    rename(node, "/one", "orders-0", "elsewhere")
    node = killed(node)
    assert names_in(node, "/two") == ["orders-0-stray"]
    assert (node.partition().directory, numbers(node)) == ("/one", []), "as if it were new"


def test_a_copy_whose_log_may_be_in_a_directory_that_is_offline_waits():
    node = written()
    node.controller.hold()
    move(node)
    node.timers.advance(ENOUGH_MS)
    disk = node.disk.survivor_of_kill()
    disk.rename("/one", "/gone")
    disk.open("/one", create=True).close()
    node = moving_node(disk, node.image)
    assert names_in(node, "/two") == ["orders-0-future"]
    assert node.partition() is None
    assert node.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_a_cluster_that_names_no_directories_has_a_copy_that_is_alone():
    node = moved(written())
    rename(node, "/two", "orders-0", f"orders-0.{UNIQUE}-future")
    node.change_partition(directories=[UNASSIGNED])
    node = killed(node)
    assert (node.partition().directory, numbers(node)) == ("/two", list(range(5)))


def in_two_directories(appended: int = 0) -> TestNode:
    """After a swap whose second rename a power cut has undone. The metadata names neither directory."""
    node = moved(written())
    write(node, appended)
    rename(node, "/one", r"orders-0\..*-delete", "orders-0")
    node.change_partition(directories=[UNASSIGNED])
    return node


@pytest.mark.parametrize("appended", [0, 3])
def test_of_two_logs_of_which_the_metadata_names_neither_the_one_with_all_records_is_served(appended: int):
    node = killed(in_two_directories(appended))
    assert numbers(node) == list(range(5 + appended))
    if appended:
        assert node.partition().directory == "/two"
    node.timers.advance(FILE_DELETE_DELAY_MS)
    assert sorted(names_in(node, "/one") + names_in(node, "/two")) == ["orders-0"]


def test_of_two_logs_that_part_the_one_of_the_later_leader_epoch_is_served_and_the_other_set_aside():
    node = in_two_directories()
    node.partition().log.truncate_to(3)
    node.change_partition(leader=1)
    assert node.produce(batch(b"30")).error_code == ErrorCode.NONE
    node = killed(node)
    assert (node.partition().directory, numbers(node)) == ("/two", [0, 1, 2, 30])
    assert names_in(node, "/one") == ["orders-0-stray"]


def test_two_logs_of_which_it_cannot_be_told_which_is_right_cost_their_partition_and_not_the_node(caplog):
    node = written(3)
    in_one(node, "others")
    node.controller.hold()
    other = node.broker.partitions.logs.online["/two"].create(node.partition().name, topic_id_of("orders"))
    for number, epoch in enumerate((0, 0, 0, 1, 2)):
        other.append_as_leader(batch(b"%d" % number), epoch)
    for _ in range(2):
        node.change_partition(leader=1, directories=[UNASSIGNED])
    write(node, 1)
    assert (node.partition().log.epochs.latest, other.epochs.latest) == (2, 2)
    node = killed(node)
    assert node.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert "orders-0 is offline: /one/orders-0 and /two/orders-0 have different records" in caplog.text
    assert node.produce(batch(b"x"), "others").error_code == ErrorCode.NONE
    assert names_in(node, "/two") == ["orders-0"], "nothing is made anew, and nothing renamed"
    node.broker.partitions.logs.close(7)
    node.disk.rename("/two/orders-0", "/two/not-wanted")
    node = moving_node(node.disk, node.image)
    assert numbers(node) == [0, 1, 2, 3], "after what the line in the log says"


def test_two_logs_that_cannot_be_read_cost_their_partition_and_not_the_node(monkeypatch: pytest.MonkeyPatch):
    node = in_two_directories()

    def unreadable(*_: object) -> int:
        raise OSError(errno.EIO, "cannot read")

    monkeypatch.setattr(interrupted_moves, "common_end", unreadable)
    node = killed(node)
    assert node.fetch().error_code == ErrorCode.KAFKA_STORAGE_ERROR


def test_two_logs_of_which_one_is_of_a_topic_that_had_the_name_before():
    node = moved(written())
    rename(node, "/one", r"orders-0\..*-delete", "orders-0")
    directory = node.broker.partitions.logs.online["/one"]
    directory.remember_topic(node.partition().name, topic_id_of("an older one"))
    node = killed(node)
    assert (node.partition().directory, numbers(node)) == ("/two", list(range(5)))
    assert names_in(node, "/one") == ["orders-0-stray"]


def test_two_logs_of_which_the_one_has_records_that_the_other_has_not():
    node = written()
    node.controller.hold()
    node.broker.partitions.logs.online["/two"].create(node.partition().name, topic_id_of("orders"))
    node.change_partition(directories=[TWO])
    node = killed(node)
    assert node.partition().directory == "/two"
    assert names_in(node, "/one") == ["orders-0-stray"]


def test_what_the_checkpoints_said_of_an_earlier_stay_is_not_believed_of_the_copy():
    node = written()
    name, log = node.partition().name, node.partition().log
    one = node.broker.partitions.logs.online["/one"]
    log.flush()
    log.advance_log_start_offset(3)
    one.checkpoint()
    one.save_cleaner_offset(name, 4)
    one.retire(name)  # And nobody buries it.
    future = one.begin_future(name, topic_id_of("orders"), 0)
    assert (future.log_start_offset, future.log_end_offset, future.high_watermark) == (0, 0, 0)
    assert (one.saved_recovery_point(name), one.cleaner_offset(name)) == (0, None)
