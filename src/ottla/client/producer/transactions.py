"""The state of a producer's transactions (KIP-98; the newer protocol of KIP-890).

Theory of operation. States and what leads from one to the next:

    UNINITIALIZED    init                              -> INITIALIZING -> READY
    READY            begin                             -> IN_TRANSACTION
    IN_TRANSACTION   commit                            -> COMMITTING -> READY
    IN_TRANSACTION   abort                             -> ABORTING -> READY
    any of a transaction, when something in it failed  -> ABORTABLE_ERROR, which only abort leads out of
    any, when this producer cannot continue               -> FATAL_ERROR, which nothing leads out of

In the older protocol each partition is announced to the coordinator before the first record goes there. In the newer
one (feature `transaction.version` 2) the partition's leader tells it, and every transaction has an epoch of its own,
which the coordinator gives when the one before it ends. Which of them it is, is looked up when a transaction begins.

The end of a transaction of the older protocol leaves the epoch as it is, and its markers may still be on their way when
the next one begins. Were that of the newer protocol, of which no coordinator is asked before the first record goes out,
they would end it, too. So a producer gets a new epoch before it changes to the newer protocol, as Kafka's does.

A transaction ends when all its records are settled: a record that came after the end would belong to the next one.
"""

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import (
    ClientClosed,
    InvalidState,
    KafkaError,
    RequestTimedOut,
    TransactionAbortable,
    TransactionAborted,
)
from ottla.client.producer.accumulator import Accumulator
from ottla.client.producer.partition_queue import NOBODY, Identity, PartitionQueue
from ottla.client.producer.produce_request import LAST_WITH_EXPLICIT_PARTITIONS
from ottla.client.producer.sender import Sender
from ottla.client.producer.sequences import Sequences
from ottla.client.producer.transaction_requests import GroupMember, TransactionRequests
from ottla.client.promise import Promise, all_settled, spawn
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.wire.errors import ErrorCode

_FEATURE = "transaction.version"
_V2 = 2


class TransactionState(Enum):
    UNINITIALIZED = "not initialized"
    INITIALIZING = "being initialized"
    READY = "between transactions"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    ABORTABLE_ERROR = "in a transaction that has to be aborted"
    FATAL_ERROR = "at its end"


class TransactionIdentity(NamedTuple):
    """What an EndTxn names. `is_v2`: the transaction is one of the newer protocol, and so must be its end."""

    producer_id: int
    producer_epoch: int
    is_v2: bool


class Transactions:
    """Of one producer. Nothing here has a limit of time; the caller who waits has."""

    def __init__(
        self,
        cluster: Cluster,
        requests: TransactionRequests,
        accumulator: Accumulator,
        sender: Sender,
        sequences: Sequences,
    ) -> None:
        self.state = TransactionState.UNINITIALIZED
        self.error: KafkaError | None = None
        """What made the transaction or the producer fail."""
        self._cluster = cluster
        self._requests = requests
        self._accumulator = accumulator
        self._sender = sender
        self._sequences = sequences
        self._is_v2 = False
        self._is_epoch_new = False
        """No transaction of the older protocol has ended in it."""
        self._serves_v2 = False
        self._features_epoch = -1
        self._has_begun = False
        """The coordinator knows of this transaction, or will by the first record."""
        self._needs_epoch = False
        self._unadded: dict[PartitionQueue, None] = {}
        self._adding: Promise[None] | None = None
        self._initializing: Promise[None] | None = None
        self._ending: tuple[bool, Promise[None]] | None = None
        self._offsets_under_way: dict[Promise[None], None] = {}
        sender.may_write = self.may_write
        sender.on_failed = self.on_failed
        sender.on_gap = self.on_gap
        sender.newest_version = lambda: None if self._is_v2 else LAST_WITH_EXPLICIT_PARTITIONS

    # --- for callers ---

    def init(self) -> Promise[None]:
        """Gets an id and an epoch, which fences off every older producer of this name and ends what it left open."""
        if self._initializing is None or self._initializing.error is not None:
            self._require(TransactionState.UNINITIALIZED)
            self.state = TransactionState.INITIALIZING
            self._initializing = spawn(self._init())
        return self._initializing

    def begin(self) -> None:
        self._require(TransactionState.READY)
        self._is_v2 = self._is_epoch_new and self._has_v2()
        self.state = TransactionState.IN_TRANSACTION

    def commit(self) -> Promise[None]:
        """Called again while the end is on its way, it promises the same."""
        if self._ending is not None and self._ending[0]:
            return self._ending[1]
        if self.state is TransactionState.ABORTABLE_ERROR:
            return Promise.rejected(self._failure())
        self._require(TransactionState.IN_TRANSACTION)
        self.state = TransactionState.COMMITTING
        return self._end(commits=True)

    def abort(self) -> Promise[None]:
        if self._ending is not None and not self._ending[0]:
            return self._ending[1]
        self._require(TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR)
        self.state = TransactionState.ABORTING
        self._sender.give_up_unsent(TransactionAborted())
        return self._end(commits=False)

    def end(self) -> Promise[None] | None:
        """The producer is being closed: aborts what is open, or continues with what ends; None if there is nothing."""
        if self._ending is not None:
            return self._ending[1]
        if self.state in (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR):
            return self.abort()
        return None

    def left_open(self) -> ClientClosed | None:
        """What there is to say if the producer is closed now; None if no transaction is open."""
        name = f"the producer {self._requests.transactional_id!r}"
        if self._ending is not None and self._ending[0]:
            return ClientClosed(
                f"{name} is closed while it commits: the transaction may be committed, or aborted later"
            )
        if self._ending is not None or self.has_uncommitted:
            return ClientClosed(
                f"{name} is closed in a transaction, which the coordinator aborts when its time is over"
            )
        return None

    @property
    def has_uncommitted(self) -> bool:
        """Whether a transaction with something in it waits to be ended by the application."""
        is_open = self.state in (TransactionState.IN_TRANSACTION, TransactionState.ABORTABLE_ERROR)
        return is_open and (self._has_begun or bool(self._unadded) or self._adding is not None)

    def send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMember) -> Promise[None]:
        """Commits what was consumed with the transaction, whose end waits for it: whoever called may not."""
        self.check_may_send()
        sending = spawn(self._send_offsets(offsets, group))
        self._offsets_under_way[sending] = None
        sending.on_done(lambda _: self._offsets_under_way.pop(sending))
        return sending

    def too_late(self, limit_s: float) -> RequestTimedOut:
        """What a call raises that waited for so long."""
        problem = self._requests.last_problem
        why = "" if problem is None else f"; the last answer was: {problem}"
        return RequestTimedOut(f"the transaction's coordinator took longer than {limit_s} s{why}")

    def identity(self) -> TransactionIdentity:
        return TransactionIdentity(*self._sequences.identity, self._is_v2)

    def check_may_send(self) -> None:
        """Raises if no record can be sent now."""
        if self.state is TransactionState.ABORTABLE_ERROR:
            raise TransactionAbortable(f"The transaction has failed and must be aborted: {self.error}") from self.error
        self._require(TransactionState.IN_TRANSACTION)

    def _require(self, *states: TransactionState) -> None:
        if self.state is TransactionState.FATAL_ERROR:
            raise self._failure()
        if self.state not in states:
            wanted = " or ".join(state.value for state in states)
            raise InvalidState(f"the producer is {self.state.value}, and has to be {wanted}")

    # --- for the sender ---

    def add(self, queue: PartitionQueue) -> None:
        """A record is going to be written to a partition."""
        if queue.is_in_transaction:
            return
        if self._is_v2:
            queue.is_in_transaction = self._has_begun = True
            return
        self._unadded[queue] = None
        if self._adding is None:
            self._adding = self._cluster.world.start(self._add_partitions())

    def may_write(self, queue: PartitionQueue) -> bool:
        return queue.is_in_transaction and self.state is not TransactionState.FATAL_ERROR

    def on_failed(self, error: KafkaError) -> None:
        """A batch was given up.

        A leader that knows of no such transaction may have had the marker of the one before a moment ago (KIP-890).
        Only the coordinator's word of that is final.
        """
        if error.code == ErrorCode.INVALID_TXN_STATE:
            error = TransactionAbortable(f"A partition's leader did not know of the transaction: {error}")
        if error.fatal:
            self.become_fatal(error)
        elif self.state in (TransactionState.IN_TRANSACTION, TransactionState.COMMITTING):
            self._needs_epoch = True
            self._become_abortable(error)

    def on_gap(self) -> None:
        """Records were given up of which nobody knows whether they are written."""
        self._needs_epoch = True
        if self.state in (TransactionState.IN_TRANSACTION, TransactionState.COMMITTING):
            self._become_abortable(TransactionAbortable("Some records were sent and never acknowledged"))

    def become_fatal(self, error: KafkaError) -> None:
        if self.state is TransactionState.FATAL_ERROR:
            return
        self.state = TransactionState.FATAL_ERROR
        self.error = error
        self._sender.give_up(error)

    # --- the work ---

    async def _init(self) -> None:
        try:
            await self._identify(NOBODY)
        except KafkaError as error:
            if error.fatal:
                self.become_fatal(error)
            else:
                self.state = TransactionState.UNINITIALIZED
            raise
        self.state = TransactionState.READY

    async def _identify(self, before: Identity) -> None:
        identity = await self._requests.init(before)
        self._begin_anew(identity)

    def _begin_anew(self, identity: Identity) -> None:
        if identity != self._sequences.identity:
            self._sequences.forget_all(self._accumulator.all_queues())
            self._sequences.become(identity)
        self._is_epoch_new = True
        self._needs_epoch = False

    async def _add_partitions(self) -> None:
        try:
            while self._unadded and self.state is not TransactionState.FATAL_ERROR:
                queues, self._unadded = self._unadded, {}
                partitions = [queue.topic_partition for queue in queues]
                await self._requests.add_partitions(self._sequences.identity, partitions)
                self._has_begun = True
                for queue in queues:
                    queue.is_in_transaction = True
                    if queue.has_complete:
                        self._accumulator.make_ready(queue)
                self._sender.run()
        except KafkaError as error:
            self._on_refused(error)
        finally:
            self._adding = None

    async def _send_offsets(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMember) -> None:
        identity = self._sequences.identity
        try:
            if not self._is_v2:
                await self._requests.add_offsets(identity, group.group_id, self._is_given_up)
            self._has_begun = True
            await self._requests.commit_offsets(identity, offsets, group, self._is_given_up, is_v2=self._is_v2)
        except TransactionAborted:
            raise
        except KafkaError as error:
            self._on_refused(error)
            raise

    def _is_given_up(self) -> bool:
        return self.state in (TransactionState.ABORTING, TransactionState.FATAL_ERROR)

    def _end(self, *, commits: bool) -> Promise[None]:
        ending = spawn(self._end_when_settled(commits=commits))
        self._ending = None if ending.is_done else (commits, ending)
        return ending

    async def _end_when_settled(self, *, commits: bool) -> None:
        try:
            await self._settle_all()
            if commits and self.state is not TransactionState.COMMITTING:
                raise self._failure()
            if self._has_begun:
                identity = await self._requests.end(self._sequences.identity, commits=commits, is_v2=self._is_v2)
                self._is_epoch_new = False
                if self._is_v2:
                    self._begin_anew(identity)
            if self._needs_epoch:
                await self._identify(self._sequences.identity)
            elif not self._is_epoch_new and self._has_v2():
                await self._prepare_v2()
        except KafkaError as error:
            self._on_refused(error)
            raise
        finally:
            self._ending = None
        if self.state is not TransactionState.FATAL_ERROR:
            self._become_ready()

    async def _prepare_v2(self) -> None:
        """A new epoch, or none: the transaction before it has ended, whatever is answered here."""
        try:
            await self._identify(self._sequences.identity)
        except KafkaError as error:
            if error.fatal:
                self.become_fatal(error)

    async def _settle_all(self) -> None:
        """Until every record and offset of the transaction is written or given up."""
        self._accumulator.complete_all()
        self._sender.run()
        await self._accumulator.all_done()
        if self._adding is not None:
            await self._adding
        await all_settled(self._offsets_under_way)

    def _become_ready(self) -> None:
        self.state = TransactionState.READY
        self.error = None
        self._has_begun = self._needs_epoch = False
        self._unadded.clear()
        for queue in self._accumulator.all_queues():
            queue.is_in_transaction = False

    def _on_refused(self, error: KafkaError) -> None:
        """A coordinator refused something for good."""
        if error.fatal:
            self.become_fatal(error)
        elif self.state is not TransactionState.FATAL_ERROR:
            self._needs_epoch = self._needs_epoch or error.code == ErrorCode.UNKNOWN_PRODUCER_ID
            self._become_abortable(error)

    def _become_abortable(self, error: KafkaError) -> None:
        """What was not sent yet fails at once: else a caller would wait `delivery.timeout.ms` for the bad news."""
        if self.state is not TransactionState.ABORTABLE_ERROR:
            self.state = TransactionState.ABORTABLE_ERROR
            self.error = error
            self._sender.give_up_unsent(error)

    def _failure(self) -> KafkaError:
        assert self.error is not None, "a failure has a reason"
        return self.error.with_traceback(None)  # else it grows every time that it is raised

    def _has_v2(self) -> bool:
        """By the newest features that a broker has reported."""
        known = [versions for node in self._cluster.view.brokers if (versions := self._cluster.known_versions(node))]
        newest = max(known, key=lambda versions: versions.finalized_features_epoch, default=None)
        if newest is not None and newest.finalized_features_epoch >= self._features_epoch:
            self._features_epoch = newest.finalized_features_epoch
            self._serves_v2 = newest.finalized_features.get(_FEATURE, 0) >= _V2
        return self._serves_v2
