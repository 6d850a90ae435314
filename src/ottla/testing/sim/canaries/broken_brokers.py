"""Brokers that are broken in one way each: logs, producers, groups, transactions, replicas."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.base.ports import SyncFailed
from ottla.broker.coordination.loading import Loading
from ottla.broker.data import batch_checks
from ottla.broker.partitions.directory_assignments import DirectoryAssignments
from ottla.broker.partitions.moves import interrupted_moves, replica_copy
from ottla.broker.partitions.moves.replica_copy import ReplicaCopy
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.replicas import Replicas
from ottla.broker.replication.fetcher import Fetcher
from ottla.broker.replication.followed import FollowedPartition
from ottla.broker.replication.follower_session import Position
from ottla.broker.transactions import transactional_produce
from ottla.broker.transactions.transaction_verification import Verifications
from ottla.broker.transactions.transactional_produce import TransactionalBatches
from ottla.log import readable_log, recovery, segment
from ottla.log.directory import LogDirectory
from ottla.log.flush import Flush
from ottla.log.partition_log import PartitionLog
from ottla.log.producer_state import AppendOrigin, NotedBatch, ProducerState
from ottla.machines.group import offset_commands
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.partition.leader import IsrProposal, LeaderState
from ottla.records.header import BatchHeader
from ottla.testing.sim.canaries.switched import switched
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchResponse


@contextmanager
def skip_syncs() -> Iterator[None]:
    """Says that logs are flushed and never syncs them, where flush.messages=1 promises it."""
    with switched(Flush, "run", lambda self: None):
        yield


@contextmanager
def take_failed_syncs_for_full_disks() -> Iterator[None]:
    """Takes a sync that finds no space for a write that finds none: the next sync succeeds, and is believed."""

    def keep_errno(self: SyncFailed, reason: OSError) -> None:
        OSError.__init__(self, reason.errno, f"cannot sync: {reason}")

    with switched(SyncFailed, "__init__", keep_errno):
        yield


@contextmanager
def forget_sequences() -> Iterator[None]:
    """Takes every batch of an idempotent producer for a new one."""
    with switched(ProducerState, "check", lambda self, header, origin: (ErrorCode.NONE, None)):
        yield


@contextmanager
def forget_producers_at_start() -> Iterator[None]:
    """A node that starts knows none of the producers that wrote before."""
    with switched(recovery, "rebuild_producers", lambda *arguments: ProducerState()):
        yield


@contextmanager
def drop_commits() -> Iterator[None]:
    """Confirms a group's commit of offsets and forgets it."""
    commit = offset_commands.commit

    def confirm(*arguments: Any) -> Any:
        return commit(*arguments)[0], []

    with switched(offset_commands, "commit", confirm):
        yield


@contextmanager
def show_aborted() -> Iterator[None]:
    """Does not tell consumers which transactions were aborted."""
    with switched(readable_log, "aborted_transactions", lambda *arguments: []):
        yield


@contextmanager
def ack_before_replication() -> Iterator[None]:
    """A leader's high watermark does not wait for its followers."""

    def advance(self: LeaderState) -> bool:
        moved = self.local_end_offset > self.high_watermark
        self.high_watermark = max(self.high_watermark, self.local_end_offset)
        return moved

    with switched(LeaderState, "_advance", advance):
        yield


@contextmanager
def skip_truncation() -> Iterator[None]:
    """A follower does not tell the epoch of its last record, so its leader cannot say where the two logs part."""
    position = FollowedPartition.position

    def without_epoch(self: FollowedPartition) -> Position:
        return position(self)._replace(last_fetched_epoch=-1)

    with switched(FollowedPartition, "position", without_epoch):
        yield


@contextmanager
def store_lent_bytes() -> Iterator[None]:
    """A produce request that waits keeps views of the receive buffer, and its log takes whatever is there by then."""

    def keep_nothing(request: Any) -> None: ...

    with (
        switched(batch_checks, "keep_records", keep_nothing),
        switched(transactional_produce, "keep_records", keep_nothing),
        switched(segment, "is_sound", lambda *arguments: True),
    ):
        yield


@contextmanager
def move_what_was_cut() -> Iterator[None]:
    """A replica that moves to another directory keeps records there that it was told to cut."""

    def is_as_long(future: PartitionLog, current: PartitionLog) -> bool:
        return future.log_end_offset >= current.log_end_offset

    with (
        switched(ReplicaCopy, "must_be_cut", property(lambda self: False)),
        switched(replica_copy, "contradiction", lambda future, current: None),
        switched(interrupted_moves, "_is_the_newer", is_as_long),
    ):
        yield


@contextmanager
def checkpoint_over_a_cut() -> Iterator[None]:
    """A log is cut, and the recovery point on the disk stays where it was."""
    with switched(LogDirectory, "_before_truncation", lambda self, partition, offset: None):
        yield


@contextmanager
def roles_before_settings() -> Iterator[None]:
    """Of one change of the metadata, takes a smaller ISR up first and the raised min.insync.replicas after it."""
    apply, configure = Replicas._apply_delta, Replicas._on_settings

    def roles_first(self: Any, delta: MetadataDelta) -> None:
        self._on_settings = lambda delta: None
        apply(self, delta)
        del self._on_settings
        configure(self, delta)

    with switched(Replicas, "_apply_delta", roles_first):
        yield


@contextmanager
def end_fetchers() -> Iterator[None]:
    """A follower whose reply could not be handled never asks again over that connection: one in 300."""
    on_reply = Fetcher._on_reply
    replies = 0

    def take(self: Fetcher, reply: FetchResponse) -> None:
        nonlocal replies
        replies += 1
        if replies % 300:
            on_reply(self, reply)

    with switched(Fetcher, "_on_reply", take):
        yield


@contextmanager
def load_after_closing() -> Iterator[None]:
    """A coordinator that is closed while it loads, which takes five seconds here, continues and becomes active."""
    read_on = Loading.read_on

    def read_on_slowly(self: Loading, may_wait: bool = False) -> None:
        self._world.timers.after(5.0, lambda: read_on(self, may_wait))

    with switched(Loading, "cancel", lambda self: None), switched(Loading, "read_on", read_on_slowly):
        yield


@contextmanager
def overtake_assignments() -> Iterator[None]:
    """Tells the controller of a replica's directory while it has not answered about the one before."""
    tell = DirectoryAssignments._tell

    def tell_at_once(self: DirectoryAssignments) -> None:
        tell(self)
        self._is_telling = False

    with switched(DirectoryAssignments, "_tell", tell_at_once):
        yield


@contextmanager
def fetch_in_any_epoch() -> Iterator[None]:
    """A leader takes no notice of the leader epoch of those that fetch from it."""

    def check_leader(self: Partition, current_leader_epoch: int) -> ErrorCode:
        return ErrorCode.NONE if self.state is not None else ErrorCode.NOT_LEADER_OR_FOLLOWER

    with switched(Partition, "check_leader", check_leader):
        yield


@contextmanager
def grow_isr_early() -> Iterator[None]:
    """Takes a follower into the ISR that has not caught up."""

    def propose(self: LeaderState, replica: int) -> IsrProposal | None:
        if replica not in self.followers or self.proposal is not None or replica in self.isr:
            return None
        return self._propose((*self.isr, replica)) if self._is_eligible(replica) else None

    with switched(LeaderState, "propose_to_expand", propose):
        yield


@contextmanager
def admit_old_producers() -> Iterator[None]:
    """Takes batches of a producer whose epoch is over: its successor is not alone."""
    begin, check_state, check_batch = Verifications.begin, ProducerState.check, TransactionalBatches.check

    def begin_any(self: Verifications, *arguments: Any) -> Any:
        begun = begin(self, *arguments)
        return ErrorCode.NONE if begun is ErrorCode.INVALID_PRODUCER_EPOCH else begun

    def check_all_but_epochs(
        self: ProducerState, header: BatchHeader, origin: AppendOrigin
    ) -> tuple[ErrorCode, NotedBatch | None]:
        error, noted = check_state(self, header, origin)
        return (ErrorCode.NONE if error is ErrorCode.INVALID_PRODUCER_EPOCH else error), noted

    def check_newer(self: TransactionalBatches, partition: Partition, header: BatchHeader) -> ErrorCode:
        producer = partition.log.producers.get(header.producer_id)
        if producer is not None and header.producer_epoch < producer.epoch:
            return ErrorCode.NONE
        return check_batch(self, partition, header)

    with (
        switched(Verifications, "begin", begin_any),
        switched(ProducerState, "check", check_all_but_epochs),
        switched(TransactionalBatches, "check", check_newer),
    ):
        yield


@contextmanager
def verify_nothing() -> Iterator[None]:
    """Takes the first batch of a transaction without asking the coordinator whether there is such a transaction."""
    with (
        switched(Verifications, "begin", lambda self, *arguments: ErrorCode.NONE),
        switched(TransactionalBatches, "check", lambda self, *arguments: ErrorCode.NONE),
    ):
        yield
