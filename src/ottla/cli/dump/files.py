"""Which function prints which file, and which files a directory holds that are worth printing."""

import os
from collections.abc import Callable, Iterator

from ottla.base.errors import OttlaError
from ottla.cli.dump.dumped_batches import dump_batches
from ottla.cli.dump.findings import Findings
from ottla.cli.dump.indexes import dump_offset_index, dump_time_index
from ottla.cli.dump.options import Options
from ottla.cli.dump.state import STATE_FILES, dump_producer_snapshot, dump_transaction_index
from ottla.log import file_names

_BY_SUFFIX: dict[str, Callable[[str, Options, Findings], Iterator[str]]] = {
    file_names.LOG: dump_batches,
    ".checkpoint": dump_batches,
    file_names.INDEX: dump_offset_index,
    file_names.TIME_INDEX: dump_time_index,
    file_names.PRODUCER_SNAPSHOT: lambda path, _options, _findings: dump_producer_snapshot(path),
    file_names.TRANSACTION_INDEX: lambda path, _options, _findings: dump_transaction_index(path),
}
_ON_ITS_WAY = (file_names.DELETED, file_names.CLEANED, file_names.SWAP)


class UnknownFileError(OttlaError):
    """A file that is not there, or that a data directory does not have under this name."""


def dump_segment_file(path: str, options: Options, findings: Findings) -> Iterator[str] | None:
    """The lines of a file that kafka-dump-log knows; None for any other."""
    dump = _BY_SUFFIX.get(os.path.splitext(path)[1])
    return dump(path, options, findings) if dump else None


def dump_any_file(path: str, options: Options, findings: Findings) -> Iterator[str]:
    """The lines of any file of a data directory."""
    if not os.path.exists(path):
        raise UnknownFileError(f"{path}: no such file or directory")
    name = os.path.basename(path)
    if name in STATE_FILES:
        return STATE_FILES[name](path)
    stem, suffix = os.path.splitext(path)
    if suffix in _ON_ITS_WAY and stem.endswith(file_names.LOG):
        return dump_batches(path, options, findings)
    lines = dump_segment_file(path, options, findings)
    if lines is None:
        raise UnknownFileError(f"{path}: not a file of a log directory, by its name")
    return lines


def is_printable(name: str) -> bool:
    """Whether a directory's file is printed unasked. Of segments on their way in or out, only the log is."""
    stem, suffix = os.path.splitext(name)
    if suffix in _ON_ITS_WAY:
        return stem.endswith(file_names.LOG)
    return name in STATE_FILES or suffix in _BY_SUFFIX


def printable_files(path: str) -> Iterator[str]:
    """A file itself; the files of a partition's directory in order; of a log directory, all there is."""
    if not os.path.isdir(path):
        yield path
        return
    entries = sorted(os.listdir(path))
    directories = [name for name in entries if os.path.isdir(os.path.join(path, name))]
    for name in entries:
        if name not in directories and is_printable(name):
            yield os.path.join(path, name)
    for name in directories:
        if file_names.parse_partition_dir(name) is not None:
            yield from printable_files(os.path.join(path, name))
