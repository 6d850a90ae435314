"""The transaction coordinator of one partition of `__transaction_state`.

Theory of operation. Every transactional id has one `Transaction`, which is its newest record in the log. A command
looks at it and decides on the next one. When an end is decided and committed, `markers` is called: it writes a marker
into every partition of the transaction, and then asks for `complete`. If that was not possible, because the commit took
too long or the coordinator has changed, it is called again: on loading, and by the look for timed-out transactions,
which comes every `transaction.abort.timed.out.transaction.cleanup.interval.ms`. So the markers of a decided end are
written at least once, and a partition takes them any number of times. Until they are written, what asks for a change of
the transaction is asked to come again (CONCURRENT_TRANSACTIONS), before anything else about it is looked at, as in
Kafka.

A decision that needs a new producer id takes it from `take_producer_id`; if there is none at the moment, the client is
asked to come again.

`_bumped` is not in the log (see `initialising`): it is soft, and an entry that belongs to no record is never used.
Everything else is `transactions`, and only `replay` changes it.
"""

from collections.abc import Callable, Iterable, Sequence

from ottla.base.ids import TopicPartition
from ottla.machines.coordinator_machine import (
    Answer,
    Broken,
    CoordinatorDecision,
    CoordinatorMachine,
    CoordinatorRecord,
    Timer,
    Waiter,
    each_unbroken,
)
from ottla.machines.transaction import ending
from ottla.machines.transaction.initialising import Bumped, Expected, bumped, expected_is_known, needs_new_id, rotated
from ottla.machines.transaction.listing import TransactionFilter
from ottla.machines.transaction.replies import DecidedEnd, ProducerReply, Verified
from ottla.machines.transaction.settings import EPOCH_BUMPS, TransactionSettings
from ottla.machines.transaction.states import AT_REST, PREPARED, TransactionState
from ottla.machines.transaction.transaction import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, Transaction
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import TransactionLogKey, TransactionLogValue

_ABORTING = "transactions that have timed out", None, None
_EXPIRING = "transactional ids that nobody uses", None, None

_Ids = Callable[[], int | None]


class TransactionCoordinator(CoordinatorMachine):
    """See the module."""

    has_soft_state = False

    def __init__(self, settings: TransactionSettings, take_producer_id: _Ids, markers: Waiter) -> None:
        self.transactions: dict[str, Transaction] = {}
        self._settings = settings
        self._take_producer_id = take_producer_id
        self._markers = markers
        self._bumped: dict[str, Bumped] = {}

    # The log

    def subject_of(self, key: Message) -> str | None:
        return key.transactional_id if isinstance(key, TransactionLogKey) else None

    def take_offline(self, subject: str) -> Sequence[Waiter]:
        self.transactions.pop(subject, None)
        return ()

    def replay(self, key: Message, value: Message | None) -> None:
        assert isinstance(key, TransactionLogKey)
        if value is None:
            self.transactions.pop(key.transactional_id, None)
            self._bumped.pop(key.transactional_id, None)
        else:
            assert isinstance(value, TransactionLogValue)
            self.transactions[key.transactional_id] = Transaction.of_record(value)

    def on_loaded(self, now_ms: int) -> CoordinatorDecision[None]:
        answers, broken = list[Answer](), list[Broken]()

        def tell(name: str, transaction: Transaction) -> None:
            if transaction.state in PREPARED:
                answers.append(self._decided(name, transaction))

        each_unbroken(self.transactions.items(), tell, broken)
        timers = [self._abort_timer(), self._expiration_timer()]
        return CoordinatorDecision(None, answers=answers, timers=timers, broken=broken)

    def _record(self, transactional_id: str, transaction: Transaction) -> CoordinatorRecord:
        version = self._settings.log_version
        return CoordinatorRecord(
            TransactionLogKey(transactional_id=transactional_id), transaction.record(version), version
        )

    def _decided(self, transactional_id: str, prepared: Transaction) -> Answer:
        return Answer(self._markers, DecidedEnd.of(transactional_id, prepared))

    # InitProducerId

    def init_producer_id(
        self, transactional_id: str, timeout_ms: int, expected: Expected | None, now_ms: int
    ) -> CoordinatorDecision[ProducerReply]:
        if not 0 < timeout_ms <= self._settings.max_timeout_ms:
            return _refused(ErrorCode.INVALID_TRANSACTION_TIMEOUT)
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            producer_id = self._take_producer_id()
            if producer_id is None:
                return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            transaction = Transaction(producer_id, NO_PRODUCER_EPOCH, timeout_ms)
        if transaction.state in PREPARED:
            return _refused(ErrorCode.CONCURRENT_TRANSACTIONS)
        last = self._bumped.get(transactional_id)
        if expected is not None and not expected_is_known(transaction, expected, last):
            return _refused(ErrorCode.PRODUCER_FENCED)
        if transaction.state is TransactionState.ONGOING:
            # The client asks again, and finds the transaction aborted and its epoch free.
            return self._abort(transactional_id, transaction, ProducerReply(ErrorCode.CONCURRENT_TRANSACTIONS), now_ms)
        return self._give_epoch(transactional_id, transaction, timeout_ms, expected, now_ms)

    def _give_epoch(
        self, transactional_id: str, transaction: Transaction, timeout_ms: int, expected: Expected | None, now_ms: int
    ) -> CoordinatorDecision[ProducerReply]:
        if needs_new_id(transaction, expected):
            producer_id = self._take_producer_id()
            if producer_id is None:
                return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            given: Bumped | ErrorCode = rotated(transaction, expected, producer_id)
        else:
            given = bumped(transaction, expected, self._bumped.get(transactional_id))
        if isinstance(given, ErrorCode):
            return _refused(given)
        self._bumped[transactional_id] = given
        after = transaction.with_epoch(given.producer_id, given.producer_epoch, timeout_ms, now_ms)
        return CoordinatorDecision(
            ProducerReply(ErrorCode.NONE, after.producer_id, after.producer_epoch),
            [self._record(transactional_id, after)],
        )

    # Partitions

    def add_partitions(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        partitions: Iterable[TopicPartition],
        client_version: int,
        now_ms: int,
    ) -> CoordinatorDecision[ErrorCode]:
        """The transaction is about to reach these partitions. They are in the log before anything is written there."""
        known = self.transactions.get(transactional_id)
        if known is not None and known.state in PREPARED:
            return CoordinatorDecision(ErrorCode.CONCURRENT_TRANSACTIONS)
        transaction, error = self._find(transactional_id, producer_id, producer_epoch)
        if transaction is None:
            return CoordinatorDecision(error)
        if transaction.state is TransactionState.ONGOING and transaction.partitions.issuperset(partitions):
            return CoordinatorDecision(ErrorCode.NONE)
        after = transaction.with_partitions(partitions, client_version, now_ms)
        return CoordinatorDecision(ErrorCode.NONE, [self._record(transactional_id, after)])

    def verify_partitions(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partitions: Iterable[TopicPartition]
    ) -> Verified:
        """Which of these partitions are not in the transaction yet (KIP-890, part 1)."""
        transaction, error = self._find(transactional_id, producer_id, producer_epoch)
        if transaction is None:
            return Verified(error)
        if transaction.state in PREPARED:
            return Verified(ErrorCode.CONCURRENT_TRANSACTIONS)
        return Verified(ErrorCode.NONE, frozenset(partitions) - transaction.partitions)

    def _find(
        self, transactional_id: str, producer_id: int, producer_epoch: int
    ) -> tuple[Transaction, ErrorCode] | tuple[None, ErrorCode]:
        """The transaction, if it is this producer's."""
        transaction = self.transactions.get(transactional_id)
        if transaction is None or transaction.producer_id != producer_id:
            return None, ErrorCode.INVALID_PRODUCER_ID_MAPPING
        if transaction.producer_epoch != producer_epoch:
            return None, ErrorCode.PRODUCER_FENCED
        return transaction, ErrorCode.NONE

    # The end

    def end(
        self,
        transactional_id: str,
        producer_id: int,
        producer_epoch: int,
        *,
        committed: bool,
        client_version: int,
        now_ms: int,
    ) -> CoordinatorDecision[ProducerReply]:
        transaction = self.transactions.get(transactional_id)
        if transaction is None:
            return _refused(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
        with_bump = client_version >= EPOCH_BUMPS
        answer = ending.answer_with_bump if with_bump else ending.answer_in_epoch
        reply = answer(transaction, producer_id, producer_epoch, committed=committed)
        if reply is not None:
            return CoordinatorDecision(reply)
        if not with_bump:
            after = ending.ended_in_epoch(transaction, now_ms, committed=committed)
        else:
            next_producer_id = self._next_producer_id(transaction)
            if next_producer_id is None:
                return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
            after = ending.ended_with_bump(transaction, next_producer_id, now_ms, committed=committed)
        completed = after.completed(now_ms)
        return self._prepared(
            transactional_id, after, ProducerReply(ErrorCode.NONE, completed.producer_id, completed.producer_epoch)
        )

    def _abort(
        self, transactional_id: str, transaction: Transaction, reply: ProducerReply, now_ms: int
    ) -> CoordinatorDecision[ProducerReply]:
        """By the coordinator itself: the producer is fenced."""
        if self._settings.transaction_version < EPOCH_BUMPS:
            return self._prepared(transactional_id, ending.fenced(transaction, now_ms), reply)
        next_producer_id = self._next_producer_id(transaction)
        if next_producer_id is None:
            return _refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        after = ending.ended_with_bump(transaction, next_producer_id, now_ms, committed=False)
        return self._prepared(transactional_id, after, reply)

    def _next_producer_id(self, transaction: Transaction) -> int | None:
        """For after the end: -1 if the epoch has room, None if a new id is needed and there is none."""
        return self._take_producer_id() if transaction.is_epoch_exhausted else NO_PRODUCER_ID

    def _prepared(
        self, transactional_id: str, prepared: Transaction, reply: ProducerReply
    ) -> CoordinatorDecision[ProducerReply]:
        record = self._record(transactional_id, prepared)
        return CoordinatorDecision(reply, [record], answers=[self._decided(transactional_id, prepared)])

    def complete(self, end: DecidedEnd, now_ms: int) -> CoordinatorDecision[None]:
        """Markers have been written. Said again, or of what another coordinator has completed, it means nothing."""
        if not self.awaits(end):
            return CoordinatorDecision(None)
        completed = self.transactions[end.transactional_id].completed(now_ms)
        return CoordinatorDecision(None, [self._record(end.transactional_id, completed)])

    def awaits(self, end: DecidedEnd) -> bool:
        """Whether this end is decided and not complete."""
        one = self.transactions.get(end.transactional_id)
        return one is not None and one.state in PREPARED and DecidedEnd.of(end.transactional_id, one) == end

    # Time

    def _abort_timer(self) -> Timer:
        return Timer(_ABORTING, self._settings.abort_interval_ms, TransactionCoordinator.abort_timed_out)

    def _expiration_timer(self) -> Timer:
        return Timer(_EXPIRING, self._settings.expiration_interval_ms, TransactionCoordinator.expire_ids)

    def abort_timed_out(self, now_ms: int) -> CoordinatorDecision[None]:
        """Aborts what has run for longer than it may, and tells of ends whose markers may have been forgotten."""
        records, answers, broken = list[CoordinatorRecord](), list[Answer](), list[Broken]()

        def look_at(name: str, transaction: Transaction) -> None:
            if transaction.state in PREPARED:
                answers.append(self._decided(name, transaction))
            elif transaction.has_timed_out(now_ms):
                aborted = self._abort(name, transaction, ProducerReply(), now_ms)
                records.extend(aborted.records)
                answers.extend(aborted.answers)

        each_unbroken(self.transactions.items(), look_at, broken)
        return CoordinatorDecision(None, records, answers, [self._abort_timer()], atomic=False, broken=broken)

    def expire_ids(self, now_ms: int) -> CoordinatorDecision[None]:
        """Forgets ids that have rested for `transactional.id.expiration.ms`."""
        unused_since_ms = now_ms - self._settings.id_expiration_ms
        records = [
            CoordinatorRecord(TransactionLogKey(transactional_id=name))
            for name, transaction in self.transactions.items()
            if transaction.state in AT_REST and transaction.last_update_ms <= unused_since_ms
        ]
        return CoordinatorDecision(None, records, timers=[self._expiration_timer()], atomic=False)

    # Asking

    def listed(self, asked: TransactionFilter, now_ms: int) -> list[tuple[str, Transaction]]:
        return [(name, one) for name, one in self.transactions.items() if asked.takes(one, now_ms)]


def _refused(error: ErrorCode) -> CoordinatorDecision[ProducerReply]:
    return CoordinatorDecision(ProducerReply(error))
