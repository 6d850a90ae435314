"""A program that writes transactions, each to several partitions. It aborts some, and dies in the midst of others."""

from collections.abc import Sequence

from ottla.base.ids import TopicPartition
from ottla.client.errors import KafkaError
from ottla.client.producer.transactions import State, Transactions
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import Ending, History, Transaction
from ottla.testing.sim.workloads.producing import SimulatedProducer

_PAUSES_MS = (5, 100, 700)
_MOST_RECORDS = 6
_ABORTED = 0.2


class TransactionalWriter(Actor):
    """Each life has the same `transactional.id`, and so ends what the one before it left open."""

    def __init__(
        self, cluster: SimulatedCluster, history: History, name: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions
        self._number = 0

    def _begin_life(self) -> None:
        settings = {
            **self.client_settings,
            "transactional.id": self.name,
            "transaction.timeout.ms": 10_000,
            "delivery.timeout.ms": 8_000,
        }
        producer = SimulatedProducer(self.client, self.history, settings)
        producer.on_error = self.note_error
        self._number = 0
        self._run(self._write(producer))

    async def _write(self, producer: SimulatedProducer) -> None:
        transactions = producer.core.the_transactions()
        await transactions.init()
        count = 0
        while not self.is_finishing:
            await self.client.world.sleep(self.chance.choice(_PAUSES_MS))
            count += 1
            transaction = self.history.begin_transaction(f"{self.life_name} transaction {count}")
            transactions.begin()
            try:
                await self._fill(producer, transactions, transaction)
            except KafkaError as error:
                self.note_error(error)
                if transactions.state is State.FATAL_ERROR:
                    raise
                await transactions.abort()
                transaction.ending = Ending.ABORTED
        producer.core.close()

    async def _fill(self, producer: SimulatedProducer, transactions: Transactions, transaction: Transaction) -> None:
        for _ in range(self.chance.randrange(1, _MOST_RECORDS)):
            self._number += 1
            record = self.history.send(self.life_name, self._number, self.chance.choice(self._partitions), transaction)
            await producer.send(record)
        if self.chance.random() < _ABORTED:
            await transactions.abort()
            transaction.ending = Ending.ABORTED
        else:
            transaction.ending = Ending.COMMITTING
            await transactions.commit()
            transaction.ending = Ending.COMMITTED
