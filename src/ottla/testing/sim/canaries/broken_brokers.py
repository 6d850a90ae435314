"""Brokers that are broken in one way each: logs, producers, groups, transactions, replicas."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.broker.partitions.partition import Partition
from ottla.broker.replication import followed
from ottla.log import readable_log, recovery
from ottla.log.producer_state import ProducerState
from ottla.machines.group import offset_commands
from ottla.machines.partition.leader import LeaderState
from ottla.testing.sim.canaries.switched import switched
from ottla.wire.errors import ErrorCode


@contextmanager
def ack_before_flush() -> Iterator[None]:
    """Acknowledges before the disk has the record, where flush.messages=1 promises it."""
    append = Partition.append

    def append_and_tell(self: Partition, *arguments: Any, **named: Any) -> Any:
        appended = append(self, *arguments, **named)
        if self.awaits_flush and self.state is not None and self.state.on_local_end(self.log.log_end_offset):
            self.log.advance_high_watermark(self.state.high_watermark)
        return appended

    with switched(Partition, "append", append_and_tell):
        yield


@contextmanager
def keep_torn_batches() -> Iterator[None]:
    """After a power cut, takes batches for whole whose checksum is wrong."""
    with switched(recovery, "checksum_matches", lambda *arguments: True):
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
    """A follower keeps what its leader does not have."""
    with switched(followed, "truncation_offset", lambda leader, own, end_offset: end_offset):
        yield
