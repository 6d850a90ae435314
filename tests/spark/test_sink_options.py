"""The options of the sink reach its producers."""

import pytest

from ottla.spark.options import Options, Use
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.sink_options import Delivery, SinkOptions, read_sink_options
from ottla.testing import Broker
from tests.spark.sink_scene import SinkScene

GOOD = {"kafka.bootstrap.servers": "localhost:9092", "topic": "a"}


def options(**given: object) -> SinkOptions:
    named = {name.lower(): str(value) for name, value in {**GOOD, **given}.items()}
    return read_sink_options(Options(named, Use.STREAM_WRITE), Delivery.EXACTLY_ONCE)


def test_settings_of_kafka_reach_the_producers() -> None:
    read = options(**{"kafka.transaction.timeout.ms": 12_000, "kafka.compression.type": "zstd", "kafka.acks": "all"})
    assert read.settings["transaction.timeout.ms"] == "12000"
    assert read.settings["compression.type"] == "zstd"


@pytest.mark.parametrize(("given", "told_ms"), [({}, 600_000), ({"transaction.timeout.ms": "12000"}, 12_000)])
def test_a_tasks_transaction_may_take_as_long_as_the_option_says(
    ottla_broker: Broker, ottla_topic: str, given: dict[str, str], told_ms: int
) -> None:
    scene = SinkScene(ottla_broker, ottla_topic)
    scene.settings |= given
    result = scene.task(0, 0, range(10))
    assert result.transaction is not None
    with ClusterAccess(scene.settings) as access:
        described = access.describe_transactions([result.transaction.transactional_id])
    assert described[result.transaction.transactional_id].transaction_timeout_ms == told_ms
    scene.commit(0, [result])
    assert scene.committed() == list(range(10))
