"""The code of docs/spark/pipelines.md runs: every operator of it is planned by Spark, and its query started."""

import re
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

import ottla
from ottla.admin import NewTopic
from ottla.client.blocking.admin import Admin
from ottla.testing import Broker

PAGE = Path(__file__).parents[3] / "docs" / "spark" / "pipelines.md"
CITY = b'{"name": "Ada", "city": "London"}'


def test_the_examples_of_the_page_run(spark: SparkSession, ottla_broker: Broker, tmp_path: Path) -> None:
    topics = ["clicks", "orders", "customers", "addresses", "customers-by-city", "clicks-by-page"]
    with Admin(bootstrap_servers=ottla_broker.bootstrap) as admin:
        admin.create_topics([NewTopic(topic, partitions=1) for topic in topics]).raise_first()
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        producer.send("customers", CITY, key=b"ada")
        producer.flush()
    names: dict[str, Any] = {"bootstrap": ottla_broker.bootstrap, "checkpoint": str(tmp_path / "checkpoint")}
    for example in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(example, names)
    query = names["query"]
    try:
        query.processAllAvailable()
    finally:
        query.stop()
        names["updates"].stop()
    settings = {"bootstrap.servers": ottla_broker.bootstrap, "isolation.level": "read_committed"}
    with ottla.Consumer({**settings, "auto.offset.reset": "earliest"}) as consumer:
        consumer.assign([ottla.TopicPartition("customers-by-city", 0)])
        (record,) = consumer.poll(10.0)
    assert (record.key, record.value) == (b"London", b'{"count":1}')
