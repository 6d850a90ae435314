"""A worker of ours on brokers of Apache Kafka's: its topics, its lead, its transactions, and offsets of both kinds."""

import time
from collections.abc import Iterator

import pytest

from ottla import Admin, NewTopic
from tests.interop.apache_kafka import ApacheKafka
from tests.unit.connect.worker.worker_in_a_thread import FILE_SINK, FILE_SOURCE, WorkerInAThread, wait_for

pytestmark = pytest.mark.interop

SOURCE = {"connector.class": FILE_SOURCE, "file": "/in.txt", "topic": "lines"}
RUNNING = ("RUNNING", ["RUNNING"])
SETTINGS = {
    "offsets.topic.replication.factor": 1,
    "transaction.state.log.replication.factor": 1,
    "transaction.state.log.min.isr": 1,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[ApacheKafka]:
    with ApacheKafka(config=SETTINGS) as kafka:
        yield kafka


def test_two_workers_change_connectors_and_take_over(kafka: ApacheKafka) -> None:
    first = WorkerInAThread(kafka.bootstrap, "pair")
    first.start()
    wait_for(lambda: first.ask("GET", "/health").status == 200, "a worker leads", 60.0)
    with WorkerInAThread(kafka.bootstrap, "pair") as second:
        wait_for(lambda: second.ask("GET", "/health").status == 200, "the second knows the leader", 60.0)
        assert second.ask("PUT", "/connectors/lines/config", SOURCE).status == 201
        wait_for(lambda: second.state_of("lines") == RUNNING, "it runs")
        began_s = time.monotonic()
        first.kill()
        wait_for(lambda: second.engine.running, "the second takes over", 30.0)
        print(f"taken over after {time.monotonic() - began_s:.1f} s")
        assert second.ask("PUT", "/connectors/lines/stop").status == 204
        wait_for(lambda: second.state_of("lines") == ("STOPPED", []), "it is stopped")
        offsets = {"offsets": [{"partition": {"filename": "/in.txt"}, "offset": {"position": 4}}]}
        assert second.ask("PATCH", "/connectors/lines/offsets", offsets).status == 200
        assert second.ask("GET", "/connectors/lines/offsets").body == offsets


def test_offsets_of_a_sink_are_those_of_its_group(kafka: ApacheKafka) -> None:
    with Admin(bootstrap_servers=kafka.bootstrap) as admin, WorkerInAThread(kafka.bootstrap, "sinks") as worker:
        admin.create_topics(NewTopic("sink-lines", 1, 1))
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "a worker leads", 60.0)
        config = {"connector.class": FILE_SINK, "topics": "sink-lines", "file": "/out"}
        worker.ask("POST", "/connectors", {"name": "out", "config": config, "initial_state": "stopped"})
        wait_for(lambda: worker.state_of("out") == ("STOPPED", []), "it is stopped")
        partition = {"kafka_topic": "sink-lines", "kafka_partition": 0}
        offsets = {"offsets": [{"partition": partition, "offset": {"kafka_offset": 7}}]}
        assert worker.ask("PATCH", "/connectors/out/offsets", offsets).status == 200
        assert worker.ask("GET", "/connectors/out/offsets").body == offsets
        assert worker.ask("DELETE", "/connectors/out/offsets").status == 200
        assert worker.ask("GET", "/connectors/out/offsets").body == {"offsets": []}
