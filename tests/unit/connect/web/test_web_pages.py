"""The examples of docs/connect/http.md, search.md and connectors.md, as they stand there, against the stand-ins."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.class_names import class_name_of
from ottla.connect.plugins import find_connector
from tests.unit.connect.connectors.sources import SourceRun, sink
from tests.unit.connect.web.search_server import SearchServer
from tests.unit.connect.web.servers import WebServer
from tests.unit.connect.web.test_http_sink import orders, strict
from tests.unit.connect.web.test_http_source import Api
from tests.unit.connect.web.test_search_sink import rows

DOCS = Path(__file__).parents[4] / "docs" / "connect"
SITE = "https://api.example.com"


def examples(page: str) -> list[dict[str, str]]:
    return [json.loads(block) for block in re.findall(r"```json\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)]


def keywords(config: dict[str, str]) -> dict[str, Any]:
    return {key.replace(".", "__"): value for key, value in config.items()}


@pytest.mark.parametrize("page", ["http.md", "search.md", "connectors.md"])
def test_examples_are_configurations_without_a_problem(page: str) -> None:
    for config in examples(page):
        kind = find_connector(class_name_of(config) or "").load()
        problems = [] if "dlt.resource" in config else kind.validate(config)  # its package is not installed here
        assert list(problems) == []
        known = {row.name for row in kind.settings} | {"connector.class", "topics"}
        assert {key for key in config if not key.startswith(("spark.option.", "dlt.arg."))} <= known


@pytest.mark.parametrize("page", ["http.md", "search.md", "connectors.md"])
def test_options_of_the_tables_are_there(page: str) -> None:
    text = (DOCS / page).read_text()
    kinds = {class_name_of(config) or "" for config in examples(page)} | set(re.findall(r"`(io\.\w+\.[\w.]+)`", text))
    if page == "connectors.md":
        kinds |= {"ottla.connect.SparkSourceConnector", "FileStreamSource"}
    known = {row.name for name in kinds for row in find_connector(name).load().settings}
    prefixes = ("http.", "spark.", "dlt.", "connection.", "elastic.", "behavior.", "batch.", "bulk.", "key.ignore")
    named = [word for line in text.splitlines() if line.startswith("|") for word in re.findall(r"`([a-z0-9.]+)`", line)]
    options = [word for word in named if word.startswith(prefixes)]
    assert options
    assert {word for word in options if word not in known} == set()


def test_the_sinks_example_posts_arrays(tmp_path: Path) -> None:
    config = next(one for one in examples("http.md") if "HttpSink" in one["connector.class"])
    with strict() as server:
        made = sink(tmp_path, **keywords({**config, "http.url": config["http.url"].replace(SITE, server.url)}))
        made.put([orders(1, 2, topic="orders")], {})
        (asked,) = server.asked
        assert (asked.path, json.loads(asked.body)) == ("/orders/orders", [{"id": 1}, {"id": 2}])
        assert asked.headers["authorization"].startswith("Bearer ")


def test_the_sources_example_reads_pages_by_their_cursor(tmp_path: Path) -> None:
    config = next(one for one in examples("http.md") if "HttpSource" in one["connector.class"])
    api = Api()
    api.add(5)
    with WebServer(api) as server:
        url = config["http.url"].replace(f"{SITE}/events", f"{server.url}/cursor")
        reading = SourceRun(tmp_path, **keywords({**config, "http.url": url}))
        assert [one["id"] for one in reading.take(reading.started(), 2)] == list(range(5))


def test_the_search_example_writes_documents(tmp_path: Path) -> None:
    (config,) = examples("search.md")
    with SearchServer(user=f"connect:{config['connection.password']}") as server:
        made = sink(tmp_path, **keywords({**config, "connection.url": server.url}))
        made.put([rows(("a", {"n": 1}), ("b", {"n": 2}), ("b", None))], {})
        assert server.there("orders") == {"a": {"n": 1}}
