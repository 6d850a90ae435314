"""Whose the directories are: found out before a node opens anything in them."""

import errno

import pytest

from ottla.base.errors import StorageError
from ottla.base.ids import Uuid, uuid_text
from ottla.base.ports import Disk
from ottla.log.files import replace_file
from ottla.node.storage.meta_properties import (
    MetaProperties,
    NotFormatted,
    Storage,
    load_storage,
    parse_meta_properties,
    write_meta_properties,
)
from ottla.node.storage.storage_info import describe_storage
from ottla.testing.memory_disk import MemoryDisk, MemoryFile

CLUSTER_ID = "b3R0bGEtaW50ZXJvcC0wMQ"
ONE, TWO = Uuid(b"directory-of-one"), Uuid(b"directory-of-two")


def disk_with(**directories: MetaProperties | None) -> MemoryDisk:
    disk = MemoryDisk()
    for name, meta in directories.items():
        disk.make_dirs(f"/{name}")
        if meta is not None:
            write_meta_properties(disk, f"/{name}", meta, "today")
    return disk


def load(disk: Disk, node_id: int = 1) -> Storage:
    return load_storage(disk, ["/a", "/b"], "/a", node_id, new_uuid=lambda: Uuid(b"new-directory-id"), date="today")


def test_directories_that_agree_are_ready_to_be_used() -> None:
    disk = disk_with(a=MetaProperties(CLUSTER_ID, 1, ONE), b=MetaProperties(CLUSTER_ID, 1, TWO))
    assert load(disk) == Storage(CLUSTER_ID, {"/a": ONE, "/b": TWO}, {})


@pytest.mark.parametrize(
    ("a", "b", "complaint"),
    [
        (MetaProperties(CLUSTER_ID, 1, ONE), None, "/b is not formatted: it is in log.dirs"),
        (MetaProperties(CLUSTER_ID, 1, ONE), MetaProperties("other", 1, TWO), "cluster.id in: /b/meta.properties"),
        (MetaProperties(CLUSTER_ID, 1, ONE), MetaProperties(CLUSTER_ID, 2, TWO), "is of node 2, and node.id says"),
        (MetaProperties(CLUSTER_ID, 1, ONE), MetaProperties(CLUSTER_ID, 1, ONE), "one is a copy of the other"),
        (MetaProperties(None, 1, ONE), MetaProperties(CLUSTER_ID, 1, TWO), "has no cluster.id"),
        (MetaProperties(CLUSTER_ID, None, ONE), MetaProperties(CLUSTER_ID, 1, TWO), "has no node.id"),
        (MetaProperties(CLUSTER_ID, 1, Uuid(bytes(16))), MetaProperties(CLUSTER_ID, 1, TWO), "reserved directory.id"),
        (MetaProperties(CLUSTER_ID, None, None, 0), MetaProperties(CLUSTER_ID, 1, TWO), "ran on ZooKeeper"),
    ],
)
def test_directories_that_do_not_agree_are_one_clear_line(
    a: MetaProperties | None, b: MetaProperties | None, complaint: str
) -> None:
    with pytest.raises(StorageError, match=complaint) as refused:
        load(disk_with(a=a, b=b))
    assert "\n" not in str(refused.value)


def test_the_wrong_node_is_told_apart_from_an_unformatted_one() -> None:
    disk = disk_with(a=MetaProperties(CLUSTER_ID, 1, ONE), b=MetaProperties(CLUSTER_ID, 1, TWO))
    with pytest.raises(StorageError, match=r"/a/meta\.properties is of node 1, and node\.id says that this is node 7"):
        load(disk, node_id=7)
    with pytest.raises(NotFormatted):
        load(MemoryDisk())


def test_a_directory_without_an_id_gets_one_that_stays() -> None:
    disk = disk_with(a=MetaProperties(CLUSTER_ID, 1, ONE), b=MetaProperties(CLUSTER_ID, 1))
    assert load(disk).directory_ids["/b"] == b"new-directory-id"
    again = load_storage(disk, ["/a", "/b"], "/a", 1, new_uuid=lambda: TWO, date="today")
    assert again.directory_ids["/b"] == b"new-directory-id"


def test_a_metadata_log_in_the_wrong_directory_is_found() -> None:
    disk = disk_with(a=MetaProperties(CLUSTER_ID, 1, ONE), b=MetaProperties(CLUSTER_ID, 1, TWO))
    disk.make_dirs("/b/__cluster_metadata-0")
    with pytest.raises(StorageError, match="/b/__cluster_metadata-0 is not where the metadata log is to be, in /a"):
        load(disk)


class UnreadableDisk(MemoryDisk):
    """A disk with one directory that cannot be read."""

    unreadable = ""

    def open(self, path: str, *, create: bool = False) -> MemoryFile:
        if self.unreadable and path.startswith(self.unreadable):
            raise OSError(errno.EIO, "broken", path)
        return super().open(path, create=create)


@pytest.mark.parametrize("broken", ["/a", "/b"])
def test_a_broken_directory_is_offline_unless_it_holds_the_metadata(broken: str) -> None:
    disk = UnreadableDisk()
    for path, directory_id in (("/a", ONE), ("/b", TWO)):
        disk.make_dirs(path)
        write_meta_properties(disk, path, MetaProperties(CLUSTER_ID, 1, directory_id), "today")
    disk.unreadable = broken
    if broken == "/a":
        with pytest.raises(StorageError, match="the metadata directory /a cannot be read"):
            load(disk)
    else:
        assert list(load(disk).failed) == ["/b"]


@pytest.mark.parametrize(
    "content",
    [
        b"version=7\n",
        b"version=x\n",
        b"version=1\nnode.id=one\n",
        b"version=1\ndirectory.id=nonsense\n",
        b"a=\\u00zz\n",
    ],
)
def test_a_file_that_cannot_be_read_as_one_is_named(content: bytes) -> None:
    with pytest.raises(StorageError, match=r"Error loading /a/meta\.properties: "):
        parse_meta_properties(content, "/a/meta.properties")


def test_info_tells_what_is_there_and_what_is_wrong() -> None:
    disk = disk_with(a=MetaProperties(CLUSTER_ID, 1, ONE), b=MetaProperties(CLUSTER_ID, 3, TWO), c=None)
    replace_file(disk, "/file", b"")
    lines, is_sound = describe_storage(disk, ["/a", "/b", "/c", "/d", "/file"])
    assert not is_sound
    assert lines == [
        "Found log directories:",
        "  /a",
        "  /b",
        "  /c",
        "",
        f"Found metadata: {{cluster.id={CLUSTER_ID}, directory.id={uuid_text(ONE)}, node.id=1, version=1}}",
        "",
        "Found problems:",
        "  Mismatched node IDs between storage directories.",
        "  /c is not formatted.",
        "  /d does not exist",
        "  /file is not a directory",
        "",
    ]


def test_info_of_directories_that_are_all_right() -> None:
    disk = disk_with(a=MetaProperties(CLUSTER_ID, 1, ONE))
    lines, is_sound = describe_storage(disk, ["/a"])
    assert is_sound
    assert lines[:2] == ["Found log directory:", "  /a"]
