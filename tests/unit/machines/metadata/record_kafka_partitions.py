"""Tells `partition_stories` to Apache Kafka's controller. As a program, it writes down what became of the partitions.

The brokers of the stories are made up: they register and send heartbeats, and are nothing else. What the controller
decided is read from its metadata log.
"""

import socket
from pathlib import Path
from typing import Any

from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.records.batch import complete_batches
from ottla.records.reader import read_records
from ottla.wire.apis import api
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.record_values import decode_metadata_record
from tests.interop import apache_kafka
from tests.unit.machines.metadata.controllers import ControllerUnderTest
from tests.unit.machines.metadata.partition_stories import BROKERS, stories, tell

OUTCOMES = Path(__file__).with_name("kafka_partitions.txt")
SETTINGS = {"broker.session.timeout.ms": 3_600_000, "auto.leader.rebalance.enable": "false"}


class KafkaController(ControllerUnderTest):
    """Asked through its listener; `image` is what is in its log."""

    cluster_id = apache_kafka.CLUSTER_ID

    def __init__(self, kafka: apache_kafka.ApacheKafka) -> None:
        self.now_ms = 0
        self._image = MetadataImage()
        self._position = 0
        self._log = kafka.data / "__cluster_metadata-0" / f"{0:020}.log"
        listener = str(kafka.config["listeners"]).rpartition(":")[2]
        self._connection = socket.create_connection(("127.0.0.1", int(listener)), timeout=30)
        self._replies = self._connection.makefile("rb")

    @property
    def image(self) -> MetadataImage:
        data = self._log.read_bytes()[self._position :]
        for position, header in complete_batches(data):
            self._position += header.size
            for record in [] if header.is_control else read_records(data, position, header):
                assert record.value is not None
                self._image.replay(decode_metadata_record(record.value)[0])
        return self._image

    @property
    def next_offset(self) -> int:
        return 2**60

    def ask(self, request: Any, version: int | None = None) -> Any:
        api_key = request._schema.api_key
        version = api(api_key).stable_versions[-1] if version is None else version
        self._connection.sendall(encode_request(request, version, 1, "recorder"))
        size = int.from_bytes(self._replies.read(4), "big")
        return decode_response(response_type(api_key), self._replies.read(size), version)[1]

    def close(self) -> None:
        self._replies.close()
        self._connection.close()


def outcomes(node: ControllerUnderTest) -> list[str]:
    node.start(*BROKERS)
    return [line for number, story in enumerate(stories()) for line in tell(node, f"story{number}", story)]


def ask_kafka() -> list[str]:
    with apache_kafka.ApacheKafka(config=SETTINGS) as kafka:
        node = KafkaController(kafka)
        try:
            return outcomes(node)
        finally:
            node.close()


if __name__ == "__main__":
    OUTCOMES.write_text("\n".join(ask_kafka()) + "\n")
