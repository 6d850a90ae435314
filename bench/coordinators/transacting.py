"""Transactions of one producer, one after the other, each with a batch of ten records: both protocols.

The first protocol names the partition before it writes to it; with the second (KIP-890) the write does that, and every
end brings a new epoch. What a node refuses because it is still busy with the transaction before is asked again at once.
"""

import time
from collections.abc import Callable

from contenders import Contender
from load import alternating
from report import Row, compared
from wire_client import TRANSACTIONS, WireClient

from ottla.records.builder import BatchBuilder
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest, ProduceRequest

TOPIC = "transacted"
VALUES = [bytes(100)] * 10
WARM_UP_S = 5.0
# The second is what Kafka says until it has a block of producer ids to give out.
BUSY = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}


def measure_transactions(nodes: list[Contender], rounds: int, seconds: float) -> list[Row]:
    producers = {}
    for node in nodes:
        with WireClient(node.bootstrap) as client:
            client.create_topic(TOPIC)
            client.ready_coordinators(TRANSACTIONS)
        producers[node.name] = {version: _Producer(node, version) for version in (1, 2)}
        for producer in producers[node.name].values():
            producer.run(WARM_UP_S)
    rows = []
    for version in (1, 2):
        runs = [lambda node=node, version=version: producers[node.name][version].run(seconds) for node in nodes]
        results = alternating(rounds, runs)
        named = dict(zip([node.name for node in nodes], results, strict=True))
        what = f"transactions, one producer, transaction.version {version}"
        rows.append(compared(what, named, lambda rate: f"{rate:.0f}/s", at_least=1.0))
    return rows


class _Producer:
    def __init__(self, node: Contender, version: int) -> None:
        self.id = f"producer-{version}"
        self.version = version
        self.client = WireClient(node.bootstrap)
        self._until_free(self._init)

    def run(self, seconds: float) -> float:
        """Transactions a second."""
        done = 0
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            self._transact()
            done += 1
        return done / (time.perf_counter() - started)

    def _transact(self) -> None:
        if self.version == 1:
            self._until_free(self._add_partition)
        self._until_free(self._produce)
        self._until_free(self._end)

    @staticmethod
    def _until_free(ask: Callable[[], int]) -> None:
        while (error := ask()) in BUSY:
            pass
        if error:
            raise RuntimeError(f"a transaction is answered with {ErrorCode(error).name}")

    def _init(self) -> int:
        asked = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000)
        given = self.client.ask(asked, 5 if self.version > 1 else 4)
        self.producer_id, self.epoch, self.sequence = given.producer_id, given.producer_epoch, 0
        return int(given.error_code)

    def _add_partition(self) -> int:
        topic = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[topic],
        )
        answer = self.client.ask(request, 3)
        return int(answer.results_by_topic_v3_and_below[0].results_by_partition[0].partition_error_code)

    def _produce(self) -> int:
        builder = BatchBuilder(
            producer_id=self.producer_id, producer_epoch=self.epoch, base_sequence=self.sequence, transactional=True
        )
        now_ms = int(time.time() * 1000)
        for value in VALUES:
            builder.append(now_ms, None, value)
        data = ProduceRequest.PartitionProduceData(index=0, records=bytes(builder.build()))
        topic = ProduceRequest.TopicProduceData(name=TOPIC, partition_data=[data])
        request = ProduceRequest(transactional_id=self.id, acks=-1, timeout_ms=30_000, topic_data=[topic])
        answer = self.client.ask(request, 12 if self.version > 1 else 11)
        error = int(answer.responses[0].partition_responses[0].error_code)
        if not error:
            self.sequence += len(VALUES)
        return error

    def _end(self) -> int:
        request = EndTxnRequest(
            transactional_id=self.id, producer_id=self.producer_id, producer_epoch=self.epoch, committed=True
        )
        answer = self.client.ask(request, 5 if self.version > 1 else 4)
        if self.version > 1 and not answer.error_code:
            self.producer_id, self.epoch, self.sequence = answer.producer_id, answer.producer_epoch, 0
        return int(answer.error_code)
