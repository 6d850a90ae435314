"""Files both ways: a directory of JSON lines, CSV or Parquet to a topic, and a topic to such files.

Source. Every file of the directory whose name matches is a source partition, `{"file": NAME}`. Its offset says how many
of its records are written, and what the file was: `{"records": 200, "bytes": 5120, "modified_ns": …, "done": true}`. A
file is read when it has kept its size for `file.settle.ms`. One that grows afterwards (JSON lines, CSV) is read on from
there; one that is another by then is refused by name. A name that begins with `.` or `_`, or ends in `.tmp`, is
unfinished work of somebody's. Records have null as their key, and the file's columns as their value.

Sink. Exactly once: a put writes files under hidden names, renames them, and last renames the manifest `_manifest.json`,
which says up to which offsets the directory is complete. What a put leaves that was killed is removed at the next
start: hidden files, and those that begin where the manifest ends. Files are named by the offsets of their records,
`TOPIC-PARTITION-FIRST-LAST.parquet`; a reader that takes those below the manifest's offsets sees every record once.
A put and a start hold the lock of `_lock` (flock, which the kernel takes back from a process that dies). So a start
removes nothing that is about to be committed. With the lock, a put first reads the manifest again: if another worker
has moved a partition since, nothing is written. Connectors with other topics may share the directory.
On S3, which has no rename, manifests are numbered instead (`s3_directory`).
"""

import errno
import fcntl
import fnmatch
import io
import json
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from time import monotonic, sleep, time
from typing import Any, Final, NamedTuple, Protocol

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.base.ids import TopicPartition
from ottla.config.bounds import OneOf, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Long, Text
from ottla.connect.arrow_tables import records_from_table, table_of, without_positions
from ottla.connect.connector import Place, Sink, Source, SourceRecords
from ottla.connect.connectors.allowed_paths import allowed_path
from ottla.connect.connectors.file_stream import write_durably
from ottla.connect.connectors.renamed_topics import renamed_topics
from ottla.connect.connectors.s3 import S3_SETTINGS, S3Access, is_s3
from ottla.connect.connectors.s3_directory import Layout, NewFile, S3Directory, bucket_and_path
from ottla.connect.data.columns import Schemaless, nothing
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError, DataError, Retriable

_FORMATS: Final = ("json", "csv", "parquet")
_PAUSE_S: Final = 0.5
_MANIFEST: Final = "_manifest.json"
_LOCK: Final = "_lock"
_LOCK_S: Final = 30.0
_LOCK_PAUSE_S: Final = 0.05
_HIDDEN: Final = "._"
_UNFINISHED: Final = ".tmp"
"""A topic may begin as hidden names do; no finished file ends so."""


class FilesSource(Source):
    settings = (
        Text(
            "directory",
            REQUIRED,
            ANY,
            HIGH,
            "The directory whose files are read, or `s3://BUCKET/PREFIX`.",
            acted_on=True,
        ),
        Text("topic", REQUIRED, ANY, HIGH, "The topic to write to.", acted_on=True),
        Text(
            "format",
            REQUIRED,
            OneOf(_FORMATS, any_case=True),
            HIGH,
            "What the files are: JSON lines, CSV with a header line, or Parquet.",
            acted_on=True,
        ),
        Text("pattern", "*", ANY, MEDIUM, "Which names are read: `*.csv`, `2026-*`.", acted_on=True),
        *S3_SETTINGS,
        Long(
            "file.settle.ms",
            1000,
            at_least(0),
            LOW,
            "How long a file must have kept its size before it is read.",
            acted_on=True,
        ),
    )

    def start(self) -> None:
        options = self.options()
        text = options.text("directory")
        self._directory: _Place = (
            _S3Place(text, S3Access.of(options))
            if is_s3(text)
            else _LocalPlace(allowed_path(text, self.context.worker, "directory"))
        )
        self._topic = options.text("topic")
        self._format = options.text("format").lower()
        self._pattern = options.text("pattern")
        self._settle_s = options.integer("file.settle.ms") / 1000
        self._known: dict[str, dict[str, Any]] = {}
        self._open: tuple[str, Iterator[tuple[Any, dict[str, Any]]]] | None = None
        self._is_at_end = self._is_settling = False
        self._directory.check()

    def is_at_end(self) -> bool:
        """A poll has found no file that it had not read; one that is not settled yet counts as one to read."""
        return self._is_at_end

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        deadline_s = monotonic() + timeout_s
        self._is_at_end = False
        while True:
            if self._open is None:
                self._open = self._next_file()
            if self._open is not None:
                name, batches = self._open
                found = next(batches, None)
                if found is None:
                    self._open = None
                    continue
                rows, offset = found
                self._known[name] = offset
                return [SourceRecords(self._records(rows), {"file": name}, offset)]
            left_s = deadline_s - monotonic()
            if left_s <= 0:
                self._is_at_end = not self._is_settling
                return []
            sleep(min(_PAUSE_S, left_s))

    def _next_file(self) -> tuple[str, Iterator[tuple[Any, dict[str, Any]]]] | None:
        """The next file, by name, that has something new."""
        self._is_settling = False
        for one in sorted(self._directory.files(), key=lambda found: found.name):
            name = one.name
            if not fnmatch.fnmatchcase(name, self._pattern) or name.startswith((".", "_")) or name.endswith(".tmp"):
                continue
            if name not in self._known:
                self._known[name] = self.context.offset({"file": name}) or {}
            before = self._known[name]
            same = before.get("bytes") == one.size and before.get("modified_ns") == one.modified_ns
            if same and before.get("done"):
                continue
            if time() - one.modified_ns / 1e9 < self._settle_s:
                self._is_settling = True
                continue
            return name, self._batches(one, before, same)
        return None

    def _batches(self, one: "_Found", before: Mapping[str, Any], same: bool) -> Iterator[tuple[Any, dict[str, Any]]]:
        """Rows of a file that are not written yet, each time with the offset behind them."""
        written = int(before.get("records", 0))
        path = f"{self._directory.text}/{one.name}"
        if before and not same and (self._format == "parquet" or one.size < int(before.get("bytes", 0))):
            raise ConnectError(
                f"{path} was read up to record {written}, and is another file now: give a new file a new name"
            )
        offset = {"bytes": one.size, "modified_ns": one.modified_ns}
        count = 0
        try:
            for table in _read(self._format, lambda: self._directory.open(one.name), one.size, self.context.max_bytes):
                begin, count = count, count + table.num_rows
                if count <= written:
                    continue
                rows = table.slice(max(written - begin, 0))
                yield rows, {"records": count, **offset, "done": False}
        except (pa.ArrowInvalid, UnicodeDecodeError, ValueError) as error:
            raise ConnectError(f"{path} cannot be read as {self._format}, behind record {count}: {error}") from error
        yield None, {"records": max(count, written), **offset, "done": True}

    def _records(self, rows: Any) -> Records:
        if rows is None:
            return without_positions(self._topic, nothing(0), nothing(0))
        if isinstance(rows, _Documents):
            return without_positions(self._topic, nothing(rows.num_rows), Schemaless(tuple(rows.values)))
        return records_from_table(self._topic, rows)


class _Documents:
    """Lines of JSON, each of which may be anything."""

    def __init__(self, values: list[Any]) -> None:
        self.values = values
        self.num_rows = len(values)

    def slice(self, begin: int) -> "_Documents":
        return _Documents(self.values[begin:])


class _Found(NamedTuple):
    name: str
    size: int
    modified_ns: int


class _Place(Protocol):
    """Where a source's files are."""

    text: str

    def check(self) -> None:
        """Raises `ConnectError` if there is no such place."""

    def files(self) -> list[_Found]: ...

    def open(self, name: str) -> Any:
        """A binary file that can seek."""


class _LocalPlace:
    def __init__(self, path: Path) -> None:
        self._path, self.text = path, str(path)

    def check(self) -> None:
        if not self._path.is_dir():
            raise ConnectError(f"directory={self._path} is no directory: create it, or name another")

    def files(self) -> list[_Found]:
        found: list[_Found] = []
        with os.scandir(self._path) as entries:
            for one in entries:
                try:
                    if one.is_file():
                        status = one.stat()
                        found.append(_Found(one.name, status.st_size, status.st_mtime_ns))
                except FileNotFoundError:
                    continue
        return found

    def open(self, name: str) -> Any:
        return open(self._path / name, "rb")


class _S3Place:
    """Objects directly below a prefix. What is deeper is not looked at, as in a local directory."""

    def __init__(self, text: str, access: S3Access) -> None:
        self.text, self._access = text.rstrip("/"), access
        self._bucket, self._path = bucket_and_path(text, "directory")
        self._files = access.file_system()

    def check(self) -> None:
        from pyarrow.fs import FileType  # type: ignore[import-untyped]  # pyarrow ships no types

        try:
            missing = self._files.get_file_info(self._bucket).type == FileType.NotFound
        except OSError as error:
            raise self._access.failure(f"directory={self.text}", error) from error
        if missing:
            raise ConnectError(f"directory={self.text}: there is no bucket {self._bucket}, or it may not be seen")

    def files(self) -> list[_Found]:
        from pyarrow.fs import FileSelector, FileType

        try:
            found = self._files.get_file_info(FileSelector(self._path, allow_not_found=True))
        except OSError as error:
            raise self._access.failure(f"directory={self.text}", error) from error
        return [_Found(one.base_name, one.size, one.mtime_ns) for one in found if one.type == FileType.File]

    def open(self, name: str) -> Any:
        try:
            return io.BufferedReader(self._files.open_input_file(f"{self._path}/{name}"), 1 << 20)
        except OSError as error:
            raise self._access.failure(f"{self.text}/{name}", error) from error


def _read(format: str, open_file: Callable[[], Any], size: int, most: int) -> Iterator[Any]:
    if format == "parquet":
        from pyarrow import parquet

        with open_file() as file, parquet.ParquetFile(file) as read:
            for batch in read.iter_batches(batch_size=20_000):
                yield pa.Table.from_batches([batch])
    elif format == "csv":
        from pyarrow import csv

        # All columns are text: what type a column has would else depend on the first block of its file.
        names: list[str] = []
        parse = csv.ParseOptions(newlines_in_values=True)  # else a block may end in the middle of a value
        if size:
            with open_file() as file:
                names = csv.open_csv(file, parse_options=parse).schema.names
        if names:
            options = csv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                strings_can_be_null=False,
                quoted_strings_can_be_null=False,
            )
            with open_file() as file:
                reader = csv.open_csv(
                    file,
                    parse_options=parse,
                    convert_options=options,
                    read_options=csv.ReadOptions(block_size=min(most, 4 << 20)),
                )
                for batch in reader:
                    yield pa.Table.from_batches([batch])
    else:
        values: list[Any] = []
        length = 0
        with open_file() as file:
            for line in file:
                if not line.endswith(b"\n") and not _is_whole(line):
                    break  # it is still being written
                if line.strip():
                    values.append(json.loads(line))
                    length += len(line)
                if length >= most:
                    yield _Documents(values)
                    values, length = [], 0
        if values:
            yield _Documents(values)


def _is_whole(line: bytes) -> bool:
    """Whether a last line without its end is a document: many programs write none. A number may have digits coming."""
    try:
        return isinstance(json.loads(line), dict | list | str)
    except ValueError:
        return False


class FilesSink(Sink):
    settings = (
        Text("directory", REQUIRED, ANY, HIGH, "The directory to write to, or `s3://BUCKET/PREFIX`.", acted_on=True),
        Text(
            "format",
            REQUIRED,
            OneOf(_FORMATS, any_case=True),
            HIGH,
            "What the files are: JSON lines, CSV with a header line, or Parquet.",
            acted_on=True,
        ),
        *S3_SETTINGS,
    )

    def start(self) -> None:
        options = self.options()
        self._format = options.text("format").lower()
        self._s3: S3Directory | None = None
        if is_s3(options.text("directory")):
            self._s3 = S3Directory(
                options.text("directory"),
                S3Access.of(options),
                _s3_layout(self._format),
                self.context.log,
                "directory",
            )
            return
        self._directory = allowed_path(options.text("directory"), self.context.worker, "directory")
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConnectError(f"directory={self._directory} cannot be made: {error.strerror}") from error
        self._manifest = self._directory / _MANIFEST
        with self._locked():
            self._positions = self._read_manifest()
            self._remove_leftovers()

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else starts here or puts. Raises `Retriable` if somebody does for long."""
        deadline_s = monotonic() + _LOCK_S
        try:
            lock = os.open(self._directory / _LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise self._failure(error) from error
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if monotonic() >= deadline_s:
                        raise Retriable(f"another process is writing to {self._directory}; nothing was done") from None
                    sleep(_LOCK_PAUSE_S)
                except OSError as error:
                    raise ConnectError(
                        f"directory={self._directory}: its file system has no locks ({error.strerror}), by which "
                        "workers keep out of each other's way; name another directory"
                    ) from error
            yield
        finally:
            os.close(lock)

    def _failure(self, error: OSError) -> ConnectError:
        passes = error.errno != errno.ENAMETOOLONG
        return (Retriable if passes else ConnectError)(f"{self._directory} cannot be written: {error.strerror}")

    def _read_manifest(self) -> dict[TopicPartition, int]:
        try:
            said = json.loads(self._manifest.read_text())
        except FileNotFoundError:
            return {}
        except ValueError as error:
            raise ConnectError(f"{self._manifest} cannot be read: {error}") from error
        return {
            TopicPartition(topic, int(partition)): offset
            for topic, partitions in said["positions"].items()
            for partition, offset in partitions.items()
        }

    def _remove_leftovers(self) -> None:
        """What a put left that was not finished: hidden files, and those that begin where the manifest ends."""
        suffix = re.escape(_suffix(self._format))
        named = re.compile(rf"(.+)-(\d+)-(\d{{20}})-(\d{{20}})(?:-\d+)?{suffix}")
        for path in self._directory.iterdir():
            is_hidden = path.name.startswith(_HIDDEN) and path.name.endswith(_UNFINISHED)
            found = named.fullmatch(path.name[len(_HIDDEN) : -len(_UNFINISHED)] if is_hidden else path.name)
            if found is None:
                continue
            known = self._positions.get(TopicPartition(found[1], int(found[2])), 0)
            if is_hidden or int(found[3]) >= known:
                path.unlink()

    def positions(self) -> Mapping[TopicPartition, int]:
        return self._positions if self._s3 is None else self._s3.positions()

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        refuse_renamed(batches, positions, self.context.places)
        if self._s3 is not None:
            self._s3.put(new_files(batches, self._format), positions)
            return
        with self._locked():
            found = self._read_manifest()
            self._hold(found, positions)
            try:
                written = [made for number, one in enumerate(batches) for made in self._write(one, number)]
                for unfinished, path in written:
                    os.replace(unfinished, path)
                self._write_manifest({**found, **positions}, [path.name for _, path in written])
            except OSError as error:
                raise self._failure(error) from error
        self._positions = {**found, **positions}

    def _hold(self, found: Mapping[TopicPartition, int], positions: Mapping[TopicPartition, int]) -> None:
        """That nobody has moved these partitions since this object read the manifest, or wrote it last."""
        for partition in positions:
            if found.get(partition) != self._positions.get(partition):
                raise Retriable(
                    f"another worker has written records of {partition} to {self._directory}; nothing of this put "
                    "was written"
                )

    def _write_manifest(self, positions: Mapping[TopicPartition, int], files: Sequence[str]) -> None:
        said: dict[str, dict[str, int]] = {}
        for (topic, partition), offset in sorted(positions.items()):
            said.setdefault(topic, {})[str(partition)] = offset
        write_durably(self._manifest, json.dumps({"positions": said, "files": list(files)}).encode())

    def _write(self, records: Records, number: int) -> Iterator[tuple[Path, Path]]:
        """A file for each partition of a batch, under a hidden name; with the name that it will have."""
        for partition, chosen, first, last in _by_partition(records):
            name = f"{records.topic}-{partition}-{first:020}-{last:020}"
            name = f"{name}-{number}{_suffix(self._format)}" if number else f"{name}{_suffix(self._format)}"
            unfinished = self._directory / f"{_HIDDEN}{name}{_UNFINISHED}"
            with open(unfinished, "wb") as file:
                write_records(chosen, self._format, file)
                file.flush()
                os.fsync(file.fileno())
            yield unfinished, self._directory / name


def _by_partition(records: Records) -> Iterator[tuple[int, Records, int, int]]:
    """The records of each partition, with their first and last offset."""
    for partition in records.partition.unique().to_pylist():
        chosen, _ = records.split(pc.equal(records.partition, partition))
        assert chosen is not None
        yield partition, chosen, pc.min(chosen.offset).as_py(), pc.max(chosen.offset).as_py()


def refuse_renamed(
    batches: Sequence[Records], positions: Mapping[TopicPartition, int], places: Callable[[Records], list[Place]]
) -> None:
    """Files are named by the offsets of their records, and what a crash left is known by its name: a topic that a
    transform has renamed would have the offsets of another."""
    for renamed in renamed_topics(batches, positions, places):
        raise ConnectError(
            f"a transform has renamed a topic to {renamed}: files are named by topic, partition and offset, "
            "and the offsets would be another topic's; leave the topic's name"
        )


def new_files(batches: Sequence[Records], format: str, most: int | None = None) -> Iterator[NewFile]:
    """The files of a put: one for each partition and schema, with at most so many records."""
    for number, whole in enumerate(batches):
        for partition, records, _, _ in _by_partition(whole):
            for begin in range(0, len(records), most or len(records)):
                end = min(begin + (most or len(records)), len(records))
                part = records.take(pa.array(range(begin, end), pa.int64()))
                first, last = pc.min(part.offset).as_py(), pc.max(part.offset).as_py()
                yield NewFile(part.topic, partition, first, last, number, partial(write_records, part, format))


def write_records(records: Records, format: str, file: Any) -> None:
    """The values, as a whole file. Raises `DataError`."""
    if format == "json":
        from ottla.connect.converters.by_name import make_converter

        texts = make_converter("JsonConverter", {"schemas.enable": "false"}).to_bytes("", records.value)
        for text in texts.to_pylist():
            file.write((text if text is not None else b"null") + b"\n")
        return
    table = table_of(records)
    if format == "csv":
        from pyarrow import csv

        csv.write_csv(_flat(table), file)
    else:
        from pyarrow import parquet

        parquet.write_table(table, file)


def _s3_layout(format: str) -> Layout:
    suffix = _suffix(format)

    def name(file: NewFile, owner: int) -> str:
        more = f"-{file.number}" if file.number else ""
        return f"{file.topic}-{file.partition}-{file.first:020}-{file.last:020}-w{owner}{more}{suffix}"

    pattern = r"(?P<topic>[^/]+)-(?P<partition>\d+)-(?P<first>\d{20})-\d{20}-w(?P<owner>\d+)(?:-\d+)?"
    return Layout(name, re.compile(pattern + re.escape(suffix)))


def _suffix(format: str) -> str:
    return ".jsonl" if format == "json" else f".{format}"


def _flat(table: Any) -> Any:
    """CSV has no nesting."""
    for field in table.schema:
        if pa.types.is_nested(field.type):
            raise DataError(f"column {field.name} is nested, which CSV cannot have: use the Flatten transform")
    return table
