"""How many processors this process may keep busy: those of the system, and no more than its container may use.

A container's limit is a quota of processor time (cgroups): 50 ms in every 100 ms are half a processor, however many the
machine has. A process that uses it up stands still until the next period, so time that is spent on nothing is missed.
The limit of a group holds for the groups inside it, too: the smallest on the way to the root counts.
"""

import os
from collections.abc import Iterator
from math import inf


def processor_count(root: str = "") -> float:
    """A fraction where there is a quota. `root` is where the system's files are."""
    given = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(given, *map(_limit, _groups(root)), inf)


def _groups(root: str) -> Iterator[str]:
    """The directories of the control groups that this process is in, for processor time."""
    for line in _read(f"{root}/proc/self/cgroup").splitlines():
        _, controllers, path = [*line.split(":", 2), "", ""][:3]
        if not controllers:
            group = f"{root}/sys/fs/cgroup"  # version 2: one tree for everything
        elif "cpu" in controllers.split(","):
            group = f"{root}/sys/fs/cgroup/{controllers}"
        else:
            continue
        # In a container its own group is often shown as the root, whatever the path says.
        yield group
        for name in filter(None, path.split("/")):
            group += f"/{name}"
            yield group


def _limit(group: str) -> float:
    """Processors by the quota; infinite where there is none ("max", -1), or the group is not shown to us."""
    of_version_2 = _read(f"{group}/cpu.max").split()
    quota, period = (
        of_version_2
        if len(of_version_2) == 2
        else (
            _read(f"{group}/cpu.cfs_quota_us"),
            _read(f"{group}/cpu.cfs_period_us"),
        )
    )
    try:
        return int(quota) / int(period) if int(quota) > 0 else inf
    except (ValueError, ZeroDivisionError):
        return inf


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""
