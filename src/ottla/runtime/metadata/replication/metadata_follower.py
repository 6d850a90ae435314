"""A follower of the metadata log: it fetches, appends, and learns from every answer what is committed (KIP-595).

Theory of operation. One fetch is under way at a time; the leader holds it until there is something. A fetch from an
offset says that everything before it is on this replica's disk, so a voter flushes what it appended before it asks for
more. An answer has one of four things in it: records; where the two logs part, and then this one is cut there; the id
of a snapshot, because the leader has no such old records any more (KIP-630); or who leads instead.

Fetches are numbered. An answer to one that was overtaken, by an election or by another leader, changes nothing. After
any other the next fetch follows, whatever came of it: nobody else would ask for one within an epoch.
"""

import logging
from collections.abc import Callable
from typing import Any, Final, Protocol

from ottla.base.errors import OttlaError, ProtocolError, StorageError
from ottla.base.ports import Timers
from ottla.log.errors import CorruptFile
from ottla.machines.raft.events import NOBODY, EpochBegan, LeaderAnswered, LeaderLost
from ottla.machines.raft.machine import Raft, Role
from ottla.records.batch import complete_batches
from ottla.runtime.apart import apart, ask_surely, later
from ottla.runtime.channels import Failed, Then
from ottla.runtime.metadata.quorum.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.runtime.metadata.storage.snapshots import SnapshotId
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.runtime.rate_limited_log import TroubleLog
from ottla.wire.errors import ErrorCode

_log = logging.getLogger(__name__)
_LOST_AFTER: Final = 2
"""A leader that cannot be reached so many times in a row is taken for gone."""


_Send = Callable[[tuple[int, NodeAddress], Then, Failed], None]
"""Sends a question to the leader."""


class FollowedLog(Protocol):
    """The log as its follower changes it."""

    raft: Raft
    quorum: QuorumDriver
    on_ready: Callable[[], None] | None
    """Waits for the image to be that of the cluster; None when it was."""

    @property
    def is_receiving(self) -> bool:
        """A part of a snapshot is being written: of a fetch that was overtaken, or the follower would have waited."""

    def append_as_follower(self, data: bytes) -> None: ...
    def caught_up_to(self, high_watermark: int) -> None: ...
    def truncate(self, epoch: int, end_offset: int) -> None: ...

    def when_durable(self, then: Any) -> None:
        """Calls back when all that is in the log now is on the disk; of a replica without a vote, at once."""

    def receive_snapshot(
        self, snapshot: SnapshotId, position: int, data: bytes, size: int, then: Any, refused: Callable[[], None]
    ) -> None:
        """Keeps a part of a snapshot. `then` hears whether it is whole, and the log begins after it.

        `refused` is called instead where it is damaged: nothing has changed.
        """

    def fail(self, problem: Exception) -> None: ...


class MetadataFollower:
    """See the module. `follow` begins; it ends by itself when this replica no longer follows."""

    def __init__(self, log: FollowedLog, network: QuorumNetwork, timers: Timers) -> None:
        self._log = log
        self._network = network
        self._timers = timers
        self._troubles = TroubleLog(_log, timers.now_s)
        self._number = 0
        self._failures = 0
        self._is_looking = False
        self._is_stopped = False
        network.on_foreign = self._on_foreign

    def stop(self) -> None:
        self._is_stopped = True
        self._number += 1

    # Following

    def follow(self, leader_id: int, epoch: int) -> None:
        self._number += 1
        self._failures = 0
        self._continue_fetching(self._number)

    def _continue_fetching(self, number: int) -> None:
        if not apart(self._timers, self._fetch, number):
            self._again(number)

    def _fetch(self, number: int) -> None:
        if self._is_current(number):
            self._log.when_durable(lambda: self._ask(number, self._send, self._on_response))

    def _is_current(self, number: int) -> bool:
        return number == self._number and self._log.raft.role is Role.FOLLOWER and not self._is_stopped

    def _leader(self) -> tuple[int, NodeAddress] | None:
        raft = self._log.raft
        address = self._network.address_of(raft.leader_id, raft.voters)
        return (raft.leader_id, address) if address is not None else None

    def _ask(self, number: int, send: _Send, then: Callable[[int, Any], None]) -> None:
        """Asks the leader, if it is known. `then` hears the answer, with the number; a failure is a reason to fetch."""
        if not self._is_current(number):
            return
        leader = self._leader()
        if leader is None:
            self.find_leader()
            self._again(number)
            return
        ask_surely(
            self._timers,
            lambda *heard: send(leader, *heard),
            lambda response: then(number, response),
            lambda error: self._on_failed(number, error),
        )

    def _send(self, leader: tuple[int, NodeAddress], then: Then, failed: Failed) -> None:
        raft = self._log.raft
        self._network.fetch(leader, raft.epoch, raft.log_end, raft.high_watermark, then, failed)

    def _again(self, number: int) -> None:
        later(self._timers, self._network.config.retry_ms / 1000, lambda: self._continue_fetching(number))

    def _on_failed(self, number: int, error: ErrorCode) -> None:
        if not self._is_current(number):
            return
        self._failures += 1
        if error is ErrorCode.NETWORK_EXCEPTION and self._failures >= _LOST_AFTER:
            self._log.quorum.step(LeaderLost(self._log.raft.epoch))
            if not self._log.raft.is_voter:
                self.find_leader()
        if self._is_current(number):
            self._again(number)

    def _on_response(self, number: int, response: Any) -> None:
        if not self._is_current(number):
            return
        partition = self._partition_of(response)
        if partition is None or partition.error_code:
            self._on_refused(number, partition)
            return
        self._failures = 0
        epoch = self._log.raft.epoch
        if partition.snapshot_id.end_offset >= 0:
            snapshot = SnapshotId(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            self._log.quorum.step(LeaderAnswered(epoch, self._log.raft.high_watermark))
            self._fetch_snapshot(number, snapshot, 0)
            return
        diverges = partition.diverging_epoch.epoch >= 0
        try:
            if diverges:
                self._log.truncate(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
            elif partition.records:
                self._append(bytes(partition.records))
        except (OSError, AssertionError, CorruptFile) as problem:
            self._log.fail(problem)
            return
        except (OttlaError, ValueError) as problem:
            leader_id = self._log.raft.leader_id
            self._troubles.warning("append", "cannot append metadata from leader %s: %s", leader_id, problem)
            self._again(number)
            return
        if diverges:
            # What is left may have more that the leader has not: nothing of it is committed by the leader's watermark.
            self._log.quorum.step(LeaderAnswered(epoch, self._log.raft.high_watermark))
        else:
            self._log.quorum.step(LeaderAnswered(epoch, partition.high_watermark))
            self._log.caught_up_to(partition.high_watermark)
        self._continue_fetching(number)

    def _partition_of(self, response: Any) -> Any:
        if response.error_code or not response.responses or not response.responses[0].partitions:
            error = ErrorCode(response.error_code)
            self._troubles.warning("fetch", "the metadata leader refused a fetch: %s", error.name)
            return None
        self._network.learn(response.node_endpoints)
        return response.responses[0].partitions[0]

    def _append(self, data: bytes) -> None:
        """Whole batches, in order, and of no later epoch than the leader's own. The log refuses a corrupt one."""
        raft = self._log.raft
        offset, end = raft.log_end.offset, 0
        for position, header in complete_batches(data):
            if header.base_offset != offset or header.partition_leader_epoch > raft.epoch:
                raise ProtocolError(f"a batch at offset {header.base_offset}, of epoch {header.partition_leader_epoch}")
            offset, end = header.next_offset, position + header.size
        if end:
            self._log.append_as_follower(data[:end])

    def _on_refused(self, number: int, partition: Any) -> None:
        """Somebody else leads, or it has not heard of this epoch yet."""
        if partition is not None and partition.current_leader.leader_epoch >= self._log.raft.epoch:
            self._log.quorum.step(EpochBegan(partition.current_leader.leader_id, partition.current_leader.leader_epoch))
        if self._is_current(number):
            self._again(number)

    # Snapshots

    def _fetch_snapshot(self, number: int, snapshot: SnapshotId, position: int) -> None:
        def send(leader: tuple[int, NodeAddress], then: Then, failed: Failed) -> None:
            self._network.fetch_snapshot(leader, self._log.raft.epoch, snapshot, position, then, failed)

        self._ask(number, send, lambda number, response: self._on_part(number, snapshot, position, response))

    def _on_part(self, number: int, snapshot: SnapshotId, position: int, response: Any) -> None:
        if not self._is_current(number):
            return
        partition = (
            response.topics[0].partitions[0] if response.topics and not response.error_code else None
        )  # One that is gone meanwhile is asked for anew, by a fetch.
        is_busy = self._log.is_receiving
        if is_busy or partition is None or partition.error_code or partition.position != position:
            self._again(number)
            return
        self._failures = 0
        data = bytes(partition.unaligned_records or b"")
        self._log.quorum.step(LeaderAnswered(self._log.raft.epoch, self._log.raft.high_watermark))

        def kept(is_whole: bool) -> None:
            if is_whole:
                self._continue_fetching(number)
            else:
                self._fetch_snapshot(number, snapshot, position + len(data))

        self._log.receive_snapshot(snapshot, position, data, partition.size, kept, lambda: self._again(number))

    # Looking for the leader

    def find_leader(self) -> None:
        """Asks the next controller that is known, by a fetch as Kafka's replicas do. One question at a time.

        It may reach the leader, which counts what a voter says it has: so that is on the disk first.
        """
        log_end = self._log.raft.log_end

        def durable() -> None:
            if self._log.raft.log_end == log_end:  # Else what has come meanwhile may not be on the disk: later, then.
                self._ask_who_leads()

        self._log.when_durable(durable)

    def _ask_who_leads(self) -> None:
        if self._is_looking or self._is_stopped:
            return
        raft = self._log.raft
        known = self._network.next_known(raft.voters)
        if known is None:
            return
        self._is_looking = True

        def then(response: Any) -> None:
            self._is_looking = False
            partition = None if self._is_stopped else self._partition_of(response)
            if partition is None:
                return
            leader = partition.current_leader
            if leader.leader_id != NOBODY and leader.leader_epoch >= raft.epoch:
                if known[0] < 0 and not response.node_endpoints and not partition.error_code:
                    # Only the leader itself answers without an error. Another one may know who leads, and not where.
                    self._network.learn_address(leader.leader_id, known[1])
                self._log.quorum.step(EpochBegan(leader.leader_id, leader.leader_epoch))

        def failed(_error: ErrorCode) -> None:
            self._is_looking = False
            if raft.leader_id == NOBODY and not raft.is_voter and not self._is_stopped:
                later(self._timers, self._network.config.retry_ms / 1000, self.find_leader)

        ask_surely(self._timers, lambda *heard: self._send(known, *heard), then, failed)

    def _on_foreign(self) -> None:
        """A controller of another cluster has answered. A node that starts and knows only such will never be ready."""
        network = self._network
        if self._log.on_ready is not None and network.has_only_foreign(self._log.raft.voters):
            self._log.fail(StorageError(f"every controller that is known {network.refusals.of_another_cluster}"))
