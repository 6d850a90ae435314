"""The code of docs/spark.md and of the page for users of Spark's connector runs as it is written there."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.testing import Broker

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
    assert run(decode, broker, spark=spark)["bids"].schema["value"].dataType.names == ["auction", "price", "at"]
