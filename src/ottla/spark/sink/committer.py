"""The driver's side of the exactly-once protocol (docs/decisions/0012-exactly-once-spark-sink.md).

Theory of operation. A batch is written from the moment at which its decision is committed: one transaction of the
driver, with the decision in it and all rows that the driver writes itself. Only then are the transactions of the tasks
committed. All that a driver does comes after it has fenced the query's older drivers and read the query's last
decision, so a batch is decided once, by whichever driver came first. Every step may be done again:

    decided, not finished    commit what is open, write anew what was aborted        (`_finish`)
    decided, and replayed    the same; what the replay's tasks wrote is aborted
    not decided              abort what is left open under the query's name          (`_abort_leftovers`)

A failure leaves a committer unusable. The next one starts from what the log says.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress

from ottla.client.admin.transaction_states import TransactionState
from ottla.client.blocking.forwarding_producer import ForwardingProducer
from ottla.client.errors import InvalidProducerEpoch, InvalidState, KafkaError, ProducerFenced
from ottla.client.io.real_ports import log_problem
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.copying import LostRows, rows_in_log
from ottla.spark.sink.decision import Decision, TaskTransaction
from ottla.spark.sink.decision_log import create_topic, last_decision, partition_of
from ottla.spark.sink.outcomes import commit_all
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.single_transaction import DRIVER_DEFAULTS, send_results
from ottla.spark.sink.task_writer import TaskResult, task_prefix


class NewerDriver(KafkaError):
    """Another driver of the same query has taken over, or this one took longer than `kafka.transaction.timeout.ms`.

    The batch is not decided by it. Run a query, with its checkpoint, in one place at a time, and start it again.
    """


class Committer:
    """One driver's, for one query. `settings` are those of a producer."""

    def __init__(
        self, settings: Mapping[str, object], query_id: str, routing: Routing, *, fails_on_loss: bool = True
    ) -> None:
        self._query_id = query_id
        self._routing = routing
        self._fails_on_loss = fails_on_loss
        self._settings = {**DRIVER_DEFAULTS, **settings, "transactional.id": f"ottla-spark.{query_id}.driver"}
        self._producer: ForwardingProducer | None = None
        self._access = ClusterAccess(settings)
        try:
            create_topic(self._access)
            self._last = self._take_over()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leaves everything as it is."""
        if self._producer is not None:
            self._producer.close(0)
        self._access.close()

    def catch_up(self, batch_id: int, run_id: str) -> None:
        """To be called when a committer is used again, in the start of the query that it was made for.

        If it committed the batch before, nobody of this start has taken over from it. Else another process of the
        driver may have, so it takes over in turn. It does not from a newer driver: that has decided something.
        """
        known = self._last
        if known is not None and known.batch_id == batch_id - 1:
            return
        last = self._take_over()
        if last != known and last is not None and last.run_id != run_id:
            raise NewerDriver(f"query {self._query_id}, batch {batch_id}")
        self._last = last

    def _take_over(self) -> Decision | None:
        """Fences all other committers of the query, and reads its last decision."""
        if self._producer is not None:
            self._producer.close(0)
        self._producer = ForwardingProducer(self._settings)
        self._producer.init_transactions()
        return last_decision(self._access, self._query_id)

    def commit(self, batch_id: int, run_id: str, results: Sequence[TaskResult]) -> None:
        """When it returns, the rows of the batch are there once, committed."""
        if self._last is not None and (self._last.batch_id, self._last.run_id) == (batch_id, run_id) != (batch_id, ""):
            raise InvalidState(
                f"batch {batch_id} of {self._query_id} was written already in this start of the query: "
                "give each write of a foreachBatch an option writeName of its own"
            )
        try:
            if self._last is None or self._last.batch_id < batch_id:
                self._decide(batch_id, run_id, results)
            assert self._last is not None
            if self._last.batch_id == batch_id:
                self._finish(self._last)
        except (ProducerFenced, InvalidProducerEpoch):
            raise NewerDriver(f"query {self._query_id}, batch {batch_id}") from None
        self._abort_leftovers()

    def abort(self, batch_id: int, results: Sequence[TaskResult]) -> None:
        """Ends what tasks have open, unless the batch is decided: then it is for the replay to finish."""
        if self._last is not None and self._last.batch_id >= batch_id:
            return
        self._access.end_transactions(_transactions(results), commits=False)
        self._abort_leftovers()

    # --- the decision ---

    def _decide(self, batch_id: int, run_id: str, results: Sequence[TaskResult]) -> None:
        decision = Decision(batch_id, run_id, _transactions(results))
        producer = self._the_producer()
        with producer.transaction():
            send_results(producer, self._access, self._routing, results)
            self._send(decision)
        self._last = decision

    def _send(self, decision: Decision) -> None:
        topic, partition = partition_of(self._query_id)
        self._the_producer().send(topic, decision.encode(), self._query_id.encode(), partition=partition).result()

    def _the_producer(self) -> ForwardingProducer:
        assert self._producer is not None, "a committer has taken over before it decides"
        return self._producer

    # --- what follows from it ---

    def _finish(self, decision: Decision) -> None:
        aborted = commit_all(self._access, decision.transactions).aborted
        if not aborted:
            return
        left = tuple(one for one in decision.transactions if one not in aborted)
        rewritten = decision._replace(transactions=left)
        with self._the_producer().transaction():
            for one in aborted:
                self._write_anew(one)
            self._send(rewritten)
        self._last = rewritten

    def _write_anew(self, transaction: TaskTransaction) -> None:
        producer = transaction.producer_id, transaction.producer_epoch
        for piece in transaction.pieces:
            try:
                for rows in rows_in_log(self._access, piece, producer):
                    self._the_producer().send_arrow(piece.topic, rows, partition=piece.partition)
            except LostRows as lost:
                if self._fails_on_loss:
                    raise
                log_problem(lost)

    def _abort_leftovers(self) -> None:
        """Transactions of tasks that were killed, lost a race, or belong to a batch that was never decided.

        Not one of them is decided: decided ones are committed by now. One that cannot be aborted now times out.
        """
        prefix = task_prefix(self._query_id)
        with suppress(KafkaError):
            found = self._access.list_transactions(
                states=[TransactionState.ONGOING], transactional_id_pattern=f"{re.escape(prefix)}.*"
            )
            if found:
                self._access.fence_producers([one.transactional_id for one in found]).raise_first()


def _transactions(results: Sequence[TaskResult]) -> tuple[TaskTransaction, ...]:
    return tuple(result.transaction for result in results if result.transaction is not None)
