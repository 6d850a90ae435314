"""docs/connect/lakes.md: its configurations run, with a place of the test's instead of the page's, and what it says of
options is what there is."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from ottla.connect.connector import Sink
from ottla.connect.plugins import find_connector
from tests.unit.connect.connectors.sources import sink
from tests.unit.connect.lakes.given_lakes import Lake, at, records
from tests.unit.connect.s3_server import S3Server

pytest.importorskip("deltalake")
pytest.importorskip("pyiceberg")

PAGE = (Path(__file__).parents[4] / "docs/connect/lakes.md").read_text()
CONFIGS: list[dict[str, str]] = [json.loads(text) for text in re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)]


def here(config: dict[str, str], s3: S3Server, root: Path) -> dict[str, str]:
    """With this test's S3, and a catalogue in a file."""
    if "iceberg.tables" in config:
        mine = Lake("Iceberg", root).config()
        kept = {name: text for name, text in config.items() if not name.startswith("iceberg.catalog.")}
        return kept | {name: text for name, text in mine.items() if name.startswith("iceberg.catalog.")}
    return config | s3.config


@pytest.mark.slow
@pytest.mark.parametrize("config", CONFIGS, ids=lambda config: config["connector.class"].rpartition(".")[2])
def test_the_pages_configurations_write(config: dict[str, str], s3: S3Server, tmp_path: Path) -> None:
    s3.bucket("lake")
    given = here(config, s3, tmp_path)
    made: Any = sink(tmp_path, **given)
    made.positions()
    made.put(records([{"id": 1, "note": "a"}]), {at(): 1})
    assert sink(tmp_path, **given).positions() == {at(): 1}


def test_the_page_names_every_option(tmp_path: Path) -> None:
    for config in CONFIGS:
        kind = find_connector(config["connector.class"]).load()
        assert issubclass(kind, Sink)
        for row in kind.settings:
            family = re.sub(r"^(iceberg\.control)\..*", r"\1.*", row.name)
            accepted = row.name in ("storage.class", "s3.compression.type", "schema.compatibility", "format")
            assert accepted or f"`{family}`" in PAGE or f'"{row.name}"' in PAGE, row.name
