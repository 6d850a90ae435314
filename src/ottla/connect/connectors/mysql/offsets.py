"""Where the connector is, in Debezium's form, and what a new start skips.

    {"server": "shop"}  →  {"file": "binlog.000003", "pos": 4060, "gtids": "0-1-3", "ts_sec": …, "server_id": 1}

`file`, `pos` and `gtids` are the end of the last whole transaction: there the server begins again, by its GTIDs if it
has them, so that another server of the same data will do as well. In the middle of a transaction they stay there, and
`event` says how many of its events are written, and `row` how many rows of the next one. Ours end with whole events,
and `ottla_transaction` says of which transaction they are. Debezium counts the same events.

While a snapshot runs, `snapshot` says so to Debezium, and `ottla_snapshot` how far it is.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ottla.connect.connectors.postgres.offsets import SnapshotState
from ottla.connect.errors import ConnectError

Place = tuple[int, int]
"""The number of a file of the log, and a position in it: places can be compared."""


def place_of(file: str, position: int) -> Place:
    """Files are numbered: `binlog.000003`."""
    found = re.search(r"(\d+)$", file)
    return int(found[1]) if found else 0, position


def place_text(file: str, position: int) -> str:
    return f"{file}:{position}"


def place_in(text: str) -> Place:
    file, _, position = text.rpartition(":")
    return place_of(file, int(position))


@dataclass(frozen=True, slots=True)
class Position:
    """`file` and `pos` are the end of the last whole transaction, or with `event` where the one under way begins."""

    file: str
    pos: int
    gtids: str | None = None
    seconds: int | None = None
    server_id: int | None = None
    event: int = 0
    row: int = 0
    transaction: str | None = None
    """The GTID of the transaction that `event` counts in."""
    snapshot: SnapshotState | None = None
    """While a snapshot runs. `seen` in it has tables without a key, and the place at which they were read."""
    seen: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        return place_of(self.file, self.pos)

    def as_offset(self) -> dict[str, Any]:
        found: dict[str, Any] = {}
        if self.seconds is not None:
            found["ts_sec"] = self.seconds
        found |= {"file": self.file, "pos": self.pos}
        if self.gtids:
            found["gtids"] = self.gtids
        if self.server_id is not None:
            found["server_id"] = self.server_id
        if self.event:
            found["event"] = self.event
        if self.row:
            found["row"] = self.row
        if self.event and self.transaction is not None:
            found["ottla_transaction"] = self.transaction
        if self.snapshot is not None:
            found |= {"snapshot": "INITIAL", "ottla_snapshot": self.snapshot.as_json()}
        elif self.seen:
            found["ottla_seen"] = dict(self.seen)
        return found

    def but(self, **changes: Any) -> "Position":
        return replace(self, **changes)


@dataclass(frozen=True, slots=True)
class Resumed:
    position: Position
    snapshot_is_due: bool = False


def resumed(offset: Mapping[str, Any]) -> Resumed:
    """Reads an offset of ours or of Debezium's. Raises `ConnectError` if it is neither."""
    try:
        file, gtids = offset["file"], offset.get("gtids")
        if not isinstance(file, str) or not (gtids is None or isinstance(gtids, str)):
            raise ValueError("file is no text")
        position = Position(
            file,
            _number(offset, "pos") or 4,
            gtids or None,
            _number(offset, "ts_sec"),
            _number(offset, "server_id"),
            _number(offset, "event") or 0,
            _number(offset, "row") or 0,
            offset.get("ottla_transaction"),
            SnapshotState.of(offset["ottla_snapshot"]) if "ottla_snapshot" in offset else None,
            dict(offset.get("ottla_seen", {})),
        )
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        raise ConnectError(
            f"the stored offset {dict(offset)} is no offset of this connector's ({error}): "
            "reset the connector's offsets to begin with a snapshot"
        ) from None
    has_snapshot = offset.get("snapshot") not in (None, False, "false")
    is_done = offset.get("snapshot_completed") in (True, "true")
    return Resumed(position, has_snapshot and not is_done and position.snapshot is None)


def _number(offset: Mapping[str, Any], key: str) -> int | None:
    value = offset.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{key} is {value!r}")
    return value
