"""The connectors for MariaDB and MySQL: a snapshot if one is due, and the changes from the binary log.

Theory of operation. `start` connects, holds the server's settings, and begins to stream behind the stored offset.
`poll` reads what has come, up to the context's bytes, and makes records of it. While a snapshot runs, chunks of tables
are read in between, and written when the stream has reached their place (`chunks`). All records of a poll are one
unit: every batch but the last has the offset from before the poll, and the last one that behind it; so whoever splits
a poll repeats records rather than lose them.

A server keeps nothing for us: it purges its log by age. So where changes are in tables that are not captured, the
offset goes on without records now and then, and no old file is needed after a restart.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.setting import Setting
from ottla.connect.connector import Problem, Source, SourceContext, SourceRecords
from ottla.connect.connectors.mysql import chunks, options
from ottla.connect.connectors.mysql.binlog import TableMap
from ottla.connect.connectors.mysql.catalogue import TableFacts
from ottla.connect.connectors.mysql.changes import Changes
from ottla.connect.connectors.mysql.connection import BinlogLost, BinlogStream, Database, Server
from ottla.connect.connectors.mysql.envelopes import Moments, Shapes, TableShape, captured, key_texts
from ottla.connect.connectors.mysql.gtids import MariaDbGtids, MySqlGtids
from ottla.connect.connectors.mysql.offsets import Place, Position, Resumed, place_text, resumed
from ottla.connect.connectors.mysql.tables import HistoryLost, Known, version_of
from ottla.connect.connectors.mysql.types import TypeMap
from ottla.connect.connectors.postgres.chunks import markers, next_rows
from ottla.connect.connectors.postgres.envelopes import (
    HEARTBEAT_KEY,
    HEARTBEAT_VALUE,
    STRIDE,
    ContextHeaders,
    context_headers,
    no_heartbeats,
    row_records,
    topic_name,
)
from ottla.connect.connectors.postgres.offsets import SnapshotState
from ottla.connect.connectors.postgres.options import patterns
from ottla.connect.connectors.postgres.pgoutput import Rows, Sent
from ottla.connect.connectors.run_id import new_run_id
from ottla.connect.data.records import Records
from ottla.connect.data.rows import column_of
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption

_FIRST_ROWS: Final = 2000
"""Of a table's first chunk, when it is not known how large its rows are."""
_PIECE_BYTES: Final = 8 << 20
_GATHER_S: Final = 0.1
"""How long changes are gathered at most while more keep coming, and the pause that ends it."""
_PAUSE_S: Final = 0.001
_OFFSET_S: Final = 10.0
"""How often the offset goes on without records."""


class _Chunk:
    """Rows that were read and wait until the stream has reached their place."""

    def __init__(self, shape: TableShape, found: Sequence[Any], place: Place, *, is_last: bool) -> None:
        self.shape = shape
        self.found = found
        self.place = place
        self.is_last = is_last


class MySqlSource(Source):
    """`io.debezium.connector.mysql.MySqlConnector`. Which server it is, it says itself."""

    settings: ClassVar[Sequence[Setting]] = options.ROWS
    word: ClassVar[str] = "mysql"
    """The name of the connector in records."""

    def __init__(self, config: Mapping[str, str], context: SourceContext) -> None:
        super().__init__(config, context)
        self._options = options.read(config)
        self._database = Database(self._options, context.connector)
        self._partition = {"server": self._options.text("topic.prefix")}
        self._is_captured = captured(self._options)
        self._connection: Any = None
        self._reading: Any = None
        self._stream: BinlogStream | None = None
        self._known: dict[tuple[str, str], Known | None] = {}
        self._shaped: dict[str, TableShape] = {}
        self._touched = chunks.Touched()
        self._chunk: _Chunk | None = None
        self._chunk_rows = _FIRST_ROWS
        self._keyless: Iterator[Records] | None = None
        self._tables: list[TableFacts] = []
        self._emitted: dict[str, Any] = {}
        self._emitted_s = time.monotonic()
        self._heartbeat_s = 0.0
        self._is_over = False

    # --- start and stop ---

    def start(self) -> None:
        self._connection = self._database.connect()
        self._server = server = Server(self._database, self._connection)
        server.hold_settings()
        if server.variable("binlog_row_metadata").upper() != "FULL":
            self.context.log.warning(
                "binlog_row_metadata is not FULL: the binary log does not have columns' names. A table that is altered "
                "while this connector is stopped or behind cannot be followed. Run SET GLOBAL binlog_row_metadata = "
                "FULL"
            )
        if not server.is_mariadb:
            self._touched = chunks.Touched(chunks.KEPT_S)
        self._codecs = server.codecs()
        self._shapes = Shapes(self._options, TypeMap(self._options, is_mariadb=server.is_mariadb), self.word)
        is_extended = self._options.flag("extended.headers.enabled")
        self._headers = (
            context_headers(self._shapes.prefix, new_run_id(), self.word) if is_extended else ContextHeaders(())
        )
        stored = self.context.offset(self._partition)
        if self._options.text("snapshot.mode") == "initial_only" and stored is not None:
            known = resumed(stored)
            if known.position.snapshot is None and not known.snapshot_is_due:
                self._is_over = True
                return
        self._goal = server.status().place
        self._begin(self._begins(stored))

    def _begin(self, position: Position) -> None:
        if not self._server.is_mariadb and MySqlGtids.has_tags(position.gtids or ""):
            position = position.but(gtids=None)  # of Debezium's; the file and the position will do
        kind = MariaDbGtids if self._server.is_mariadb else MySqlGtids
        try:
            gtids = kind(position.gtids or "")
        except ValueError:
            raise ConnectError(
                f"the stored offset has the GTIDs {position.gtids!r}, which are none of {self._database.where}: reset "
                "the connector's offsets to begin with a snapshot"
            ) from None
        self._changes = Changes(
            position,
            gtids,
            self._shapes,
            self._is_captured,
            self._headers,
            self._shape_of,
            self._truncated,
            has_checksum=self._server.variable("binlog_checksum").upper() not in ("NONE", ""),
            on_ddl=self._known.clear,
            on_touched=self._on_touched if position.snapshot is not None else None,
        )
        self._emitted = position.as_offset()
        if position.snapshot is not None:
            self._plan_snapshot(position.snapshot)
        if self._keyless is None:
            self._open_stream()

    def _begins(self, stored: Mapping[str, Any] | None) -> Position:
        """Where to begin."""
        mode = self._options.text("snapshot.mode")
        known = None if stored is None else resumed(stored)
        if known is not None and not known.snapshot_is_due and mode == "when_needed":
            known = self._if_there(known)
        wants_snapshot = (
            mode == "always"
            or (known is None and mode in ("initial", "initial_only", "when_needed"))
            or (known is not None and known.snapshot_is_due and mode not in ("no_data", "schema_only", "never"))
        )
        if known is not None and not known.snapshot_is_due:
            position = known.position
            # In the middle of a transaction it stays there: its changes that are written do not come again.
            return position.but(snapshot=SnapshotState()) if wants_snapshot and position.snapshot is None else position
        position = self._server.status()
        return position.but(snapshot=SnapshotState()) if wants_snapshot else position

    def _if_there(self, known: Resumed) -> Resumed | None:
        """`when_needed`: nothing, if the log that the offset is in is gone."""
        try:
            stream = BinlogStream(self._database, known.position)
        except BinlogLost as error:
            self.context.log.warning("%s; the tables are read again (snapshot.mode is when_needed)", error)
            return None
        try:
            deadline_s = time.monotonic() + 10
            while time.monotonic() < deadline_s and stream.read() is None:
                stream.receive(0.5)
        except BinlogLost as error:
            self.context.log.warning("%s; the tables are read again (snapshot.mode is when_needed)", error)
            return None
        finally:
            stream.close()
        return known

    def _open_stream(self) -> None:
        self._stream = BinlogStream(self._database, self._changes.position)

    def stop(self) -> None:
        if self._stream is not None:
            self._stream.close()
        for one in (self._reading, self._connection):
            if one is not None:
                one._force_close()
        self._stream = self._reading = self._connection = None

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            read = options.read(config)
        except InvalidOption as error:
            named = next((name for name in sorted(config, key=len, reverse=True) if name in str(error)), "")
            return [(named or "connector.class", str(error))]
        try:
            database = Database(read, config.get("name", ""))
            connection = database.connect()
            try:
                Server(database, connection).hold_settings()
            finally:
                connection._force_close()
        except ConnectError as error:
            said = str(error)
            return [("database.password" if "database.password" in said else "database.hostname", said)]
        return []

    # --- poll ---

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        assert self._connection is not None, "start was not called"
        if self._keyless is not None:
            return self._poll_keyless()
        if self._is_over:
            time.sleep(timeout_s)
            return []
        changes = self._changes
        if changes.position.snapshot is not None and self._chunk is None and changes.is_between_transactions:
            self._chunk = self._read_chunk()
        try:
            self._receive(time.monotonic() + timeout_s)
        except HistoryLost as error:
            if self._options.text("snapshot.mode") != "when_needed":
                raise
            self.context.log.warning("%s; the tables are read again (snapshot.mode is when_needed)", error)
            return self._start_anew()
        found: list[Records] = []
        if changes.has_changes:
            found = changes.take(self._now_us())
        else:
            changes.take(self._now_us())
            if self._has_reached_chunk():
                found = self._take_chunk()
        found += self._heartbeat()
        return self._batches(found)

    def is_at_end(self) -> bool | None:
        """The snapshot is complete, and the stream has reached the end that the binary log had at the start. Whether it
        comes to exactly there, it cannot say: behind the last transaction the log may have events that are not sent."""
        if self._is_over:
            return True
        changes = self._changes
        if self._keyless is not None or changes.position.snapshot is not None or changes.has_changes:
            return False
        if not changes.is_between_transactions:
            return False
        return True if changes.position.place >= self._goal else None

    def _start_anew(self) -> list[SourceRecords]:
        """Reads all tables again, from here on. What was added and not taken is in them."""
        assert self._stream is not None
        self._stream.close()
        self._stream = None
        self._chunk = None
        self._tables = []
        before = self._emitted
        self._begin(self._server.status().but(snapshot=SnapshotState()))
        self._emitted = before
        return self._batches([])

    def _batches(self, found: Sequence[Records]) -> list[SourceRecords]:
        offset = self._changes.position.as_offset()
        now_s = time.monotonic()
        if not found:
            is_due = offset.get("file") != self._emitted.get("file") or now_s - self._emitted_s > _OFFSET_S
            same = offset.get("ottla_snapshot") == self._emitted.get("ottla_snapshot")
            if offset == self._emitted or (same and not (is_due and self._changes.is_between_transactions)):
                return []
            found = [no_heartbeats(self._heartbeat_topic())]
        before, self._emitted = self._emitted, offset
        self._emitted_s = now_s
        last = len(found) - 1
        return [
            SourceRecords(one, self._partition, offset if place == last else before) for place, one in enumerate(found)
        ]

    def _receive(self, deadline_s: float) -> None:
        """Reads the stream: until there is something to give and nothing more is there, or it is enough."""
        stream, changes = self._stream, self._changes
        assert stream is not None
        most = self.context.max_bytes
        full_s = float("inf")
        while True:
            while changes.size < most:
                event = stream.read()
                if event is None:
                    break
                changes.add(event)
            else:
                return
            if self._has_reached_chunk():
                return
            if changes.has_changes and changes.is_between_transactions:
                # What is on its way comes with it: many changes at once cost little more than one.
                full_s = min(full_s, time.monotonic() + _GATHER_S)
                if time.monotonic() >= full_s or not stream.receive(_PAUSE_S):
                    return
                continue
            left_s = deadline_s - time.monotonic()
            if left_s <= 0:
                return
            stream.receive(left_s)

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
            self._server.run(query.replace("%", "%%"))
        key = column_of(HEARTBEAT_KEY, [{"serverName": self._shapes.prefix}])
        value = column_of(HEARTBEAT_VALUE, [{"ts_ms": self.context.now_ms()}])
        return [row_records(self._heartbeat_topic(), key, value, (1 << 62))]

    def _now_us(self) -> int:
        return time.time_ns() // 1000

    # --- tables ---

    def _table(self, database: str, name: str) -> Known | None:
        """What the catalogue has, kept until the next DDL."""
        if (database, name) not in self._known:
            self._known[database, name] = known = self._server.table(database, name)
            if known is not None and not known.facts.key:
                self.context.log.warning(
                    "table %s has no primary key and no unique index: its records have no key", known.facts.full_name
                )
        return self._known[database, name]

    def _shape_of(self, logged: TableMap, seconds: int) -> TableShape:
        facts = version_of(logged, self._table(logged.database, logged.table), self._codecs, seconds)
        known = self._shaped.get(facts.full_name)
        if known is not None and known.facts == facts and known.logged == logged.columns:
            return known
        made = self._shaped[facts.full_name] = self._shapes.table(facts, logged.columns)
        return made

    def _truncated(self, database: str, table: str) -> TableShape | None:
        """The shape of a table that was truncated: that of its last change, or what the catalogue has."""
        known = self._shaped.get(f"{database}.{table}")
        if known is not None:
            return known
        found = self._table(database, table)
        return None if found is None else self._shapes.table(found.facts)

    def _on_touched(self, shape: TableShape, changes: Rows | None, places: list[Place]) -> None:
        self._touched.add(shape, changes)

    # --- snapshot ---

    def _plan_snapshot(self, state: SnapshotState) -> None:
        wanted = patterns("snapshot.include.collection.list", self._options["snapshot.include.collection.list"])
        for database, name in self._server.tables():
            if not self._is_captured(database, name):
                continue
            if wanted and not any(one.fullmatch(f"{database}.{name}") for one in wanted):
                continue
            found = self._server.table(database, name)
            if found is not None:
                self._tables.append(found.facts)
        self._reading = self._database.connect()
        self._reader = Server(self._database, self._reading)
        if any(not chunks.can_be_chunked(facts) and facts.full_name not in state.done for facts in self._tables):
            self._keyless = self._read_keyless(state)
        elif not self._left(state):
            self._complete()

    def _left(self, state: SnapshotState) -> list[TableFacts]:
        return [facts for facts in self._tables if facts.full_name not in state.done]

    def _state(self) -> SnapshotState:
        state = self._changes.position.snapshot
        assert state is not None
        return state

    def _moves(self, state: SnapshotState) -> None:
        self._changes.position = self._changes.position.but(snapshot=state)

    def _complete(self) -> None:
        state = self._state()
        seen = {**self._changes.position.seen, **state.seen}
        self._changes.position = self._changes.position.but(snapshot=None, seen=seen)
        self._changes.on_touched = None
        if self._reading is not None:
            self._reading._force_close()
            self._reading = None
        self.context.log.info("the snapshot of %d tables is complete: %d rows", len(self._tables), state.rows)
        if self._options.text("snapshot.mode") == "initial_only":
            self._is_over = True

    def _moments(self, count: int, at: Position, snapshot: Any) -> Moments:
        def same(value: Any, kind: Any) -> Any:
            return pa.repeat(pa.scalar(value, kind), count)

        now_us = self.context.now_ms() // 1000 * 1_000_000
        return Moments(
            same(now_us, pa.int64()),
            same(0, pa.int64()),
            pa.nulls(count, pa.string()),
            same(at.file, pa.string()),
            same(at.pos, pa.int64()),
            same(0, pa.int32()),
            pa.nulls(count, pa.int64()),
            snapshot,
        )

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
        """Tables that cannot be read in chunks, whole: nothing is streamed before they are done."""
        for facts in [one for one in self._left(state) if not chunks.can_be_chunked(one)]:
            shape = self._shapes.table(facts)
            at = self._keyless_place(facts)
            begins, held = True, list[bytes]()
            for payloads in _gathered(self._reader.query(chunks.chunk_sql(facts, None, None)), _PIECE_BYTES):
                if held:
                    yield self._keyless_records(shape, held, at, begins_table=begins, ends_table=False)
                    begins = False
                held = payloads
            last = self._keyless_records(shape, held, at, begins_table=begins, ends_table=True) if held else None
            self._reader.run("COMMIT")
            now = self._state()
            seen = {**now.seen, facts.full_name: place_text(at.file, at.pos)}
            self._moves(SnapshotState((*now.done, facts.full_name), None, None, seen, now.rows))
            if last is not None:
                yield last

    def _keyless_place(self, facts: TableFacts) -> Position:
        """Begins the transaction in which a table is read whole, and says exactly at which place. MySQL does not say
        it: there the table is locked against writing for the moment in which the place is taken."""
        if self._server.is_mariadb:
            return self._reader.consistent()
        self._server.run(f"LOCK TABLES {chunks.table_sql(facts)} READ")
        try:
            at = self._reader.status()
            self._reader.run("START TRANSACTION WITH CONSISTENT SNAPSHOT")
        finally:
            self._server.run("UNLOCK TABLES")
        return at

    def _keyless_records(
        self, shape: TableShape, payloads: Sequence[bytes], at: Position, *, begins_table: bool, ends_table: bool
    ) -> Records:
        state = self._state()
        count = len(payloads)
        is_last = ends_table and len(self._left(state)) == 1
        marks = markers(
            count, is_first=not state.rows, begins_table=begins_table, ends_table=ends_table, is_last=is_last
        )
        self._moves(SnapshotState(state.done, state.table, state.after, state.seen, state.rows + count))
        sent = shape.from_texts(chunks.text_columns(payloads, shape.width))
        return self._reads(shape, sent, count, at, marks)

    def _reads(self, shape: TableShape, sent: Sequence[Sent], count: int, at: Position, marks: Any) -> Records:
        positions = np.arange(count, dtype=np.int64) * STRIDE
        moments: Any = self._moments(count, at, marks)
        return shape.reads(sent, positions, moments, self._headers, self._now_us())

    def _read_chunk(self) -> _Chunk | None:
        """The next rows of the table that is under way, or of the next one. None if it must be tried again."""
        state = self._state()
        left = self._left(state)
        if not left:
            self._complete()
            return None
        known = next((facts for facts in left if facts.full_name == state.table), left[0])
        after = state.after if known.full_name == state.table else None
        if known.full_name != self._touched.table:
            self._chunk_rows = _FIRST_ROWS
        most = min(self._options.integer("ottla.snapshot.chunk.rows"), self._chunk_rows)
        self._touched.begin(known.full_name, self._changes.position.place)
        at = self._reader.consistent()
        try:
            if self._server.is_mariadb and at.place < self._touched.since:
                return None  # a transaction that was streamed is not to be seen yet
            found = self._reader.table(known.schema, known.name)
            facts = known if found is None else found.facts
            if found is not None and not chunks.can_be_chunked(facts):
                raise ConnectError(
                    f"table {known.full_name} lost its primary key while its snapshot ran: give it one, or exclude it "
                    "from the snapshot with snapshot.include.collection.list"
                )
            payloads = [] if found is None else list(self._reader.query(chunks.chunk_sql(facts, after, most)))
        finally:
            self._reader.run("COMMIT")
        shape = self._shapes.table(facts)
        size = sum(map(len, payloads))
        self._chunk_rows = next_rows(self._chunk_rows, len(payloads), size, self.context.max_bytes)
        columns = chunks.text_columns(payloads, shape.width)
        return _Chunk(shape, columns, at.place, is_last=len(payloads) < most)

    def _has_reached_chunk(self) -> bool:
        chunk, changes = self._chunk, self._changes
        if chunk is None or not changes.is_between_transactions or changes.has_changes:
            return False
        return changes.position.place >= chunk.place

    def _take_chunk(self) -> list[Records]:
        chunk = self._chunk
        assert chunk is not None
        self._chunk = None
        state = self._state()
        shape = chunk.shape
        facts = shape.facts
        name = facts.full_name
        read = len(chunk.found[0]) if chunk.found else 0
        begins_table = state.table != name
        after = chunks.last_key(facts, chunk.found) if read else state.after
        sent = shape.from_texts(chunk.found)
        count = read
        if read:
            kept = self._touched.kept(key_texts(sent, shape.key_places()))
            if kept is not None:
                sent = [Sent(None if one.texts is None else one.texts.filter(kept), None) for one in sent]
                count = int(np.asarray(kept).sum())
        is_last = chunk.is_last and len(self._left(state)) == 1
        marks = markers(
            count, is_first=not state.rows, begins_table=begins_table, ends_table=chunk.is_last, is_last=is_last
        )
        if chunk.is_last:
            self._moves(SnapshotState((*state.done, name), None, None, state.seen, state.rows + count))
        else:
            self._moves(SnapshotState(state.done, name, after, state.seen, state.rows + count))
        at = self._changes.position
        if is_last:
            self._complete()
        return [self._reads(shape, sent, count, at, marks)] if count else []


class MariaDbSource(MySqlSource):
    """`io.debezium.connector.mariadb.MariaDbConnector`."""

    word: ClassVar[str] = "mariadb"


def _gathered(payloads: Iterator[bytes], most: int) -> Iterator[list[bytes]]:
    """Rows, which come one by one, in larger pieces."""
    held: list[bytes] = []
    size = 0
    for payload in payloads:
        held.append(payload)
        size += len(payload)
        if size >= most:
            yield held
            held, size = [], 0
    if held:
        yield held
