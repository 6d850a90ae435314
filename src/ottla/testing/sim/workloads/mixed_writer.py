"""A program whose producers are different each time: codec, acks, idempotence, transactions, sizes of batches.

A producer lives for some bursts, then another follows. Values are padded, some with what compresses a thousandfold.
"""

from collections.abc import Sequence
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.errors import KafkaError
from ottla.client.producer.transactions import TransactionState
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import ALL, CAREFUL, Care, Ending, History, SentRecord, Transaction
from ottla.testing.sim.workloads.producing import SimulatedProducer

_CODECS: Final = ("none", "gzip", "snappy", "lz4", "zstd")
_PAUSES_MS: Final = (10, 200, 1_200)
_BATCH_BYTES: Final = (200, 4_000, 16_384, 200_000)
_PADDING_BYTES: Final = (0, 0, 10, 100, 700, 5_000)
_EXPANDING_BYTES: Final = 1_300_000
"""More than a broker takes the time to look into at once (`batch_checks`)."""
_EXPANDING: Final = 0.04
_MOST_AT_ONCE: Final = 10
_ABORTED: Final = 0.2
_ACKS: Final = {"0": 0, "1": 1, "all": ALL}


class MixedWriter(Actor):
    def __init__(
        self, cluster: SimulatedCluster, history: History, name: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions
        self._producers = 0
        self._number = 0
        self._care = CAREFUL
        self._expands = False

    def _begin_life(self) -> None:
        self._run(self._write())

    @property
    def _writer(self) -> str:
        return f"{self.name}.{self._producers}"

    async def _write(self) -> None:
        while not self.is_finishing:
            self._producers += 1
            self._number = 0
            is_transactional = self.chance.random() < 0.5
            producer = SimulatedProducer(self.client, self.history, self._draw(is_transactional))
            producer.on_error = self.note_error
            if is_transactional:
                await self._write_transactions(producer)
            else:
                await self._write_records(producer)
            producer.core.close()

    def _draw(self, is_transactional: bool) -> dict[str, object]:
        """The settings of the next producer."""
        chance = self.chance
        codec = chance.choice(_CODECS)
        self._expands = codec != "none" and chance.random() < 0.5
        settings = {
            **self.client_settings,
            "compression.type": codec,
            "linger.ms": chance.choice((0, 5, 50)),
            "batch.size": chance.choice(_BATCH_BYTES),
            "max.request.size": 8 << 20,
            "delivery.timeout.ms": 8_000,
        }
        if is_transactional:
            self._care = CAREFUL
            return {**settings, "transactional.id": self.name, "transaction.timeout.ms": 10_000}
        is_idempotent = chance.random() < 0.4
        acks = "all" if is_idempotent else chance.choice(tuple(_ACKS))
        retries = {} if is_idempotent or chance.random() < 0.5 else {"retries": 0, _IN_FLIGHT: 1}
        self._care = Care(_ACKS[acks], is_once=is_idempotent or bool(retries), is_in_order=is_idempotent)
        return {**settings, "enable.idempotence": is_idempotent, "acks": acks, **retries}

    async def _write_records(self, producer: SimulatedProducer) -> None:
        for _ in range(self.chance.randrange(1, 12)):
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            await self._write_some(producer, None)
        await producer.core.flush()

    async def _write_transactions(self, producer: SimulatedProducer) -> None:
        transactions = producer.core.the_transactions()
        await transactions.init()
        for _ in range(self.chance.randrange(1, 8)):
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            transaction = self.history.begin_transaction(f"{self._writer} transaction")
            transactions.begin()
            try:
                await self._write_some(producer, transaction)
                if self.chance.random() < _ABORTED:
                    await transactions.abort()
                    transaction.ending = Ending.ABORTED
                else:
                    transaction.ending = Ending.COMMITTING
                    await transactions.commit()
                    transaction.ending = Ending.COMMITTED
            except KafkaError as error:
                self.note_error(error)
                if transactions.state is TransactionState.FATAL_ERROR:
                    raise
                await transactions.abort()
                transaction.ending = Ending.ABORTED

    async def _write_some(self, producer: SimulatedProducer, transaction: Transaction | None) -> None:
        """To one partition or to many, so that requests have batches for many."""
        several = self.chance.random() < 0.6
        partition = self.chance.choice(self._partitions)
        for _ in range(self.chance.randrange(1, _MOST_AT_ONCE)):
            partition = self.chance.choice(self._partitions) if several else partition
            await producer.send(self._next(partition, transaction))

    def _next(self, partition: TopicPartition, transaction: Transaction | None) -> SentRecord:
        self._number += 1
        return self.history.send(
            self._writer, self._number, partition, transaction, care=self._care, padding=self._padding()
        )

    def _padding(self) -> bytes:
        if self._expands and self.chance.random() < _EXPANDING:
            return bytes(_EXPANDING_BYTES)
        size = self.chance.choice(_PADDING_BYTES)
        return self.chance.randbytes(size) if self.chance.random() < 0.5 else b"." * size


_IN_FLIGHT: Final = "max.in.flight.requests.per.connection"
