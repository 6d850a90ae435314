"""Messages of the replication stream in, records out: the whole of streaming, without the network.

Theory of operation. `add` takes one message. Changes are kept as bytes, a list for each table and version of its
columns; nothing is read of them but the table's number. `take` makes records of everything that was added, in columns,
and says where the stream is behind them. When a table's columns change, its list is closed and a new one begun, so that
the versions keep their order.

After a start the server sends whole transactions again, beginning with the first that was not confirmed. What the
offset says is written is skipped: transactions by their commit's LSN, and of one transaction the first changes by their
number, which is the same each time they are decoded.

Memory is bounded by what was added since the last `take`: a transaction need not end before its changes leave.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

from ottla.connect.connectors.postgres import pgoutput
from ottla.connect.connectors.postgres.catalogue import ColumnFacts, TableFacts
from ottla.connect.connectors.postgres.envelopes import (
    STRIDE,
    ContextHeaders,
    IsCaptured,
    Moments,
    Shapes,
    TableShape,
    message_records,
)
from ottla.connect.connectors.postgres.offsets import Position, Resumed, Seen, lsn_text
from ottla.connect.connectors.postgres.options import Named
from ottla.connect.connectors.postgres.pgoutput import Relation
from ottla.connect.connectors.postgres.transactions import MESSAGES, Made, Mark, mark_records, ordered
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError

HEAD: Final = 25
"""`w`, where the message begins, where the server's WAL ends, the server's clock."""
_CHANGES: Final = (pgoutput.INSERT, pgoutput.UPDATE, pgoutput.DELETE)
_MARK_BYTES: Final = 100
_KINDS: Final = {pgoutput.INSERT: "INSERT", pgoutput.UPDATE: "UPDATE", pgoutput.DELETE: "DELETE"}


OnTouched = Callable[[TableShape, pgoutput.Rows | None, list[int | None]], None]
"""A table, its changes (None for a truncate, which is of all rows), and the transactions of each."""
OnSignal = Callable[[list[str | None]], None]
"""The texts of a row that was inserted into the table of signals."""
_RECENT: Final = 10_000


@dataclass(slots=True)
class _Transaction:
    xid: int | None
    commit_us: int | None
    last_commit: int | None
    final_lsn: int = 0
    origin: str | None = None
    origin_lsn: int | None = None
    counts: dict[str, int] = field(default_factory=dict)
    """How many changes of each collection were taken before, with `provide.transaction.metadata`."""


@dataclass(slots=True)
class _Segment:
    """Changes of one version of a table, not read yet. `transactions` has for each the place of its transaction in the
    list, `numbers` the place among all changes since the last `take`."""

    shape: TableShape
    bodies: list[bytes] = field(default_factory=list)
    transactions: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)


class Changes:
    """The stream after `resumed`. `facts` asks the catalogue of a table whose columns came; None if it is gone."""

    def __init__(
        self,
        start: Resumed,
        shapes: Shapes,
        is_captured: IsCaptured,
        messages: Named,
        headers: ContextHeaders,
        facts: Callable[[Relation], TableFacts | None],
        *,
        on_touched: OnTouched | None = None,
        transaction_topic: str | None = None,
        signals: tuple[str, OnSignal] | None = None,
    ) -> None:
        self.position = start.position
        self._resumed = start
        self._shapes = shapes
        self._is_captured = is_captured
        self._messages = messages
        self._headers = headers
        self._facts = facts
        self._shapes_of: dict[int, TableShape | None] = {}
        self._hidden: dict[int, Seen] = {}
        self._made: list[Any] = []
        """Closed segments, and functions that make single records, in order."""
        self._open: dict[int, _Segment] = {}
        self._transactions: list[_Transaction] = []
        self._now: _Transaction | None = None
        self._last_commit: int | None = start.position.commit_lsn if start.position.kind is not None else None
        self._changes = 0
        """Of the transaction that is under way."""
        self._skip = 0
        self._is_done = False
        """Whether the transaction under way is written already."""
        self._number = 0
        self.size = 0
        self.on_touched = on_touched
        """Told of the rows of each segment while a snapshot runs."""
        self._transaction_topic = transaction_topic
        """Where begins and ends of transactions are written; None if they are not."""
        self._begun = start.position.counts
        self._signals = signals
        """The table of signals, and what is told of a row that was inserted into it."""
        self.recent: deque[int] = deque(maxlen=_RECENT)
        """Transactions that were streamed, and that no snapshot of the database has shown yet."""
        self._seen = {name: Seen.of(text) for name, text in start.position.seen.items()}
        if start.position.snapshot is not None:
            self.see(start.position.snapshot.seen)

    @property
    def is_between_transactions(self) -> bool:
        return self._now is None

    @property
    def has_changes(self) -> bool:
        return self._number > 0

    def see(self, seen: Any) -> None:
        """Tables without a key, and what the database's snapshot showed of them: what is in it is not written again."""
        self._seen |= {name: Seen.of(text) for name, text in seen.items()}
        self._hidden.clear()
        self._shapes_of.clear()

    def add(self, message: bytes) -> None:
        """One `w` message of the replication stream. Raises `ConnectError` if the stream is damaged."""
        kind = message[HEAD]
        if kind in _CHANGES:
            self._changes += 1
            if self._is_done or self._changes <= self._skip:
                return
            oid = int.from_bytes(message[26:30], "big")
            segment = self._open.get(oid)
            if segment is None:
                segment = self._segment(oid)
                if segment is None:
                    return
            if self._resumed.done_xid is not None and self._is_written(int.from_bytes(message[1:9], "big")):
                return
            if self._hidden and oid in self._hidden and self._is_hidden(self._hidden[oid]):
                return
            segment.bodies.append(message)
            segment.transactions.append(len(self._transactions) - 1)
            segment.numbers.append(self._number)
            self._number += 1
            self.size += len(message)
            return
        self._add_rare(kind, message)

    def _is_written(self, lsn: int) -> bool:
        """Whether Debezium wrote a change of the transaction under way, by its offset."""
        known = self._resumed
        return self._now is not None and self._now.xid == known.done_xid is not None and lsn <= known.done_lsn

    def _is_hidden(self, seen: Seen) -> bool:
        """Whether the transaction under way was seen by the snapshot that its table was read in."""
        now = self._now
        return now is not None and now.xid is not None and now.final_lsn < seen.lsn and seen.visible(now.xid)

    def _segment(self, oid: int) -> _Segment | None:
        try:
            shape = self._shapes_of[oid]
        except KeyError:
            raise ConnectError(
                f"a change of table {oid} came before its columns: the replication stream is damaged"
            ) from None
        if shape is None:
            return None
        made = self._open[oid] = _Segment(shape)
        return made

    def _add_rare(self, kind: int, message: bytes) -> None:
        body = message[HEAD:]
        if kind == pgoutput.BEGIN:
            begin = pgoutput.begin_of(body)
            self._now = _Transaction(begin.xid, begin.commit_us, self._last_commit, begin.final_lsn)
            self._transactions.append(self._now)
            self._changes = 0
            self._is_done = begin.final_lsn < self._resumed.position.commit_lsn
            is_half = self._resumed.position.transaction == begin.final_lsn
            self._skip = self._resumed.position.changes if is_half else 0
            self.recent.append(begin.xid)
            if self._transaction_topic is not None and not self._is_done:
                self._began(self._now, int.from_bytes(message[1:9], "big"))
        elif kind == pgoutput.COMMIT:
            self._committed(int.from_bytes(message[1:9], "big"), body)
        elif kind == pgoutput.RELATION:
            self._related(pgoutput.relation_of(body))
        elif kind == pgoutput.ORIGIN:
            if self._now is not None:
                self._now.origin_lsn, self._now.origin = pgoutput.origin_of(body)
        elif kind == pgoutput.TRUNCATE:
            self._truncated(int.from_bytes(message[1:9], "big"), body)
        elif kind == pgoutput.MESSAGE:
            self._message(int.from_bytes(message[1:9], "big"), body)
        elif kind != pgoutput.TYPE:
            raise ConnectError(f"pgoutput sent a message of kind {chr(kind)!r}, which was not asked for")

    def _began(self, now: _Transaction, lsn: int) -> None:
        """The begin is a record of its own, unless the run before wrote it."""
        begun, self._begun = self._begun, None
        is_written = begun is not None and now.xid == self._resumed.position.xid
        if begun is not None and is_written:
            now.counts = dict(begun)
        else:
            self._mark(now, lsn, is_end=False)

    def _mark(self, now: _Transaction, lsn: int, *, is_end: bool) -> None:
        assert now.xid is not None and now.commit_us is not None
        self._made.append(Mark(is_end, len(self._transactions) - 1, self._number, now.xid, lsn, now.commit_us))
        self._number += 1
        self.size += _MARK_BYTES

    def _committed(self, lsn: int, body: bytes) -> None:
        commit = pgoutput.commit_of(body)
        now = self._now
        is_marked = self._transaction_topic is not None and now is not None and not self._is_done
        if is_marked and commit.end_lsn > self._resumed.position.commit_lsn:
            assert now is not None
            self._mark(now, lsn, is_end=True)
        self._now = None
        if not self._number:
            self._transactions.clear()
        if commit.end_lsn <= self._resumed.position.commit_lsn:
            return
        self._last_commit = lsn
        xid = None if now is None else now.xid
        self._stands(Position(lsn, lsn, xid, commit.commit_us, "COMMIT"))

    def _stands(self, position: Position) -> None:
        seen = {name: text for name, text in self.position.seen.items() if Seen.of(text).lsn > position.commit_lsn}
        self.position = position.but(
            snapshot=self.position.snapshot, incremental=self.position.incremental, seen=seen, after_snapshot=False
        )

    def _related(self, relation: Relation) -> None:
        self._close(relation.oid)
        self._hidden.pop(relation.oid, None)
        if not self._is_captured(relation.schema, relation.name):
            self._shapes_of[relation.oid] = None
            return
        facts = with_streamed_key(self._facts(relation), relation)
        self._shapes_of[relation.oid] = self._shapes.shape(facts, relation.columns)
        if (visible := self._seen.get(facts.full_name)) is not None:
            self._hidden[relation.oid] = visible

    def _close(self, oid: int) -> None:
        segment = self._open.pop(oid, None)
        if segment is not None:
            self._made.append(segment)

    def _truncated(self, lsn: int, body: bytes) -> None:
        self._changes += 1
        if self._is_done or self._changes <= self._skip or self._is_written(lsn):
            return
        for oid in pgoutput.truncate_of(body).relations:
            shape = self._shapes_of.get(oid)
            if shape is None:
                continue
            self._close(oid)
            position = self._number * STRIDE
            self._number += 1
            self._made.append((shape, position, lsn, len(self._transactions) - 1))

    def _message(self, lsn: int, body: bytes) -> None:
        message = pgoutput.message_of(body)
        known = self._resumed.position
        if message.is_transactional:
            self._changes += 1
            if self._is_done or self._changes <= self._skip or self._is_written(lsn):
                return
            place = len(self._transactions) - 1
        else:
            if lsn < known.commit_lsn:
                return
            self._last_commit = lsn
            self._transactions.append(_Transaction(None, None, lsn))
            place = len(self._transactions) - 1
            if self._now is not None:  # the transaction under way is the last one again
                self._transactions.append(self._now)
        if self._messages(message.prefix):
            self._made.append((message, self._number * STRIDE, lsn, place))
            self._number += 1
            self.size += len(body)
        if not message.is_transactional and self._now is None:
            # An LSN is where the message begins: one more is behind it, and before anything else.
            self._stands(Position(lsn + 1, lsn + 1, None, None, "MESSAGE"))

    def take(self, now_us: int) -> list[Records]:
        """The records of all that was added, and `position` is behind them. Raises `ConnectError` for a row that
        cannot be a record."""
        for oid in list(self._open):
            self._close(oid)
        table = _Table(self._transactions)
        made: list[Made] = []
        marks: list[Mark] = []
        last = (-1, 0, "", 0)
        for one in self._made:
            if isinstance(one, _Segment):
                lsns = self._take_segment(one, table, now_us, made)
                if one.numbers[-1] > last[0]:
                    kind = _KINDS[one.bodies[-1][HEAD]]
                    last = (one.numbers[-1], int(lsns[-1]), kind, one.transactions[-1])
                continue
            if isinstance(one, Mark):
                marks.append(one)
                if one.number > last[0]:
                    last = (one.number, one.lsn, "COMMIT" if one.is_end else "BEGIN", one.place)
                continue
            what, position, lsn, place = one
            moments = table.moments(np.array([lsn]), np.array([place]))
            if isinstance(what, TableShape):
                if self.on_touched is not None:
                    self.on_touched(what, None, [self._transactions[place].xid])
                if "t" not in self._shapes.skipped:
                    records = what.truncated(position, moments, self._headers, now_us)
                    made.append(Made(what.facts.full_name, records))
                kind = "TRUNCATE"
            else:
                records = message_records(self._shapes, what.prefix, what.content, moments, position, now_us // 1000)
                made.append(Made(MESSAGES, records))
                kind = "MESSAGE"
            if position // STRIDE > last[0]:
                last = (position // STRIDE, lsn, kind, place)
        found = self._with_transactions(made, marks)
        if self._now is not None and not self._is_done and (self._changes > self._skip or marks):
            self._stands_in_the_middle(last[1], last[2])
        self._made.clear()
        self._transactions = [] if self._now is None else [self._now]
        self._number = 0
        self.size = 0
        return found

    def _with_transactions(self, made: list[Made], marks: list[Mark]) -> list[Records]:
        """The records, with their places in their transactions and those of begins and ends, if they are wanted."""
        if self._transaction_topic is None:
            return [one.records for one in made]
        # A message outside of transactions stands in the middle of one, which is in the list twice then.
        first_place = {id(one): place for place, one in reversed(list(enumerate(self._transactions)))}
        same = [-1 if one.xid is None else first_place[id(one)] for one in self._transactions]
        place_of = np.full(self._number, -1)
        for one in self._made:
            if isinstance(one, _Segment):
                place_of[one.numbers] = np.array(same)[one.transactions]
            elif not isinstance(one, Mark):
                place_of[one[1] // STRIDE] = same[one[3]]
        begun = {first_place[id(one)]: one.counts for one in self._transactions if one.counts}
        found, counts = ordered(made, place_of, begun)
        if marks:
            marks = [replace(mark, place=same[mark.place]) for mark in marks]
            found.append(mark_records(self._transaction_topic, marks, counts))
        if self._now is not None:
            self._now.counts = counts.get(first_place[id(self._now)], {})
        return found

    def _stands_in_the_middle(self, lsn: int, kind: str) -> None:
        now = self._now
        assert now is not None
        commit_lsn = self.position.commit_lsn
        counts = None if self._transaction_topic is None else now.counts
        changes = max(self._changes, self._skip)
        self._stands(
            Position(
                commit_lsn,
                lsn or commit_lsn,
                now.xid,
                now.commit_us,
                kind or None,
                now.final_lsn,
                changes,
                counts=counts,
            )
        )

    def _tell_signals(self, rows: pgoutput.Rows, tell: "OnSignal") -> None:
        for row in _inserted(rows):
            tell(row)

    def _take_segment(self, segment: _Segment, table: "_Table", now_us: int, made: list[Made]) -> Any:
        heads = b"".join([body[1:9] for body in segment.bodies])
        lsns = np.frombuffer(heads, dtype=">u8").astype(np.int64)
        try:
            rows = pgoutput.split(segment.bodies, HEAD, segment.shape.width)
        except ConnectError as error:
            raise ConnectError(f"{segment.shape.facts.full_name}, from LSN {lsn_text(int(lsns[0]))}: {error}") from None
        if self.on_touched is not None:
            self.on_touched(segment.shape, rows, [self._transactions[place].xid for place in segment.transactions])
        if self._signals is not None and segment.shape.facts.full_name == self._signals[0]:
            self._tell_signals(rows, self._signals[1])
        moments = table.moments(lsns, np.array(segment.transactions))
        positions = np.array(segment.numbers, dtype=np.int64) * STRIDE
        records = segment.shape.records(rows, positions, moments, self._headers, now_us)
        made += [Made(segment.shape.facts.full_name, one) for one in records]
        return lsns


def _inserted(rows: pgoutput.Rows) -> list[list[str | None]]:
    """The rows that were inserted, as texts."""
    chosen = pa.array((rows.operations == pgoutput.INSERT)[rows.has_after])
    columns = [sent.texts.filter(chosen).to_pylist() for sent in rows.after]
    return [list(row) for row in zip(*columns, strict=True)]


def with_streamed_key(facts: TableFacts | None, relation: Relation) -> TableFacts:
    """The facts with the key that the change had: the catalogue may be ahead, and have another or no such table.

    With the default identity the columns that are marked are those of the primary key, and never null.
    """
    if facts is None:
        facts = TableFacts(relation.schema, relation.name, ())
    marked = [column.name for column in relation.columns if column.is_key]
    if relation.identity != "d" or not marked or set(marked) == set(facts.key):
        return facts
    known = [
        replace(facts.by_name[column.name], required=True)
        if column.name in facts.by_name
        else ColumnFacts(column.name, column.type_oid, column.modifier, True)
        for column in relation.columns
        if column.is_key
    ]
    columns = (*(one for one in facts.columns if one.name not in marked), *known)
    return TableFacts(facts.schema, facts.name, columns, tuple(marked), True, facts.identity, facts.oid)


class _Table:
    """The transactions of a batch, as columns that changes take theirs from."""

    def __init__(self, transactions: list[_Transaction]) -> None:
        def column(name: str, kind: Any) -> Any:
            return pa.array([getattr(one, name) for one in transactions], kind)

        self._xid = column("xid", pa.int64())
        self._commit_us = column("commit_us", pa.int64())
        self._last_commit = column("last_commit", pa.int64())
        self._origin = column("origin", pa.string())
        self._origin_lsn = column("origin_lsn", pa.int64())

    def moments(self, lsns: Any, places: Any) -> Moments:
        rows = pa.array(places, pa.int64())
        taken = (
            one.take(rows) for one in (self._xid, self._commit_us, self._last_commit, self._origin, self._origin_lsn)
        )
        return Moments(pa.array(lsns, pa.int64()), *taken)
