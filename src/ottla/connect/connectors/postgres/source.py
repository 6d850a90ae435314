"""The connector: a snapshot if one is due, and the changes from a replication slot.

Theory of operation. `start` connects, makes the publication and the slot if they are not there, and begins to stream
behind the stored offset. `poll` reads what has come, up to the context's bytes, and makes records of it. While a
snapshot runs, chunks of tables are read in between, and written when the stream has reached their high watermark
(`chunks`). All records of a poll are one unit: every batch but the last has the offset from before the poll, and the
last one that behind it; so whoever splits a poll repeats records rather than lose them.

The server is told to forget what `committed` said is written, and no more. In a quiet database, when all that was
polled is committed, it is told what it has looked through without finding changes for us: so its WAL goes even though
no record is written.

A crash leaves the slot and the publication. The next run begins at the stored offset.
"""

import select
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np
import psycopg
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.config.setting import Setting
from ottla.connect.connector import Offset, Partition, Problem, Source, SourceContext, SourceRecords
from ottla.connect.connectors.postgres import chunks, options
from ottla.connect.connectors.postgres.catalogue import TableFacts
from ottla.connect.connectors.postgres.changes import Changes
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
from ottla.connect.connectors.postgres.types import TypeMap
from ottla.connect.data.records import Records
from ottla.connect.data.rows import column_of
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption

CLASS_NAME: Final = "io.debezium.connector.postgresql.PostgresConnector"
_WAL_CHECK_S: Final = 30.0
_PIECE_BYTES: Final = 8 << 20
_ROWS_A_LOOK: Final = 1000
_FIRST_ROWS: Final = 2000
"""Of a table's first chunk, when it is not known how large its rows are."""
_SNAPSHOT: Final = "SELECT pg_catalog.pg_current_snapshot()::text, pg_catalog.pg_current_wal_insert_lsn()::text"


class _Chunk:
    """Rows that were read and wait for their high watermark."""

    def __init__(
        self, shape: TableShape, sent: Sequence[Sent], visible: Visible, high_lsn: int, *, is_last: bool
    ) -> None:
        self.shape = shape
        self.sent = sent
        self.visible = visible
        self.high_lsn = high_lsn
        self.is_last = is_last


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
        self._reader: psycopg.Connection[Any] | None = None
        self._stream: ReplicationStream | None = None
        self._catalogue: Catalogue | None = None
        self._touched = chunks.Touched()
        self._chunk: _Chunk | None = None
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
        self._headers = context_headers(self._shapes.prefix, _run_id()) if is_extended else ContextHeaders(())
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
            return Resumed(Position(begins.position.commit_lsn, begins.position.lsn, snapshot=SnapshotState()))
        return begins

    def _open_stream(self) -> None:
        position = self._changes.position
        self._stream = ReplicationStream(self._database, position.commit_lsn)
        self._status_s = time.monotonic()

    def stop(self) -> None:
        for one in (self._stream, self._reader):
            if one is not None:
                one.close()
        self._stream = self._reader = None
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
        if self._changes.position.snapshot is not None and self._chunk is None:
            self._chunk = self._read_chunk()
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
        if not found and not self.is_at_end() and self._chunk is None:
            self._tell(ask=True)  # Where the server is, it says when it is asked.
        found += self._heartbeat()
        return self._batches(found)

    def is_at_end(self) -> bool:
        """The snapshot is complete, and the stream has reached what was there at the start."""
        if self._is_over:
            return True
        changes, stream = self._changes, self._stream
        if stream is None or changes.position.snapshot is not None or changes.has_changes:
            return False
        if self._options.text("snapshot.mode") == "initial_only" or not changes.is_between_transactions:
            return False
        return max(stream.server_lsn, changes.position.commit_lsn) >= self._goal_lsn

    def metrics(self) -> Mapping[str, float]:
        return {} if self._retained is None else {"wal_retained_bytes": float(self._retained)}

    def _batches(self, found: Sequence[Records]) -> list[SourceRecords]:
        offset = self._changes.position.as_offset()
        if not found:
            if offset.get("ottla_snapshot") == (self._emitted or {}).get("ottla_snapshot"):
                return []
            # The snapshot went on, and all rows of the chunk were dropped: only the offset is written.
            found = [self._no_records()]
        before, self._emitted = self._emitted, offset
        assert before is not None
        self._all_is_durable = False
        last = len(found) - 1
        return [
            SourceRecords(one, self._partition, offset if place == last else before) for place, one in enumerate(found)
        ]

    def _no_records(self) -> Records:
        key = column_of(HEARTBEAT_KEY, [])
        empty = pa.array([], pa.int64())
        topic = self._heartbeat_topic()
        return Records(topic, key, column_of(HEARTBEAT_VALUE, []), empty, empty, pa.array([], pa.int32()))

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
            if self._chunk is not None and changes.is_between_transactions:
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
        via_root = self._options.flag("publish.via.partition.root")
        for schema, name, oid, identity, kind, _, is_partition in self._catalogue.tables():
            if (kind == "p") is not via_root and (kind == "p" or is_partition):
                continue
            if not self._is_captured(schema, name):
                continue
            if wanted and not any(one.fullmatch(f"{schema}.{name}") for one in wanted):
                continue
            facts = self._catalogue.table(oid, schema, name, identity)
            if facts is not None:
                self._tables.append(facts)
        self._reader = self._database.connect()
        if any(not facts.has_primary_key and facts.full_name not in state.done for facts in self._tables):
            self._keyless = self._read_keyless(state)
        elif not self._left(state):
            self._complete()

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
        self._changes.on_touched = None
        if self._reader is not None:
            self._reader.close()
            self._reader = None
        self.context.log.info("the snapshot of %d tables is complete: %d rows", len(self._tables), state.rows)

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
        assert self._reader is not None
        keyless = [facts for facts in self._left(state) if not facts.has_primary_key]
        lsn = self._changes.position.commit_lsn
        for facts in keyless:
            shape = self._shapes.shape(facts, chunks.relation_columns(facts))
            with self._database.plainly(), self._reader.transaction():
                self._reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
                row = self._reader.execute(_SNAPSHOT).fetchone()
                assert row is not None
                seen = {**self._state().seen, facts.full_name: "@".join(row)}
                begins, held = True, b""
                pieces = copied(self._database, self._reader, chunks.chunk_sql(facts, None, None))
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

    def _read_chunk(self) -> _Chunk | None:
        """The next rows of the table that is under way, or of the next one."""
        assert self._reader is not None
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
        self._touched.begin(known.full_name)
        with self._database.plainly(), self._reader.transaction():
            self._reader.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            row = self._reader.execute(_SNAPSHOT).fetchone()
            assert row is not None
            facts = Catalogue(self._database, self._reader).table(known.oid, known.schema, known.name, known.identity)
            if facts is None or not facts.has_primary_key:
                if facts is not None:
                    raise ConnectError(
                        f"table {known.full_name} lost its primary key while its snapshot ran: give it one, or "
                        "exclude it "
                        "from the snapshot with snapshot.include.collection.list"
                    )
                content = b""
                facts = known
            else:
                content = self._copied(chunks.chunk_sql(facts, after, most))
        shape = self._shapes.shape(facts, chunks.relation_columns(facts))
        sent = chunks.parsed(content, shape.width)
        self._chunk_rows = chunks.next_rows(self._chunk_rows, len(sent[0].texts), len(content), self.context.max_bytes)
        high_lsn = chunks.watermark(lsn_of(row[1]))
        return _Chunk(shape, sent, Visible.of(row[0]), high_lsn, is_last=len(sent[0].texts) < most)

    def _copied(self, query: str) -> bytes:
        """All rows of a query. The stream's server hears of us meanwhile: it ends connections that are silent."""
        assert self._reader is not None
        rows: list[bytes] = []
        for row in copied(self._database, self._reader, query):
            rows.append(row)
            is_time = len(rows) % _ROWS_A_LOOK == 0 and time.monotonic() - self._status_s >= self._status_interval_s
            if is_time and self._stream is not None:
                self._tell()
        return b"".join(rows)

    def _has_reached_chunk(self) -> bool:
        chunk, stream, changes = self._chunk, self._stream, self._changes
        if chunk is None or stream is None or not changes.is_between_transactions or changes.has_changes:
            return False
        return max(stream.server_lsn, changes.position.commit_lsn) >= chunk.high_lsn

    def _take_chunk(self) -> list[Records]:
        chunk = self._chunk
        assert chunk is not None
        self._chunk = None
        state = self._state()
        shape, sent = chunk.shape, chunk.sent
        name = shape.facts.full_name
        read = len(sent[0].texts)
        begins_table = state.table != name
        places = shape.key_places()
        after = chunks.last_key(sent, places) if read else state.after
        if read:
            kept = self._touched.kept(chunks.key_texts(sent, places), chunk.visible)
            if kept is not None:
                sent = [Sent(one.texts.filter(kept), None) for one in sent]
        count = len(sent[0].texts)
        is_last = chunk.is_last and len(self._left(state)) == 1
        marks = chunks.markers(
            count, is_first=not state.rows, begins_table=begins_table, ends_table=chunk.is_last, is_last=is_last
        )
        if chunk.is_last:
            moved = SnapshotState((*state.done, name), None, None, state.seen, state.rows + count)
        else:
            moved = SnapshotState(state.done, name, after, state.seen, state.rows + count)
        self._changes.position = self._changes.position.but(snapshot=moved)
        lsn = self._changes.position.lsn
        if is_last:
            self._complete()
        if not count:
            return []
        positions = np.arange(count, dtype=np.int64) * STRIDE
        return [shape.reads(sent, positions, self._moments(count, lsn, marks), self._headers, self._now_us())]


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


def _run_id() -> str:
    """A UUID of version 7, as Debezium has one for each run: the time, and chance."""
    ms = time.time_ns() // 1_000_000
    chance = uuid.uuid4().int
    number = ms << 80 | 0x7 << 76 | (chance >> 68 & 0xFFF) << 64 | 0b10 << 62 | chance & ((1 << 62) - 1)
    return str(uuid.UUID(int=number))
