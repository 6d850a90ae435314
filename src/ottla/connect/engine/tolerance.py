"""What is done with records that a converter, a transform or a sink refuses: `errors.tolerance` (KIP-298, KIP-610).

    none (the default)    the connector fails, and nothing of the batch is written
    all                   the record is left out; logged with `errors.log.enable`, and sent to
                          `errors.deadletterqueue.topic.name` if that is given

Unlike in Kafka, sources have dead letters too: written in the batch's transaction, with key and value as JSON, since
such a record never had bytes.

Looking for the records that are to blame costs little while they are few: what is refused names its record, which is
taken out if it is refused alone too, and the rest is tried again. If they are many, halves are tried.
"""

import traceback
from collections.abc import Callable, Mapping, Sequence
from logging import Logger
from typing import Any, Final, NamedTuple, TypeVar

import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types
import pyarrow.compute as pc  # type: ignore[import-untyped]

from ottla.client.admin.topics import NewTopic
from ottla.config.bounds import OneOf
from ottla.config.setting import ANY, LOW, MEDIUM, Flag, Int, Setting, Text
from ottla.connect.errors import DataError
from ottla.connect.options import read_options

ROWS: Final[tuple[Setting, ...]] = (
    Text(
        "errors.tolerance",
        "none",
        OneOf(("none", "all"), any_case=True),
        MEDIUM,
        "Whether a record that cannot be converted or transformed fails the connector (none) or is left out (all).",
        acted_on=True,
    ),
    Flag("errors.log.enable", False, ANY, MEDIUM, "Whether such records are logged.", acted_on=True),
    Flag("errors.log.include.messages", False, ANY, MEDIUM, "Whether the log says which record.", acted_on=True),
    Text("errors.deadletterqueue.topic.name", "", ANY, MEDIUM, "The topic that gets such records.", acted_on=True),
    Int(
        "errors.deadletterqueue.topic.replication.factor",
        3,
        ANY,
        MEDIUM,
        "Its replication factor, if the connector creates it.",
        acted_on=True,
    ),
    Flag(
        "errors.deadletterqueue.context.headers.enable",
        False,
        ANY,
        MEDIUM,
        "Whether headers of dead letters say what happened (`__connect.errors.…`).",
        acted_on=True,
    ),
    Int("errors.retry.timeout", 0, ANY, MEDIUM, "For Kafka's; what is tried again here is the connector."),
    Int("errors.retry.delay.max.ms", 60_000, ANY, LOW, "For Kafka's; what is tried again here is the connector."),
)
_FEW: Final = 16
_PREFIX: Final = "__connect.errors."

T = TypeVar("T")


class RecordRefused(DataError):
    """A record that a step of the way refused. `record` is its number in the batch; None if it is not known."""

    def __init__(self, error: Exception, record: int | None, stage: str, class_name: str) -> None:
        super().__init__(str(error))
        self.error = error
        self.record = record
        self.stage = stage
        self.class_name = class_name


class DeadLetter(NamedTuple):
    """A record for the dead-letter topic."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class Origin(NamedTuple):
    """Where a refused record came from. A source's has no partition and offset."""

    topic: str
    partition: int | None
    offset: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def _is_to_blame(record: int | None, rows: Any, attempt: Callable[[Any], object]) -> bool:
    """Whether the record that is named is refused alone too: no good record is left out because of a wrong name."""
    if record is None or record not in rows.to_pylist():
        return False
    try:
        attempt(pa.array([record], pa.int64()))
    except RecordRefused:
        return True
    return False


def letters_topic(config: Mapping[str, str]) -> NewTopic | None:
    """The connector's topic of dead letters, as it is made where it is not there; None if it has none."""
    options = read_options(ROWS, config)
    name = options.text("errors.deadletterqueue.topic.name").strip()
    return NewTopic(name, 1, options.integer("errors.deadletterqueue.topic.replication.factor")) if name else None


class Tolerance:
    """A connector's. `take_letters` gives the dead letters since it was last asked."""

    def __init__(self, connector: str, config: Mapping[str, str], log: Logger) -> None:
        options = read_options(ROWS, config)
        self._connector = connector
        self._log = log
        self._all = options.text("errors.tolerance").lower() == "all"
        self._logs = options.flag("errors.log.enable")
        self._logs_messages = options.flag("errors.log.include.messages")
        self._has_context = options.flag("errors.deadletterqueue.context.headers.enable")
        self._letters_topic = options.text("errors.deadletterqueue.topic.name").strip() or None
        self._letters: list[DeadLetter] = []
        self.skipped = 0
        """Records that were left out."""

    def through(self, length: int, attempt: Callable[[Any], list[T]], origin: Callable[[int], Origin]) -> list[T]:
        """What `attempt` makes of the records, given their numbers (int64). Raises `RecordRefused` if none may be
        left out."""
        return self._attempted(pa.array(range(length), pa.int64()), attempt, origin, 0)

    def _attempted(
        self, rows: Any, attempt: Callable[[Any], list[T]], origin: Callable[[int], Origin], failures: int
    ) -> list[T]:
        while len(rows):
            try:
                return attempt(rows)
            except RecordRefused as refused:
                self._log_refused(refused, origin)
                if not self._all:
                    raise
                failures += 1
                if len(rows) == 1:
                    self._leave_out(rows[0].as_py(), refused, origin)
                    return []
                if failures > _FEW or not _is_to_blame(refused.record, rows, attempt):
                    middle = len(rows) // 2
                    halves = rows.slice(0, middle), rows.slice(middle)
                    return [made for half in halves for made in self._attempted(half, attempt, origin, _FEW)]
                self._leave_out(refused.record, refused, origin)
                rows = rows.filter(pc.not_equal(rows, refused.record))
        return []

    def refuse(self, refused: RecordRefused, origin: Callable[[int], Origin]) -> None:
        """For a record that the target refuses. Raises `refused` if it may not be left out."""
        self._log_refused(refused, origin)
        if not self._all:
            raise refused
        self._leave_out(refused.record, refused, origin)

    def _leave_out(self, row: int | None, refused: RecordRefused, origin: Callable[[int], Origin]) -> None:
        assert row is not None, "a record that is left out is known"
        self.skipped += 1
        if self._letters_topic is None:
            return
        came_from = origin(row)
        headers = came_from.headers
        if self._has_context:
            headers += tuple((_PREFIX + name, value) for name, value in self._context(came_from, refused))
        self._letters.append(DeadLetter(self._letters_topic, came_from.key, came_from.value, headers))

    def _context(self, came_from: Origin, refused: RecordRefused) -> Sequence[tuple[str, bytes]]:
        error = refused.error
        said = {
            "topic": came_from.topic,
            "partition": came_from.partition,
            "offset": came_from.offset,
            "connector.name": self._connector,
            "task.id": "0",
            "stage": refused.stage,
            "class.name": refused.class_name,
            "exception.class.name": "org.apache.kafka.connect.errors.DataException",
            "exception.message": str(error),
            "exception.stacktrace": "".join(traceback.format_exception(error)),
        }
        # A message may have half of a surrogate pair in it: out of the record, which is refused for that.
        return [
            (name, str(value).encode(errors="backslashreplace")) for name, value in said.items() if value is not None
        ]

    def take_letters(self) -> list[DeadLetter]:
        taken, self._letters = self._letters, []
        return taken

    def _log_refused(self, refused: RecordRefused, origin: Callable[[int], Origin]) -> None:
        if not self._logs:
            return
        what = f"in {refused.stage} ({refused.class_name}): {refused}"
        if self._logs_messages and refused.record is not None:
            came_from = origin(refused.record)
            what += f"; the record of {came_from.topic}-{came_from.partition} at offset {came_from.offset}"
        self._log.error("connector %s: error %s", self._connector, what)
