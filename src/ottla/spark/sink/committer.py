"""The driver's side of the exactly-once protocol (docs/decisions/0012-exactly-once-spark-sink.md).

Theory of operation. A batch is written from the moment at which its decision is committed: one transaction of the
driver, with the decision in it and all rows that the driver writes itself. Only then are the transactions of the tasks
committed. All that a driver does comes after it has fenced the query's older drivers and read the query's last
decision, so a batch is decided once, by whichever driver came first. Every step may be done again:

    decided, not finished    commit what is open, write anew what was aborted        (`_finish`)
    decided, and replayed    the same; what the replay's tasks wrote is aborted, and the replay is noted
    not decided              abort what is left open under the query's name          (`_abort_leftovers`)

Rows are passed over for one reason only: another start of the query has decided the same batch, with the same rows. A
batch before the last that was decided, a second write of a batch in one start, and a batch of other rows are errors:
its rows are not those that are in the topic.

A failure leaves a committer unusable. The next one starts from what the log says.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import reduce
from typing import TYPE_CHECKING, Final

from ottla.client.admin.transaction_states import TransactionState
from ottla.client.blocking.forwarding_producer import ForwardingProducer
from ottla.client.errors import InvalidProducerEpoch, KafkaError, ProducerFenced
from ottla.client.io.real_ports import log_problem
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.copying import LostRows, rows_in_log
from ottla.spark.sink.decision import Decision, Piece, TaskTransaction
from ottla.spark.sink.decision_log import create_topic, last_decision
from ottla.spark.sink.digest import RowsDigest
from ottla.spark.sink.names import SinkNames
from ottla.spark.sink.outcomes import commit_all
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.single_transaction import DRIVER_DEFAULTS, send_results
from ottla.spark.sink.task_writer import TaskResult

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]  # pyarrow ships no types

_NAMES: Final = SinkNames()


class NewerDriver(KafkaError):
    """Another driver of the same query has taken over, or this one took longer than `kafka.transaction.timeout.ms`.

    The batch is not decided by it. Run a query, with its checkpoint, in one place at a time, and start it again.
    """


class CheckpointWentBack(KafkaError):
    """The query has a batch whose number was decided already, with other rows: its checkpoint is older than its output.

    As when a checkpoint was restored from a backup, or files were deleted from it. Nothing of the batch is written.
    Start the query with the checkpoint that belongs to the output; or with a new `checkpointLocation` and the
    `startingOffsets` from which it is to continue: a query with a new checkpoint is a new query, and writes what it
    reads.
    """


class OtherRows(CheckpointWentBack):
    """The query has a batch whose number was decided already, with as many rows, and not all of them are the same.

    Either its checkpoint is older than its output, or somebody else has written a decision for it: this batch is in no
    topic. Start the query with the checkpoint that belongs to the output, or with a new `checkpointLocation` and the
    `startingOffsets` from which it is to continue. Or the query computes other rows each time: `rand` and `uuid`, sums
    of floating-point numbers, `first` and `collect_list` after a shuffle, a table that was joined and has changed
    since. Then the batch is in the topic as it was decided: set option `replayCheck` to `count`, and such a batch is
    left so.
    """


class WrittenTwice(KafkaError):
    """One start of a query has written one batch twice under one name, and only the first write is in the topic.

    Give each write of a `foreachBatch` an option `writeName` of its own.
    """


class Committer:
    """One driver's, for one query. `settings` are those of a producer."""

    def __init__(
        self,
        settings: Mapping[str, object],
        query_id: str,
        routing: Routing,
        *,
        fails_on_loss: bool = True,
        checks_rows: bool = True,
        names: SinkNames = _NAMES,
    ) -> None:
        self._names = names
        self._query_id = query_id
        self._routing = routing
        self._fails_on_loss = fails_on_loss
        self._checks_rows = checks_rows
        self._settings = {**DRIVER_DEFAULTS, **settings, "transactional.id": names.driver_id(query_id)}
        self._producer: ForwardingProducer | None = None
        self._has_own = True
        """Whether the last decision was written under the producer id of this query's drivers."""
        self._access = ClusterAccess(settings)
        try:
            create_topic(self._access, names, query_id)
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
        last = last_decision(self._access, self._names, self._query_id)
        if last is None:
            return None
        self._has_own = last.producer_id == self._producer.transaction_identity().producer_id
        return last.decision

    def commit(self, batch_id: int, run_id: str, results: Sequence[TaskResult]) -> None:
        """When it returns, the rows of the batch are there once, committed.

        Raises `CheckpointWentBack` or `WrittenTwice` where they are not, and will not be.
        """
        try:
            if self._last is None or self._last.batch_id < batch_id:
                self._decide(batch_id, run_id, results)
                self._finish()
            else:
                self._check_replay(self._last, batch_id, run_id, results)
                self._finish()
                self._note_replay(run_id)
        except (ProducerFenced, InvalidProducerEpoch):
            raise NewerDriver(f"query {self._query_id}, batch {batch_id}") from None
        except (CheckpointWentBack, WrittenTwice):
            self.abort(batch_id, results)  # open transactions hold up every reader of the topic
            raise
        self._abort_leftovers()

    def abort(self, batch_id: int, results: Sequence[TaskResult]) -> None:
        """Ends what tasks have open. What is decided is for the replay to finish, so that stays."""
        is_decided = self._last is not None and self._last.batch_id >= batch_id
        decided = self._last.transactions if self._last is not None else ()
        self._access.end_transactions([one for one in _transactions(results) if one not in decided], commits=False)
        if not is_decided:
            self._abort_leftovers()

    # --- the batch was decided before ---

    def _check_replay(self, last: Decision, batch_id: int, run_id: str, results: Sequence[TaskResult]) -> None:
        """Whether these rows may be passed over, because they are in the topic or will be."""
        if last.batch_id > batch_id:
            raise CheckpointWentBack(
                f"query {self._query_id} has batch {batch_id}, and batch {last.batch_id} was decided before"
            )
        if last.run_id == run_id:
            raise WrittenTwice(f"query {self._query_id}, batch {batch_id}")
        row_count, total = _digest(results)
        other: CheckpointWentBack | None = None
        if last.row_count not in (None, row_count):
            other = CheckpointWentBack(
                f"query {self._query_id} has batch {batch_id} with {row_count} rows, and it was decided before with "
                f"{last.row_count}. If the query was changed since, or has other rows each time (rand), start it once "
                "with option failOnDataLoss=false: the batch stays as it was decided"
            )
        elif last.rows_digest not in (None, total) and self._checks_rows:
            other = OtherRows(
                f"query {self._query_id} has batch {batch_id} with {row_count} rows, and it was decided before with as "
                "many that are not the same"
            )
        elif last.rows_digest is None and not self._has_own:
            other = OtherRows(
                f"query {self._query_id} has batch {batch_id}, and it was decided before by another producer than the "
                "query's drivers, in a decision that does not say for which rows"
            )
        if other is not None:
            if self._fails_on_loss:
                raise other
            log_problem(other)

    def _note_replay(self, run_id: str) -> None:
        """So that every process of this driver knows: the next write of this batch under this name is another one."""
        assert self._last is not None
        self._decide_further(self._last._replace(run_id=run_id, transactions=()))

    # --- the decision ---

    def _decide(self, batch_id: int, run_id: str, results: Sequence[TaskResult]) -> None:
        decision = Decision(batch_id, run_id, _transactions(results), *_digest(results))
        producer = self._the_producer()
        with producer.transaction():
            send_results(producer, self._access, self._routing, results)
            self._send(decision)
        self._last = decision

    def _send(self, decision: Decision) -> None:
        topic, partition = self._names.decisions_of(self._query_id)
        self._the_producer().send(topic, decision.encode(), self._query_id.encode(), partition=partition).result()

    def _the_producer(self) -> ForwardingProducer:
        assert self._producer is not None, "a committer has taken over before it decides"
        return self._producer

    # --- what follows from it ---

    def _finish(self) -> None:
        assert self._last is not None
        for one in commit_all(self._access, self._last.transactions).aborted:
            self._write_anew(one)

    def _write_anew(self, transaction: TaskTransaction) -> None:
        """Some rows at a time, each time in one transaction with a decision that no longer names them.

        However many there are, none of these transactions takes long; and a driver that is killed here leaves to the
        next one what it has not written yet.
        """
        left = list(transaction.pieces)
        while left:
            piece = left.pop(0)
            producer = transaction.producer_id, transaction.producer_epoch
            try:
                for found in rows_in_log(self._access, piece, producer):
                    rest = left if found.rest is None else [found.rest, *left]
                    self._decide_further(self._with_left(transaction, rest), piece, found.rows)
            except LostRows as lost:
                if self._fails_on_loss:
                    raise
                log_problem(lost)
                self._decide_further(self._with_left(transaction, left))

    def _with_left(self, transaction: TaskTransaction, pieces: Sequence[Piece]) -> Decision:
        """The decision with no more than these pieces of a transaction."""
        assert self._last is not None
        others = [one for one in self._last.transactions if one.transactional_id != transaction.transactional_id]
        narrowed = [transaction._replace(pieces=tuple(pieces))] if pieces else []
        return self._last._replace(transactions=(*others, *narrowed))

    def _decide_further(
        self, decision: Decision, piece: Piece | None = None, rows: "pa.RecordBatch | None" = None
    ) -> None:
        """Replaces the last decision, in one transaction with rows that it no longer names."""
        producer = self._the_producer()
        with producer.transaction():
            if piece is not None and rows is not None:
                producer.send_arrow(piece.topic, rows, partition=piece.partition)
            self._send(decision)
        self._last = decision

    def _abort_leftovers(self) -> None:
        """Transactions of tasks that were killed, lost a race, or belong to a batch that was never decided.

        Not one of them is decided: decided ones are committed by now. One that cannot be aborted now times out.
        Brokers before 4.1 cannot look for a pattern (ListTransactions v2), so they are asked for all that are open.
        """
        prefix = self._names.task_prefix(self._query_id)
        with suppress(KafkaError):
            found = self._access.list_transactions(states=[TransactionState.ONGOING])
            if own := [one.transactional_id for one in found if one.transactional_id.startswith(prefix)]:
                self._access.fence_producers(own).raise_first()


def _digest(results: Sequence[TaskResult]) -> RowsDigest:
    return reduce(RowsDigest.plus, (result.digest for result in results), RowsDigest())


def _transactions(results: Sequence[TaskResult]) -> tuple[TaskTransaction, ...]:
    return tuple(result.transaction for result in results if result.transaction is not None)
