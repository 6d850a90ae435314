"""Data directories. Nothing is written: a directory may be in use, and a doctor must not change what it looks at."""

import os
from collections.abc import Iterator

from ottla.base.errors import OttlaError
from ottla.cli.doctor.findings import NOTE, OK, PROBLEM, WARNING, Finding
from ottla.cli.text_tables import counted
from ottla.log import file_names
from ottla.log.disk import OsDisk
from ottla.node.config import NodeConfig
from ottla.node.storage.meta_properties import inspect, verify

AREA = "directories"
_MIN_FREE_BYTES = 100 << 20
_LOW_FREE_BYTES = 1 << 30
_LOW_FREE_FILES = 10_000
_CLOCK_SLACK_S = 60
_NETWORK_FILE_SYSTEMS = ("nfs", "nfs4", "cifs", "smb3", "fuse.sshfs", "9p", "afs")
_MEMORY_FILE_SYSTEMS = ("tmpfs", "ramfs")


def check_storage(config: NodeConfig, *, may_format: bool, now_s: float) -> list[Finding]:
    """`may_format`: a node without a file formats a new directory by itself."""
    findings: list[Finding] = []
    paths = list(dict.fromkeys((*config.log_dirs, config.metadata_log_dir)))
    for path in paths:
        findings += _check_directory(path, may_format=may_format, now_s=now_s)
    findings += _check_owner(config, [path for path in paths if os.path.isdir(path)])
    return findings


def is_in_use(path: str) -> bool:
    """A running node, of ours or Apache Kafka's, holds the directory's lock."""
    lock = f"{path}/{file_names.LOCK}"
    if not os.path.exists(lock) or not os.access(lock, os.W_OK):
        return False
    try:
        OsDisk().lock(lock).release()
    except BlockingIOError:
        return True
    return False


def _check_directory(path: str, *, may_format: bool, now_s: float) -> Iterator[Finding]:
    if not os.path.isdir(path):
        yield _missing(path, may_format=may_format)
        yield from _room(_nearest_parent(path))
        return
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        yield Finding(AREA, PROBLEM, f"{path}: this user may not read and write it", f"chown or chmod {path}.")
        return
    if not os.path.exists(f"{path}/{file_names.META_PROPERTIES}"):
        yield _not_formatted(path, may_format=may_format)
    elif is_in_use(path):
        yield Finding(AREA, NOTE, f"{path}: a node is running on it", "Stop it before another one starts here.")
    else:
        yield from _left(path)
    yield from _file_system(path)
    yield from _room(path)
    yield from _future(path, now_s)


def _missing(path: str, *, may_format: bool) -> Finding:
    if os.path.exists(path):
        return Finding(AREA, PROBLEM, f"{path} is not a directory", "Move the file away, or set log.dirs.")
    parent = _nearest_parent(path)
    if not os.access(parent, os.W_OK | os.X_OK):
        return Finding(AREA, PROBLEM, f"{path} does not exist, and this user may not make it in {parent}")
    if may_format:
        return Finding(AREA, OK, f"{path} does not exist; the node makes and formats it")
    return Finding(AREA, PROBLEM, f"{path} does not exist", "Format it: kafka-storage format -t ID -c FILE.")


def _not_formatted(path: str, *, may_format: bool) -> Finding:
    if may_format and not os.listdir(path):
        return Finding(AREA, OK, f"{path} is empty; the node formats it")
    advice = "Format it: kafka-storage format -t ID -c FILE, with an ID from kafka-storage random-uuid."
    return Finding(AREA, PROBLEM, f"{path} is not formatted: it has no {file_names.META_PROPERTIES}", advice)


def _left(path: str) -> Iterator[Finding]:
    """How the last node that used the directory went."""
    entries = os.listdir(path)
    partitions = sum(1 for name in entries if os.path.isdir(f"{path}/{name}") and name[-1:].isdecimal())
    is_used = file_names.LOCK in entries
    if is_used and file_names.CLEAN_SHUTDOWN not in entries:
        yield Finding(
            AREA,
            NOTE,
            f"{path}: the last node was not stopped in good order; the next start checks "
            f"{counted(partitions, 'partition')} from the recovery point",
        )
    else:
        yield Finding(AREA, OK, f"{path}: formatted, {counted(partitions, 'partition')}")


def _room(path: str) -> Iterator[Finding]:
    space = os.statvfs(path)
    free, total = space.f_bavail * space.f_frsize, space.f_blocks * space.f_frsize
    shown = f"{path}: {_size(free)} of {_size(total)} free"
    advice = "Make room, move log.dirs, or lower log.retention.bytes and log.retention.ms."
    if free < _MIN_FREE_BYTES:
        yield Finding(AREA, PROBLEM, f"{shown}: a full disk takes the directory offline", advice)
    elif free < _LOW_FREE_BYTES or free * 20 < total:
        yield Finding(AREA, WARNING, shown, advice)
    else:
        yield Finding(AREA, OK, shown)
    if space.f_files and space.f_favail < _LOW_FREE_FILES:
        what = f"{path}: room for {space.f_favail} more files; a segment of a partition has three or four"
        yield Finding(AREA, WARNING, what, "Remove files, or use a file system with more inodes.")


def _file_system(path: str) -> Iterator[Finding]:
    kind = _file_system_of(path)
    if kind in _NETWORK_FILE_SYSTEMS:
        what = f"{path} is on {kind}: locks and fsync over a network are slow, and may not hold after a crash"
        yield Finding(AREA, WARNING, what, "Use a disk of this machine.")
    elif kind in _MEMORY_FILE_SYSTEMS:
        what = f"{path} is on {kind}: everything in it is gone when the machine stops"
        yield Finding(AREA, WARNING, what, "Use a disk, unless nothing is to be kept.")


def _future(path: str, now_s: float) -> Iterator[Finding]:
    """Files that are newer than now: the clock was set back, or was wrong when they were written."""
    newest = max((entry.stat().st_mtime for entry in os.scandir(path)), default=0.0)
    if newest > now_s + _CLOCK_SLACK_S:
        what = f"{path}: files in it were written {newest - now_s:.0f} seconds from now"
        yield Finding("clock", WARNING, what, "Set the clock; retention and timestamps follow it.")


def _check_owner(config: NodeConfig, paths: list[str]) -> Iterator[Finding]:
    try:
        found = inspect(OsDisk(), paths)
        verify(found.formatted, node_id=config.node_id)
    except OttlaError as problem:
        yield Finding(AREA, PROBLEM, str(problem), "Give each node directories of its own, and its own node.id.")


def _nearest_parent(path: str) -> str:
    while not os.path.isdir(path):
        path = os.path.dirname(os.path.abspath(path))
    return path


def _file_system_of(path: str) -> str:
    """By the longest mount point above the path; empty where the system does not tell."""
    best, kind = "", ""
    try:
        with open("/proc/mounts", encoding="utf-8", errors="replace") as mounts:
            real = os.path.realpath(path)
            for line in mounts:
                _, point, type_, *_ = line.split()
                inside = real == point or real.startswith(point.rstrip("/") + "/")
                if inside and len(point) >= len(best):
                    best, kind = point, type_
    except OSError:
        return ""
    return kind


def _size(count: int) -> str:
    return f"{count / (1 << 30):.1f} GB" if count >= 1 << 30 else f"{count / (1 << 20):.0f} MB"
