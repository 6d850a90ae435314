"""A whole file system is synced only where that is known to be as good as syncing its files."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.log import disk
from ottla.log.disk import file_system_type, sync_file_system

MOUNTS = """\
22 28 0:20 / /proc rw,nosuid shared:5 - proc proc rw
28 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
40 28 0:45 / /mnt/remote rw shared:9 - fuse.sshfs host:/data rw
41 28 0:46 / /mnt/a\\040b rw - xfs /dev/sdb1 rw
"""


class Uname:
    def __init__(self, release: str) -> None:
        self.release = release


@pytest.fixture
def opened(tmp_path: Path) -> Iterator[int]:
    fd = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield fd
    os.close(fd)


@pytest.fixture
def mounts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "mountinfo"
    path.write_text(MOUNTS)
    monkeypatch.setattr(disk, "_MOUNTS", str(path))
    return path


@pytest.mark.usefixtures("mounts")
@pytest.mark.parametrize(
    ("major", "minor", "type"), [(8, 1, "ext4"), (0, 45, "fuse.sshfs"), (0, 46, "xfs"), (8, 2, "")]
)
def test_the_type_of_a_file_system_is_found_by_its_device(major: int, minor: int, type: str) -> None:
    assert file_system_type(os.makedev(major, minor)) == type


def test_without_a_list_of_mounts_the_type_is_not_known(mounts: Path) -> None:
    mounts.unlink()
    assert file_system_type(os.makedev(8, 1)) == ""


@pytest.mark.parametrize("release", ["5.7.19", "4.18.0-553.el8.x86_64", "garbage"])
def test_an_older_kernel_would_not_tell_of_writes_that_failed(
    release: str, opened: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "uname", lambda: Uname(release))
    assert not sync_file_system(opened)


def test_a_file_system_with_a_server_behind_it_is_not_trusted(opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk, "file_system_type", lambda device: "fuse.sshfs")
    assert not sync_file_system(opened)


def test_elsewhere_there_is_no_such_call(opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert not sync_file_system(opened)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="syncfs is Linux's")
def test_a_trusted_file_system_is_synced(opened: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "uname", lambda: Uname("6.1.0-37-amd64"))
    monkeypatch.setattr(disk, "file_system_type", lambda device: "ext4")
    assert sync_file_system(opened)
