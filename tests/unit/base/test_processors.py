"""How many processors a process may use: by its affinity, and by the quota of the control groups that it is in."""

import os
from pathlib import Path

import pytest

from ottla.base.processors import processor_count


@pytest.fixture(autouse=True)
def eight_processors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)


def system(root: Path, cgroup: str, **files: str) -> str:
    """The files of a system, by their paths."""
    for name, content in {"proc/self/cgroup": cgroup, **files}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(content)
    return str(root)


def test_without_groups_it_is_what_the_system_gives(tmp_path: Path) -> None:
    assert processor_count(str(tmp_path)) == 8


@pytest.mark.parametrize(("limit", "count"), [("max 100000", 8), ("50000 100000", 0.5), ("150000 100000\n", 1.5)])
def test_the_quota_of_version_2(tmp_path: Path, limit: str, count: float) -> None:
    files = {"sys/fs/cgroup/pod/box/cpu.max": limit}
    assert processor_count(system(tmp_path, "0::/pod/box\n", **files)) == count


def test_the_smallest_limit_on_the_way_to_the_root_counts(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/pod/cpu.max": "100000 100000", "sys/fs/cgroup/pod/box/cpu.max": "400000 100000"}
    assert processor_count(system(tmp_path, "0::/pod/box\n", **files)) == 1


def test_a_container_sees_its_own_group_as_the_root(tmp_path: Path) -> None:
    files = {"sys/fs/cgroup/cpu.max": "25000 100000"}
    assert processor_count(system(tmp_path, "0::/../other/path\n", **files)) == 0.25


@pytest.mark.parametrize(("quota", "count"), [("-1", 8), ("200000", 2)])
def test_the_quota_of_version_1(tmp_path: Path, quota: str, count: float) -> None:
    files = {
        "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_quota_us": quota,
        "sys/fs/cgroup/cpu,cpuacct/docker/1/cpu.cfs_period_us": "100000",
    }
    cgroup = "11:memory:/docker/1\n4:cpu,cpuacct:/docker/1\n"
    assert processor_count(system(tmp_path, cgroup, **files)) == count


@pytest.mark.parametrize("damage", ["", "nonsense", "1 0", "a b"])
def test_what_cannot_be_read_is_no_limit(tmp_path: Path, damage: str) -> None:
    files = {"sys/fs/cgroup/cpu.max": damage}
    assert processor_count(system(tmp_path, damage + "\n0::/\n", **files)) == 8
