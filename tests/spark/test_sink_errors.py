"""What cannot be written is refused with the name of the option or the column."""

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WRONG_FRAMES = {
    "no value": ("'a' as key", {}, 'column "value": missing; the DataFrame has "key"'),
    "a number as value": ("1 as value", {}, 'column "value": it must be string or binary, and is int'),
    "a number as topic": ("'a' as value, 1 as topic", {}, 'column "topic": it must be string, and is int'),
    "text as partition": ("'a' as value, '1' as partition", {}, 'column "partition": it must be int, and is string'),
    "text as headers": ("'a' as value, 'x' as headers", {}, 'column "headers": it must be array'),
    "no topic": ("'a' as value", {"topic": None}, 'option "topic": neither it is set'),
    "a null topic": ("'a' as value, cast(null as string) as topic", {"topic": None}, 'column "topic": a row has none'),
    "a partition too many": ("'a' as value, 7 as partition", {}, 'column "partition": 7 is none of "test'),
    "a negative partition": ("'a' as value, -2 as partition", {}, 'column "partition": -2 is none'),
    "an empty topic": ("'a' as value", {"topic": ""}, "option topic is empty"),
    "a delivery": (
        "'a' as value",
        {"delivery": "twice"},
        "option delivery is 'twice', and must be one of: exactly-once",
    ),
    "an id": ("'a' as value", {"kafka.transactional.id": "x"}, "option kafka.transactional.id cannot be given"),
    "acks": ("'a' as value", {"kafka.acks": "1"}, "option kafka.acks is '1': must be all"),
    "a setting": ("'a' as value", {"kafka.linger.ms": "soon"}, "option kafka.linger.ms"),
    "an unknown option": ("'a' as value", {"topics": "x"}, "option topics is unknown; did you mean topic?"),
    "no stream": ("'a' as value", {"delivery": "exactly-once", "inlineBytes": 0}, "needs a streaming query"),
}


@pytest.mark.parametrize(("columns", "options", "message"), WRONG_FRAMES.values(), ids=WRONG_FRAMES)
def test_a_write_that_cannot_be_says_why(
    spark: "SparkSession", write: Callable[..., None], columns: str, options: dict[str, object], message: str
) -> None:
    with pytest.raises(Exception, match=re.escape(message)):
        write(spark.range(1).selectExpr(*columns.split(", ")), **options)


def test_a_topic_cannot_be_overwritten(spark: "SparkSession", ottla_topic: str) -> None:
    with pytest.raises(Exception, match=r'use \.mode\("append"\)'):
        spark.range(1).selectExpr("'a' as value").write.format("ottla").mode("overwrite").option(
            "kafka.bootstrap.servers", "127.0.0.1:1"
        ).option("topic", ottla_topic).save()


def test_a_topic_that_is_not_there_is_named(
    spark: "SparkSession", write: Callable[..., None], ottla_broker_factory: Callable[..., object]
) -> None:
    broker = ottla_broker_factory({"auto.create.topics.enable": "false"})
    with pytest.raises(Exception, match='topic "nowhere"'):
        write(
            spark.range(1).selectExpr("'a' as value"),
            **{"kafka.bootstrap.servers": broker.bootstrap, "topic": "nowhere"},  # type: ignore[attr-defined]
        )
