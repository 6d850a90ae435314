"""What the sinks of Delta and Iceberg do.

Theory of operation. A commit to a table has rows and, for each partition, the offset behind them. So the table itself
says where to go on. Before each try, the table is read anew, and a partition's position must be where this object left
it: if another writer, a worker that was thought dead, has moved it meanwhile, nothing is written. A commit that lost
against somebody else's, a job that compacts for instance, is tried again from there. That the table did not change
between the look and the commit is the format's own guarantee.

With `${topic}` in its name there is a table for each topic, and a commit for each table of a put. A partition belongs
to one table, so a crash between two commits leaves each with its own rows and positions.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.connect.connector import Problem, Sink
from ottla.connect.connectors.known_options import setting_of
from ottla.connect.connectors.lakes.changes import Changes, KeyOf, Words, inserted, tombstone, upserted
from ottla.connect.connectors.lakes.columns import LakeTypes
from ottla.connect.connectors.renamed_topics import renamed_topics
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError, DataError, Retriable
from ottla.connect.options import InvalidOption
from ottla.connect.transforms.by_name import make_transform

TOPIC: Final = "${topic}"
_TRIES: Final = 5


class Overtaken(ConnectError):
    """Somebody else's commit came first; nothing was written."""


class LakeRules(NamedTuple):
    """What a configuration says, in one form for both vocabularies."""

    table: str
    upserts: bool
    deletes: bool
    key: tuple[str, ...]
    creates: bool
    evolves: bool


class LakeTable(ABC):
    """One table. What it knows is of the last `refresh`."""

    place: str
    """For messages: which table that is, without secrets."""

    @abstractmethod
    def refresh(self) -> bool:
        """Reads the newest state; False if there is no such table."""

    @abstractmethod
    def positions(self) -> dict[TopicPartition, int]:
        """What this connector has in it."""

    @abstractmethod
    def write(self, changes: Changes | None, positions: Mapping[TopicPartition, int]) -> None:
        """One commit of rows and positions, upon the state of the last `refresh` alone. The table is made if it is not
        there, and columns are added, if the rules allow it. Raises `Overtaken`; then nothing was written."""


class LakeSink(Sink):
    types: ClassVar[LakeTypes]
    words: ClassVar[Words]
    _rules: LakeRules

    @classmethod
    @abstractmethod
    def rules_of(cls, config: Mapping[str, str]) -> LakeRules:
        """Raises `InvalidOption`."""

    @abstractmethod
    def open_table(self, name: str) -> LakeTable:
        """A table by its name, which may not be there yet."""

    def connect(self) -> None:
        """What comes before the first table."""

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            cls.rules_of(config)
        except ConnectError as problem:
            return [(setting_of(str(problem), cls.settings, "connector.class"), str(problem))]
        return []

    def start(self) -> None:
        self._rules = self.rules_of(self.config)
        self._left: dict[TopicPartition, int] = {}
        self._tables: dict[str, LakeTable] = {}
        self._unwrap = make_transform(
            "io.debezium.transforms.ExtractNewRecordState", {"delete.tombstone.handling.mode": "delete-to-tombstone"}
        )
        self.connect()

    def positions(self) -> Mapping[TopicPartition, int]:
        self._left = {}
        for name in self._names():
            table = self._table(name)
            if table.refresh():
                self._left |= table.positions()
        return dict(self._left)

    def _names(self) -> list[str]:
        topics = [one.strip() for one in self.config.get("topics", "").split(",") if one.strip()]
        return list(dict.fromkeys(self._rules.table.replace(TOPIC, topic) for topic in topics or [""]))

    def _table(self, name: str) -> LakeTable:
        if name not in self._tables:
            self._tables[name] = self.open_table(name)
        return self._tables[name]

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        records: dict[str, list[Records]] = {}
        moved: dict[str, dict[TopicPartition, int]] = {}
        for partition, position in positions.items():
            if self._left.get(partition) != position:
                moved.setdefault(self._rules.table.replace(TOPIC, partition.topic), {})[partition] = position
        for renamed in renamed_topics(batches, positions, self.context.places) if TOPIC in self._rules.table else ():
            raise ConnectError(
                f"a transform has renamed a topic to {renamed}: with {TOPIC} in the table's name, a table has "
                "the rows and positions of one topic; leave the topic's name, or name one table for all"
            )
        for whole in batches:
            for one in self._unwrapped(whole):
                records.setdefault(self._rules.table.replace(TOPIC, whole.topic), []).append(one)
        changes = {
            name: self._changes(parts) for name, parts in records.items()
        }  # what is wrong fails before any write
        for name in dict.fromkeys([*changes, *moved]):
            self._commit(name, changes.get(name), moved.get(name, {}))

    def _unwrapped(self, records: Records) -> list[Records]:
        """Rows out of Debezium's change events, with deletes as tombstones; other records as they are."""
        gone, there = records.split(records.value.is_null())
        made = [] if there is None else self._unwrap.apply(there)
        return made + ([] if gone is None else [gone])

    def _changes(self, batches: list[Records]) -> Changes:
        if self._rules.upserts:
            return upserted(batches, KeyOf(self._rules.key, self.words), self._rules.deletes, self.types)
        for records in batches:
            gone, _ = records.split(records.value.is_null())
            if gone is not None:
                raise tombstone(gone, self.words)
        return inserted(batches, self.types, self.words)

    def _commit(self, name: str, changes: Changes | None, moved: Mapping[TopicPartition, int]) -> None:
        table = self._table(name)
        for _ in range(_TRIES):
            there = table.refresh()
            self._hold(table, moved, table.positions() if there else {})
            if not there and (changes is None or changes.rows is None):
                return  # no table, no row for it: there is nothing that could be put twice
            try:
                table.write(changes, moved)
            except DataError as error:
                raise ConnectError(f"{table.place}: {error}") from None
            except Overtaken:
                continue
            self._left |= moved
            return
        raise Retriable(f"{table.place}: others commit all the time; {_TRIES} commits lost against theirs")

    def _hold(self, table: LakeTable, moved: Mapping[TopicPartition, int], found: Mapping[TopicPartition, int]) -> None:
        for partition in moved:
            if found.get(partition) != self._left.get(partition):
                raise Retriable(
                    f"another writer of connector {self.context.connector} has moved the position of {partition} in "
                    f"{table.place}; nothing was written"
                )


def checked_table(setting: str, text: str, config: Mapping[str, str]) -> str:
    """A table's name, with `${topic}` at most. Raises `InvalidOption`."""
    if "${" in text.replace(TOPIC, ""):
        raise InvalidOption(f"{setting}={text}: only {TOPIC} is put in here")
    if TOPIC in text and not config.get("topics", "").strip():
        raise InvalidOption(
            f"{setting}={text}: with {TOPIC} the connector needs topics, not topics.regex: the tables say where it "
            "was, and they must be known when it starts"
        )
    return text


def missing_columns(place: str, names: Sequence[str], words: Words) -> ConnectError:
    return ConnectError(f"{place} has no column {', '.join(names)}: add it, or set {words.evolves}")


def no_table(place: str, words: Words) -> ConnectError:
    return ConnectError(f"there is no table {place}: create it, or set {words.creates}")


def wrong_type(place: str, name: str, have: object, want: object) -> ConnectError:
    return ConnectError(
        f"column {name} of {place} is {have}, and records have {want}: cast the field with the transform Cast, give it "
        "another name, or change the column"
    )
