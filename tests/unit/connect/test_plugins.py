"""Connectors by their class names, and those of other packages."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import pytest

from ottla.connect import Source, plugins
from ottla.connect.options import InvalidOption
from ottla.connect.plugins import BUILT_IN, aliases, find_connector


class Weather(Source):
    def poll(self, timeout_s: float) -> Any:
        return []


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    """The entry points of installed packages."""
    found: list[EntryPoint] = []
    monkeypatch.setattr(plugins, "entry_points", lambda group: found)
    plugins._others.cache_clear()
    yield found
    plugins._others.cache_clear()


def test_a_connector_is_found_by_its_class_name_and_by_shorter_ones() -> None:
    name = "org.apache.kafka.connect.file.FileStreamSourceConnector"
    for known in (name, "FileStreamSourceConnector", "FileStreamSource", f" {name} "):
        assert find_connector(known).class_name == name


@pytest.mark.parametrize("kind", BUILT_IN, ids=lambda kind: kind.class_name)
def test_every_connector_of_ours_is_there_and_is_what_its_row_says(kind: plugins.ConnectorKind) -> None:
    libraries = (
        *(("generator", "numpy"), ("postgres", "psycopg"), ("mysql", "pymysql")),
        *(("lakes.delta", "deltalake"), ("lakes.iceberg", "pyiceberg")),
    )
    for part, library in libraries:
        if part in kind.target:
            pytest.importorskip(library)  # A first run has none: they come with the extra `connect`.
    assert issubclass(kind.load(), Source) == (kind.type == "source")


def test_an_unknown_class_is_refused_with_those_that_there_are(points: list[EntryPoint]) -> None:
    with pytest.raises(InvalidOption, match="Failed to find any class that implements Connector") as refused:
        find_connector("com.example.Nothing")
    assert "org.apache.kafka.connect.file.FileStreamSinkConnector" in str(refused.value)


def test_another_packages_connector_comes_by_entry_point(points: list[EntryPoint]) -> None:
    points.append(EntryPoint("com.example.WeatherConnector", f"{__name__}:Weather", plugins.GROUP))
    assert find_connector("Weather").load() is Weather
    assert find_connector("com.example.WeatherConnector").type == "source"


def test_a_package_that_cannot_be_loaded_disturbs_no_other(
    points: list[EntryPoint], caplog: pytest.LogCaptureFixture
) -> None:
    points.append(EntryPoint("Broken", "no.such.module:Thing", plugins.GROUP))
    points.append(EntryPoint("Text", f"{__name__}:__name__", plugins.GROUP))
    points.append(EntryPoint("Weather", f"{__name__}:Weather", plugins.GROUP))
    assert find_connector("Weather").load() is Weather
    assert "Broken cannot be loaded from no.such.module:Thing" in caplog.text
    assert "Text is no connector" in caplog.text


def test_an_alias_of_two_connectors_is_refused(points: list[EntryPoint]) -> None:
    points.append(EntryPoint("a.WeatherConnector", f"{__name__}:Weather", plugins.GROUP))
    points.append(EntryPoint("b.WeatherConnector", f"{__name__}:Weather", plugins.GROUP))
    with pytest.raises(InvalidOption, match="More than one connector matches alias Weather"):
        find_connector("Weather")
    assert find_connector("b.WeatherConnector").class_name == "b.WeatherConnector"


def test_aliases_are_kafkas() -> None:
    assert aliases("io.debezium.connector.postgresql.PostgresConnector") == ("PostgresConnector", "Postgres")
