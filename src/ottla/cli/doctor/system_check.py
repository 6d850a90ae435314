"""The machine: how many files may be open, how much memory there is, whether the clock is set, what is installed."""

import os
import resource
import sys
from collections.abc import Iterator

from ottla.cli.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding

_WANTED_FILES = 100_000
_FEW_FILES = 4_096
_LITTLE_MEMORY_BYTES = 256 << 20
_SHORT_MEMORY_BYTES = 64 << 20
_OLDEST_YEAR_S = 1_704_067_200
"""The beginning of 2024: a clock before it was never set."""
_STA_UNSYNC = 0x40


def check_system(now_s: float) -> list[Finding]:
    return [*_files(), *_memory(), *_clock(now_s), *_installation()]


def _files() -> Iterator[Finding]:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard == resource.RLIM_INFINITY or hard >= _WANTED_FILES:
        yield Finding("files", OK, "the system lets a node open as many files as it will need")
        return
    what = f"a node may open {hard} files; every connection is one, and every partition in use has about four"
    advice = f"Raise it to {_WANTED_FILES}: `ulimit -Hn`, LimitNOFILE= of systemd, or --ulimit nofile of a container."
    yield Finding("files", WARNING if hard < _FEW_FILES else NOTE, what, advice)


def _memory() -> Iterator[Finding]:
    free = available_memory_bytes()
    if free is None:
        return
    shown = f"{free >> 20} MB of memory are available; a node takes 30 to 100, and the rest caches the log"
    if free < _SHORT_MEMORY_BYTES:
        yield Finding("memory", PROBLEM, shown, "Free memory, or give the container more.")
    elif free < _LITTLE_MEMORY_BYTES:
        yield Finding("memory", WARNING, shown, "Consumers will wait for the disk: give the node more memory.")
    else:
        yield Finding("memory", OK, shown)


def available_memory_bytes() -> int | None:
    """What the machine has left, or the container if that is less; None where the system does not tell."""
    found = [amount for amount in (_of_machine(), _of_container()) if amount is not None]
    return min(found, default=None)


def _of_machine() -> int | None:
    for line in _lines("/proc/meminfo"):
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    return None


def _of_container() -> int | None:
    """The limit of the control group, less what is in use and cannot be dropped (version 2 of groups, then 1)."""
    for limit, usage in (
        ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
        ("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes"),
    ):
        most, used = "".join(_lines(limit)).strip(), "".join(_lines(usage)).strip()
        if most.isdecimal() and used.isdecimal():
            cached = sum(
                int(line.split()[1])
                for line in _lines(os.path.join(os.path.dirname(limit), "memory.stat"))
                if line.split()[0] in ("inactive_file", "active_file")
            )
            return max(0, int(most) - int(used) + cached)
    return None


def _clock(now_s: float) -> Iterator[Finding]:
    if now_s < _OLDEST_YEAR_S:
        advice = "Set the clock: records get its time, and are deleted by it."
        yield Finding("clock", PROBLEM, "the clock says that it is before 2024", advice)
        return
    is_kept = _is_synchronized()
    if is_kept is False:
        advice = "Run a time service (chrony, systemd-timesyncd), if the machine that keeps this clock has none."
        yield Finding("clock", NOTE, "the system does not say that the clock is kept right over the network", advice)
    else:
        how = ", kept right over the network" if is_kept else ""
        yield Finding("clock", OK, f"the clock is set{how}")


def _is_synchronized() -> bool | None:
    """As the kernel has it (adjtimex); None where it cannot be asked."""
    if sys.platform != "linux":
        return None
    import ctypes

    try:
        buffer = ctypes.create_string_buffer(512)  # struct timex; modes = 0 only asks
        state = ctypes.CDLL(None, use_errno=True).adjtimex(buffer)
    except (OSError, AttributeError):
        return None
    if state < 0:
        return None
    # modes and padding, offset, freq, maxerror, esterror, then status.
    word = ctypes.sizeof(ctypes.c_long)
    status = int.from_bytes(buffer.raw[5 * word : 5 * word + 4], sys.byteorder)
    return not status & _STA_UNSYNC


def _installation() -> Iterator[Finding]:
    from ottla import __version__
    from ottla.records import kernel

    version = ".".join(map(str, sys.version_info[:3]))
    shown = f"ottla {__version__} on Python {version}"
    if kernel.IS_COMPILED:
        yield Finding("installation", OK, f"{shown}, with the compiled kernel")
    else:
        what = f"{shown}, without the compiled kernel: clients and the cleaner are several times slower"
        yield Finding("installation", WARNING, what, "Install a C compiler and Python's headers, then ottla again.")


def _lines(path: str) -> list[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []
