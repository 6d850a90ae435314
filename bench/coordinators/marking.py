"""From the reply to EndTxn to the last marker: how long readers of committed records still wait for a transaction.

A producer of the second protocol (KIP-890) writes a batch to each partition and commits. From the reply on, the leaders
are asked for their last stable offsets, one after the other and without a pause, until every partition has its marker.
What that adds, half a round of questions, is the same for both.
"""

import time
from statistics import median, quantiles
from typing import Any

from load import alternating
from report import Row, compared
from wire_client import TRANSACTIONS, WireClient

from ottla.records.builder import BatchBuilder
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    EndTxnRequest,
    FindCoordinatorRequest,
    InitProducerIdRequest,
    ListOffsetsRequest,
    ProduceRequest,
)

MARKED = (1, 12)
"""Partitions of a transaction."""

READ_COMMITTED = 1
VALUES = [bytes(100)] * 10
TRANSACTIONS_OF_A_ROUND = 40
WARM_UP = 300
# The second is what Kafka says until it has a block of producer ids to give out.
BUSY = {
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
}


def measure_marking(nodes: list[Any], topic: str, partitions: int, rounds: int) -> list[Row]:
    """`nodes` have a name and a `bootstrap`; all of their partitions of the topic have leaders."""
    producers = {node.name: _Producer(node.bootstrap.split(",")[0], topic, partitions) for node in nodes}
    slowest: dict[str, list[float]] = {name: [] for name in producers}
    for producer in producers.values():
        producer.times_ms(WARM_UP)

    def run(name: str) -> float:
        times = producers[name].times_ms(TRANSACTIONS_OF_A_ROUND)
        slowest[name].append(quantiles(times, n=20)[-1])
        return median(times)

    found = alternating(rounds, [lambda name=name: run(name) for name in producers])
    what = f"EndTxn's reply to the last of {partitions} markers"
    return [
        compared(f"{what}, median", dict(zip(producers, found, strict=True)), _shown, at_most=1.0),
        compared("  the slowest twentieth begins at", slowest, _shown, at_most=1.0),
    ]


def _shown(ms: float) -> str:
    return f"{ms:.2f} ms"


class _Producer:
    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.id = "marking"
        self.topic = topic
        with WireClient(bootstrap) as client:
            metadata = client.metadata([topic])
            find = FindCoordinatorRequest(key_type=TRANSACTIONS, coordinator_keys=[self.id])
            while (found := client.ask(find, 4).coordinators[0]).error_code:
                time.sleep(0.05)
        addresses = {one.node_id: f"{one.host}:{one.port}" for one in metadata.brokers}
        self.coordinator = WireClient(addresses[found.node_id])
        leaders = {one.partition_index: one.leader_id for one in metadata.topics[0].partitions}
        self.led = {
            WireClient(addresses[leader]): [index for index in range(partitions) if leaders[index] == leader]
            for leader in {leaders[index] for index in range(partitions)}
        }
        self._init()

    def times_ms(self, transactions: int) -> list[float]:
        return [self._transact() for _ in range(transactions)]

    def _transact(self) -> float:
        waiting = {client: self._produce(client, indexes) for client, indexes in self.led.items()}
        self._end()
        ended_s = time.perf_counter()
        while waiting:
            waiting = {client: ends for client, ends in waiting.items() if not self._is_marked(client, ends)}
        return (time.perf_counter() - ended_s) * 1000

    def _init(self) -> None:
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000)
        while (given := self.coordinator.ask(request, 5)).error_code in BUSY:
            time.sleep(0.01)
        _must(given.error_code)
        self.has = given.producer_id, given.producer_epoch

    def _produce(self, client: WireClient, indexes: list[int]) -> dict[int, int]:
        """By partition, the end of its log when it has the marker."""
        producer_id, epoch = self.has
        builder = BatchBuilder(producer_id=producer_id, producer_epoch=epoch, base_sequence=0, transactional=True)
        builder.extend(int(time.time() * 1000), None, VALUES, None)
        batch = bytes(builder.build())
        written = [ProduceRequest.PartitionProduceData(index=index, records=batch) for index in indexes]
        topic = ProduceRequest.TopicProduceData(name=self.topic, partition_data=written)
        request = ProduceRequest(transactional_id=self.id, acks=-1, timeout_ms=30_000, topic_data=[topic])
        while True:
            (answered,) = client.ask(request, 12).responses
            errors = {one.error_code for one in answered.partition_responses}
            if not errors & BUSY:
                break
        for error in errors:
            _must(error)
        return {one.index: one.base_offset + len(VALUES) + 1 for one in answered.partition_responses}

    def _end(self) -> None:
        producer_id, epoch = self.has
        request = EndTxnRequest(transactional_id=self.id, producer_id=producer_id, producer_epoch=epoch, committed=True)
        while (answer := self.coordinator.ask(request, 5)).error_code in BUSY:
            pass
        _must(answer.error_code)
        self.has = answer.producer_id, answer.producer_epoch

    def _is_marked(self, client: WireClient, ends: dict[int, int]) -> bool:
        wanted = [ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in ends]
        topic = ListOffsetsRequest.ListOffsetsTopic(name=self.topic, partitions=wanted)
        request = ListOffsetsRequest(replica_id=-1, isolation_level=READ_COMMITTED, topics=[topic])
        (found,) = client.ask(request, 6).topics
        return all(one.offset >= ends[one.partition_index] for one in found.partitions)


def _must(error: int) -> None:
    if error:
        raise RuntimeError(f"a transaction is answered with {ErrorCode(error).name}")
