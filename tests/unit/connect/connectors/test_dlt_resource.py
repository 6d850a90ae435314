"""dlt's resources as sources: its state is the offset, and a crash at any batch repeats nothing."""

import json
import textwrap
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.connector import Source
from ottla.connect.data.schema import Type
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption
from ottla.connect.plugins import find_connector
from tests.unit.connect.connectors.sources import SourceRun

pytest.importorskip("dlt", reason="needs ottla[dlt]")

PATIENCE_S = 60.0
"""Of a poll; it ends when its extraction does."""
SHOP = """
    import datetime, uuid
    import dlt

    ORDERS = []

    @dlt.resource(primary_key="id")
    def orders(
        changed=dlt.sources.incremental("at", initial_value=datetime.datetime(2026, 1, 1)),
        prefix: str = "",
        most: int = 1000,
    ):
        yield [{**row, "item": prefix + row["item"]} for row in ORDERS if row["at"] >= changed.last_value][:most]

    @dlt.resource
    def backwards(changed=dlt.sources.incremental("n", initial_value=0)):
        yield from sorted((row for row in NUMBERS if row["n"] > changed.last_value), key=lambda row: -row["n"])

    NUMBERS = []

    @dlt.source
    def both():
        @dlt.resource
        def counted():
            state = dlt.current.resource_state()
            for _ in range(state.get("count", 0), len(NUMBERS)):
                yield NUMBERS[state.get("count", 0)]
                state["count"] = state.get("count", 0) + 1

        @dlt.resource
        def fixed():
            yield {"name": "x", "id": uuid.UUID(int=7), "tags": ["a"], "more": {"deep": 1.5}}

        return counted, fixed

    @dlt.resource
    def scalars():
        yield 5

    def undecorated():
        return []
"""


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A package that is installed, with resources of dlt."""
    site = tmp_path / "site"
    installed = site / "dlt_shop-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: dlt_shop\nVersion: 1.0\n")
    (installed / "top_level.txt").write_text("dlt_shop\n")
    (site / "dlt_shop.py").write_text(textwrap.dedent(SHOP))
    (tmp_path / "not_installed.py").write_text(textwrap.dedent(SHOP))
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.syspath_prepend(str(site))
    monkeypatch.chdir(tmp_path)
    import sys

    sys.modules.pop("dlt_shop", None)
    import dlt_shop  # type: ignore[import-not-found]

    yield dlt_shop
    sys.modules.pop("dlt_shop", None)


def run(directory: Path, entry: str, **more: str) -> SourceRun:
    config = {"dlt__resource": entry, "topic": "shop.${resource}", "dlt__interval__ms": "0", **more}
    return SourceRun(directory, connector__class="ottla.connect.DltSourceConnector", **config)


def order(number: int, day: int) -> dict[str, Any]:
    import datetime

    return {"id": number, "item": f"i{number}", "at": datetime.datetime(2026, 1, day)}


def test_an_incremental_resource_goes_on_from_its_state_in_another_start(tmp_path: Path, shop: Any) -> None:
    reading = run(tmp_path, "dlt_shop:orders", dlt__key="id")
    shop.ORDERS += [order(1, 1), order(2, 2)]
    source = reading.started()
    (first,) = source.poll(PATIENCE_S)
    assert first.records.topic == "shop.orders"
    assert first.records.value.schema.type is Type.STRUCT
    assert first.records.key.array.to_pylist() == [1, 2]
    assert first.records.value.schema.field("at").schema.name == "io.debezium.time.MicroTimestamp"
    reading.offsets[repr(sorted(first.partition.items()))] = json.loads(json.dumps(first.offset))
    assert reading.take(source, 2, PATIENCE_S) == []
    shop.ORDERS += [order(3, 2), order(4, 3)]  # one at the same time as the last
    again = reading.started()
    assert [row["id"] for row in reading.take(again, 3, PATIENCE_S)] == [3, 4]


def test_a_crash_at_any_batch_of_an_extraction_repeats_and_loses_nothing(tmp_path: Path, shop: Any) -> None:
    """The resource gives rows from the newest to the oldest: a state within it would lose the old ones."""
    shop.NUMBERS += [{"n": number} for number in range(1, 11)]
    for crash in range(4):
        reading = run(tmp_path, "dlt_shop:backwards")
        reading.max_bytes = 25
        found = []
        for _ in range(crash):
            found += reading.take(reading.started(), 1, PATIENCE_S)  # each poll is another start's
        source = reading.started()
        found += reading.take(source, 4, PATIENCE_S)
        assert [row["n"] for row in found] == list(range(10, 0, -1)), crash
        shop.NUMBERS.append({"n": 11 + crash})
        assert [row["n"] for row in reading.take(source, 2, PATIENCE_S)] == [11 + crash]
        shop.NUMBERS.pop()


def test_an_extraction_that_gives_others_now_is_written_from_its_beginning(
    tmp_path: Path, shop: Any, caplog: pytest.LogCaptureFixture
) -> None:
    shop.NUMBERS += [{"n": number} for number in range(1, 6)]
    reading = run(tmp_path, "dlt_shop:backwards")
    reading.max_bytes = 10
    assert reading.take(reading.started(), 2, PATIENCE_S) == [{"n": 5}, {"n": 4}, {"n": 3}, {"n": 2}]
    shop.NUMBERS.append({"n": 6})
    found = reading.take(reading.started(), 9, PATIENCE_S)
    assert [row["n"] for row in found] == [6, 5, 4, 3, 2, 1]
    assert "all of them are written again" in caplog.text


def test_a_source_has_a_topic_for_each_resource_and_one_state(tmp_path: Path, shop: Any) -> None:
    shop.NUMBERS += [{"n": 1}, {"n": 2}]
    reading = run(tmp_path, "dlt_shop:both")
    source = reading.started()
    made = {one.records.topic: one for one in source.poll(PATIENCE_S)}
    assert set(made) == {"shop.counted", "shop.fixed"}
    assert len({json.dumps(one.offset) for one in made.values()}) == 1
    assert made["shop.fixed"].offset == {"state": {"sources": {"both": {"resources": {"counted": {"count": 2}}}}}}
    fixed = made["shop.fixed"].records.value.array.to_pylist()
    assert fixed == [{"name": "x", "id": str(__import__("uuid").UUID(int=7)), "tags": ["a"], "more": {"deep": 1.5}}]


def test_arguments_are_given_as_the_function_declares_them(tmp_path: Path, shop: Any) -> None:
    shop.ORDERS += [order(1, 1), order(2, 2)]
    reading = run(tmp_path, "dlt_shop:orders", dlt__arg__prefix="7", dlt__arg__most="1")
    assert [row["item"] for row in reading.take(reading.started(), 1, PATIENCE_S)] == ["7i1"]
    for name, value, said in (("nope", "1", "no such argument"), ("most", "x", "must be JSON")):
        with pytest.raises(InvalidOption, match=said):
            run(tmp_path, "dlt_shop:orders", **{f"dlt__arg__{name}": value}).started()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("not_installed:orders", "no module not_installed in an installed package"),
        ("os:system", "no module os in an installed package"),
        ("dlt_shop", "must be MODULE:NAME"),
        ("dlt_shop:a.b", "must be MODULE:NAME"),
        ("dlt_shop:nothing", "cannot be loaded"),
        ("dlt_shop:undecorated", "is no resource"),
        ("json:dumps", "no module json in an installed package"),
    ],
)
def test_only_decorated_objects_of_installed_packages_are_resources(
    tmp_path: Path, shop: Any, entry: str, said: str
) -> None:
    with pytest.raises(InvalidOption, match=said):
        run(tmp_path, entry).started()
    kind = find_connector("ottla.connect.DltSourceConnector").load()
    assert issubclass(kind, Source)
    assert bool(kind.validate({"dlt.resource": entry})) == ("installed" in said or "MODULE" in said)


def test_a_file_of_the_working_directory_stands_in_for_no_package(
    tmp_path: Path, shop: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    (tmp_path / "dlt_shop.py").write_text("evil = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    sys.modules.pop("dlt_shop", None)
    with pytest.raises(InvalidOption, match="no module dlt_shop in an installed package"):
        run(tmp_path, "dlt_shop:orders").started()


@pytest.mark.parametrize("entry", ["intruder.sub:orders", "intruding.sub:orders"])
def test_what_is_not_installed_does_not_run_to_find_that_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, entry: str
) -> None:
    ran = tmp_path / "ran"
    (tmp_path / "intruding").mkdir()
    for name in ("intruder.py", "intruding/__init__.py"):
        (tmp_path / name).write_text(f"open({str(ran)!r}, 'w').close()\n")
    (tmp_path / "intruding" / "sub.py").write_text("orders = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    kind = find_connector("ottla.connect.DltSourceConnector").load()
    assert issubclass(kind, Source)
    assert "in an installed package" in kind.validate({"dlt.resource": entry})[0][1]
    assert not ran.exists()


def test_what_is_no_row_is_refused_with_the_resources_name(tmp_path: Path, shop: Any) -> None:
    reading = run(tmp_path, "dlt_shop:scalars")
    with pytest.raises(ConnectError, match="resource scalars gave a int"):
        reading.take(reading.started(), 1, PATIENCE_S)


def test_a_number_keeps_its_digits_or_is_refused(tmp_path: Path, shop: Any) -> None:
    shop.NUMBERS[:] = [{"n": 1, "price": Decimal("1.123456789012345678")}]
    reading = run(tmp_path, "dlt_shop:backwards")
    source = reading.started()
    assert reading.take(source, 1, PATIENCE_S)[0]["price"] == Decimal("1.123456789012345678")
    shop.NUMBERS += [{"n": 2, "price": 0.5}]
    with pytest.raises(ConnectError, match="column price has decimals and floats"):
        reading.take(source, 1, PATIENCE_S)
