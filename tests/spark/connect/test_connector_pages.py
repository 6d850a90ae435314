"""The connectors of docs/connect/connectors.md, brought by a package of somebody else's, move rows exactly once."""

import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.base.ids import TopicPartition
from ottla.connect import plugins
from ottla.connect.engine import sink_writer, source_writer
from ottla.connect.engine.run import new_run
from ottla.connect.engine.sink_reader import positions_of_target
from ottla.connect.engine.sink_writer import write_rows
from ottla.testing import Broker
from tests.spark.connect.scene import Start
from tests.spark.connect.test_sink_kills import SinkScene
from tests.spark.sink_scene import records

PAGE = Path(__file__).parents[3] / "docs" / "connect" / "connectors.md"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The page's code, installed as a package `shop`, with the page's entry point and one for the sink."""
    source, sink = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (entry,) = re.findall(r'^("shop\..*)$', PAGE.read_text(), re.MULTILINE)
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "connectors.py").write_text(source + "\n\n" + sink)
    installed = tmp_path / "shop-1.5.dist-info"
    installed.mkdir()
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: shop\nVersion: 1.5\n")
    points = [entry.replace('"', ""), "shop.SqliteSinkConnector = shop.connectors:SqliteSink"]
    (installed / "entry_points.txt").write_text("\n".join(["[ottla.connect]", *points, ""]))
    monkeypatch.syspath_prepend(str(tmp_path))
    plugins._others.cache_clear()
    yield
    plugins._others.cache_clear()


def test_a_source_of_ones_own_is_thirty_lines() -> None:
    source, sink = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    for code in (source, sink):
        assert len([line for line in code.splitlines() if line.strip()]) <= 30


@pytest.mark.usefixtures("package")
def test_a_source_of_ones_own_is_found_and_writes_exactly_once(
    ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    database = sqlite3.connect(tmp_path / "shop.db", isolation_level=None)
    database.execute("create table orders (id integer primary key, item text)")
    database.executemany("insert into orders (item) values (?)", [("shoe",), ("hat",)])
    worker = {
        "bootstrap.servers": ottla_broker.bootstrap,
        "group.id": "workers",
        "offset.storage.topic": f"offsets-{ottla_topic}",
        "key.converter": "LongConverter",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "ottla.connect.state.dir": str(tmp_path / "state"),
    }
    config = {"connector.class": "SqliteSource", "database": str(tmp_path / "shop.db"), "topic": ottla_topic}
    assert plugins.find_connector("shop.SqliteSourceConnector").version == "1.5"
    for item in ("scarf", "belt"):
        start = Start(new_run(f"own-{ottla_topic}", "source", config, worker)).all()
        start.stop()
        source_writer.kept.forget()
        database.execute("insert into orders (item) values (?)", [item])
    found = [(record.key, record.value) for record in records(ottla_broker, ottla_topic)]
    assert found == [
        (number.to_bytes(8, "big"), f'{{"id":{number},"item":"{item}"}}'.encode())
        for number, item in ((1, "shoe"), (2, "hat"), (3, "scarf"))
    ]


@pytest.mark.usefixtures("package")
def test_a_sink_of_ones_own_has_each_row_once(ottla_broker: Broker, ottla_topic: str, tmp_path: Path) -> None:
    sink_writer.kept.forget()
    scene = SinkScene(ottla_broker, ottla_topic, tmp_path)
    scene.worker["value.converter"] = "JsonConverter"
    schema = (
        '{"type":"struct","fields":[{"type":"int64","field":"id"},{"type":"string","field":"item"}],"optional":false}'
    )
    config = {"connector.class": "SqliteSink", "database": str(tmp_path / "sold.db"), "topics": ottla_topic}
    run = new_run("own", "sink", config, scene.worker)
    values = [f'{{"schema":{schema},"payload":{{"id":{n},"item":"i{n}"}}}}'.encode() for n in range(4)]
    write_rows(run, iter([scene.rows(0, 2, values[:3])]))
    sink_writer.kept.forget()[0].close()
    write_rows(run, iter([scene.rows(1, 3, values[1:])]))  # a start that reads again what is there
    rows = sqlite3.connect(tmp_path / "sold.db").execute("select id, item from sold order by id").fetchall()
    assert rows == [(n, f"i{n}") for n in range(4)]
    assert positions_of_target(run) == {TopicPartition(ottla_topic, 0): 4}
