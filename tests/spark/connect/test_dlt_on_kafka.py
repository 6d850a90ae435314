"""A resource of dlt, through starts: its state goes with its rows, in the offsets topic."""

import json
from pathlib import Path
from typing import Any

from ottla.connect.engine import source_writer
from ottla.connect.engine.run import new_run
from ottla.testing import Broker
from tests.spark.connect.scene import Start
from tests.spark.sink_scene import records
from tests.unit.connect.connectors.test_dlt_resource import shop

__all__ = ["shop"]  # a fixture


def test_each_start_goes_on_from_the_state_that_is_with_the_rows(
    ottla_broker: Broker, ottla_topic: str, tmp_path: Path, shop: Any
) -> None:
    worker = {
        "bootstrap.servers": ottla_broker.bootstrap,
        "group.id": "workers",
        "offset.storage.topic": f"offsets-{ottla_topic}",
        "offset.storage.partitions": "1",
        "value.converter": "JsonConverter",
        "value.converter.schemas.enable": "false",
        "ottla.connect.state.dir": str(tmp_path / "state"),
    }
    config = {
        "connector.class": "ottla.connect.DltSourceConnector",
        "dlt.resource": "dlt_shop:backwards",
        "dlt.interval.ms": "0",
        "topic": ottla_topic,
    }
    for numbers in ((1, 2), (3,), ()):
        shop.NUMBERS += [{"n": number} for number in numbers]
        start = Start(new_run(f"dlt-{ottla_topic}", "source", config, worker)).all()
        start.stop()
        source_writer.kept.forget()
    assert [json.loads(record.value) for record in records(ottla_broker, ottla_topic)] == [{"n": 2}, {"n": 1}, {"n": 3}]
