"""The binary log of a MariaDB, recorded (`tests.interop.connect.make_golden_binlog`): events in, records out."""

import base64
import json
import struct
import zlib
from functools import cache
from logging import getLogger
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.connector import SourceContext
from ottla.connect.connectors.mysql import binlog, catalogue, options
from ottla.connect.connectors.mysql.binlog import Damaged, TableMap
from ottla.connect.connectors.mysql.catalogue import TableFacts
from ottla.connect.connectors.mysql.changes import Changes
from ottla.connect.connectors.mysql.envelopes import Shapes, TableShape, captured
from ottla.connect.connectors.mysql.gtids import MariaDbGtids, MySqlGtids
from ottla.connect.connectors.mysql.offsets import Position, SnapshotState, place_of, resumed
from ottla.connect.connectors.mysql.source import MySqlSource
from ottla.connect.connectors.mysql.tables import HistoryLost, Known, version_of
from ottla.connect.connectors.mysql.types import TypeMap
from ottla.connect.connectors.postgres.envelopes import ContextHeaders
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption
from tests.clients.connect.read_source import rows_of_records
from tests.unit.connect.mysql.shown_values import shown

CONFIG = {
    "name": "shop",
    "connector.class": options.MARIADB,
    "database.hostname": "h",
    "database.user": "u",
    "topic.prefix": "shop",
    "skipped.operations": "none",
}


@cache
def golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(Path(__file__).with_name("golden.json").read_text())
    found["events"] = [base64.b64decode(event) for event in found["events"]]
    return found


def codecs() -> dict[int, str]:
    return {int(number): catalogue.CODECS[charset] for number, charset in golden()["collations"].items()}


def facts(name: str) -> TableFacts:
    """What the catalogue had at the end of the recording."""
    columns = tuple(catalogue.column_of(row, name, is_mariadb=True) for row in golden()["catalogue"][name])
    return TableFacts("shop", name, columns, ("pk" if name == "types" else "id",), True)


class Stream:
    """Changes from an offset, and the events that a server sends from there."""

    def __init__(self, offset: dict[str, Any], config: dict[str, str] | None = None) -> None:
        read = options.read(CONFIG | (config or {}))
        self.position = resumed(offset).position
        self.shapes = Shapes(read, TypeMap(read, is_mariadb=True), "mariadb")
        self.made: dict[str, TableShape] = {}
        self.changes = Changes(
            self.position,
            MariaDbGtids(self.position.gtids or ""),
            self.shapes,
            captured(read),
            ContextHeaders(()),
            self._shape_of,
            lambda database, table: self.made.get(table),
            has_checksum=True,
        )

    def _shape_of(self, logged: TableMap, seconds: int) -> TableShape:
        found = version_of(logged, Known(facts(logged.table)), codecs(), seconds)
        self.made[logged.table] = made = self.shapes.table(found, logged.columns)
        return made

    def events(self) -> list[bytes]:
        """Those that come behind the offset: the first ones, which the server makes up, and then from its place on."""
        place = self.position.place
        sent: list[bytes] = []
        file, has_begun = "", False
        for data in golden()["events"]:
            event = binlog.event_of(data, has_checksum=data[4] != binlog.FORMAT)
            if event.kind == binlog.ROTATE:
                file = binlog.rotate_of(event.body).file
            is_behind = event.end and place_of(file, event.start) >= place and event.kind != binlog.FORMAT
            has_begun = has_begun or bool(is_behind)
            if has_begun or event.kind in (binlog.ROTATE, binlog.FORMAT):
                sent.append(data)
        return sent

    def rows(self) -> list[list[Any]]:
        found = [row for records in self.changes.take(0) for row in rows_of_records(records)]
        return [
            [
                shown(row["key"]),
                None if row["value"] is None else [shown(row["value"][one]) for one in ("op", "before", "after")],
            ]
            for row in found
        ]


def test_the_recorded_log_gives_the_recorded_rows() -> None:
    stream = Stream(golden()["start"])
    for event in stream.events():
        stream.changes.add(event)
    rows = stream.rows()
    # A truncate is left out of the recording, as it is by default.
    assert sorted(map(str, (row for row in rows if row[1] is None or row[1][0] != "t"))) == sorted(
        map(str, golden()["rows"])
    )
    assert [row for row in rows if row[1] is not None and row[1][0] == "t"] == [[None, ["t", None, None]]]
    assert stream.changes.position.as_offset() == golden()["end"]
    assert len(golden()["rows"]) > 15


@pytest.mark.slow
def test_a_stream_that_is_cut_anywhere_resumes_without_loss_or_repeat() -> None:
    whole = Stream(golden()["start"])
    rows: list[Any] = []
    for event in whole.events():
        whole.changes.add(event)
        rows += whole.rows()
    count = len(whole.events())
    for cut in range(count):
        first = Stream(golden()["start"])
        found: list[Any] = []
        for event in first.events()[:cut]:
            first.changes.add(event)
        found += first.rows()
        second = Stream(json.loads(json.dumps(first.changes.position.as_offset())))
        second.made = first.made
        for event in second.events():
            second.changes.add(event)
        found += second.rows()
        assert sorted(map(str, found)) == sorted(map(str, rows)), f"cut after {cut} of {count} events"
        assert second.changes.position.as_offset() == golden()["end"]


def test_rows_of_an_event_that_debezium_has_written_are_skipped() -> None:
    """Its offsets may be within an event: `row` says how many rows of it are written."""
    stream = Stream(golden()["start"])
    for event in stream.events():
        before = stream.changes.position.as_offset()
        stream.changes.add(event)
        if any(row[0] == {"id": 2} for row in stream.rows()):
            break
    again = Stream(before | {"event": 2, "row": 2})
    for event in again.events():
        again.changes.add(event)
    created = [
        row[0]["id"] for row in again.rows() if row[1] is not None and row[1][0] == "c" and "id" in (row[0] or {})
    ]
    assert created[:2] == [3, 9]


def test_positions_rows_and_gtids_are_those_of_the_log() -> None:
    stream = Stream(golden()["start"])
    for event in stream.events():
        stream.changes.add(event)
    found = [row for records in stream.changes.take(0) for row in rows_of_records(records)]
    sources = {
        row["key"]["id"]: row["value"]["source"]
        for row in found
        if row["value"] and (row["key"] or {}).get("id") in (1, 2, 3) and row["value"]["op"] == "c"
    }
    assert [sources[number]["row"] for number in (1, 2, 3)] == [0, 1, 2]
    assert len({sources[number]["pos"] for number in (1, 2, 3)}) == 1
    assert {source["file"] for source in sources.values()} == {"binlog.000001"}
    assert {source["connector"] for source in sources.values()} == {"mariadb"}
    assert {source["server_id"] for source in sources.values()} == {1}


def test_an_event_that_was_damaged_is_refused() -> None:
    stream = Stream(golden()["start"])
    refused = 0
    for event in stream.events():
        if event[4] in binlog.ROWS:
            broken = bytearray(event)
            broken[len(event) // 2] ^= 0x10
            with pytest.raises(Damaged, match="checksum"):
                stream.changes.add(bytes(broken))
            refused += 1
        stream.changes.add(event)
    assert refused > 10
    with pytest.raises(Damaged):
        stream.changes.add(b"short")


def with_checksum(data: bytes) -> bytes:
    """An event with its length and checksum set anew."""
    data = data[:9] + struct.pack("<I", len(data)) + data[13:-4]
    return data + struct.pack("<I", zlib.crc32(data))


def test_rows_that_do_not_fit_their_table_are_refused_with_the_place() -> None:
    stream = Stream(golden()["start"])
    for event in stream.events():
        if event[4] in binlog.ROWS and b"three" in event:
            stream.changes.add(with_checksum(event[:-6] + event[-4:]))  # two bytes less
            break
        stream.changes.add(event)
    with pytest.raises(Damaged, match=r"shop\.t, from binlog\.000001:\d+: a row is longer than its event"):
        stream.changes.take(0)


def test_a_row_without_all_columns_is_refused_with_the_setting() -> None:
    stream = Stream(golden()["start"])
    said = ""
    for event in stream.events():
        if event[4] in binlog.ROWS and b"three" in event:
            at = binlog.HEAD + 8 + 1
            with pytest.raises(Damaged) as caught:
                stream.changes.add(with_checksum(event[:at] + b"\1" + event[at + 1 :]))
            said = str(caught.value)
            break
        stream.changes.add(event)
    assert "binlog_row_image to FULL" in said


def query(text: str, database: str = "shop") -> bytes:
    body = struct.pack("<IIBHH", 7, 0, len(database), 0, 0) + database.encode() + b"\0" + text.encode()
    head = struct.pack("<IBIIIH", 1, binlog.QUERY, 1, binlog.HEAD + len(body) + 4, 500, 0)
    data = head + body
    return data + struct.pack("<I", zlib.crc32(data))


def test_a_statement_in_the_log_is_refused() -> None:
    stream = Stream(golden()["start"])
    with pytest.raises(ConnectError, match="binlog_format to ROW"):
        stream.changes.add(query("/* hint */ insert into t values (1)"))


# --- the version of a table ---


def maps() -> list[TableMap]:
    found = [
        binlog.table_map_of(event[binlog.HEAD : -4]) for event in golden()["events"] if event[4] == binlog.TABLE_MAP
    ]
    return [one for one in found if one.table == "t"]


def nameless(logged: TableMap) -> TableMap:
    columns = tuple(binlog.MapColumn(one.kind, one.meta, one.nullable) for one in logged.columns)
    return TableMap(logged.number, logged.database, logged.table, columns)


def test_names_signs_and_keys_come_from_the_log() -> None:
    first, last = maps()[0], maps()[-1]
    assert [one.name for one in first.columns] == ["id", "a"]
    assert [(one.name, one.unsigned) for one in last.columns][:2] == [("b", True), ("id", False)]
    assert (first.key, last.key) == ((0,), (1,))
    found = version_of(first, None, codecs(), 0)
    assert (found.key, [one.kind.name for one in found.columns]) == (("id",), ["int", "varchar"])


def test_without_names_the_catalogue_stands_in_if_it_agrees() -> None:
    now = facts("t")
    found = version_of(nameless(maps()[-1]), Known(now, altered_s=5), codecs(), 5)
    assert [one.name for one in found.columns] == ["b", "id", "a"]
    assert found.columns[0].kind.unsigned
    for logged, known, seconds in (
        (maps()[0], Known(now), 5),
        (maps()[-1], Known(now, altered_s=6), 5),
        (maps()[-1], None, 5),
        (maps()[-1], Known(TableFacts("shop", "t", now.columns[::-1])), 5),
    ):
        with pytest.raises(HistoryLost, match="binlog_row_metadata = FULL"):
            version_of(nameless(logged), known, codecs(), seconds)


# --- offsets and options ---


def test_an_offset_that_is_none_is_refused() -> None:
    for offset in ({}, {"file": 3}, {"file": "b.1", "pos": "x"}):
        with pytest.raises(ConnectError, match="no offset of this connector's"):
            resumed(offset)
    assert resumed({"file": "b.1", "pos": 9, "snapshot": "INITIAL"}).snapshot_is_due
    stored = Position("b.000002", 9, "0-1-5", 7, 1, 3, 1, "0-1-6").as_offset()
    assert resumed(stored).position.as_offset() == stored


def test_the_page_has_all_options() -> None:
    page = (Path(__file__).parents[4] / "docs/connect/mysql.md").read_text()
    lines = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    listed = {line[1].strip(" `"): line[2].strip() for line in lines}
    assert {row.name: row.doc for row in options.ROWS}.items() <= listed.items()


def test_options_of_debeziums_history_are_taken_and_others_refused_by_name() -> None:
    options.read(CONFIG | {"schema.history.internal.kafka.topic": "x", "transforms": "a"})
    for name, value in (("signal.data.collection", "x"), ("include.query", "true"), ("skipped.operations", "x")):
        with pytest.raises(InvalidOption, match=name.replace(".", r"\.")):
            options.read(CONFIG | {name: value})


SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"


def mysql_changes(offset: dict[str, Any]) -> Changes:
    read = options.read(CONFIG)
    position = resumed(offset).position
    shapes = Shapes(read, TypeMap(read, is_mariadb=False), "mysql")
    gtids = MySqlGtids(position.gtids or "")
    return Changes(
        position, gtids, shapes, captured(read), ContextHeaders(()), lambda *_: pytest.fail("rows"), lambda *_: None
    )


def mysql_transaction(changes: Changes, end: int, kind: int, number: int = 0) -> None:
    """GTID, BEGIN and XID, of a hundred bytes together."""
    gtid = b"\1" + bytes.fromhex(SERVER.replace("-", "")) + number.to_bytes(8, "little")
    begin = struct.pack("<IIBHH", 1, 0, 0, 0, 0) + b"\0BEGIN"
    for at, one, body in ((40, kind, gtid), (80, binlog.QUERY, begin), (100, binlog.XID, bytes(8))):
        size = binlog.HEAD + len(body)
        changes.add(struct.pack("<IBIIIH", 7, one, 1, size, end - 100 + at, 0) + body)


def test_a_set_of_gtids_grows_with_the_transactions() -> None:
    changes = mysql_changes({"file": "b.000001", "pos": 1000, "gtids": f"{SERVER}:1-16"})
    mysql_transaction(changes, 1100, binlog.GTID, 17)
    assert changes.position.as_offset()["gtids"] == f"{SERVER}:1-17"


def test_an_offset_without_gtids_does_not_begin_a_set_in_the_middle() -> None:
    """`gtid_mode` was switched on later. By the set `…:17` the server would send the transactions 1 to 16 again."""
    changes = mysql_changes({"file": "b.000001", "pos": 1000})
    mysql_transaction(changes, 1100, binlog.GTID, 17)
    offset = changes.position.as_offset()
    assert (offset["file"], offset["pos"], offset.get("gtids")) == ("b.000001", 1100, None)


def test_behind_a_gtid_with_a_tag_the_offset_is_a_place() -> None:
    """By a set that does not have it, the server would send the transaction again."""
    changes = mysql_changes({"file": "b.000001", "pos": 1000, "gtids": f"{SERVER}:1-16"})
    mysql_transaction(changes, 1100, binlog.GTID_TAGGED)
    mysql_transaction(changes, 1200, binlog.GTID, 17)
    offset = changes.position.as_offset()
    assert (offset["file"], offset["pos"], offset.get("gtids")) == ("b.000001", 1200, None)


def test_a_snapshot_at_each_start_leaves_a_transaction_where_it_was() -> None:
    """Its first three events are written: from its beginning they would come again, behind newer ones."""
    context = SourceContext("shop", getLogger("test"), lambda _: None, lambda: 0)
    source = MySqlSource(CONFIG | {"snapshot.mode": "always"}, context)
    stored = {"file": "b.000001", "pos": 1000, "gtids": "0-1-16", "event": 3, "ottla_transaction": "0-1-17"}
    begins = source._begins(stored)
    assert begins.snapshot is not None
    assert (begins.pos, begins.event, begins.transaction) == (1000, 3, "0-1-17")


def test_a_source_is_at_its_end_where_the_binary_log_ended_at_the_start() -> None:
    context = SourceContext("shop", getLogger("test"), lambda _: None, lambda: 0)
    source = MySqlSource(CONFIG, context)
    source._goal = place_of("b.000002", 100)
    source._changes = changes = mysql_changes({"file": "b.000001", "pos": 1000})
    assert source.is_at_end() is None, "the rest of the log may have nothing for it"
    changes.position = Position("b.000002", 100)
    assert source.is_at_end() is True
    changes.position = Position("b.000002", 100, snapshot=SnapshotState())
    assert source.is_at_end() is False, "the snapshot is not complete"
