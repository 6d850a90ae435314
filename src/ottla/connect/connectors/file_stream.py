"""Kafka's FileStreamSource and FileStreamSink: the lines of a file that grows, to a topic, and a topic to lines.

Options, offsets and records are Kafka's: the partition is `{"filename": …}`, the offset `{"position": …}` (bytes,
behind the last line that was read), keys are null and values strings. A line counts when its end is there (LF, CR or CR
LF). A
file that became shorter is read from its beginning.

The sink appends. Unlike Kafka's it is exactly once: each put is one write at the end of the file, and a file beside it
(`FILE.ottla-positions`) says, renamed into place before, how long the file was and which offsets were put then. After a
crash in between, what was written beyond is cut off and put again.
"""

import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import IO, Any, Final

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.base.ids import TopicPartition
from ottla.config.bounds import at_least
from ottla.config.setting import ANY, HIGH, LOW, REQUIRED, Int, Text
from ottla.connect.connector import Problem, Sink, Source, SourceRecords
from ottla.connect.connectors.allowed_paths import allowed_path
from ottla.connect.data.columns import Column, nothing
from ottla.connect.data.records import Records, in_order
from ottla.connect.data.rows import rows_of
from ottla.connect.data.schema import Schema, Type
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.java_text import java_text

_LINE: Final = Schema(Type.STRING)
_FIRST_PAUSE_S: Final = 0.01
_LONGEST_PAUSE_S: Final = 0.25
_FIRST_READ: Final = 64 << 10
_POSITIONS: Final = ".ottla-positions"


class FileStreamSource(Source):
    settings = (
        Text("file", None, ANY, HIGH, "The file to read; standard input if none is given.", acted_on=True),
        Text("topic", REQUIRED, ANY, HIGH, "The topic to write to.", acted_on=True),
        Int(
            "batch.size",
            2000,
            at_least(1),
            LOW,
            "In Kafka, how many lines are written at a time. Here bytes decide.",
        ),
    )

    def start(self) -> None:
        options = self.options()
        self._topic = options.text("topic")
        name = options.optional_text("file")
        if not name:
            raise ConnectError(
                "file: name the file to read; without one it would be standard input, which is the worker's own"
            )
        self._name = name
        self._path = allowed_path(name, self.context.worker, "file")
        self._partition = {"filename": name}
        stored = self.context.offset(self._partition)
        self._position = _position_of(stored)
        self._file: IO[bytes] | None = None
        self._most = self.context.max_bytes
        self._read = _FIRST_READ
        self._is_at_end = self._has_more = False

    def is_at_end(self) -> bool:
        """A whole poll has found no complete line."""
        return self._is_at_end

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        deadline_s = monotonic() + timeout_s
        pause_s = _FIRST_PAUSE_S
        self._is_at_end = False
        while not (found := self._lines()):
            if self._has_more:
                continue
            left_s = deadline_s - monotonic()
            if left_s <= 0:
                self._is_at_end = True
                return []
            sleep(min(pause_s, left_s))
            pause_s = min(pause_s * 2, _LONGEST_PAUSE_S)
        texts = pa.array(found, pa.binary())
        try:
            lines = texts.cast(pa.string())
        except pa.ArrowInvalid:  # Java puts U+FFFD for what is no character
            lines = pa.array([line.decode("utf-8", "replace") for line in found], pa.string())
        count = len(found)
        records = Records(
            self._topic,
            nothing(count),
            Column(_LINE, lines),
            pa.array(range(count), pa.int64()),
            pa.repeat(pa.scalar(self.context.now_ms(), pa.int64()), count),
            pa.nulls(count, pa.int32()),
        )
        return [SourceRecords(records, self._partition, {"position": self._position})]

    def _lines(self) -> list[bytes]:
        """The lines that are complete, as many as fit. `_has_more` says that there is more to look at at once."""
        self._has_more = False
        file = self._opened()
        if file is None:
            return []
        try:
            named = os.stat(self._path)
        except FileNotFoundError:
            return []  # it is waited for
        status = os.fstat(file.fileno())
        is_other = (named.st_dev, named.st_ino) != (status.st_dev, status.st_ino)
        if (found := self._lines_of(file, status)) or self._has_more or not is_other:
            return found
        # Another file took the name, as `logrotate` does it. Who writes has the old one open for a while: what is in
        # the new one was written behind that, and it was asked for first.
        if named.st_size:
            if unfinished := os.fstat(file.fileno()).st_size - self._position:
                self.context.log.warning("%s was replaced: its last %s bytes are no line", self._path, unfinished)
            self._close()  # the other one is read from its beginning
            self._position, self._has_more = 0, True
        return []

    def _lines_of(self, file: IO[bytes], status: os.stat_result) -> list[bytes]:
        if status.st_size < self._position:
            self.context.log.warning("%s became shorter: it is read from its beginning", self._path)
            self._position = 0
        if status.st_size == self._position:
            return []
        file.seek(self._position)
        content = file.read(self._read)
        at_end = len(content) < self._read
        lines, used = _complete_lines(content)
        if not lines:
            if not at_end:
                if self._read >= self._most * 4:
                    raise ConnectError(
                        f"{self._path}: the line at byte {self._position} is longer than {self._read} bytes"
                    )
                self._read *= 2
                self._has_more = True
            return []
        self._position += used
        if not at_end:
            self._read = min(max(self._read * 2, _FIRST_READ), self._most)
        return lines

    def _opened(self) -> IO[bytes] | None:
        if self._file is None:
            allowed_path(self._name, self.context.worker, "file")  # it may be a link by now
            try:
                self._file = open(self._path, "rb")  # noqa: SIM115  # kept open
            except FileNotFoundError:
                return None  # as Kafka's: it is waited for
            except OSError as error:
                raise ConnectError(f"file={self._name} cannot be read: {error.strerror}") from error
        return self._file

    def _close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def stop(self) -> None:
        if hasattr(self, "_file"):
            self._close()

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        topic = config.get("topic", "")
        return [("topic", "one topic is written to, and this names several")] if "," in topic else []


def _position_of(stored: Mapping[str, Any] | None) -> int:
    """Raises `ConnectError` for an offset that is none of this connector's."""
    position = 0 if stored is None else stored.get("position")
    if not isinstance(position, int) or isinstance(position, bool) or position < 0:
        raise ConnectError(
            f"the stored offset {stored} is none of this connector's: reset the connector's offsets to read the file "
            "from its beginning"
        )
    return position


def _complete_lines(content: bytes) -> tuple[list[bytes], int]:
    """The lines whose end is there, and how many bytes they take with it. A CR that is last may have an LF coming."""
    end = max(content.rfind(b"\n"), content.rfind(b"\r", 0, len(content) - 1)) + 1
    if not end:
        return [], 0
    whole = content[:end]
    if b"\r" not in whole:
        lines = whole.split(b"\n")
    else:
        lines = whole.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    return lines[:-1], end


class FileStreamSink(Sink):
    settings = (
        Text("file", None, ANY, HIGH, "The file to append to; standard output if none is given.", acted_on=True),
    )

    def start(self) -> None:
        name = self.options().optional_text("file")
        self._file: IO[bytes] | None = None
        if not name:
            self._path = None
            return
        self._path = allowed_path(name, self.context.worker, "file")
        self._note = Path(f"{self._path}{_POSITIONS}")
        try:
            self._file = open(self._path, "ab")  # noqa: SIM115  # kept open
            self._cut_off()
        except OSError as error:
            raise ConnectError(f"file={name} cannot be written: {error.strerror}") from error

    def _cut_off(self) -> None:
        """What was written behind the last note: its positions were never noted."""
        assert self._file is not None
        self._positions, length = _read_note(self._note)
        size = os.fstat(self._file.fileno()).st_size
        if length is None:
            _write_note(self._note, {}, size)
            return
        if size < length:
            self.context.log.warning(
                "%s has %s bytes, and %s were written: it was made shorter", self._path, size, length
            )
        elif size > length:
            self._file.truncate(length)

    def positions(self) -> Mapping[TopicPartition, int] | None:
        return None if self._path is None else self._positions

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        lines = _texts(batches)
        content = "".join(f"{line}\n" for line in lines).encode("utf-8", "replace")
        if self._path is None:
            sys.stdout.write(content.decode())
            sys.stdout.flush()
            return
        assert self._file is not None
        try:
            self._file.write(content)
            self._file.flush()
            os.fsync(self._file.fileno())
            self._positions = {**self._positions, **positions}
            _write_note(self._note, self._positions, os.fstat(self._file.fileno()).st_size)
        except OSError as error:
            raise Retriable(f"{self._path} cannot be written: {error.strerror}") from error

    def stop(self) -> None:
        if getattr(self, "_file", None) is not None:
            assert self._file is not None
            self._file.close()
            self._file = None


def _texts(batches: Sequence[Records]) -> list[str]:
    """The values of all records, in order, as Java's `toString` says them."""
    if not batches:
        return []
    texts = []
    for records in batches:
        column = records.value
        if (
            isinstance(column, Column)
            and column.schema == Schema(Type.STRING, optional=True)
            and not column.array.null_count
        ):
            texts.append(column.array)
            continue
        values: Sequence[Any] = rows_of(column) if isinstance(column, Column) else column.values
        texts.append(pa.array([java_text(column.schema, value) for value in values], pa.string()))
    found: list[str] = in_order(texts, [records.position for records in batches]).to_pylist()
    return found


def _read_note(path: Path) -> tuple[dict[TopicPartition, int], int | None]:
    try:
        said = json.loads(path.read_text())
    except FileNotFoundError:
        return {}, None
    except ValueError as error:
        raise ConnectError(f"{path} says which offsets are in the file, and cannot be read: {error}") from error
    positions = {
        TopicPartition(topic, int(partition)): offset
        for topic, partitions in said["positions"].items()
        for partition, offset in partitions.items()
    }
    return positions, said["length"]


def _write_note(path: Path, positions: Mapping[TopicPartition, int], length: int) -> None:
    said: dict[str, dict[str, int]] = {}
    for (topic, partition), offset in sorted(positions.items()):
        said.setdefault(topic, {})[str(partition)] = offset
    write_durably(path, json.dumps({"length": length, "positions": said}).encode())


def write_durably(path: Path, content: bytes) -> None:
    """Whole or not at all, also after a crash of the machine."""
    unfinished = path.with_name(f"{path.name}.unfinished")
    with open(unfinished, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(unfinished, path)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
