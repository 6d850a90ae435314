"""A program that writes transactions, each to several partitions. It aborts some, and dies in the midst of others."""

from collections.abc import Iterator, Sequence
from itertools import count

from ottla.base.ids import TopicPartition
from ottla.client.errors import KafkaError
from ottla.client.producer.transactions import Transactions, TransactionState
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster
from ottla.testing.sim.simulated_dialer import ClientInSimulation
from ottla.testing.sim.workloads.actor import Actor
from ottla.testing.sim.workloads.history import Ending, History, Transaction
from ottla.testing.sim.workloads.producing import SimulatedProducer

_PAUSES_MS = (5, 100, 700)
_MOST_RECORDS = 6
_ABORTED = 0.2
_DIES = 0.01


class TransactionalWriter(Actor):
    """Each life has the same `transactional.id`, and so ends what the one before it left open.

    A life that was only asleep may wake up beside the next one. Then it keeps writing, and must be fenced. Once the
    program was told to finish, it is done when a transaction of its is committed: so that must be possible.
    """

    may_linger = True

    def __init__(
        self, cluster: SimulatedCluster, history: History, name: str, partitions: Sequence[TopicPartition]
    ) -> None:
        super().__init__(cluster, history, name)
        self._partitions = partitions

    def _begin_life(self) -> None:
        settings = {
            **self.client_settings,
            "transactional.id": self.name,
            "transaction.timeout.ms": 10_000,
            "delivery.timeout.ms": 8_000,
        }
        producer = SimulatedProducer(self.client, self.history, settings)
        producer.on_error = self.note_error
        self._run(self._write(producer, self.client, self.life_name))

    async def _write(self, producer: SimulatedProducer, client: ClientInSimulation, life_name: str) -> None:
        transactions = producer.core.the_transactions()
        await transactions.init()
        numbers = count(1)
        transaction: Transaction | None = None
        for number in count(1):
            if self.is_finishing and transaction is not None and transaction.ending is Ending.COMMITTED:
                break
            await client.world.sleep(self.chance.choice(_PAUSES_MS))
            if self.chance.random() < _DIES:
                agenda = self.cluster.simulation.agenda
                agenda.call_at(agenda.clock.elapsed_us(), self.kill)
            transaction = self.history.begin_transaction(f"{life_name} transaction {number}")
            transactions.begin()
            try:
                await self._fill(producer, transactions, transaction, life_name, numbers)
            except KafkaError as error:
                self.note_error(error)
                if transactions.state is TransactionState.FATAL_ERROR:
                    raise
                await transactions.abort()
                transaction.ending = Ending.ABORTED
        producer.core.close()

    async def _fill(
        self,
        producer: SimulatedProducer,
        transactions: Transactions,
        transaction: Transaction,
        life_name: str,
        numbers: Iterator[int],
    ) -> None:
        for _ in range(self.chance.randrange(1, _MOST_RECORDS)):
            partition = self.chance.choice(self._partitions)
            await producer.send(self.history.send(life_name, next(numbers), partition, transaction))
        if self.chance.random() < _ABORTED and not self.is_finishing:
            await transactions.abort()
            transaction.ending = Ending.ABORTED
        else:
            transaction.ending = Ending.COMMITTING
            await transactions.commit()
            transaction.ending = Ending.COMMITTED
