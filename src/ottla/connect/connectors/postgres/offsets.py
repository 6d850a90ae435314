"""Where the connector is, in Debezium's form, and what a new start skips.

    {"server": "shop"}  →  {"lsn": …, "lsn_proc": …, "lsn_commit": …, "txId": …, "ts_usec": …, "messageType": "COMMIT"}

`lsn_commit` is the end of the last transaction that is written whole: there the server begins again. In the middle of a
transaction `lsn` is that of its last change, and `ottla_transaction` and `ottla_changes` say how many of which
transaction are written; an LSN cannot, since the rows of one COPY have the same. An offset of Debezium's has no count:
of the transaction `txId`, what is not above `lsn` is skipped then.

While a snapshot runs, `snapshot` and `snapshot_completed` say so to Debezium, and `ottla_snapshot` how far it is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from ottla.connect.connectors.postgres.signals import Incremental, of_debezium
from ottla.connect.errors import ConnectError

_ORDER: Final = "transaction_data_collection_order_"
_CHANGES: Final = ("INSERT", "UPDATE", "DELETE", "TRUNCATE", "MESSAGE")


@dataclass(frozen=True, slots=True)
class SnapshotState:
    """How far a snapshot is: tables that are read whole, and the key of the last row of the table that is not.

    `seen` has tables without a key: what the database's snapshot showed of them when they were read, and an LSN behind
    it (`736:740:738@0/14B3FC8`), so that changes which are in it are not written a second time.
    """

    done: tuple[str, ...] = ()
    table: str | None = None
    after: tuple[str, ...] | None = None
    seen: Mapping[str, str] = field(default_factory=dict)
    rows: int = 0

    def as_json(self) -> dict[str, Any]:
        after = None if self.after is None else list(self.after)
        return {
            "done": list(self.done),
            "table": self.table,
            "after": after,
            "seen": dict(self.seen),
            "rows": self.rows,
        }

    @classmethod
    def of(cls, said: Mapping[str, Any]) -> "SnapshotState":
        after = said.get("after")
        return cls(
            tuple(said.get("done", ())),
            said.get("table"),
            None if after is None else tuple(after),
            dict(said.get("seen", {})),
            said.get("rows", 0),
        )


@dataclass(frozen=True, slots=True)
class Position:
    """A place in the stream of changes. `commit_lsn` is the end of the last whole transaction; `changes` of the
    transaction that commits at `transaction` are written too."""

    commit_lsn: int
    lsn: int
    xid: int | None = None
    commit_us: int | None = None
    kind: str | None = None
    transaction: int | None = None
    changes: int = 0
    snapshot: SnapshotState | None = None
    """While a snapshot runs."""
    after_snapshot: bool = False
    """The snapshot is complete, and no change was written since."""
    seen: Mapping[str, str] = field(default_factory=dict)
    incremental: Incremental | None = None
    """While a snapshot runs that a signal asked for."""
    counts: Mapping[str, int] | None = None
    """With `provide.transaction.metadata`, in the middle of a transaction: its begin is written, and so many changes of
    each collection."""

    def as_offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {"lsn": self.lsn}
        if self.xid is not None:
            found["txId"] = self.xid
        if self.commit_us is not None:
            found["ts_usec"] = self.commit_us
        found |= {"lsn_proc": self.lsn, "lsn_commit": self.commit_lsn}
        if self.kind is not None:
            found["messageType"] = self.kind
        if self.transaction is not None:
            found |= {"ottla_transaction": self.transaction, "ottla_changes": self.changes}
        if self.counts is not None:
            found["transaction_id"] = str(self.xid)
            found |= {f"{_ORDER}{name}": count for name, count in self.counts.items()}
        if self.snapshot is not None or self.after_snapshot:
            done = self.snapshot is None
            found |= {"snapshot": "INITIAL", "snapshot_completed": done, "last_snapshot_record": done}
        if self.snapshot is not None:
            found["ottla_snapshot"] = self.snapshot.as_json()
        elif self.seen:
            found["ottla_seen"] = dict(self.seen)
        if self.incremental is not None:
            found["ottla_incremental"] = self.incremental.as_json()
        return found

    def but(self, **changes: Any) -> "Position":
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Resumed:
    """What an offset says: the position, whether a snapshot is due, and what of Debezium's last transaction is written
    already (`done_xid`, `done_lsn`)."""

    position: Position
    snapshot_is_due: bool = False
    done_xid: int | None = None
    done_lsn: int = 0


def resumed(offset: Mapping[str, Any]) -> Resumed:
    """Reads an offset of ours or of Debezium's. Raises `ConnectError` if it is neither."""
    try:
        lsn = _number(offset, "lsn")
        commit_lsn = _number(offset, "lsn_commit")
        if commit_lsn is None:
            commit_lsn = _number(offset, "lsn_proc")
        if commit_lsn is None:
            commit_lsn = lsn
        if commit_lsn is None:
            raise ValueError("it has neither lsn_commit nor lsn")
        kind = offset.get("messageType")
        if kind == "MESSAGE" and "txId" not in offset and commit_lsn == lsn and commit_lsn % 8 == 0:
            # Outside of transactions, Debezium names where the message begins: like all of the WAL at a multiple of 8.
            commit_lsn += 1
        position = Position(
            commit_lsn,
            commit_lsn if lsn is None else lsn,
            _number(offset, "txId"),
            _number(offset, "ts_usec"),
            kind,
            _number(offset, "ottla_transaction"),
            _number(offset, "ottla_changes") or 0,
            SnapshotState.of(offset["ottla_snapshot"]) if "ottla_snapshot" in offset else None,
            seen=dict(offset.get("ottla_seen", {})),
            incremental=_incremental(offset),
            counts=_counts(offset),
        )
    except (ValueError, TypeError, AttributeError) as error:
        raise ConnectError(
            f"the stored offset {dict(offset)} is no offset of this connector's ({error}): "
            "reset the connector's offsets to begin with a snapshot"
        ) from None
    # Debezium marks rows that a signal asked for in the same place: that snapshot has a state of its own.
    has_snapshot = offset.get("snapshot") not in (None, False, "false", "INCREMENTAL")
    is_done = offset.get("snapshot_completed") in (True, "true") or offset.get("last_snapshot_record") in (True, "true")
    is_due = has_snapshot and not is_done and position.snapshot is None
    position = position.but(after_snapshot=has_snapshot and is_done)
    if position.transaction is None and kind in _CHANGES and not is_due and position.xid is not None:
        return Resumed(position, False, position.xid, position.lsn)
    return Resumed(position, is_due)


def _incremental(offset: Mapping[str, Any]) -> Incremental | None:
    if "ottla_incremental" in offset:
        return Incremental.of(offset["ottla_incremental"])
    text = offset.get("incremental_snapshot_collections")
    return of_debezium(text) if isinstance(text, str) else None


def _counts(offset: Mapping[str, Any]) -> dict[str, int] | None:
    """What was counted of the transaction that is under way. Debezium leaves that of the last one behind its end."""
    if offset.get("transaction_id") is None or offset.get("messageType") == "COMMIT":
        return None
    names = [key for key in offset if key.startswith(_ORDER)]
    return {key.removeprefix(_ORDER): _number(offset, key) or 0 for key in names}


def _number(offset: Mapping[str, Any], key: str) -> int | None:
    value = offset.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key} is {value!r}")
    return value


def lsn_text(lsn: int) -> str:
    """As PostgreSQL writes it: `16/B374D848`."""
    return f"{lsn >> 32:X}/{lsn & 0xFFFFFFFF:X}"


def lsn_of(text: str) -> int:
    high, _, low = text.partition("/")
    return int(high, 16) << 32 | int(low, 16)


@dataclass(frozen=True, slots=True)
class Visible:
    """Which transactions a snapshot of the database shows: `pg_current_snapshot()`, `xmin:xmax:xip,…`."""

    xmin: int
    xmax: int
    running: frozenset[int]

    @classmethod
    def of(cls, text: str) -> "Visible":
        xmin, xmax, running = text.split(":")
        return cls(int(xmin), int(xmax), frozenset(int(one) & 0xFFFFFFFF for one in running.split(",") if one))

    def __call__(self, xid: int) -> bool:
        """Of the 32 bits of a transaction's number that the stream has: they go round, so the nearer one counts."""
        if _before(xid, self.xmin):
            return True
        return _before(xid, self.xmax) and xid not in self.running


@dataclass(frozen=True, slots=True)
class Seen:
    """What was seen of a table: transactions that a snapshot shows. All of them committed below `lsn`; numbers of
    transactions come again after four billion, so later ones are not asked about."""

    visible: Visible
    lsn: int

    @classmethod
    def of(cls, text: str) -> "Seen":
        visible, _, lsn = text.partition("@")
        return cls(Visible.of(visible), lsn_of(lsn))


def _before(xid: int, limit: int) -> bool:
    return 0 < (limit - xid) & 0xFFFFFFFF < 1 << 31
