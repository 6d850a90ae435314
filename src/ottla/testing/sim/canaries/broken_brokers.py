"""Brokers that are broken in one way each: logs, producers, groups, transactions, replicas."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.broker.replication.followed import FollowedPartition
from ottla.broker.replication.follower_session import Position
from ottla.log import readable_log, recovery
from ottla.log.flush import Flush
from ottla.log.producer_state import ProducerState
from ottla.machines.group import offset_commands
from ottla.machines.partition.leader import LeaderState
from ottla.testing.sim.canaries.switched import switched
from ottla.wire.errors import ErrorCode


@contextmanager
def skip_syncs() -> Iterator[None]:
    """Says that logs are flushed and never syncs them, where flush.messages=1 promises it."""
    with switched(Flush, "run", lambda self: None):
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
