"""The code of docs/spark.md, of the page for users of Spark's connector and of to-parquet.md runs as it is written."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.testing import Broker
from tests.unit.cli.test_commands_page import commands_in, examples, matches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DOCS = Path(__file__).parents[2] / "docs"
COLUMNS = ["key", "value", "topic", "partition", "offset", "timestamp", "timestampType"]


def run(example: str, broker: Broker, **names: Any) -> dict[str, Any]:
    exec(re.sub(r'"(127\.0\.0\.1|broker):9092"', f'"{broker.bootstrap}"', example), names)
    return names


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as made:
        for topic in ("orders", "bids", "bids-dead"):
            made.create_topic(topic)
        yield made


def test_the_change_that_takes_a_user_across_is_enough(spark: "SparkSession", broker: Broker) -> None:
    [change] = re.findall(r"```diff\n(.*?)```", (DOCS / "spark" / "coming-across.md").read_text(), re.DOTALL)
    lines = change.splitlines()
    assert len(lines) <= 10
    after = "\n".join(line[1:] for line in lines if not line.startswith("-"))
    rows = run(after, broker, ottla=ottla)["rows"]
    assert rows.isStreaming
    assert rows.columns == COLUMNS


def test_the_examples_of_the_page_run(spark: "SparkSession", broker: Broker) -> None:
    read, decode, *_ = re.findall(r"```python\n(.*?)```", (DOCS / "spark.md").read_text(), re.DOTALL)
    assert run(read, broker)["orders"].columns == COLUMNS
    names = run(decode, broker, spark=spark, ottla=ottla)
    assert names["bids"].schema["value"].dataType.names == [
        "auction",
        "price",
        "at",
    ]


def test_the_job_from_a_topic_to_parquet_does_what_its_page_says(tmp_path: Path) -> None:
    """In a directory and with a Spark of its own."""
    page = DOCS / "spark" / "to-parquet.md"
    [job] = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
    commands_in(tmp_path / "bin")
    work = tmp_path / "work"
    work.mkdir()
    (work / "bids.py").write_text(job)
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])
    with Broker() as broker:
        for command, expected in examples(page):
            done = subprocess.run(
                command.replace("localhost:9092", broker.bootstrap),
                shell=True,
                cwd=work,
                env={**os.environ, "PATH": path, "MASTER": "local[2]"},
                capture_output=True,
                text=True,
                timeout=300,
            )
            told = done.stdout + done.stderr
            assert done.returncode == 0, f"$ {command}\n{told}"
            assert not re.search("Traceback|BrokenPipe|OttlaError|OptionError|KafkaError|ERROR", told), (
                f"$ {command}\n{told}"
            )
            if "bids.py" not in command:  # what Spark says when it starts is its own
                assert matches(told.splitlines(), expected), f"$ {command}\n{told}"
