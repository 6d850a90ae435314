"""The disk in memory itself: what it loses, what it must keep, and that it does lose something."""

import errno
from collections.abc import Callable
from random import Random

import pytest

from ottla.base.ports import Disk
from ottla.log.disk import OsDisk
from ottla.testing.memory_disk import Crashed, MemoryDisk

SEEDS = range(200)


@pytest.fixture
def disk() -> MemoryDisk:
    disk = MemoryDisk()
    disk.make_dirs("/data")
    disk.sync_dir("/")
    return disk


def put(disk: Disk, path: str, content: bytes, *, sync: bool = False) -> None:
    file = disk.open(path, create=True)
    file.write_at(0, content)
    if sync:
        file.sync()
    file.close()


def get(disk: Disk, path: str) -> bytes | None:
    if not disk.exists(path):
        return None
    file = disk.open(path)
    content = file.read_at(0, 1 << 20)
    file.close()
    return content


def survivors(disk: MemoryDisk, path: str) -> set[bytes | None]:
    """Everything that a power cut may leave of a file."""
    return {get(disk.survivor(Random(seed)), path) for seed in SEEDS}


class TestPowerCut:
    def test_what_was_synced_with_its_name_is_always_there(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"content", sync=True)
        disk.sync_dir("/data")
        assert survivors(disk, "/data/file") == {b"content"}

    def test_files_and_directories_may_be_synced_together(self, disk: MemoryDisk) -> None:
        put(disk, "/data/one", b"1")
        put(disk, "/data/two", b"2")
        disk.sync_all(["/data/one", "/data"])
        assert survivors(disk, "/data/one") == {b"1"}
        assert survivors(disk, "/data/two") == {b"", b"2"}

    def test_a_synced_file_may_lose_its_name(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"content", sync=True)
        assert survivors(disk, "/data/file") == {None, b"content"}

    def test_unsynced_bytes_may_be_lost_kept_or_torn(self, disk: MemoryDisk) -> None:
        """The canary: a model that loses nothing would let every crash test pass."""
        put(disk, "/data/file", b"abc")
        disk.sync_dir("/data")
        assert survivors(disk, "/data/file") == {b"", b"a", b"ab", b"abc"}

    def test_each_write_has_its_own_fate_and_holes_read_as_zeros(self, disk: MemoryDisk) -> None:
        file = disk.open("/data/file", create=True)
        disk.sync_dir("/data")
        file.write_at(0, b"a")
        file.write_at(1, b"b")
        # A file may have grown for bytes that never came.
        assert survivors(disk, "/data/file") == {b"", b"a", b"\0", b"\0b", b"ab"}

    def test_an_overwrite_may_leave_the_old_bytes(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"old", sync=True)
        disk.sync_dir("/data")
        put(disk, "/data/file", b"new")
        assert survivors(disk, "/data/file") == {b"old", b"nld", b"ned", b"new"}

    def test_a_truncation_may_not_have_happened(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"content", sync=True)
        disk.sync_dir("/data")
        disk.open("/data/file").truncate(3)
        assert survivors(disk, "/data/file") == {b"con", b"content"}

    def test_names_persist_in_their_order(self, disk: MemoryDisk) -> None:
        for name in ("first", "second", "third"):
            put(disk, f"/data/{name}", b"")
        found = {tuple(disk.survivor(Random(seed)).list_dir("/data")) for seed in SEEDS}
        assert found == {(), ("first",), ("first", "second"), ("first", "second", "third")}

    def test_a_rename_is_seen_whole_or_not_at_all(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"old", sync=True)
        disk.sync_dir("/data")
        put(disk, "/data/file.tmp", b"new", sync=True)
        disk.rename("/data/file.tmp", "/data/file")
        assert survivors(disk, "/data/file") == {b"old", b"new"}

    def test_a_rename_without_a_sync_of_the_content_is_the_classic_mistake(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"old", sync=True)
        disk.sync_dir("/data")
        put(disk, "/data/file.tmp", b"new")
        disk.rename("/data/file.tmp", "/data/file")
        disk.sync_dir("/data")
        assert b"" in survivors(disk, "/data/file")

    def test_a_removed_file_may_come_back(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"content", sync=True)
        disk.sync_dir("/data")
        disk.remove("/data/file")
        assert survivors(disk, "/data/file") == {None, b"content"}

    def test_a_directory_is_a_name_too(self, disk: MemoryDisk) -> None:
        disk.make_dirs("/data/orders-0")
        put(disk, "/data/orders-0/file", b"content", sync=True)
        disk.sync_dir("/data/orders-0")
        assert survivors(disk, "/data/orders-0/file") == {None, b"content"}
        disk.sync_dir("/data")
        assert survivors(disk, "/data/orders-0/file") == {b"content"}

    def test_a_renamed_directory_keeps_what_is_in_it(self, disk: MemoryDisk) -> None:
        disk.make_dirs("/data/old")
        put(disk, "/data/old/file", b"content", sync=True)
        disk.sync_dir("/data/old")
        disk.rename("/data/old", "/data/new")
        disk.sync_dir("/data")
        assert survivors(disk, "/data/new/file") == {b"content"}

    def test_what_survived_once_survives_again(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"abc")
        once = disk.survivor(Random(1))
        assert survivors(once, "/data/file") == {get(once, "/data/file")}

    def test_the_running_disk_forgets_nothing(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"abc")
        disk.survivor(Random(1))
        assert get(disk, "/data/file") == b"abc"


class TestCrash:
    def test_the_chosen_call_is_the_last(self, disk: MemoryDisk) -> None:
        file = disk.open("/data/file", create=True)
        disk.crash_at(disk.calls + 2)
        file.write_at(0, b"first")
        with pytest.raises(Crashed):
            file.write_at(5, b"second")
        for attempt in (file.sync, file.size, lambda: file.read_at(0, 1), lambda: disk.open("/data/file")):
            with pytest.raises(Crashed):
                attempt()

    def test_no_handler_of_exceptions_can_go_on_after_it(self) -> None:
        assert not issubclass(Crashed, Exception)

    def test_the_last_write_may_have_been_written_in_part(self, disk: MemoryDisk) -> None:
        left = set()
        for seed in SEEDS:
            disk = MemoryDisk(Random(seed))
            file = disk.open("/file", create=True)
            disk.crash_at(disk.calls + 1)
            with pytest.raises(Crashed):
                file.write_at(0, b"abc")
            left.add(get(disk.survivor_of_kill(), "/file"))
        assert left == {b"", b"a", b"ab", b"abc"}

    def test_of_many_that_were_being_synced_any_may_be_done(self) -> None:
        left = set()
        for seed in SEEDS:
            disk = MemoryDisk(Random(seed))
            disk.make_dirs("/data")
            for name in ("one", "two"):
                put(disk, f"/data/{name}", b"x")
            disk.sync_dir("/data")
            disk.sync_dir("/")
            disk.crash_at(disk.calls + 1)
            with pytest.raises(Crashed):
                disk.sync_all(["/data/one", "/data/two"])
            survivor = disk.survivor(Random(seed))
            left.add((get(survivor, "/data/one"), get(survivor, "/data/two")))
        assert left == {(b"", b""), (b"x", b""), (b"", b"x"), (b"x", b"x")}

    def test_a_killed_process_loses_nothing_and_holds_no_lock(self, disk: MemoryDisk) -> None:
        disk.lock("/data/.lock")
        put(disk, "/data/file", b"unsynced")
        survivor = disk.survivor_of_kill()
        assert get(survivor, "/data/file") == b"unsynced"
        survivor.lock("/data/.lock")


class TestFailures:
    def test_one_call_fails_and_the_next_succeeds(self, disk: MemoryDisk) -> None:
        file = disk.open("/data/file", create=True)
        disk.fail_at(disk.calls + 1, errno.ENOSPC)
        with pytest.raises(OSError, match="injected") as problem:
            file.write_at(0, b"abc")
        assert problem.value.errno == errno.ENOSPC
        assert b"abc".startswith(file.read_at(0, 10)), "a write that failed may have written any part"
        file.write_at(0, b"abc")
        assert file.read_at(0, 10) == b"abc"

    def test_every_call_fails_until_it_is_repaired(self, disk: MemoryDisk) -> None:
        file = disk.open("/data/file", create=True)
        disk.fail_from(disk.calls + 1, errno.EIO)
        for attempt in (
            lambda: file.write_at(0, b"abc"),
            file.sync,
            lambda: file.truncate(0),
            lambda: disk.open("/data/other", create=True),
            lambda: disk.rename("/data/file", "/data/other"),
            lambda: disk.remove("/data/file"),
            lambda: disk.sync_dir("/data"),
            lambda: disk.make_dirs("/more"),
        ):
            with pytest.raises(OSError, match="injected"):
                attempt()
        assert disk.list_dir("/data") == ["file"]
        disk.repair()
        file.sync()

    def test_a_failed_sync_promises_nothing(self, disk: MemoryDisk) -> None:
        put(disk, "/data/file", b"abc")
        disk.sync_dir("/data")
        disk.fail_at(disk.calls + 1, errno.EIO)
        with pytest.raises(OSError, match="injected"):
            disk.open("/data/file").sync()
        assert b"" in survivors(disk, "/data/file")

    def test_a_closed_file_is_of_no_use(self, disk: MemoryDisk) -> None:
        file = disk.open("/data/file", create=True)
        assert disk.open_files == 1
        file.close()
        assert disk.open_files == 0
        with pytest.raises(OSError, match="closed"):
            file.read_at(0, 1)

    def test_a_file_in_memory_has_no_descriptor(self, disk: MemoryDisk) -> None:
        with pytest.raises(OSError, match="descriptor"):
            disk.open("/data/file", create=True).fileno()


@pytest.mark.parametrize("kind", ["memory", "real"])
def test_it_behaves_as_the_real_disk_does(kind: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    disk: Disk = MemoryDisk() if kind == "memory" else OsDisk()
    root = str(tmp_path_factory.mktemp("disk"))
    disk.make_dirs(f"{root}/a/b")
    put(disk, f"{root}/a/file", b"content")
    put(disk, f"{root}/a/other", b"other")
    disk.rename(f"{root}/a/other", f"{root}/a/file")
    assert get(disk, f"{root}/a/file") == b"other"
    assert list(disk.list_dir(f"{root}/a")) == ["b", "file"]
    assert (disk.is_dir(f"{root}/a/b"), disk.is_dir(f"{root}/a/file"), disk.exists(f"{root}/a/c")) == (
        True,
        False,
        False,
    )
    assert disk.size(f"{root}/a/file") == 5
    file = disk.open(f"{root}/a/file")
    file.write_at(8, b"!")
    assert file.read_at(0, 100) == b"other\0\0\0!"
    assert file.read_at(100, 1) == b""
    file.truncate(2)
    file.truncate(4)
    buffer = bytearray(b"....")
    assert file.read_into(1, buffer) == 3
    assert buffer == b"t\0\0."
    file.close()
    for attempt, problem in (
        (lambda: disk.open(f"{root}/a/missing"), FileNotFoundError),
        (lambda: disk.remove(f"{root}/a/missing"), FileNotFoundError),
        (lambda: disk.rename(f"{root}/a/missing", f"{root}/a/x"), FileNotFoundError),
        (lambda: disk.list_dir(f"{root}/missing"), FileNotFoundError),
        (lambda: disk.remove_dir(f"{root}/a"), OSError),
    ):
        with pytest.raises(problem):
            attempt()
    disk.remove(f"{root}/a/file")
    disk.remove_dir(f"{root}/a/b")
    disk.remove_dir(f"{root}/a")
    assert not disk.exists(f"{root}/a")


def test_a_failed_sync_may_lose_the_pages_for_good_though_programs_still_see_them(disk: MemoryDisk) -> None:
    lost = 0
    for seed in SEEDS:
        disk = MemoryDisk(Random(seed))
        disk.make_dirs("/data")
        disk.syncs_lose_pages = True
        put(disk, "/data/log", b"first", sync=True)
        file = disk.open("/data/log")
        file.write_at(5, b"second")
        disk.fail_next("sync file", errno.EIO)
        with pytest.raises(OSError, match="injected"):
            file.sync()
        assert file.read_at(0, 11) == b"firstsecond"
        file.sync()
        disk.sync_dir("/data")
        disk.sync_dir("/")
        after = disk.survivor(Random(seed)).files()["/data/log"]
        assert after in (b"first", b"firstsecond")
        lost += after == b"first"
    assert 0 < lost < len(SEEDS)


def test_a_full_disk_takes_what_still_fits_and_lets_files_be_written_over(disk: MemoryDisk) -> None:
    put(disk, "/data/log", b"0123456789")
    disk.usable_bytes = 5
    file = disk.open("/data/log")
    file.write_at(0, b"over it")
    file.write_at(10, b"12345")
    with pytest.raises(OSError, match="No space") as full:
        file.write_at(15, b"6")
    assert full.value.errno == errno.ENOSPC
    assert disk.space("/data").usable_bytes == 0
    disk.repair()
    file.write_at(15, b"6")


def test_a_bit_that_turns_over_is_seen_now_and_after_a_power_cut(disk: MemoryDisk) -> None:
    put(disk, "/data/log", b"\x00\x00", sync=True)
    disk.sync_dir("/data")
    disk.rot("/data/log", 1, 3)
    assert disk.files()["/data/log"] == b"\x00\x08"
    assert disk.survivor(Random(1)).files()["/data/log"] == b"\x00\x08"


class TestDeadDirectories:
    def test_nothing_in_one_works_and_others_do(self, disk: MemoryDisk) -> None:
        disk.make_dirs("/data-2/orders-0")
        put(disk, "/data-2/orders-0/log", b"content")
        put(disk, "/data/log", b"content")
        file = disk.open("/data-2/orders-0/log")
        disk.fail_directory("/data-2")
        attempts: list[Callable[[], object]] = [
            lambda: file.read_at(0, 1),
            lambda: file.write_at(0, b"x"),
            lambda: file.truncate(0),
            file.sync,
            lambda: disk.open("/data-2/orders-0/log"),
            lambda: disk.open("/data-2/new", create=True),
            lambda: disk.list_dir("/data-2"),
            lambda: disk.size("/data-2/orders-0/log"),
            lambda: disk.modified_ms("/data-2/orders-0/log"),
            lambda: disk.space("/data-2"),
            lambda: disk.make_dirs("/data-2/orders-1"),
            lambda: disk.rename("/data-2/orders-0", "/data-2/orders-1"),
            lambda: disk.remove("/data-2/orders-0/log"),
            lambda: disk.remove_dir("/data-2/orders-0"),
            lambda: disk.sync_dir("/data-2"),
            lambda: disk.sync_all(["/data/log", "/data-2/orders-0/log"]),
            lambda: disk.lock("/data-2/.lock"),
        ]
        for attempt in attempts:
            with pytest.raises(OSError, match="dead") as problem:
                attempt()
            assert problem.value.errno == errno.EIO
        assert not disk.exists("/data-2/orders-0/log")
        assert not disk.is_dir("/data-2")
        file.close()
        assert get(disk, "/data/log") == b"content"

    def test_one_that_is_mended_has_what_a_power_cut_would_have_left(self) -> None:
        found: set[bytes | None] = set()
        for seed in SEEDS:
            disk = MemoryDisk(Random(seed))
            disk.make_dirs("/data")
            put(disk, "/data/kept", b"synced", sync=True)
            put(disk, "/data/log", b"ab")
            disk.sync_dir("/data")
            disk.fail_directory("/data")
            disk.mend_directory("/data")
            assert get(disk, "/data/kept") == b"synced"
            found.add(get(disk, "/data/log"))
        assert found == {b"", b"a", b"ab"}

    def test_one_that_is_replaced_is_empty_for_good(self, disk: MemoryDisk) -> None:
        put(disk, "/data/log", b"content", sync=True)
        disk.sync_dir("/data")
        disk.fail_directory("/data")
        disk.empty_directory("/data")
        assert disk.list_dir("/data") == []
        assert survivors(disk, "/data/log") == {None}
