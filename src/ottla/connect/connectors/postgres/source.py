"""The connector: a snapshot if one is due, and the changes from a replication slot.

Theory of operation. `start` connects, makes the publication and the slot if they are not there, and begins to stream
behind the stored offset. `poll` reads what has come, up to the context's bytes, and makes records of it. While a
snapshot runs, at the start or by a signal, chunks of tables are read in between, and written when the stream has
reached their high watermark (`chunks`). All records of a poll are one unit: every batch but the last has the offset
from before the poll, and the last one that behind it; so whoever splits a poll repeats records rather than lose them.

The server is told to forget what `committed` said is written, and no more. In a quiet database, when all that was
polled is committed, it is told what it has looked through without finding changes for us: so its WAL goes even though
no record is written.

A crash leaves the slot and the publication. The next run begins at the stored offset.
"""

import re
import select
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Final

import numpy as np
import psycopg
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.setting import Setting
from ottla.connect.connector import Offset, Partition, Problem, Source, SourceContext, SourceRecords
from ottla.connect.connectors.postgres import chunks, options
from ottla.connect.connectors.postgres.catalogue import TableFacts
from ottla.connect.connectors.postgres.changes import Changes, OnSignal
from ottla.connect.connectors.postgres.connection import Catalogue, Database, ReplicationStream, copied
from ottla.connect.connectors.postgres.envelopes import (
    HEARTBEAT_KEY,
    HEARTBEAT_VALUE,
    STRIDE,
    ContextHeaders,
    Moments,
    Shapes,
    TableShape,
    captured,
    context_headers,
    no_heartbeats,
    row_records,
    topic_name,
)
from ottla.connect.connectors.postgres.offsets import (
    Position,
    Resumed,
    SnapshotState,
    Visible,
    lsn_of,
    lsn_text,
    resumed,
)
from ottla.connect.connectors.postgres.pgoutput import Relation, Sent
from ottla.connect.connectors.postgres.signals import (
    EXECUTE,
    LOG,
    PAUSE,
    STOP,
    Incremental,
    InvalidSignal,
    Signal,
    Wanted,
)
from ottla.connect.connectors.postgres.types import TypeMap
from ottla.connect.connectors.run_id import new_run_id
from ottla.connect.data.records import Records
from ottla.connect.data.rows import column_of
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption

CLASS_NAME: Final = "io.debezium.connector.postgresql.PostgresConnector"
_WAL_CHECK_S: Final = 30.0
_PIECE_BYTES: Final = 8 << 20
_FIRST_ROWS: Final = 2000
"""Of a table's first chunk, when it is not known how large its rows are."""
_TRIES: Final = 20
_SNAPSHOT: Final = "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_current_wal_insert_lsn()::text"


@dataclass(frozen=True, slots=True)
class _Range:
    """What to read next: rows of a table behind a key, up to another or as many as `rows`."""

    facts: TableFacts
    after: tuple[str, ...] | None
    until: tuple[str, ...] | None
    condition: str | None
    rows: int


@dataclass(frozen=True, slots=True)
class _Read:
    """What was read of a range, and what the database's snapshot showed."""

    range: _Range
    facts: TableFacts
    content: bytes
    visible: Visible
    lsn: int


@dataclass(frozen=True, slots=True)
class _Chunk:
    """Rows that were read and wait for their high watermark."""

    shape: TableShape
    sent: Sequence[Sent]
    visible: Visible
    high_lsn: int
    until: tuple[str, ...] | None
    is_last: bool
    """Whether it is the table's last."""
    is_incremental: bool


class PostgresSource(Source):
    """`io.debezium.connector.postgresql.PostgresConnector`."""

    settings: ClassVar[Sequence[Setting]] = options.ROWS

    def __init__(self, config: Mapping[str, str], context: SourceContext) -> None:
        super().__init__(config, context)
        self._options = options.read(config)
        self._database = Database(self._options)
        self._partition = {"server": self._options.text("topic.prefix")}
        self._is_captured = captured(self._options)
        self._connection: psycopg.Connection[Any] | None = None
        self._readers: list[psycopg.Connection[Any]] = []
        self._stream: ReplicationStream | None = None
        self._catalogue: Catalogue | None = None
        self._touched = chunks.Touched()
        self._chunks: deque[_Chunk] = deque()
        """Of one table, in the order of its key."""
        self._chunk_rows = _FIRST_ROWS
        self._keyless: Iterator[Records] | None = None
        self._tables: list[TableFacts] = []
        self._emitted: dict[str, Any] | None = None
        self._durable_lsn = 0
        self._all_is_durable = True
        self._status_s = 0.0
        self._wal_s = 0.0
        self._heartbeat_s = 0.0
        self._is_over = False
        self._goal_lsn = 0
        """Where the server's WAL ended when this run started: what was there then is handed out when it is reached."""
        self._retained: int | None = None

    # --- start and stop ---

    def start(self) -> None:
        self._connection = self._database.connect()
        self._catalogue = Catalogue(self._database, self._connection)
        self._catalogue.hold_wal_level()
        self._types = TypeMap(self._options, self._catalogue.types())
        self._shapes = Shapes(self._options, self._types, self._database.name)
        is_extended = self._options.flag("extended.headers.enabled")
        self._headers = context_headers(self._shapes.prefix, new_run_id()) if is_extended else ContextHeaders(())
        self._catalogue.publish(self._is_captured)
        stored = self.context.offset(self._partition)
        if self._options.text("snapshot.mode") == "initial_only" and stored is not None:
            known = resumed(stored)
            if known.position.snapshot is None and not known.snapshot_is_due:
                self._is_over = True
                return
        begins = self._begin(stored)
        self._goal_lsn = lsn_of(self._catalogue.rows("SELECT pg_catalog.pg_current_wal_lsn()::text")[0][0])
        self._changes = Changes(
            begins,
            self._shapes,
            self._is_captured,
            options.named(self._options, "message.prefix"),
            self._headers,
            self._facts,
            on_touched=self._touched.add if begins.position.snapshot is not None else None,
            transaction_topic=self._transaction_topic(),
            signals=self._signals(),
        )
        self._emitted = begins.position.as_offset()
        self._durable_lsn = begins.position.commit_lsn
        self._hold_retained()
        if begins.position.snapshot is not None:
            self._plan_snapshot(begins.position.snapshot)
        if self._keyless is None:
            self._open_stream()

    def _begin(self, stored: Mapping[str, Any] | None) -> Resumed:
        """Where to begin, with a slot that is there."""
        assert self._catalogue is not None
        mode = self._options.text("snapshot.mode")
        known = None if stored is None else resumed(stored)
        slot = self._catalogue.slot()
        try:
            if slot is not None:
                self._catalogue.hold_slot(slot)
            elif known is not None and not known.snapshot_is_due:
                raise self._database.lost("it is not there, and the connector has an offset in it")
        except ConnectError as error:
            if mode != "when_needed" or "is lost" not in str(error):
                raise
            self.context.log.warning("%s; the tables are read again (snapshot.mode is when_needed)", error)
            if slot is not None:
                self._catalogue.drop_slot()
            slot, known = None, None
        wants_snapshot = (
            mode == "always"
            or (known is None and mode in ("initial", "initial_only", "when_needed"))
            or (known is not None and known.snapshot_is_due and mode not in ("no_data", "never"))
        )
        if slot is None:
            lsn = self._catalogue.create_slot()
            begins = Resumed(Position(lsn, lsn))
        elif known is not None and not known.snapshot_is_due:
            begins = known
            confirmed = lsn_of(slot["confirmed"]) if slot["confirmed"] else 0
            if confirmed > known.position.commit_lsn:
                self.context.log.info(
                    "slot %s is at %s, behind the offset %s: nothing in between was for this connector",
                    self._database.slot, lsn_text(confirmed), lsn_text(known.position.commit_lsn),
                )  # fmt: skip
        else:
            lsn = lsn_of(slot["confirmed"])
            begins = Resumed(Position(lsn, lsn))
        if wants_snapshot:
            # In the middle of a transaction it stays there: its changes that are written do not come again.
            position = begins.position.but(snapshot=SnapshotState(), after_snapshot=False, seen={})
            return replace(begins, position=position)
        return begins

    def _open_stream(self) -> None:
        position = self._changes.position
        self._stream = ReplicationStream(self._database, position.commit_lsn)
        self._status_s = time.monotonic()

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        self._stream = None
        self._close_readers()
        try:
            if self._options.flag("slot.drop.on.stop") and self._catalogue is not None and self._connection is not None:
                self._catalogue.drop_slot()
        finally:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            read = options.read(config)
        except InvalidOption as error:
            named = next((name for name in sorted(config, key=len, reverse=True) if name in str(error)), "")
            return [(named or "connector.class", str(error))]
        try:
            database = Database(read)
            with database.connect() as connection:
                Catalogue(database, connection).hold_wal_level()
        except ConnectError as error:
            said = str(error)
            setting = next(
                (name for name in ("database.password", "database.dbname", "wal_level") if name in said),
                "database.hostname",
            )
            return [(setting if setting.startswith("database") else "database.hostname", said)]
        return []

    # --- poll ---

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        assert self._catalogue is not None, "start was not called"
        if self._keyless is not None:
            return self._poll_keyless()
        if self._is_over:
            time.sleep(timeout_s)
            return []
        if not self._chunks and self._is_reading():
            self._chunks = self._read_chunks()
        deadline_s = time.monotonic() + timeout_s
        self._receive(deadline_s)
        found: list[Records] = []
        if self._changes.has_changes:
            found = self._changes.take(self._now_us())
        elif self._changes.is_between_transactions:
            self._changes.take(self._now_us())
            if self._has_reached_chunk():
                found = self._take_chunk()
        if found:
            self._all_is_durable = False  # before the server is told anything
        self._tend()
        if not found and not self.is_at_end() and not self._chunks:
            self._tell(ask=True)  # Where the server is, it says when it is asked.
        found += self._heartbeat()
        return self._batches(found)

    def is_at_end(self) -> bool:
        """The snapshot is complete, and the stream has reached what was there at the start."""
        if self._is_over:
            return True
        changes, stream = self._changes, self._stream
        if stream is None or self._is_reading() or changes.has_changes:
            return False
        if self._options.text("snapshot.mode") == "initial_only" or not changes.is_between_transactions:
            return False
        return max(stream.server_lsn, changes.position.commit_lsn) >= self._goal_lsn

    def metrics(self) -> Mapping[str, float]:
        return {} if self._retained is None else {"wal_retained_bytes": float(self._retained)}

    def _batches(self, found: Sequence[Records]) -> list[SourceRecords]:
        offset = self._changes.position.as_offset()
        if not found:
            emitted = self._emitted or {}
            if all(offset.get(key) == emitted.get(key) for key in ("ottla_snapshot", "ottla_incremental")):
                return []
            # The snapshot went on, and all rows of the chunk were dropped: only the offset is written.
            found = [no_heartbeats(self._heartbeat_topic())]
        before, self._emitted = self._emitted, offset
        assert before is not None
        self._all_is_durable = False
        last = len(found) - 1
        return [
            SourceRecords(one, self._partition, offset if place == last else before) for place, one in enumerate(found)
        ]

    def _receive(self, deadline_s: float) -> None:
        """Reads the stream: until there is something to give and nothing more is there, or it is enough."""
        stream, changes = self._stream, self._changes
        assert stream is not None
        most = self.context.max_bytes
        while True:
            while changes.size < most:
                message = stream.read()
                if message is None:
                    break
                changes.add(message)
            else:
                return
            if stream.reply_wanted:
                self._tell()
            if changes.has_changes and changes.is_between_transactions:
                return
            if self._has_reached_chunk():
                return
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            if self._chunks and changes.is_between_transactions:
                self._tell(ask=True)
                left_s = min(left_s, 0.01)
            wait_s = min(left_s, max(self._status_s + self._status_interval_s - time.monotonic(), 0.001))
            ready, _, _ = select.select([stream.fileno()], [], [], wait_s)
            if ready:
                stream.receive()
            elif time.monotonic() - self._status_s >= self._status_interval_s:
                self._tell()

    @property
    def _status_interval_s(self) -> float:
        return self._options.integer("status.update.interval.ms") / 1000

    def committed(self, offsets: Sequence[tuple[Partition, Offset]]) -> None:
        for partition, offset in offsets:
            if dict(partition) != self._partition:
                continue
            self._durable_lsn = max(self._durable_lsn, int(offset.get("lsn_commit", 0)))
            self._all_is_durable = dict(offset) == self._emitted
        is_done = self._options.text("snapshot.mode") == "initial_only" and self._changes.position.snapshot is None
        if is_done and self._all_is_durable and not self._is_over:
            self._end_after_snapshot()
        if self._stream is not None:
            self._tell()

    def _end_after_snapshot(self) -> None:
        """`initial_only`: nothing is streamed, so the slot goes, and keeps no WAL."""
        assert self._catalogue is not None
        self._is_over = True
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._catalogue.drop_slot()

    def _tell(self, *, ask: bool = False) -> None:
        """Confirms what is durable, and in a quiet database what the server has looked through."""
        assert self._stream is not None
        lsn = self._durable_lsn
        if not self._options.flag("flush.lsn.source"):
            lsn = 0
        elif self._all_is_durable and self._changes.is_between_transactions and not self._changes.has_changes:
            lsn = max(lsn, self._stream.server_lsn)
        self._stream.confirm(lsn, ask=ask)
        self._status_s = time.monotonic()

    def _tend(self) -> None:
        """What is done now and then."""
        now_s = time.monotonic()
        is_asked = self._stream is not None and self._stream.reply_wanted
        if is_asked or now_s - self._status_s >= self._status_interval_s:
            self._tell()
        if now_s - self._wal_s >= _WAL_CHECK_S:
            self._hold_retained()

    def _hold_retained(self) -> None:
        """Keeps the database's disk from filling: beyond the limit the slot goes."""
        limit = self._options.integer("ottla.wal.retained.max.bytes")
        self._wal_s = time.monotonic()
        assert self._catalogue is not None
        slot = self._catalogue.slot()
        self._retained = None if slot is None else slot["retained"]
        if not limit or slot is None or (slot["retained"] or 0) <= limit:
            return
        if self._stream is not None:
            self._stream.close()
            self._stream = None
        self._catalogue.drop_slot()
        raise self._database.lost(
            f"it kept {slot['retained']} bytes of WAL, more than ottla.wal.retained.max.bytes ({limit}), and was "
            "dropped "
            "to keep the database's disk from filling"
        )

    def _transaction_topic(self) -> str | None:
        if not self._options.flag("provide.transaction.metadata"):
            return None
        return self._shapes.topic(self._options.text("topic.transaction"), "")

    def _heartbeat_topic(self) -> str:
        return topic_name(f"{self._options.text('heartbeat.topics.prefix')}.{self._shapes.prefix}")

    def _heartbeat(self) -> list[Records]:
        interval_s = self._options.integer("heartbeat.interval.ms") / 1000
        now_s = time.monotonic()
        if not interval_s or now_s - self._heartbeat_s < interval_s or not self._changes.is_between_transactions:
            return []
        self._heartbeat_s = now_s
        query = self._options.optional_text("heartbeat.action.query")
        if query:
            assert self._catalogue is not None
            self._catalogue.run(query)
        key = column_of(HEARTBEAT_KEY, [{"serverName": self._shapes.prefix}])
        value = column_of(HEARTBEAT_VALUE, [{"ts_ms": self.context.now_ms()}])
        return [row_records(self._heartbeat_topic(), key, value, (1 << 62))]

    def _facts(self, relation: Relation) -> TableFacts | None:
        """What the catalogue says of a table whose columns came. It may be ahead of the stream."""
        assert self._catalogue is not None
        if any(column.type_oid not in self._types.types for column in relation.columns):
            self._types.types = self._catalogue.types()
        facts = self._catalogue.table(relation.oid, relation.schema, relation.name, relation.identity)
        if facts is not None and not facts.key:
            self.context.log.warning(
                "table %s has no primary key and no unique index: its records have no key", facts.full_name
            )
        return facts

    def _now_us(self) -> int:
        return time.time_ns() // 1000

    # --- snapshot ---

    def _plan_snapshot(self, state: SnapshotState) -> None:
        assert self._catalogue is not None
        wanted = options.patterns("snapshot.include.collection.list", self._options["snapshot.include.collection.list"])
        self._tables = self._captured_tables(wanted)
        if any(not facts.has_primary_key and facts.full_name not in state.done for facts in self._tables):
            self._keyless = self._read_keyless(state)
        elif not self._left(state):
            self._complete()

    def _captured_tables(self, wanted: Sequence[re.Pattern[str]]) -> list[TableFacts]:
        """The captured tables that are there, of those that a pattern matches; without patterns all."""
        assert self._catalogue is not None
        via_root = self._options.flag("publish.via.partition.root")
        found: list[TableFacts] = []
        for schema, name, oid, identity, kind, _, is_partition in self._catalogue.tables():
            if (kind == "p") is not via_root and (kind == "p" or is_partition):
                continue
            if not self._is_captured(schema, name):
                continue
            if wanted and not any(one.fullmatch(f"{schema}.{name}") for one in wanted):
                continue
            facts = self._catalogue.table(oid, schema, name, identity)
            if facts is not None:
                found.append(facts)
        return found

    def _reader(self, number: int = 0) -> psycopg.Connection[Any]:
        """A connection that chunks are read through."""
        while len(self._readers) <= number:
            self._readers.append(self._database.connect())
        return self._readers[number]

    def _close_readers(self) -> None:
        for one in self._readers:
            one.close()
        self._readers = []

    def _left(self, state: SnapshotState) -> list[TableFacts]:
        return [facts for facts in self._tables if facts.full_name not in state.done]

    def _state(self) -> SnapshotState:
        state = self._changes.position.snapshot
        assert state is not None
        return state

    def _complete(self) -> None:
        state = self._state()
        self._changes.position = self._changes.position.but(
            snapshot=None, seen=state.seen, after_snapshot=self._changes.position.kind is None
        )
        self._rest()
        self.context.log.info("the snapshot of %d tables is complete: %d rows", len(self._tables), state.rows)

    def _rest(self) -> None:
        """Nothing is read any more."""
        self._changes.on_touched = None
        self._chunks.clear()
        self._close_readers()

    def _moments(self, count: int, lsn: int, snapshot: Any) -> Moments:
        now = pa.repeat(pa.scalar(self._now_us(), pa.int64()), count)
        blank = pa.nulls(count, pa.int64())
        lsns = pa.repeat(pa.scalar(lsn, pa.int64()), count)
        return Moments(lsns, blank, now, blank, pa.nulls(count, pa.string()), blank, snapshot)

    def _poll_keyless(self) -> list[SourceRecords]:
        assert self._keyless is not None
        for records in self._keyless:
            return self._batches([records])
        self._keyless = None
        state = self._state()
        self._changes.see(state.seen)
        if not self._left(state):
            self._complete()
        self._open_stream()
        return self._batches([])

    def _read_keyless(self, state: SnapshotState) -> Iterator[Records]:
        """Tables without a primary key, whole: nothing is streamed before they are done."""
        reader = self._reader()
        keyless = [facts for facts in self._left(state) if not facts.has_primary_key]
        lsn = self._changes.position.commit_lsn
        for facts in keyless:
            shape = self._shapes.shape(facts, chunks.relation_columns(facts))
            with self._database.plainly(), reader.transaction():
                reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                row = reader.execute(_SNAPSHOT).fetchone()
                assert row is not None
                seen = {**self._state().seen, facts.full_name: "@".join(row)}
                begins, held = True, b""
                pieces = copied(self._database, reader, chunks.chunk_sql(facts, None, None))
                for content in _gathered(pieces, _PIECE_BYTES):
                    if held:
                        yield self._keyless_records(shape, held, lsn, begins_table=begins, ends_table=False)
                        begins = False
                    held = content
                state = self._state()
                done = SnapshotState((*state.done, facts.full_name), None, None, seen, state.rows)
                if not held:
                    self._changes.position = self._changes.position.but(snapshot=done)
                    continue
                last = self._keyless_records(shape, held, lsn, begins_table=begins, ends_table=True)
                state = self._state()
                done = SnapshotState((*state.done, facts.full_name), None, None, seen, state.rows)
                self._changes.position = self._changes.position.but(snapshot=done)
                yield last

    def _keyless_records(
        self, shape: TableShape, content: bytes, lsn: int, *, begins_table: bool, ends_table: bool
    ) -> Records:
        sent = chunks.parsed(content, shape.width)
        state = self._state()
        count = len(sent[0].texts)
        is_last = ends_table and len(self._left(state)) == 1
        marks = chunks.markers(
            count, is_first=not state.rows, begins_table=begins_table, ends_table=ends_table, is_last=is_last
        )
        rows = SnapshotState(state.done, state.table, state.after, state.seen, state.rows + count)
        self._changes.position = self._changes.position.but(snapshot=rows)
        positions = np.arange(count, dtype=np.int64) * STRIDE
        return shape.reads(sent, positions, self._moments(count, lsn, marks), self._headers, self._now_us())

    def _is_reading(self) -> bool:
        """Whether a snapshot has rows to read."""
        position = self._changes.position
        if position.snapshot is not None:
            return True
        return position.incremental is not None and not position.incremental.is_paused

    def _next_table(self) -> tuple[TableFacts, tuple[str, ...] | None, str | None] | None:
        """The table to read from, the key behind which, and the condition on its rows; None if nothing is left."""
        state = self._changes.position.snapshot
        if state is None:
            return self._next_incremental()
        left = self._left(state)
        if not left:
            self._complete()
            return None
        known = next((facts for facts in left if facts.full_name == state.table), left[0])
        return known, state.after if known.full_name == state.table else None, None

    def _read_chunks(self) -> deque[_Chunk]:
        """The next rows of the table that is under way, or of the next one: as many chunks as there are readers.

        All of them have one window: it begins here, before the first is read, and a key that is changed from now on
        is dropped from each chunk that is not written yet. They are written in the order of their keys.
        """
        found = self._next_table()
        if found is None:
            return deque()
        known, after, condition = found
        if known.full_name != self._touched.table:
            self._chunk_rows = _FIRST_ROWS
        most = min(self._options.integer("ottla.snapshot.chunk.rows"), self._chunk_rows)
        self._touched.begin(known.full_name)
        self._changes.on_touched = self._touched.add
        for _ in range(_TRIES):
            reads = self._read_all(self._ranges(known, after, condition, most))
            if reads is not None:
                self._changes.recent.clear()
                found_chunks = deque(self._chunk_of(one) for one in reads)
                self._touched.watch(chunks.key_texts(one.sent, one.shape.key_places()) for one in found_chunks)
                return found_chunks
            time.sleep(0.005)
        return deque()

    def _ranges(
        self, facts: TableFacts, after: tuple[str, ...] | None, condition: str | None, rows: int
    ) -> list[_Range]:
        """One range for each reader, one behind the other."""
        found: list[_Range] = []
        for _ in range(self._options.integer("snapshot.max.threads") - 1):
            with self._database.plainly():
                until = self._reader().execute(chunks.boundary_sql(facts, after, rows, condition).encode()).fetchone()
            if until is None:
                break
            found.append(_Range(facts, after, tuple(until), condition, rows))
            after = tuple(until)
        return [*found, _Range(facts, after, None, condition, rows)]

    def _read_all(self, ranges: Sequence[_Range]) -> list[_Read] | None:
        """What the ranges have. None if a snapshot of the database does not show yet what was streamed."""
        readers = [self._reader(number) for number in range(len(ranges))]
        with ThreadPoolExecutor(len(ranges)) as pool:
            under_way = [pool.submit(self._read, *one) for one in zip(readers, ranges, strict=True)]
            while wait(under_way, self._status_interval_s / 2).not_done:
                # The server ends a stream that hears nothing of us.
                if self._stream is not None:
                    self._tell()
        found = [one.result() for one in under_way]
        whole = [one for one in found if one is not None]
        return whole if len(whole) == len(found) else None

    def _read(self, reader: psycopg.Connection[Any], wanted: _Range) -> _Read | None:
        """Reads a range, in a thread. A transaction's commit is in the WAL, and may be streamed, before others see it:
        then nothing is read yet, since the rows would be older than the changes that are written."""
        known = wanted.facts
        incremental = self._changes.position.incremental
        with self._database.plainly(), reader.transaction():
            reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = reader.execute(_SNAPSHOT).fetchone()
            assert row is not None
            visible = Visible.of(row[0])
            if not all(visible(xid) for xid in self._changes.recent):
                return None
            if incremental is not None and visible.xmin < incremental.not_before:
                return None
            facts = Catalogue(self._database, reader).table(known.oid, known.schema, known.name, known.identity)
            if facts is not None and not facts.has_primary_key:
                raise ConnectError(
                    f"table {known.full_name} lost its primary key while its snapshot ran: give it one, or exclude it "
                    "from the snapshot with snapshot.include.collection.list"
                )
            content = b""
            if facts is not None:
                query = chunks.chunk_sql(facts, wanted.after, wanted.rows, wanted.until, wanted.condition)
                content = b"".join(copied(self._database, reader, query))
        return _Read(wanted, facts or known, content, visible, lsn_of(row[1]))

    def _chunk_of(self, read: _Read) -> _Chunk:
        shape = self._shapes.shape(read.facts, chunks.relation_columns(read.facts))
        sent = chunks.parsed(read.content, shape.width)
        count = len(sent[0].texts)
        self._chunk_rows = chunks.next_rows(read.range.rows, count, len(read.content), self.context.max_bytes)
        is_last = read.range.until is None and count < read.range.rows
        is_incremental = self._changes.position.snapshot is None
        high_lsn = chunks.watermark(read.lsn)
        return _Chunk(shape, sent, read.visible, high_lsn, read.range.until, is_last, is_incremental)

    def _has_reached_chunk(self) -> bool:
        stream, changes = self._stream, self._changes
        if not self._chunks or stream is None or not changes.is_between_transactions or changes.has_changes:
            return False
        return max(stream.server_lsn, changes.position.commit_lsn) >= self._chunks[0].high_lsn

    def _take_chunk(self) -> list[Records]:
        chunk = self._chunks.popleft()
        shape, sent = chunk.shape, chunk.sent
        places = shape.key_places()
        after = chunk.until
        if len(sent[0].texts):
            after = after or chunks.last_key(sent, places)
            kept = self._touched.kept(chunks.key_texts(sent, places), chunk.visible)
            if kept is not None:
                sent = [Sent(one.texts.filter(kept), None) for one in sent]
        count = len(sent[0].texts)
        lsn = self._changes.position.lsn
        marks = self._moved_on(chunk, after, count)
        if not count:
            return []
        positions = np.arange(count, dtype=np.int64) * STRIDE
        return [shape.reads(sent, positions, self._moments(count, lsn, marks), self._headers, self._now_us())]

    def _moved_on(self, chunk: _Chunk, after: tuple[str, ...] | None, count: int) -> Any:
        """The position is behind a chunk. What `source.snapshot` is in its rows."""
        if chunk.is_incremental:
            state = self._changes.position.incremental
            assert state is not None
            self._stands_at(state.moved(after or state.after, count, is_last=chunk.is_last))
            return chunks.incremental_markers(count)
        snapshot = self._state()
        name = chunk.shape.facts.full_name
        is_last = chunk.is_last and len(self._left(snapshot)) == 1
        marks = chunks.markers(
            count,
            is_first=not snapshot.rows,
            begins_table=snapshot.table != name,
            ends_table=chunk.is_last,
            is_last=is_last,
        )
        if chunk.is_last:
            moved = SnapshotState((*snapshot.done, name), None, None, snapshot.seen, snapshot.rows + count)
        else:
            moved = SnapshotState(snapshot.done, name, after or snapshot.after, snapshot.seen, snapshot.rows + count)
        self._changes.position = self._changes.position.but(snapshot=moved)
        if is_last:
            self._complete()
        return marks

    # --- snapshots that signals ask for ---

    def _signals(self) -> tuple[str, OnSignal] | None:
        table = self._options.optional_text("signal.data.collection")
        is_enabled = "source" in self._options.list("signal.enabled.channels")
        return (table, self._on_signal) if table and is_enabled else None

    def _on_signal(self, row: list[str | None]) -> None:
        try:
            if (row[1] or "").startswith("snapshot-window-"):
                return  # what Debezium writes around its chunks
            self._obey(Signal.of(row))
        except InvalidSignal as error:
            self.context.log.warning("signal %s is passed over: %s", row[0], error)

    def _obey(self, signal: Signal) -> None:
        state = self._changes.position.incremental
        if signal.type == LOG:
            self.context.log.info("signal %s: %s", signal.id, signal.message)
        elif signal.type == EXECUTE:
            self._stands_at(self._executed(signal, state or Incremental()))
        elif state is None:
            self.context.log.warning("signal %s is passed over: no incremental snapshot runs", signal.id)
        elif signal.type == STOP:
            self._stands_at(state.without(signal.tables))
        else:
            self._stands_at(replace(state, is_paused=signal.type == PAUSE))
        self.context.log.info("signal %s: %s was done", signal.id, signal.type)

    def _executed(self, signal: Signal, state: Incremental) -> Incremental:
        """With the tables that a signal names. They are published first, if that is ours to do."""
        assert self._catalogue is not None
        tables = self._captured_tables(signal.tables)
        if not tables:
            raise InvalidSignal("no captured table matches its data-collections")
        wanted: list[Wanted] = []
        for facts in tables:
            if not facts.has_primary_key:
                self.context.log.warning("table %s has no primary key: signal %s does not read it",
                                         facts.full_name, signal.id)  # fmt: skip
                continue
            condition = signal.filter_of(facts.full_name)
            if condition is not None:
                self._hold_condition(facts, condition)
            wanted.append(Wanted(facts.full_name, condition))
        if not wanted:
            raise InvalidSignal("none of its tables has a primary key")
        missing = {one.table for one in wanted} - self._catalogue.published()
        if missing and self._options.text("publication.autocreate.mode") == "filtered":
            self._catalogue.publish(self._is_captured)
            state = replace(state, not_before=self._catalogue.next_transaction())
        elif missing:
            self.context.log.warning(
                "publication %s does not have %s: its rows are read, and its changes do not come. Run ALTER "
                "PUBLICATION … ADD TABLE",
                self._database.publication, ", ".join(sorted(missing)),
            )  # fmt: skip
        return state.more(wanted)

    def _hold_condition(self, facts: TableFacts, condition: str) -> None:
        """Asks the database whether it understands a condition: a chunk that fails would stop the connector."""
        assert self._catalogue is not None
        query = f"SELECT 1 FROM {chunks.table_sql(facts)} WHERE ({condition.replace('%', '%%')}) AND %s = 0 LIMIT 0"
        try:
            self._catalogue.rows(query, 0)
        except Retriable:
            raise
        except ConnectError as error:
            raise InvalidSignal(f"its filter for {facts.full_name} cannot be used: {error}") from None

    def _stands_at(self, state: Incremental | None) -> None:
        """The incremental snapshot is there now; None is its end."""
        before = self._changes.position.incremental
        self._changes.position = self._changes.position.but(incremental=state)
        if self._changes.position.snapshot is not None:
            return
        if state is None:
            rows = 0 if before is None else before.rows
            self.context.log.info("the incremental snapshot has ended, after %d rows and its last chunk", rows)
            self._rest()
        elif before is not None and (state.is_paused or state.tables[0] != before.tables[0]):
            self._chunks.clear()

    def _next_incremental(self) -> tuple[TableFacts, tuple[str, ...] | None, str | None] | None:
        assert self._catalogue is not None
        while (state := self._changes.position.incremental) is not None and not state.is_paused:
            wanted = state.tables[0]
            facts = self._catalogue.found(wanted.table)
            if facts is not None and facts.has_primary_key:
                return facts, state.after, wanted.filter
            self.context.log.warning("table %s is gone or has no primary key: it is not read", wanted.table)
            self._stands_at(state.moved(None, 0, is_last=True))
        return None


def _gathered(pieces: Iterator[bytes], most: int) -> Iterator[bytes]:
    """Rows of a COPY, which come one by one, in larger pieces."""
    held: list[bytes] = []
    size = 0
    for piece in pieces:
        held.append(piece)
        size += len(piece)
        if size >= most:
            yield b"".join(held)
            held, size = [], 0
    if held:
        yield b"".join(held)
