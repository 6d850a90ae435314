"""Follows the partitions of one leader over one connection, with one request at a time, that waits there for records.

Theory of operation. A reply's partitions are dealt with one after the other (`followed`), and the next request leaves:
asking for the end of a follower's log tells the leader that all before is there, so what waits for it is answered.
A partition with an error, here or there, is left out of the requests for a while. So is one whose records have to be
on the disk first (`flush.messages`), or whose log was cut, until that is so. A leader that cannot be reached is asked
again after pauses that grow up to `replica.fetch.backoff.ms`; when the metadata name another one, its partitions leave.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.base.ports import Timers
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partition_events import PartitionEvents
from ottla.broker.replication.followed import FollowedPartition
from ottla.broker.replication.follower_session import SESSION_ERRORS, FollowerSession, Key
from ottla.broker.replication.leader_connections import LeaderConnections
from ottla.machines.partition.following import Pauses, Step, step_after
from ottla.runtime.apart import apart, ask_surely, later
from ottla.runtime.channels import Failed, Then, newest_version
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest, FetchResponse, ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_log = logging.getLogger(__name__)

_LATEST: Final = -1
_EARLIEST: Final = -2


class Fetcher:
    """The `number`th of those that follow `leader_id`. `is_asking`: a request is under way."""

    def __init__(
        self,
        partitions: "Partitions",
        timers: Timers,
        events: PartitionEvents,
        leaders: LeaderConnections,
        leader_id: int,
        number: int,
    ) -> None:
        self.leader_id = leader_id
        self.number = number
        self.followed: dict[Key, FollowedPartition] = {}
        self._partitions = partitions
        self._timers = timers
        self._events = events
        self._leaders = leaders
        self._session = FollowerSession()
        self._pauses = Pauses(self._integer("replica.fetch.backoff.ms"))
        self.is_asking = False
        self._is_due = False
        self._is_stopped = False

    def _integer(self, setting: str) -> int:
        return self._partitions.node_settings.effective.integer(setting)

    # What is followed

    def follow(self, partition: Partition) -> None:
        followed = FollowedPartition(
            self._partitions, self._events, partition, self._integer("replica.fetch.backoff.ms")
        )
        self.followed[followed.key] = followed
        self._fetch_again(followed)

    def leave(self, key: Key) -> None:
        if self.followed.pop(key, None) is not None:
            self._session.leave_out(key)

    def stop(self) -> None:
        """Nothing that still comes is taken."""
        self._is_stopped = True
        self.followed.clear()
        self._leaders.drop(self.leader_id, self.number)

    def on_flushed(self, partition: Partition) -> None:
        """What was appended is on the disk, and may be reported."""
        followed = self.followed.get((partition.topic_id, partition.name.partition))
        if followed is not None and followed.partition is partition:
            self._fetch_again(followed)

    def _is_followed(self, followed: FollowedPartition) -> bool:
        return self.followed.get(followed.key) is followed

    def _fetch_again(self, followed: FollowedPartition) -> None:
        if not self._is_followed(followed):
            return
        if followed.partition.must_be_flushed:
            self._session.leave_out(followed.key)
        else:
            self._session.want(followed.key, followed.position())
            self._ask_in(0)

    def _hold(self, followed: FollowedPartition) -> None:
        """Leaves a partition alone for a while."""
        if self._is_followed(followed):
            self._session.leave_out(followed.key)
            pause_s = followed.pauses.next_ms() / 1000
            later(self._timers, pause_s, lambda: self._fetch_again(followed))

    # Asking

    def _ask_in(self, delay_s: float) -> None:
        if not self._is_due and not self.is_asking:
            self._is_due = True
            later(self._timers, delay_s, self._on_due)

    def _on_due(self) -> None:
        self._is_due = False
        self._ask()

    def _ask(self) -> None:
        if self.is_asking or self._is_stopped or not self._session.wanted:
            return
        self.is_asking = True
        ask_surely(self._timers, self._send, self._on_reply, self._on_no_reply)

    def _send(self, then: Then, failed: Failed) -> None:
        identity = self._partitions.identity
        request = FetchRequest(
            replica_state=FetchRequest.ReplicaState(replica_id=identity.node_id, replica_epoch=identity.broker_epoch),
            max_wait_ms=self._integer("replica.fetch.wait.max.ms"),
            min_bytes=self._integer("replica.fetch.min.bytes"),
            max_bytes=self._integer("replica.fetch.response.max.bytes"),
        )
        self._session.fill(request, self._integer("replica.fetch.max.bytes"))
        self._leaders.ask(
            self.leader_id,
            self.number,
            request,
            newest_version(request),
            then,
            failed,
            self._integer("replica.socket.timeout.ms"),
        )

    def _on_no_reply(self, error: ErrorCode) -> None:
        _log.debug("node %s did not answer a follower's fetch: %s", self.leader_id, error.name)
        self.is_asking = False
        self._session.on_lost()
        self._ask_in(self._pauses.next_ms() / 1000)

    def _on_reply(self, reply: FetchResponse) -> None:
        self.is_asking = False
        if self._is_stopped:
            return
        timers = self._timers
        error = ErrorCode(reply.error_code)
        self._session.on_reply(error, reply.session_id)
        if error:
            pause_ms = 0 if error in SESSION_ERRORS else self._pauses.next_ms()
            self._ask_in(pause_ms / 1000)
            return
        self._pauses.on_success()
        for topic in reply.responses:
            for data in topic.partitions:
                followed = self.followed.get((topic.topic_id, data.partition_index))
                if followed is not None and not apart(timers, self._take_if_asked, followed, data):
                    self._hold(followed)
        self._ask()

    def _take_if_asked(self, followed: FollowedPartition, data: FetchResponse.PartitionData) -> None:
        if self._is_about_now(followed):
            self._take(followed, data)

    def _is_about_now(self, followed: FollowedPartition) -> bool:
        """Whether it was asked for what is wanted: a partition may have left, and come back in another epoch."""
        asked = self._session.asked(followed.key)
        return asked is not None and asked[:3] == followed.position()[:3] and followed.key in self._session.wanted

    def _take(self, followed: FollowedPartition, data: FetchResponse.PartitionData) -> None:
        error = ErrorCode(data.error_code)
        step = step_after(error, is_diverging=data.diverging_epoch.end_offset >= 0)
        if step is Step.FIND_START:
            self._find_start(followed)
            return
        if step is Step.WAIT:
            _log.debug("%s: node %s answers %s", followed.partition.name, self.leader_id, error.name)
        can_continue = step is not Step.WAIT and (
            followed.take(data) if step is Step.TAKE else followed.truncate(data.diverging_epoch)
        )
        if can_continue:
            followed.pauses.on_success()
            wait_s = self._count_against_quota(followed, data)
            if wait_s:
                self._session.leave_out(followed.key)
                later(self._timers, wait_s, lambda: self._fetch_again(followed))
            else:
                self._continue_at_once(followed)
        else:
            self._hold(followed)

    def _count_against_quota(self, followed: FollowedPartition, data: FetchResponse.PartitionData) -> float:
        """How long a replica that is throttled and not caught up has to wait now (KIP-73)."""
        size, partition = len(data.records or b""), followed.partition
        quota = self._partitions.replication_quotas.follower
        if not size or not quota.is_throttled(partition.name):
            return 0.0
        quota.record(size)
        return quota.wait_s if partition.log.log_end_offset < data.high_watermark else 0.0

    def _continue_at_once(self, followed: FollowedPartition) -> None:
        """In the request that follows the reply that is being dealt with."""
        self.is_asking = True
        try:
            self._fetch_again(followed)
        finally:
            self.is_asking = False

    # A position that is not in the leader's log

    def _find_start(self, followed: FollowedPartition) -> None:
        self._session.leave_out(followed.key)
        self._ask_offset(followed, _LATEST, lambda end: self._find_first(followed, end))

    def _find_first(self, followed: FollowedPartition, leader_end_offset: int) -> None:
        def on_first(leader_start_offset: int) -> None:
            if followed.start_within(leader_start_offset, leader_end_offset):
                followed.pauses.on_success()
                self._fetch_again(followed)
            else:
                self._hold(followed)

        self._ask_offset(followed, _EARLIEST, on_first)

    def _ask_offset(self, followed: FollowedPartition, timestamp: int, then: Callable[[int], None]) -> None:
        def on_reply(reply: ListOffsetsResponse) -> None:
            answer = reply.topics[0].partitions[0]
            if not self._is_followed(followed):
                return
            if answer.error_code:
                self._hold(followed)
            else:
                then(answer.offset)

        ask_surely(
            self._timers,
            lambda *heard: self._send_offset_question(followed, timestamp, *heard),
            on_reply,
            lambda _: self._hold(followed),
        )

    def _send_offset_question(self, followed: FollowedPartition, timestamp: int, then: Then, failed: Failed) -> None:
        topic, index = followed.partition.name
        asked = ListOffsetsRequest.ListOffsetsPartition(
            partition_index=index, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._partitions.identity.node_id,
            topics=[ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[asked])],
        )
        self._leaders.ask(
            self.leader_id,
            self.number,
            request,
            newest_version(request),
            then,
            failed,
            self._integer("replica.socket.timeout.ms"),
        )
