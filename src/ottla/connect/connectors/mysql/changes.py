"""Events of the binary log in, records out: the whole of streaming, without the network.

Theory of operation. `add` takes one event. Rows are kept as bytes, a list for each version of a table; nothing is read
of them but the table's number. `take` makes records of everything that was added, in columns, and says where the
stream is behind them. When a table's columns change, its list is closed and a new one begun, so that the versions keep
their order.

After a start the server sends the transaction again that was under way: as many of its events are skipped as the offset
says. Memory is bounded by what was added since the last `take`: a transaction need not end before its changes leave.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.connectors.mysql import binlog, rows
from ottla.connect.connectors.mysql.binlog import Damaged, Event, TableMap
from ottla.connect.connectors.mysql.envelopes import IsCaptured, Moments, Shapes, TableShape
from ottla.connect.connectors.mysql.gtids import Gtids, MariaDbGtids, MySqlGtids
from ottla.connect.connectors.mysql.offsets import Place, Position, place_in, place_of
from ottla.connect.connectors.postgres.envelopes import STRIDE, ContextHeaders
from ottla.connect.connectors.postgres.pgoutput import Rows
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError

_ROW_BITS: Final = 30
"""A position has the number of an event above so many bits, and that of a row in them."""
_TRUNCATE: Final = re.compile(
    r"\s*(?:/\*.*?\*/\s*)*TRUNCATE\s+(?:TABLE\s+)?(?:(`(?:[^`]|``)+`|[\w$]+)\s*\.\s*)?(`(?:[^`]|``)+`|[\w$]+)",
    re.I | re.S,
)
_STATEMENT: Final = re.compile(r"\s*(?:/\*.*?\*/\s*)*(INSERT|UPDATE|DELETE|REPLACE|LOAD)\b", re.I | re.S)
_NO_DDL: Final = ("SAVEPOINT", "RELEASE SAVEPOINT", "XA ", "ROLLBACK TO")

OnTouched = Callable[[TableShape, Rows | None, list[Place]], None]
"""A table, its changes (None for a truncate, which is of all rows), and where in the log each is."""
ShapeOf = Callable[[TableMap, int], TableShape]
"""The shape of a table's version, for a change of that second."""


@dataclass(slots=True)
class _Transaction:
    gtid: str | None
    us: int | None
    thread: int | None = None


@dataclass(slots=True)
class _Entry:
    """What is known of a table's number: no shape if it is not captured. Changes before `hidden` were read already."""

    shape: TableShape | None
    hidden: Place | None = None


@dataclass(slots=True)
class _Segment:
    """Rows events of one version of a table, not read yet."""

    shape: TableShape
    parts: list[rows.Part] = field(default_factory=list)
    events: list[tuple[int, int, int, int, int, int]] = field(default_factory=list)
    """Of each: its number, second, server, file (a place in a list), position, transaction (a place in a list)."""
    skipped: dict[int, int] = field(default_factory=dict)


class Changes:
    """The stream from `start`. `shape_of` makes the shape of a table, `truncated` gives that of one that was truncated;
    `on_ddl` is told that the catalogue changed."""

    def __init__(
        self,
        start: Position,
        gtids: Gtids,
        shapes: Shapes,
        is_captured: IsCaptured,
        headers: ContextHeaders,
        shape_of: ShapeOf,
        truncated: Callable[[str, str], TableShape | None],
        *,
        has_checksum: bool = False,
        on_ddl: Callable[[], None] = lambda: None,
        on_touched: OnTouched | None = None,
    ) -> None:
        self._position = start
        self._end: tuple[str, int, int, int] | None = None
        """The end of the last transaction, if `_position` is not there yet: most are passed on the way to another."""
        self._gtids = gtids
        """Of all transactions that are over, and in a DDL of the one under way."""
        self._is_mariadb = isinstance(gtids, MariaDbGtids)
        self._is_by_place = not self._is_mariadb and start.gtids is None
        """Whether offsets have no set of GTIDs: one that began in the middle would say that all before it is missing.
        """
        self._shapes = shapes
        self._is_captured = is_captured
        self._headers = headers
        self._shape_of = shape_of
        self._truncated = truncated
        self._on_ddl = on_ddl
        self.on_touched = on_touched
        """Told of changes while a snapshot runs."""
        self.file = start.file
        self._has_checksum = has_checksum
        """Of the first event, which the server makes up; then a FORMAT event says it of each file."""
        self._entries: dict[int, _Entry] = {}
        self._by_map: dict[bytes, _Entry] = {}
        self._made: list[Any] = []
        """Closed segments, and truncates, in order."""
        self._open: dict[str, _Segment] = {}
        self._files: list[str] = [start.file]
        self._transactions: list[_Transaction] = []
        self._gtid: binlog.Gtid | None = None
        self._gtid_start = start.pos
        self._begins: tuple[str, int] | None = None
        """Where the transaction under way begins."""
        self._now: _Transaction | None = None
        self._events = 0
        """Of the transaction under way, that are over."""
        self._skip = start.event
        self._skip_rows = start.row
        self._skip_gtid = start.transaction
        self._number = 0
        self._is_new = False
        """Whether anything of the transaction under way was added since the last `take`."""
        self._seconds = start.seconds
        self._server_id = start.server_id
        self.size = 0
        self._seen: dict[str, Place] = {}
        self.see(dict(start.seen) | (dict(start.snapshot.seen) if start.snapshot is not None else {}))

    @property
    def position(self) -> Position:
        """Where the stream is: behind all that was taken, or the last whole transaction that was added."""
        if self._end is not None:
            file, pos, seconds, server_id = self._end
            self._end = None
            self._stands(Position(file, pos, str(self._gtids) or None, seconds, server_id))
        return self._position

    @position.setter
    def position(self, position: Position) -> None:
        self._end = None
        self._position = position

    @property
    def is_between_transactions(self) -> bool:
        return self._now is None and self._gtid is None

    @property
    def has_changes(self) -> bool:
        return self._number > 0

    def see(self, seen: Any) -> None:
        """Tables without a key, and the place at which they were read: what is before it is not written again."""
        self._seen |= {name: place_in(text) for name, text in seen.items()}
        self._forget()

    def _forget(self) -> None:
        self._entries.clear()
        self._by_map.clear()

    def add(self, data: bytes) -> None:
        """One event, as its packet has it. Raises `ConnectError` if it is damaged, or cannot be followed."""
        self._add(binlog.event_of(data, has_checksum=self._has_checksum))

    def _add(self, event: Event) -> None:
        kind = event.kind
        if kind in binlog.ROWS:
            self._rows(event)
        elif kind == binlog.TABLE_MAP:
            self._table_map(event)
        elif kind in (binlog.MARIADB_GTID, binlog.GTID, binlog.ANONYMOUS_GTID):
            self._on_gtid(event)
        elif kind == binlog.GTID_TAGGED:
            self._by_place()
        elif kind == binlog.XID or kind == binlog.XA_PREPARE:
            self._ends(event)
            return
        elif kind in (binlog.QUERY, binlog.QUERY_COMPRESSED):
            if self._query(event):
                return
        elif kind == binlog.ROTATE:
            self._rotate(event)
            return
        elif kind == binlog.FORMAT:
            self._has_checksum = binlog.has_checksums(event.body)
            self._forget()
        elif kind == binlog.TRANSACTION_PAYLOAD:
            self._payload(event)
            return
        elif kind == binlog.PARTIAL_UPDATE:
            raise ConnectError(
                "the binary log has a part of a JSON value instead of the whole: run SET GLOBAL "
                "binlog_row_value_options = ''"
            )
        elif kind == binlog.INCIDENT:
            raise ConnectError(
                f"the server says that changes are missing in its binary log, at {self.file}:{event.end}: set "
                "snapshot.mode to when_needed to read the tables again, or reset the connector's offsets"
            )
        elif kind == binlog.START_ENCRYPTION:
            return
        if self._now is not None:
            if kind not in (binlog.HEARTBEAT, binlog.HEARTBEAT_V2, binlog.FORMAT):
                self._events += 1
        elif self._gtid is None:
            self._passes(event)

    def _passes(self, event: Event) -> None:
        """An event between transactions, a heartbeat for instance: the log is read up to there."""
        known = self.position
        if known.file == self.file and event.end > known.pos and not known.event:
            self.position = known.but(pos=event.end)

    # --- transactions ---

    def _on_gtid(self, event: Event) -> None:
        self._gtid = binlog.mariadb_gtid_of(event) if event.kind == binlog.MARIADB_GTID else binlog.gtid_of(event)
        self._gtid_start = event.start
        if self._gtid.begins:
            self._begin(event, None)

    def _by_place(self) -> None:
        """A transaction of MySQL's whose GTID has a tag: the set cannot say that it is written, and a server that goes
        by the set would send it again. So from here on the offset is a file and a position, and no set."""
        self._gtid = binlog.Gtid(None, False)
        self._gtids = MySqlGtids()
        self._is_by_place = True

    def _begin(self, event: Event, thread: int | None) -> None:
        gtid = None if self._gtid is None else self._gtid.text
        self._now = _Transaction(gtid, None if self._gtid is None else self._gtid.commit_us, thread)
        self._transactions.append(self._now)
        self._begins = (self.file, event.start)
        self._events = 0
        self._seconds, self._server_id = event.seconds, event.server_id
        if self._skip and self._skip_gtid is not None and gtid is not None and gtid != self._skip_gtid:
            self._skip = self._skip_rows = 0  # another transaction than the one that was half written

    def _ends(self, event: Event) -> None:
        """The transaction is over: this is behind its last event."""
        if self._gtid is not None and self._gtid.text is not None and not self._is_by_place:
            self._gtids.add(self._gtid.text)
        self._gtid = self._now = self._begins = None
        self._events = self._skip = self._skip_rows = 0
        if not self._number:
            self._transactions.clear()
        self._seconds, self._server_id = event.seconds, event.server_id
        self._end = (self.file, event.end, event.seconds, event.server_id)

    def _stands(self, position: Position) -> None:
        seen = {name: text for name, text in self.position.seen.items() if place_in(text) > position.place}
        self.position = position.but(snapshot=self.position.snapshot, seen=seen)

    def _rotate(self, event: Event) -> None:
        """The log goes on in another file. The server also says so when a connection begins."""
        rotate = binlog.rotate_of(event.body)
        if rotate.file != self.file:
            self._forget()
        self.file = rotate.file
        if self._files[-1] != self.file:
            self._files.append(self.file)
        # One that the server made up has no time. It names another file than the offset's after a failover.
        is_other = rotate.file != self.position.file and not self.position.event
        if self.is_between_transactions and (event.seconds or is_other):
            self._stands(self.position.but(file=rotate.file, pos=rotate.position, event=0, row=0, transaction=None))

    def _query(self, event: Event) -> bool:
        """Whether the transaction ended with it."""
        query = binlog.query_of(event.body, is_compressed=event.kind == binlog.QUERY_COMPRESSED)
        text = query.text.strip()
        word = text.upper()
        if word == "BEGIN" or word.startswith("XA START"):
            if self._now is None:
                self._begin(event, query.thread)
            return False
        if word in ("COMMIT", "ROLLBACK") or word.startswith(("XA COMMIT", "XA ROLLBACK", "XA END")):
            if word.startswith("XA END"):
                return False
            self._ends(event)
            return True
        if self._now is not None and word.startswith(_NO_DDL):
            return False
        if _STATEMENT.match(text):
            raise ConnectError(
                f"the binary log has a statement instead of rows, at {self.file}:{event.end}, in database "
                f"{query.database!r}: set binlog_format to ROW on the server and in all sessions; set snapshot.mode to "
                "when_needed to read the tables again"
            )
        self._ddl(event, query.database, text)
        if self._now is None:
            self._ends(event)
            return True
        return False

    def _ddl(self, event: Event, database: str, text: str) -> None:
        truncate = _TRUNCATE.match(text)
        if truncate is not None:
            self._truncate(event, _unquoted(truncate[1]) or database, _unquoted(truncate[2]))
            return
        self._on_ddl()
        self._forget()

    def _truncate(self, event: Event, database: str, table: str) -> None:
        if not self._is_captured(database, table) or self._is_skipped():
            return
        seen = self._seen.get(f"{database}.{table}")
        if seen is not None and place_of(self.file, event.start) < seen:
            return
        # Its columns are not in the log: they are those of the last change, or of the catalogue.
        shape = self._truncated(database, table)
        if shape is None:
            return
        self._close(f"{database}.{table}")
        gtid = None if self._gtid is None else self._gtid.text
        self._transactions.append(_Transaction(gtid, None if self._gtid is None else self._gtid.commit_us))
        told = self._told(event)
        self._made.append((shape, told))
        self._number += 1
        if self._now is not None:
            self._transactions.append(self._now)

    def _payload(self, event: Event) -> None:
        """A compressed transaction of MySQL's. It is one event: an offset cannot be within it."""
        for data in binlog.payload_events(event.body):
            inner = binlog.event_of(data, has_checksum=False)
            self._add(Event(inner.seconds, inner.kind, inner.server_id, event.size, event.end, inner.flags, inner.body))

    # --- rows ---

    def _table_map(self, event: Event) -> None:
        body = event.body
        entry = self._by_map.get(body)
        if entry is None:
            entry = self._by_map[body] = self._entry(
                binlog.table_map_of(body, is_mariadb=self._is_mariadb), event.seconds
            )
        self._entries[binlog.table_number(body)] = entry

    def _entry(self, logged: TableMap, seconds: int) -> _Entry:
        if not self._is_captured(logged.database, logged.table):
            return _Entry(None)
        return _Entry(self._shape_of(logged, seconds), self._seen.get(f"{logged.database}.{logged.table}"))

    def _is_skipped(self) -> bool:
        return self._events < self._skip

    def _told(self, event: Event) -> tuple[int, int, int, int, int, int]:
        place = len(self._transactions) - 1
        return self._number, event.seconds, event.server_id, len(self._files) - 1, event.start, place

    def _rows(self, event: Event) -> None:
        if self._is_skipped():
            return
        skip_rows, self._skip_rows = self._skip_rows, 0
        self._is_new = True
        entry = self._entries.get(binlog.table_number(event.body))
        if entry is None:
            raise Damaged(
                f"rows came before their table's columns, at {self.file}:{event.end}: the binary log is damaged"
            )
        shape = entry.shape
        if shape is None or (entry.hidden is not None and place_of(self.file, event.start) < entry.hidden):
            return
        name = shape.facts.full_name
        segment = self._open.get(name)
        if segment is None or segment.shape is not shape:
            self._close(name)
            segment = self._open[name] = _Segment(shape)
        try:
            part = rows.part_of(event.kind, event.body, len(shape.logged))
        except Damaged as error:
            raise Damaged(f"{name}, at {self.file}:{event.start}: {error}") from None
        if skip_rows:
            segment.skipped[len(segment.parts)] = skip_rows
        segment.parts.append(part)
        segment.events.append(self._told(event))
        self._number += 1
        self.size += len(part.data)

    def _close(self, name: str) -> None:
        segment = self._open.pop(name, None)
        if segment is not None:
            self._made.append(segment)

    def take(self, now_us: int) -> list[Records]:
        """The records of all that was added, and `position` is behind them. Raises `ConnectError` for a row that cannot
        be a record."""
        for name in list(self._open):
            self._close(name)
        found: list[Records] = []
        for one in self._made:
            if isinstance(one, _Segment):
                found += self._take_segment(one, now_us)
            else:
                shape, told = one
                found += self._take_truncate(shape, told, now_us)
        if self._now is not None and self._events > self._skip and self._begins is not None:
            file, start = self._begins
            self._stands(
                Position(
                    file,
                    start,
                    str(self._gtids) or None,
                    self._seconds,
                    self._server_id,
                    self._events,
                    0,
                    self._now.gtid,
                )
            )
        self._made.clear()
        self._transactions = [] if self._now is None else [self._now]
        self._files = [self.file]
        self._number = 0
        self.size = 0
        return found

    def _take_segment(self, segment: _Segment, now_us: int) -> list[Records]:
        shape = segment.shape
        try:
            changes, events, numbers = shape.changes(segment.parts, segment.skipped)
        except Damaged as error:
            first = segment.events[0]
            raise Damaged(f"{shape.facts.full_name}, from {self._files[first[3]]}:{first[4]}: {error}") from None
        told = np.array(segment.events, dtype=np.int64).reshape(-1, 6)[events]
        if self.on_touched is not None:
            files = [place_of(file, 0)[0] for file in self._files]
            places = [(files[file], position) for file, position in told[:, 3:5].tolist()]
            self.on_touched(shape, changes, places)
        positions = (told[:, 0] << _ROW_BITS) + numbers * STRIDE
        return shape.records(changes, positions, self._moments(told, numbers), self._headers, now_us)  # type: ignore[arg-type]

    def _moments(self, told: Any, numbers: Any) -> Moments:
        transactions = pa.array(told[:, 5], pa.int64())
        gtid = pa.array([one.gtid for one in self._transactions], pa.string())
        commit = pa.array([one.us for one in self._transactions], pa.int64())
        thread = pa.array([one.thread for one in self._transactions], pa.int64())
        us = told[:, 1] * 1_000_000
        if commit.null_count < len(commit):
            us = np.where(np.asarray(commit.is_valid())[told[:, 5]], np.asarray(commit.fill_null(0))[told[:, 5]], us)
        return Moments(
            pa.array(us, pa.int64()),
            pa.array(told[:, 2], pa.int64()),
            gtid.take(transactions),
            pa.array(self._files, pa.string()).take(pa.array(told[:, 3], pa.int64())),
            pa.array(told[:, 4], pa.int64()),
            pa.array(numbers, pa.int32()),
            thread.take(transactions),
        )

    def _take_truncate(self, shape: TableShape, told: tuple[int, ...], now_us: int) -> list[Records]:
        if self.on_touched is not None:
            self.on_touched(shape, None, [place_of(self._files[told[3]], told[4])])
        if "t" in self._shapes.skipped:
            return []
        moments = self._moments(np.array([told], dtype=np.int64), np.zeros(1, np.int64))
        return [shape.truncated(told[0] << _ROW_BITS, moments, self._headers, now_us)]  # type: ignore[arg-type]


def _unquoted(name: str | None) -> str:
    if name is None:
        return ""
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
