"""What the fixtures of tests/spark/pipelines give, and the tests' instants."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from pyspark.sql import DataFrame, Row

Streamed = Callable[[str, Sequence[Sequence[tuple[Any, ...]]]], DataFrame]
Ran = Callable[..., list[list[Row]]]


def at(seconds: float) -> datetime:
    """An instant of the tests' day; rounded hours of it are multiples of ten seconds."""
    return datetime.fromtimestamp(1_700_000_000 + seconds, UTC)


def seconds(instant: datetime) -> float:
    """The inverse: Spark gives instants without a zone, in the session's, which is UTC."""
    return instant.replace(tzinfo=UTC).timestamp() - 1_700_000_000
