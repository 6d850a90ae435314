"""Into Delta Lake and Iceberg, on a local directory: rows, keys, deletes, columns, positions, writers that are late."""

import datetime
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

import pyarrow as pa
import pytest

from ottla.connect.connectors.allowed_paths import PathNotAllowed
from ottla.connect.data import schema as schemas
from ottla.connect.data.columns import Schemaless, nothing
from ottla.connect.data.records import records_of
from ottla.connect.data.rows import column_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.errors import ConnectError, Retriable
from ottla.connect.options import InvalidOption
from tests.unit.connect.lakes.given_lakes import KEY, ORDER, Lake, at, records

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

FORMATS = ["Delta", "Iceberg"]


@pytest.fixture(params=FORMATS)
def lake(request: pytest.FixtureRequest, tmp_path: Path) -> Lake:
    return Lake(request.param, tmp_path)


def with_fields(*more: tuple[str, Schema]) -> Schema:
    return struct([*((field.name, field.schema) for field in ORDER.fields), *more])


def test_rows_and_positions_are_written_together(lake: Lake) -> None:
    sink = lake.sink(upserts=False)
    assert sink.positions() == {}
    sink.put([], {at(): 1})  # no row yet, and so no table: nothing could be put twice
    assert lake.sink(upserts=False).positions() == {}
    sink.put(records([{"id": 1, "note": "a"}, {"id": 1, "note": None}]), {at(): 2, at(3): 9})
    assert lake.rows("id", "note") == [(1, "a"), (1, None)]
    sink.put([], {at(): 7})
    assert lake.sink(upserts=False).positions() == {at(): 7, at(3): 9}
    assert lake.sink("another", upserts=False).positions() == {}
    assert lake.rows("id", "note") == [(1, "a"), (1, None)]


def test_of_each_key_the_last_word_counts(lake: Lake) -> None:
    sink = lake.sink()
    words = [{"id": 1, "note": "a"}, {"id": 2, "note": "b"}, None, {"id": 2, "note": "c"}, None, {"id": 3, "note": "d"}]
    sink.put(records(words, keys=[1, 2, 1, 2, 3, 3]), {at(): 6})
    assert lake.rows("id", "note") == [(2, "c"), (3, "d")]
    sink.put(records([None, None], keys=[2, 9], first=6), {at(): 8})
    assert lake.rows("id", "note") == [(3, "d")]
    sink.put(records([None], keys=[9], first=8), {at(): 9})  # changes no row, and is a commit all the same
    assert lake.sink().positions() == {at(): 9}


def test_change_events_come_out_of_their_envelopes(lake: Lake) -> None:
    row = struct([("id", Schema(Type.INT64)), ("note", Schema(Type.STRING, True))], optional=True)
    envelope = struct(
        [("before", row), ("after", row), ("op", Schema(Type.STRING)), ("ts_ms", Schema(Type.INT64, True))],
        name="shop.orders.Envelope",
    )
    events = [("c", None, {"id": 1, "note": "a"}), ("c", None, {"id": 2, "note": "b"})]
    events += [("u", {"id": 1, "note": "a"}, {"id": 1, "note": "z"}), ("d", {"id": 2, "note": "b"}, None)]
    values = [{"op": op, "before": before, "after": after, "ts_ms": 1} for op, before, after in events]
    key = column_of(KEY, [{"id": number} for number in (1, 2, 1, 2)])
    made = records_of("orders", key, column_of(envelope, values), partitions=[0] * 4)
    lake.sink().put([made.but(offset=pa.array(range(4), pa.int64()))], {at(): 4})
    assert lake.rows("id", "note") == [(1, "z")]


@pytest.mark.parametrize("seed", [1, 2])
def test_any_sequence_of_words_comes_to_what_a_dict_says(lake: Lake, seed: int) -> None:
    chance = Random(seed)
    model: dict[int, str | None] = {}
    sink, offset = lake.sink(), 0
    for _ in range(6):
        words: list[Any] = []
        keys = [chance.randrange(12) for _ in range(chance.randrange(1, 15))]
        for key in keys:
            if chance.random() < 0.35:
                words.append(None)
                model.pop(key, None)
            else:
                note = chance.choice([None, f"n{chance.randrange(99)}"])
                words.append({"id": key, "note": note})
                model[key] = note
        sink.put(records(words, keys=keys, first=offset), {at(): offset + len(keys)})
        offset += len(keys)
        if chance.random() < 0.4:
            sink = lake.sink()
            assert sink.positions() in ({at(): offset}, {})  # {}: only deletes so far, and no table
    assert dict(lake.rows("id", "note")) == model, f"seed {seed}"


def test_a_writer_that_is_late_writes_nothing(lake: Lake) -> None:
    late, new = lake.sink(), lake.sink()
    new.put(records([{"id": 1, "note": "new"}]), {at(): 1})
    with pytest.raises(Retriable, match="another writer of connector into has moved the position of orders-0"):
        late.put(records([{"id": 1, "note": "late"}]), {at(): 1})
    late.positions()
    new.put(records([{"id": 2, "note": "new"}], first=1), {at(): 2})
    with pytest.raises(Retriable):
        late.put(records([{"id": 2, "note": "late"}], first=1), {at(): 2})
    assert lake.rows("id", "note") == [(1, "new"), (2, "new")]


def between_look_and_commit(sink: Any, act: Callable[[], None]) -> Any:
    """Acts once, when the sink has looked at the table and not yet committed."""
    (table,) = sink._tables.values()
    real, acted = table.write, []

    def write(*given: Any) -> None:
        if not acted:
            acted.append(1)
            act()
        real(*given)

    return patch.object(table, "write", write)


@pytest.mark.parametrize("upserts", [False, True])
def test_a_writer_that_is_overtaken_within_its_put_writes_nothing(lake: Lake, upserts: bool) -> None:
    lake.sink(upserts=upserts).put(records([{"id": 0, "note": "x"}]), {at(): 1})
    late, new = lake.sink(upserts=upserts), lake.sink(upserts=upserts)

    def overtake() -> None:
        new.put(records([{"id": 1, "note": "new"}], first=1), {at(): 2})

    with between_look_and_commit(late, overtake), pytest.raises(Retriable, match="another writer"):
        late.put(records([{"id": 1, "note": "late"}, {"id": 2, "note": "late"}], first=1), {at(): 3})
    assert lake.rows("id", "note") == [(0, "x"), (1, "new")]
    assert lake.sink(upserts=upserts).positions() == {at(): 2}


def test_a_commit_that_lost_against_somebody_elses_is_tried_again(lake: Lake) -> None:
    mine, other = lake.sink(), lake.sink("another")
    mine.put(records([{"id": 0, "note": "x"}]), {at(): 1})
    other.put(records([{"id": 9, "note": "theirs"}]), {at(): 1})

    def overtake() -> None:
        other.put(records([{"id": 1, "note": "theirs"}], first=1), {at(): 2})

    with between_look_and_commit(mine, overtake):
        mine.put(records([{"id": 2, "note": "mine"}], first=1), {at(): 2})
    assert lake.rows("id", "note") == [(0, "x"), (1, "theirs"), (2, "mine"), (9, "theirs")]
    assert lake.sink().positions() == lake.sink("another").positions() == {at(): 2}


def test_columns_are_added_and_rows_of_older_schemas_have_none(lake: Lake) -> None:
    sink = lake.sink()
    sink.put(records([{"id": 1, "note": "a"}]), {at(): 1})
    nested = struct([("x", Schema(Type.INT32, True))], optional=True)
    wide = with_fields(("price", schemas.decimal(2, optional=True)), ("place", nested))
    both = records([{"id": 2, "note": "b"}], first=1)
    both += records([{"id": 3, "note": "c", "price": Decimal("1.50"), "place": {"x": 7}}], first=2, schema=wide)
    sink.put(both, {at(): 3})
    found = {row["id"]: row for row in lake.table().to_pylist()}
    assert [found[1]["price"], found[2]["place"]] == [None, None]
    assert found[3] == {"id": 3, "note": "c", "price": Decimal("1.50"), "place": {"x": 7}}
    sink.put(records([{"id": 4, "note": "d"}], first=3), {at(): 4})
    assert len(lake.rows()) == 4


def test_a_number_that_fits_is_widened_and_what_does_not_fit_is_refused_by_name(lake: Lake) -> None:
    sink = lake.sink()
    sink.put(records([{"id": 1, "note": "a"}]), {at(): 1})
    narrow = struct([("id", Schema(Type.INT64)), ("note", Schema(Type.INT32, True))])
    with pytest.raises(ConnectError, match=r"column note of .*orders is .*string, and records have int32"):
        sink.put(records([{"id": 2, "note": 3}], first=1, schema=narrow), {at(): 2})
    whole = struct([("id", Schema(Type.INT64)), ("count", Schema(Type.INT64, True))])
    small = struct([("id", Schema(Type.INT64)), ("count", Schema(Type.INT32, True))])
    sink.put(records([{"id": 2, "count": 1 << 40}], first=1, schema=whole), {at(): 2})
    sink.put(records([{"id": 3, "count": 5}], first=2, schema=small), {at(): 3})
    assert lake.rows("id", "count") == [(1, None), (2, 1 << 40), (3, 5)]
    mixed = records([{"id": 4, "note": "x"}], first=3) + records([{"id": 5, "note": 1}], first=4, schema=narrow)
    with pytest.raises(ConnectError, match="field note is string in some records and int32 in others"):
        sink.put(mixed, {at(): 5})
    assert lake.sink().positions() == {at(): 3}


def test_icebergs_columns_become_wider(tmp_path: Path) -> None:
    lake = Lake("Iceberg", tmp_path)
    small = struct([("id", Schema(Type.INT64)), ("count", Schema(Type.INT32, True))])
    whole = struct([("id", Schema(Type.INT64)), ("count", Schema(Type.INT64, True))])
    sink = lake.sink()
    sink.put(records([{"id": 1, "count": 5}], schema=small), {at(): 1})
    sink.put(records([{"id": 2, "count": 1 << 40}], first=1, schema=whole), {at(): 2})
    assert lake.rows("id", "count") == [(1, 5), (2, 1 << 40)]


def test_without_leave_no_table_is_made_and_no_column_added(lake: Lake) -> None:
    create = {"auto.create": "false"} if lake.format == "Delta" else {"iceberg.tables.auto-create-enabled": "false"}
    with pytest.raises(ConnectError, match=r"there is no table .*orders: create it, or set .*create"):
        lake.sink(**create).put(records([{"id": 1, "note": "a"}]), {at(): 1})
    lake.sink().put(records([{"id": 1, "note": "a"}]), {at(): 1})
    evolve = {"auto.evolve": "false"} if lake.format == "Delta" else {"iceberg.tables.evolve-schema-enabled": "false"}
    wide, sink = with_fields(("more", Schema(Type.INT32, True))), lake.sink(**evolve)
    with pytest.raises(ConnectError, match=r"orders has no column more: add it, or set .*evolve"):
        sink.put(records([{"id": 2, "note": "b", "more": 1}], first=1, schema=wide), {at(): 2})
    assert lake.sink().positions() == {at(): 1}


def test_every_type_arrives(lake: Lake) -> None:
    us = "io.debezium.time.MicroTimestamp"
    fields = [
        ("tiny", Schema(Type.INT8, True), 7, 7),
        ("short", Schema(Type.INT16, True), -300, -300),
        ("real", Schema(Type.FLOAT32, True), 0.5, 0.5),
        ("flag", Schema(Type.BOOLEAN, True), True, True),
        ("raw", Schema(Type.BYTES, True), b"\0\xff", b"\0\xff"),
        ("price", schemas.decimal(2, optional=True, precision=10), Decimal("12.30"), Decimal("12.30")),
        ("any", schemas.decimal(3, optional=True), Decimal("-1.250"), Decimal("-1.250")),
        ("day", schemas.date(optional=True), 19_000, datetime.date(2022, 1, 8)),
        (
            "moment",
            schemas.timestamp(optional=True),
            1_700_000_000_123,
            datetime.datetime(2023, 11, 14, 22, 13, 20, 123_000, datetime.UTC),
        ),
        ("local", Schema(Type.INT64, True, name=us), 1_000_001, datetime.datetime(1970, 1, 1, 0, 0, 1, 1)),
        ("clock", schemas.time(optional=True), 3_723_004, "01:02:03.004000"),
        ("tags", schemas.array(Schema(Type.STRING), optional=True), ["a", "b"], ["a", "b"]),
        ("counts", schemas.map_of(Schema(Type.STRING), Schema(Type.INT32), optional=True), [("x", 1)], [("x", 1)]),
    ]
    schema = struct([("id", Schema(Type.INT64)), *((name, kind) for name, kind, _, _ in fields)])
    full = {"id": 1, **{name: value for name, _, value, _ in fields}}
    empty = {"id": 2, **{name: None for name, _, _, _ in fields}}
    lake.sink().put(records([full, empty], schema=schema), {at(): 2})
    by_id = {row["id"]: row for row in lake.table().to_pylist()}
    expected = {"id": 1, **{name: value for name, _, _, value in fields}}
    if lake.format == "Iceberg":
        expected["clock"] = datetime.time(1, 2, 3, 4_000)
    assert by_id[1] == expected
    assert by_id[2] == empty


def test_what_would_lose_digits_is_refused(lake: Lake) -> None:
    nanos = Schema(Type.INT64, True, name="io.debezium.time.NanoTimestamp")
    schema = with_fields(("moment", nanos))
    sink = lake.sink()
    sink.put(records([{"id": 1, "note": None, "moment": 1_000}], schema=schema), {at(): 1})
    with pytest.raises(ConnectError, match="field moment cannot become timestamp"):
        sink.put(records([{"id": 2, "note": None, "moment": 1_001}], first=1, schema=schema), {at(): 2})


def test_a_table_for_each_topic_has_its_own_positions(lake: Lake, tmp_path: Path) -> None:
    config = lake.config()
    name = "table.path" if lake.format == "Delta" else "iceberg.tables"
    config[name] = config[name].replace("orders", "${topic}")
    config["topics"] = "orders, returns"
    sink = lake.started(config)
    rows = records([{"id": 1, "note": "o"}]) + records([{"id": 2, "note": "r"}], topic="returns")
    sink.put(rows, {at(): 1, at(topic="returns"): 1})
    assert lake.rows("id", "note") == [(1, "o")]
    assert lake.started(config).positions() == {at(): 1, at(topic="returns"): 1}
    with pytest.raises(ConnectError, match="a transform has renamed a topic to other"):
        sink.put(records([{"id": 1, "note": "o"}], topic="other", first=1), {at(): 2})
    del config["topics"]
    with pytest.raises(InvalidOption, match=r"needs topics, not topics\.regex"):
        lake.started(config | {"topics.regex": "o.*"})


def test_records_without_keys_schemas_or_values_are_refused_with_the_remedy(lake: Lake) -> None:
    sink = lake.sink()
    (good,) = records([{"id": 1, "note": "a"}])
    with pytest.raises(ConnectError, match=r"needs keys with a schema: set a key\.converter"):
        sink.put([good.but(key=nothing(1))], {at(): 1})
    with pytest.raises(ConnectError, match="tables are written from structs: set a converter"):
        sink.put([good.but(value=Schemaless(({"id": 1},)))], {at(): 1})
    plain = column_of(Schema(Type.INT64), [1])
    with pytest.raises(ConnectError, match="keys are no structs: name the one column"):
        sink.put([good.but(key=plain)], {at(): 1})
    missing = column_of(struct([("id", Schema(Type.INT64, True))]), [{"id": None}])
    with pytest.raises(ConnectError, match="offset 0 of orders-0: the key's field id is null"):
        sink.put([good.but(key=missing)], {at(): 1})
    with pytest.raises(ConnectError, match=r"offset 0 of orders-0 has no value: set .* to delete its row"):
        lake.sink(upserts=False).put(records([None], keys=[1]), {at(): 1})
    assert lake.sink().positions() == {}
    fields = {"pk.fields": "id"} if lake.format == "Delta" else {"iceberg.tables.default-id-columns": "id"}
    lake.sink(**fields).put([good.but(key=plain)], {at(): 1})
    assert lake.rows("id", "note") == [(1, "a")]


def test_options_that_cannot_be_are_refused_by_name(lake: Lake, tmp_path: Path) -> None:
    with pytest.raises(InvalidOption, match=r"has no option flush\.size here"):
        lake.sink(**{"flush.size": "3"})
    outside = {"table.path": "/etc/orders"} if lake.format == "Delta" else {"iceberg.catalog.warehouse": "/etc"}
    with pytest.raises(PathNotAllowed, match=r"file\.allowed\.paths"):
        lake.sink(**outside)


def test_options_of_delta_that_contradict_each_other_are_refused(tmp_path: Path) -> None:
    lake = Lake("Delta", tmp_path)
    with pytest.raises(InvalidOption, match=r"delete\.enabled: deletes need insert\.mode=upsert"):
        lake.sink(**{"insert.mode": "insert"})
    with pytest.raises(InvalidOption, match=r"together with aws\.secret\.access\.key"):
        lake.sink(**{"aws.access.key.id": "me"})
    (tmp_path / "warehouse" / "orders").mkdir()
    (tmp_path / "warehouse" / "orders" / "mine.txt").touch()
    with pytest.raises(ConnectError, match="is there and is no Delta table"):
        lake.sink()


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"iceberg.tables": "orders"}, r"iceberg\.tables=orders: name it with its namespace"),
        ({"iceberg.tables": "shop.a,shop.b"}, "name one table"),
        ({"iceberg.tables.dynamic-enabled": "true"}, r"has no option iceberg\.tables\.dynamic-enabled"),
        ({"iceberg.catalog.catalog-impl": "org.example.Mine"}, r"catalog-impl: classes are not loaded by name"),
        ({"iceberg.catalog.py-io-impl": "os.path"}, r"py-io-impl: classes are not loaded by name"),
        ({"iceberg.catalog.type": "hadoop"}, r"iceberg\.catalog\.type=hadoop: the catalogue cannot be opened"),
        ({"iceberg.catalog.uri": "sqlite:////etc/c.db"}, r"iceberg\.catalog\.uri"),
    ],
)
def test_options_of_iceberg_that_cannot_be_are_refused(tmp_path: Path, options: dict[str, str], problem: str) -> None:
    with pytest.raises(ConnectError, match=problem):
        Lake("Iceberg", tmp_path).sink(**options)


def test_a_password_in_a_catalogues_address_is_not_told(tmp_path: Path) -> None:
    lake = Lake("Iceberg", tmp_path)
    with pytest.raises(ConnectError) as told:
        lake.sink(**{"iceberg.catalog.uri": "mysterious://me:hunter2@nowhere/x"})
    assert "hunter2" not in str(told.value)


def test_positions_that_iceberg_has_forgotten_are_not_begun_anew(tmp_path: Path) -> None:
    lake = Lake("Iceberg", tmp_path)
    lake.sink().put(records([{"id": 1, "note": "a"}]), {at(): 1})
    table = lake.iceberg()
    table.append(table.scan().to_arrow())  # somebody else's snapshot, which says nothing
    assert lake.sink().positions() == {at(): 1}
    ours = table.snapshots()[0].snapshot_id
    table.refresh().maintenance.expire_snapshots().by_id(ours).commit()
    with pytest.raises(ConnectError, match=r"are expired. Remove the table's property ottla\.connect\.positions\.into"):
        lake.sink()
    with table.refresh().transaction() as transaction:
        transaction.remove_properties("ottla.connect.positions.into")
    assert lake.sink().positions() == {}


def test_a_key_of_several_columns_takes_its_own_rows_alone(lake: Lake) -> None:
    chance, model = Random(3), {}
    key = struct([("id", Schema(Type.INT64)), ("place", Schema(Type.STRING))])
    value = struct([("note", Schema(Type.INT32, True)), ("tags", schemas.array(Schema(Type.STRING), optional=True))])
    sink, offset = lake.sink(), 0
    for number in range(3):
        keys = [(chance.randrange(40), chance.choice("abc")) for _ in range(60)]
        model |= dict.fromkeys(keys, number)
        made = records_of(
            "orders",
            column_of(key, [{"id": one, "place": place} for one, place in keys]),
            column_of(value, [{"note": number, "tags": ["x"]} for _ in keys]),
            partitions=[0] * 60,
            first=offset,
        )
        offset += 60
        sink.put([made.but(offset=made.position)], {at(): offset})
    assert lake.rows("id", "place", "note") == sorted(((*one, note) for one, note in model.items()), key=repr)


def test_a_table_that_has_partitions_keeps_them(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64()), ("note", pa.string())])
    if lake.format == "Delta":
        from deltalake import DeltaTable

        DeltaTable.create(f"{lake.where}/orders", schema, partition_by=["note"])
    else:
        from pyiceberg.catalog import load_catalog

        prefix = "iceberg.catalog."
        given = {name.removeprefix(prefix): text for name, text in lake.config().items() if name.startswith(prefix)}
        catalogue = load_catalog("iceberg", **given)
        catalogue.create_namespace("shop")
        with catalogue.create_table("shop.orders", schema).update_spec() as update:
            update.add_identity("note")
    sink = lake.sink()
    sink.put(records([{"id": 1, "note": "a"}, {"id": 2, "note": "b"}]), {at(): 2})
    sink.put(records([{"id": 1, "note": "b"}, None], keys=[1, 2], first=2), {at(): 4})
    assert lake.rows("id", "note") == [(1, "b")]


def test_the_names_of_apaches_iceberg_sink_are_ours(tmp_path: Path) -> None:
    lake = Lake("Iceberg", tmp_path)
    config = lake.config() | {
        "connector.class": "org.apache.iceberg.connect.IcebergSinkConnector",
        "iceberg.control.commit.interval-ms": "1000",
    }
    lake.started(config).put(records([{"id": 1, "note": "a"}]), {at(): 1})
    assert lake.started(lake.config() | {"connector.class": "IcebergSink"}).positions() == {at(): 1}


@pytest.mark.parametrize("change", ["a new column", "a new partition"])
def test_a_writer_that_makes_room_while_another_writes_the_same_rows_writes_none(tmp_path: Path, change: str) -> None:
    """Columns and lists of partitions are commits of their own in Delta: they must not jump over another's rows."""
    from ottla.connect.connectors.lakes.delta import _DeltaTable

    lake = Lake("Delta", tmp_path)
    lake.sink(upserts=False).put(records([{"id": 0, "note": "zero"}], first=0), {at(): 1})
    old, new = lake.sink(upserts=False), lake.sink(upserts=False)
    wide = with_fields(("more", Schema(Type.INT64, True)))
    row = [{"id": 1, "note": "one", "more": 1} if change == "a new column" else {"id": 1, "note": "one"}]
    rows = records(row, schema=wide if change == "a new column" else ORDER, first=1)
    positions = {at(): 2} if change == "a new column" else {at(): 2, at(1): 7}
    real, others = _DeltaTable._make_room, [lambda: new.put(records([{"id": 1, "note": "one"}], first=1), {at(): 2})]

    def beside(self: Any, *arguments: Any) -> None:
        if others:
            others.pop()()  # the other's commit comes between the look at positions and the first commit
        real(self, *arguments)

    with patch.object(_DeltaTable, "_make_room", beside), pytest.raises(Retriable, match="another writer"):
        old.put(rows, positions)
    assert lake.rows("id") == [(0,), (1,)]


@pytest.mark.parametrize("name", ["uri", "s3.endpoint"])
def test_a_catalogue_is_at_no_address_where_a_cloud_hands_out_credentials(tmp_path: Path, name: str) -> None:
    config = Lake("Iceberg", tmp_path).config() | {
        "iceberg.catalog.type": "rest",
        f"iceberg.catalog.{name}": "http://169.254.169.254/latest",
    }
    with pytest.raises(ConnectError, match="link-local or metadata address"):
        Lake("Iceberg", tmp_path).started(config)
