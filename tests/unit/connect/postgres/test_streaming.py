"""Streaming without a network: messages of pgoutput in, records and offsets out."""

import random
from logging import getLogger
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

from ottla.connect.connector import SourceContext
from ottla.connect.connectors.postgres import chunks, options
from ottla.connect.connectors.postgres.catalogue import ColumnFacts, PgType, TableFacts, Types
from ottla.connect.connectors.postgres.changes import HEAD, Changes
from ottla.connect.connectors.postgres.defaults import default_of
from ottla.connect.connectors.postgres.envelopes import Shapes, captured, context_headers
from ottla.connect.connectors.postgres.offsets import Position, Resumed, Visible, lsn_of, lsn_text, resumed
from ottla.connect.connectors.postgres.pgoutput import Relation, Sent, split
from ottla.connect.connectors.postgres.source import PostgresSource
from ottla.connect.connectors.postgres.types import TypeMap
from ottla.connect.data.columns import Column
from ottla.connect.data.rows import rows_of
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption
from tests.unit.connect.postgres.pgoutput_messages import (
    UNCHANGED,
    begin,
    commit,
    delete,
    insert,
    logical_message,
    relation,
    truncate,
    update,
)

CONFIG = {"database.hostname": "h", "database.user": "u", "database.dbname": "d", "topic.prefix": "shop"}
INT4, TEXT, NUMERIC, MOOD = 23, 25, 1700, 50_000
TYPES = Types(
    {
        INT4: PgType(INT4, "int4"),
        TEXT: PgType(TEXT, "text"),
        NUMERIC: PgType(NUMERIC, "numeric"),
        MOOD: PgType(MOOD, "mood", "e", labels=("sad", "ok")),
    }
)
T, U = 100, 200
T_COLUMNS = [("id", INT4, -1, True), ("name", TEXT, -1, False)]


def facts_of(sent: Relation) -> TableFacts:
    columns = (ColumnFacts("id", INT4, required=True), ColumnFacts("name", TEXT))
    return TableFacts(sent.schema, sent.name, columns, ("id",), True)


def stream(start: Resumed | None = None, **more: str) -> Changes:
    config = CONFIG | {name.replace("_", "."): value for name, value in more.items()}
    read = options.read(config)
    shapes = Shapes(read, TypeMap(read, TYPES), "d")
    start = start or Resumed(Position(1, 1))
    named = options.named(read, "message.prefix")
    topic = "shop.transaction" if read.flag("provide.transaction.metadata") else None
    headers = context_headers("shop", "run")
    return Changes(start, shapes, captured(read), named, headers, facts_of, transaction_topic=topic)


def taken(changes: Changes) -> list[tuple[str, Any, Any]]:
    """Topic, key and value (operation, before, after) of each record, by position."""
    found: list[tuple[int, str, Any, Any]] = []
    for records in changes.take(0):
        keys = rows_of(records.key) if isinstance(records.key, Column) else records.key.values
        values = rows_of(records.value) if isinstance(records.value, Column) else records.value.values
        for row, (key, value) in enumerate(zip(keys, values, strict=True)):
            shown = value and (value["op"], value.get("before"), value.get("after"))
            found.append((records.position[row].as_py(), records.topic, key, shown))
    return [one[1:] for one in sorted(found, key=lambda one: one[0])]


def transaction(changes: Changes, xid: int, first_lsn: int, *messages: bytes) -> None:
    final = first_lsn + 50
    for message in (begin(first_lsn, final, xid), *messages, commit(final, final + 8)):
        changes.add(message)


def test_an_update_of_the_key_is_a_delete_a_tombstone_and_a_create() -> None:
    changes = stream()
    changes.add(relation(T, "public", "t", T_COLUMNS))
    transaction(
        changes, 7, 100, insert(101, T, [1, "a"]), update(102, T, [2, "b"], [1, None]), delete(103, T, [2, None])
    )
    assert taken(changes) == [
        ("shop.public.t", {"id": 1}, ("c", None, {"id": 1, "name": "a"})),
        ("shop.public.t", {"id": 1}, ("d", {"id": 1, "name": None}, None)),
        ("shop.public.t", {"id": 1}, None),
        ("shop.public.t", {"id": 2}, ("c", None, {"id": 2, "name": "b"})),
        ("shop.public.t", {"id": 2}, ("d", {"id": 2, "name": None}, None)),
        ("shop.public.t", {"id": 2}, None),
    ]


def test_a_whole_old_row_and_the_same_key_are_an_update_with_before() -> None:
    changes = stream()
    changes.add(relation(T, "public", "t", T_COLUMNS, "f"))
    transaction(changes, 7, 100, update(102, T, [1, "b"], [1, "a"], b"O"))
    assert taken(changes) == [("shop.public.t", {"id": 1}, ("u", {"id": 1, "name": "a"}, {"id": 1, "name": "b"}))]


def test_what_was_not_sent_is_the_placeholder() -> None:
    changes = stream(unavailable_value_placeholder="?")
    changes.add(relation(T, "public", "t", T_COLUMNS))
    transaction(changes, 7, 100, update(102, T, [1, UNCHANGED]))
    assert taken(changes)[0][2] == ("u", None, {"id": 1, "name": "?"})


def test_operations_that_are_skipped_become_no_records() -> None:
    changes = stream(skipped_operations="c,d,t")
    changes.add(relation(T, "public", "t", T_COLUMNS))
    messages = [insert(101, T, [1, "a"]), update(102, T, [1, "b"]), delete(103, T, [1, None]), truncate(104, T)]
    transaction(changes, 7, 100, *messages)
    assert [one[2][0] for one in taken(changes)] == ["u"]
    changes = stream(skipped_operations="none")
    changes.add(relation(T, "public", "t", T_COLUMNS))
    transaction(changes, 7, 100, *messages)
    assert [one[2] and one[2][0] for one in taken(changes)] == ["c", "u", "d", None, "t"]


def test_tables_that_are_not_captured_and_messages_that_are_excluded_are_left_out() -> None:
    changes = stream(table_include_list="public.u", message_prefix_exclude_list="noise.*")
    changes.add(relation(T, "public", "t", T_COLUMNS))
    changes.add(relation(U, "public", "u", T_COLUMNS))
    transaction(
        changes, 7, 100, insert(101, T, [1, "a"]), insert(102, U, [2, "a"]),
        logical_message(103, "noise 1", b"", transactional=True), logical_message(104, "p", b"x", transactional=True),
    )  # fmt: skip
    assert [one[:2] for one in taken(changes)] == [("shop.public.u", {"id": 2}), ("shop.message", {"prefix": "p"})]


def test_the_position_after_a_commit_is_its_end_and_in_the_middle_a_number() -> None:
    changes = stream()
    changes.add(relation(T, "public", "t", T_COLUMNS))
    transaction(changes, 7, 100, insert(101, T, [1, "a"]))
    changes.take(0)
    assert changes.position.as_offset() == {
        "lsn": 158, "txId": 7, "ts_usec": 946684800000000, "lsn_proc": 158, "lsn_commit": 158, "messageType": "COMMIT",
    }  # fmt: skip
    for message in (begin(200, 250, 8), insert(201, T, [2, "a"]), insert(201, T, [3, "a"])):
        changes.add(message)
    changes.take(0)
    offset = changes.position.as_offset()
    assert (offset["lsn"], offset["lsn_commit"], offset["messageType"]) == (201, 158, "INSERT")
    assert (offset["ottla_transaction"], offset["ottla_changes"]) == (250, 2)
    assert resumed(offset).position == changes.position


def test_wherever_it_stops_each_change_comes_once() -> None:
    """The same stream, cut after each number of messages: what came before and after together is all of it."""
    messages = [relation(T, "public", "t", T_COLUMNS)]
    number = 0
    for xid, first in ((7, 100), (8, 200), (9, 300)):
        messages.append(begin(first, first + 50, xid))
        for _ in range(3):
            number += 1
            messages.append(insert(first + 1, T, [number, "a"]))  # all have the same LSN, as those of a COPY
        messages.append(commit(first + 50, first + 58))
        messages.append(logical_message(first + 60, f"p{xid}", b"", transactional=False))
    whole = stream()
    for message in messages:
        whole.add(message)
    wanted = taken(whole)
    assert len(wanted) == 12
    for cut in range(1, len(messages)):
        first = stream()
        for message in messages[:cut]:
            first.add(message)
        found = taken(first)
        second = stream(resumed(first.position.as_offset()))
        for message in messages:
            second.add(message)
        assert found + taken(second) == wanted, f"cut after {cut} messages"


def test_debeziums_offset_skips_what_it_wrote_of_its_last_transaction() -> None:
    offset = {"lsn": 102, "lsn_proc": 102, "lsn_commit": 90, "txId": 7, "ts_usec": 1, "messageType": "INSERT"}
    changes = stream(resumed(offset))
    changes.add(relation(T, "public", "t", T_COLUMNS))
    transaction(changes, 7, 100, insert(101, T, [1, "a"]), insert(102, T, [2, "a"]), insert(103, T, [3, "a"]))
    # A transaction that began earlier and commits later has older LSNs.
    transaction(changes, 6, 200, insert(95, T, [4, "a"]))
    assert [one[1]["id"] for one in taken(changes)] == [3, 4]


@pytest.mark.parametrize(
    ("offset", "is_due"),
    [
        ({"lsn": 5, "snapshot": "INITIAL", "snapshot_completed": False, "last_snapshot_record": False}, True),
        ({"lsn": 5, "snapshot": "INITIAL", "snapshot_completed": True, "last_snapshot_record": True}, False),
        ({"lsn": 5, "lsn_proc": 5, "messageType": "INSERT", "txId": 3}, False),
        ({"lsn": 5, "snapshot": True, "last_snapshot_record": False}, True),
    ],
)
def test_a_snapshot_of_debeziums_that_did_not_end_is_due(offset: dict[str, Any], is_due: bool) -> None:
    assert resumed(offset).snapshot_is_due is is_due


@pytest.mark.parametrize("offset", [{}, {"lsn": "5"}, {"file": "x", "position": 3}, {"lsn": 1, "lsn_commit": True}])
def test_an_offset_of_something_else_is_refused(offset: dict[str, Any]) -> None:
    with pytest.raises(ConnectError, match="reset the connector's offsets"):
        resumed(offset)


def test_rows_split_in_columns_are_those_of_the_messages() -> None:
    chance = random.Random(5)

    def value() -> object:
        return chance.choice([None, UNCHANGED, "", "x", "ä€𝄞", "y" * chance.randrange(300)])

    for width in (1, 2, 7):
        bodies: list[bytes] = []
        old: list[list[object]] = []
        new: list[list[object]] = []
        for _ in range(200):
            before, after = [value() for _ in range(width)], [value() for _ in range(width)]
            kind = chance.randrange(4)
            if kind == 0:
                bodies.append(insert(1, T, after))
            elif kind == 1:
                bodies.append(update(1, T, after))
            elif kind == 2:
                bodies.append(update(1, T, after, before, chance.choice([b"K", b"O"])))
            else:
                bodies.append(delete(1, T, before))
            old += [before] * (kind >= 2)
            new += [after] * (kind <= 2)
        rows = split(bodies, HEAD, width)
        for wanted, columns in ((old, rows.before), (new, rows.after)):
            for place, column in enumerate(columns):
                texts = column.texts.to_pylist()
                unchanged = [False] * len(texts) if column.unchanged is None else column.unchanged.tolist()
                for row, text, is_unchanged in zip(wanted, texts, unchanged, strict=True):
                    assert (UNCHANGED if is_unchanged else text) == row[place]


@pytest.mark.parametrize("cut", [1, 3, 9])
def test_a_change_that_is_cut_short_is_refused_with_its_table(cut: int) -> None:
    changes = stream()
    changes.add(relation(T, "public", "t", T_COLUMNS))
    changes.add(begin(100, 150, 7))
    changes.add(insert(101, T, [1, "abc"])[:-cut])
    changes.add(insert(102, T, [1, "abc"]))
    with pytest.raises(ConnectError, match=r"public\.t.*damaged|public\.t.*not asked for"):
        changes.take(0)


def test_a_change_of_an_unknown_table_is_refused() -> None:
    changes = stream()
    changes.add(begin(100, 150, 7))
    with pytest.raises(ConnectError, match="before its columns"):
        changes.add(insert(101, T, [1, "abc"]))


def test_the_key_is_the_one_that_the_change_had() -> None:
    """The catalogue is ahead: the key's column has another name there."""
    changes = stream()
    changes.add(relation(T, "public", "t", [("code", TEXT, -1, True), ("name", TEXT, -1, False)]))
    transaction(changes, 7, 100, insert(101, T, ["x", "a"]))
    assert taken(changes) == [("shop.public.t", {"code": "x"}, ("c", None, {"code": "x", "name": "a"}))]


def test_what_a_snapshot_showed_of_a_table_without_a_key_is_not_written_again() -> None:
    start = Resumed(Position(1, 1, seen={"public.t": "8:9:@0/96"}))
    changes = stream(start)
    changes.add(relation(T, "public", "t", T_COLUMNS))
    transaction(changes, 7, 90, insert(91, T, [1, "seen"]))
    assert changes.position.as_offset()["ottla_seen"]
    transaction(changes, 9, 95, insert(96, T, [2, "running then"]))
    transaction(changes, 7, 200, insert(201, T, [3, "the same number, four billion later"]))
    assert [one[1]["id"] for one in taken(changes)] == [2, 3]
    assert "ottla_seen" not in changes.position.as_offset()


# --- what else is pure ---


@pytest.mark.parametrize(
    ("expression", "oid", "default"),
    [
        ("nextval('t_id_seq'::regclass)", INT4, 0),
        ("5", INT4, 5),
        ("'-1'::integer", INT4, -1),
        ("'it''s'::text", TEXT, "it's"),
        ("NULL::character varying", TEXT, None),
        ("now()", TEXT, ""),
        ("(1 + 2)", INT4, None),
        ("'ok'::mood", MOOD, "ok"),
        (None, INT4, None),
    ],
)
def test_defaults_are_literals_or_zeros(expression: str | None, oid: int, default: Any) -> None:
    mapped = TypeMap(options.read(CONFIG), TYPES).of(oid, -1)
    assert mapped is not None
    assert default_of(expression, TYPES.by_oid[oid], mapped) == default


def test_a_snapshot_shows_transactions_that_were_over() -> None:
    visible = Visible.of("10:20:12,15")
    assert [xid for xid in range(5, 25) if visible(xid)] == [5, 6, 7, 8, 9, 10, 11, 13, 14, 16, 17, 18, 19]
    around = Visible.of(f"{(1 << 32) + 5}:{(1 << 32) + 7}:{(1 << 32) + 6}")
    assert [around(xid) for xid in (4_294_967_290, 5, 6, 7)] == [True, True, False, False]


def test_keys_changed_between_the_watermarks_are_dropped_from_the_chunk() -> None:
    touched = chunks.Touched()
    changes = stream()
    changes.on_touched = touched.add
    changes.add(relation(T, "public", "t", T_COLUMNS))
    touched.begin("public.t")
    transaction(changes, 30, 100, insert(101, T, [1, "a"]))  # in the WAL, and not seen by the next chunk yet
    transaction(changes, 5, 200, insert(201, T, [2, "a"]))
    changes.take(0)
    touched.begin("public.t")
    transaction(changes, 40, 300, update(301, T, [4, "b"], [3, None]))
    changes.take(0)
    keys = pa.array(["1", "2", "3", "4", "5"])
    assert touched.kept(keys, Visible.of("20:20:")).to_pylist() == [False, True, False, False, True]
    transaction(changes, 41, 400, truncate(401, T))
    changes.take(0)
    assert touched.kept(keys, Visible.of("20:20:")).to_pylist() == [False] * 5


def test_copied_rows_are_read_whatever_is_in_them() -> None:
    content = b'"1","a,""b"""\n"2",\n"3",""\n"4","x\ny"\n'
    assert [one.texts.to_pylist() for one in chunks.parsed(content, 2)] == [
        ["1", "2", "3", "4"],
        ['a,"b"', None, "", "x\ny"],
    ]
    assert chunks.parsed(b'"1"\n\n"a\n\nb"\n\n', 1)[0].texts.to_pylist() == ["1", None, "a\n\nb", None]
    assert [len(one.texts) for one in chunks.parsed(b"", 3)] == [0, 0, 0]


def test_a_chunk_is_the_rows_behind_a_key() -> None:
    facts = TableFacts("we ird", 't"x', (ColumnFacts("a b", INT4), ColumnFacts("c", TEXT)), ("c", "a b"), True)
    assert chunks.chunk_sql(facts, ("it's", "1"), 10) == (
        'SELECT "a b", "c" FROM "we ird"."t""x" WHERE ("c", "a b") > (\'it\'\'s\', \'1\') ORDER BY "c", "a b" LIMIT 10'
    )
    assert chunks.last_key([Sent(pa.array(["1", "2"]), None), Sent(pa.array(["x", "y"]), None)], [1, 0]) == ("y", "2")


def test_chunks_grow_up_to_the_bytes_of_a_poll() -> None:
    assert chunks.next_rows(2000, 2000, 2_000_000, 16_000_000) == 16_000
    assert chunks.next_rows(2000, 2000, 20_000, 16_000_000) == 16_000
    assert chunks.next_rows(2000, 2000, 200_000_000, 16_000_000) == 160
    assert chunks.next_rows(10, 10, 1 << 40, 16_000_000) == 1
    assert chunks.next_rows(10, 0, 0, 16_000_000) == 10


def test_a_watermark_is_not_behind_the_head_of_a_page() -> None:
    assert chunks.watermark(8192 * 5 + 24) == 8192 * 5
    assert chunks.watermark(8192 * 5 + 25) == 8192 * 5 + 25


def test_lsns_are_written_as_postgresql_does() -> None:
    assert lsn_text(0x16_B374D848) == "16/B374D848"
    assert lsn_of("16/B374D848") == 0x16_B374D848


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"column.mask.hash.SHA-256.with.salt.x": "a"}, "column.mask.hash.SHA-256.with.salt.x"),
        ({"xmin.fetch.interval.ms": "5"}, "xmin.fetch.interval.ms"),
        ({"plugin.name": "decoderbufs"}, "plugin.name"),
        ({"table.include.list": "a", "table.exclude.list": "b"}, "table.exclude.list"),
        ({"table.include.list": "a["}, "table.include.list"),
        ({"slot.name": "Slot"}, "slot.name"),
        ({"snapshot.mode": "custom"}, "snapshot.mode"),
    ],
)
def test_an_option_that_cannot_be_used_is_named(more: dict[str, str], said: str) -> None:
    with pytest.raises(InvalidOption, match=said.replace(".", r"\.")):
        options.read(CONFIG | more)


def test_options_of_every_connector_are_not_refused() -> None:
    names = ("name", "tasks.max", "transforms", "transforms.a.type", "errors.tolerance", "key.converter")
    options.read(CONFIG | dict.fromkeys(names, "1") | {"topic.creation.default.partitions": "1"})


def test_a_message_outside_of_transactions_that_debezium_wrote_is_not_written_again() -> None:
    offset = {"lsn": 160, "lsn_proc": 160, "lsn_commit": 160, "messageType": "MESSAGE"}
    changes = stream(resumed(offset))
    changes.add(logical_message(160, "p", b"", transactional=False))
    changes.add(logical_message(240, "q", b"", transactional=False))
    assert [one[1] for one in taken(changes)] == [{"prefix": "q"}]
    stored = changes.position.as_offset()
    assert resumed(stored).position.as_offset() == stored


def test_the_page_has_all_options() -> None:
    page = (Path(__file__).parents[4] / "docs/connect/postgresql.md").read_text()
    lines = [line.split("|") for line in page.splitlines() if line.startswith("| `")]
    listed = {line[1].strip(" `"): line[2].strip() for line in lines}
    assert {row.name: row.doc for row in options.ROWS}.items() <= listed.items()


def test_topics_and_schemas_have_names_that_are_allowed() -> None:
    read = options.read(CONFIG | {"schema.name.adjustment.mode": "avro"})
    shapes = Shapes(read, TypeMap(read, TYPES), "d")
    assert shapes.topic("We ird", "Ta-ble.x") == "shop.We_ird.Ta-ble.x"
    assert shapes.schema_name("shop.We_ird.Ta-ble.1x.Key") == "shop.We_ird.Ta_ble._1x.Key"


def test_a_snapshot_at_each_start_leaves_a_transaction_where_it_was() -> None:
    """Its first two changes are written: from its beginning they would come again, behind newer ones."""
    context = SourceContext("shop", getLogger("test"), lambda _: None, lambda: 0)
    source = PostgresSource(CONFIG | {"snapshot.mode": "always"}, context)
    slot = {"confirmed": "0/10"}
    source._catalogue = SimpleNamespace(slot=lambda: slot, hold_slot=lambda _: None)  # type: ignore[assignment]
    stored = {"lsn": 90, "lsn_commit": 50, "txId": 7, "messageType": "INSERT"}
    begins = source._begin(stored | {"ottla_transaction": 120, "ottla_changes": 2}).position
    assert begins.snapshot is not None
    assert (begins.commit_lsn, begins.transaction, begins.changes) == (50, 120, 2)
    assert source._begin(stored).done_xid == 7
