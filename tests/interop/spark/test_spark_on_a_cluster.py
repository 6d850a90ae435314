"""The same jobs on a standalone cluster, by spark-submit and by Spark Connect, with processes killed: exactly once."""

import re
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from ottla.testing import Broker
from tests.interop.spark.spark_cluster import SparkCluster, SparkProcess

pytestmark = pytest.mark.interop
ROWS = 2_000
JOB = Path(__file__).with_name("spark_cluster_job.py")


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkCluster]:
    cluster = SparkCluster(tmp_path_factory.mktemp("cluster"))
    try:
        yield cluster
    finally:
        cluster.close()


@pytest.fixture
def source(ottla_broker: Broker) -> str:
    ottla_broker.create_topic("cluster-source", partitions=2)
    with ottla.Producer(bootstrap_servers=ottla_broker.bootstrap) as producer:
        for number in range(ROWS):
            producer.send("cluster-source", b"%d" % number, b"%d" % number)
    return "cluster-source"


def values(broker: Broker, topic: str, isolation_level: str = "read_committed") -> list[int]:
    with ottla.Consumer(bootstrap_servers=broker.bootstrap, isolation_level=isolation_level) as consumer:
        partitions = [ottla.TopicPartition(topic, one.partition) for one in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning(*partitions)
        ends = consumer.end_offsets(partitions)
        found: list[int] = []
        while any(consumer.position(one) < ends[one] for one in partitions):
            found += [int(record.value) for record in consumer.poll(0.2) if record.value is not None]
        return found


def wait_for_rows(broker: Broker, topic: str, count: int, job: SparkProcess) -> None:
    """Until so many rows are written, committed or not."""
    deadline_s = time.monotonic() + 180
    while len(values(broker, topic, "read_uncommitted")) < count:
        assert job.is_running, job.tail()
        assert time.monotonic() < deadline_s, f"the job writes nothing:\n{job.tail()}"
        time.sleep(0.1)


def test_a_worker_and_then_the_driver_are_killed_in_the_middle_of_batches(
    cluster: SparkCluster, ottla_broker: Broker, source: str, ottla_topic: str, tmp_path: Path
) -> None:
    arguments = (str(JOB), ottla_broker.bootstrap, source, ottla_topic, str(tmp_path / "checkpoint"))
    first = cluster.submit("first", *arguments)
    wait_for_rows(ottla_broker, ottla_topic, 1, first)
    cluster.workers.pop().kill()
    cluster.workers.append(cluster.add_worker("worker-again"))
    before = len(values(ottla_broker, ottla_topic))
    wait_for_rows(ottla_broker, ottla_topic, before + 500, first)
    first.kill()
    cluster.submit("second", *arguments).wait()
    assert sorted(values(ottla_broker, ottla_topic)) == list(range(ROWS))


def test_a_batch_is_written_through_spark_connect(
    cluster: SparkCluster, ottla_broker: Broker, ottla_topic: str
) -> None:
    from pyspark.sql import SparkSession

    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = cluster.submit(
        "connect", "--class", "org.apache.spark.sql.connect.service.SparkConnectServer",
        "--conf", f"spark.connect.grpc.binding.port={port}", "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
        "spark-internal",
    )  # fmt: skip
    server.wait_for(re.compile("Spark Connect server started"))
    spark = SparkSession.builder.remote(f"sc://127.0.0.1:{port}").create()
    try:
        rows = spark.range(0, 1_000, numPartitions=2).selectExpr("cast(id as string) as value")
        writer = rows.write.format("ottla").mode("append").option("kafka.bootstrap.servers", ottla_broker.bootstrap)
        writer.option("topic", ottla_topic).option("inlineBytes", 0).save()
        reader = spark.read.format("ottla").option("kafka.bootstrap.servers", ottla_broker.bootstrap)
        assert reader.option("subscribe", ottla_topic).load().count() == 1_000
    finally:
        spark.stop()
        server.kill()
    assert sorted(values(ottla_broker, ottla_topic)) == list(range(1_000))
