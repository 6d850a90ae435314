"""The runner itself: a node starts, serves, stops, and finds its data again; a killed one leaves no marker."""

import pytest

from tests.interop.apache_kafka import ApacheKafka, ApacheKafkaError

pytestmark = pytest.mark.interop


def test_a_node_keeps_its_data_over_a_clean_stop_and_a_kill() -> None:
    with ApacheKafka(config={"num.partitions": 2}) as kafka:
        topics = ("--bootstrap-server", kafka.bootstrap)
        kafka.tool("kafka-topics", *topics, "--create", "--topic", "orders")
        kafka.tool("kafka-console-producer", *topics, "--topic", "orders", input="one\ntwo\nthree\n")
        kafka.stop()
        assert (kafka.data / ".kafka_cleanshutdown").exists()
        assert (kafka.data / "orders-1" / "partition.metadata").exists()

        kafka.start()
        kafka.kill()
        assert not (kafka.data / ".kafka_cleanshutdown").exists()

        kafka.start()
        offsets = kafka.tool("kafka-get-offsets", *topics, "--topic", "orders").stdout.split()
        assert sum(int(line.rpartition(":")[2]) for line in offsets) == 3
        directory = kafka.directory
    assert not directory.exists(), "a temporary directory goes with its node"


def test_a_node_that_cannot_start_says_why() -> None:
    with pytest.raises(ApacheKafkaError, match=r"no\.such\.Authorizer"):
        ApacheKafka(config={"authorizer.class.name": "no.such.Authorizer"}).__enter__()


def test_a_tool_that_fails_says_why() -> None:
    kafka = ApacheKafka()
    try:
        with pytest.raises(ApacheKafkaError, match="Missing required"):
            kafka.tool("kafka-dump-log", "--print-data-log")
    finally:
        kafka.close()
