"""What the leader of the metadata log gives to the replicas that fetch from it (KIP-595, KIP-630, KIP-1166).

A fetch is checked against the log before it counts: an offset that this log does not have, or has in another epoch, is
answered with where the two part. A fetch for which there is nothing waits, until something is appended, until the
replica can be given a higher high watermark than it knows, until its time is over, or until somebody else leads.
"""

from __future__ import annotations  # messages are made when they are first named

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

from ottla.base.ports import Clock, Timer, Timers, Workers
from ottla.machines.raft.events import UNCHECKED, Fetched
from ottla.machines.raft.machine import Raft
from ottla.machines.raft.voters import ReplicaKey
from ottla.runtime.attribution import Attributed, current, work_for
from ottla.runtime.channels import Then
from ottla.runtime.metadata.quorum.quorum_driver import QuorumDriver
from ottla.runtime.metadata.quorum.quorum_network import QuorumNetwork
from ottla.runtime.metadata.storage.snapshots import SnapshotId
from ottla.runtime.metadata.storage.store import PARTITION, TOPIC_ID, MetadataStore
from ottla.wire import messages
from ottla.wire.errors import ErrorCode

_FIRST_WITH_TOPIC_IDS = 13
_FIRST_WITH_REPLICA_STATE = 15
_FIRST_WITH_ENDPOINTS = 16


class LedLog(Protocol):
    raft: Raft
    quorum: QuorumDriver

    @property
    def readable_offset(self) -> int:
        """What is before it may be given to replicas."""


class _ParkedFetch:
    """A fetch for which there is nothing yet."""

    __slots__ = ("known_high_watermark", "offset", "timer", "wake", "work")

    def __init__(self, offset: int, known_high_watermark: int, wake: Callable[[], None]) -> None:
        self.offset = offset
        self.known_high_watermark = known_high_watermark
        self.wake = wake
        self.timer: Timer | None = None
        self.work: Attributed | None = current()


class _FetchRequest(NamedTuple):
    request: messages.FetchRequest
    version: int
    partition: messages.FetchRequest.FetchPartition
    replica: ReplicaKey
    listener: str


class MetadataLeader:
    """See the module. It answers on replicas that do not lead, too: with who does."""

    def __init__(
        self,
        log: LedLog,
        store: MetadataStore,
        network: QuorumNetwork,
        *,
        timers: Timers,
        clock: Clock,
        workers: Workers,
    ) -> None:
        self._log = log
        self._store = store
        self._network = network
        self._timers = timers
        self._clock = clock
        self._workers = workers
        self._waiting: dict[_ParkedFetch, None] = {}

    # Fetches

    def fetch(self, request: messages.FetchRequest, version: int, then: Then, listener: str = "") -> None:
        if request.cluster_id is not None and request.cluster_id != self._network.cluster_id:
            then(messages.FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        partition = _metadata_partition(request, version)
        if partition is None:
            then(messages.FetchResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        replica_id = request.replica_state.replica_id if version >= _FIRST_WITH_REPLICA_STATE else request.replica_id
        replica = ReplicaKey(replica_id, partition.replica_directory_id)
        self._fetch(_FetchRequest(request, version, partition, replica, listener), then)

    def _fetch(self, asked: _FetchRequest, then: Then) -> None:
        error = self._error_of(asked.partition.current_leader_epoch)
        if error is not ErrorCode.NONE:
            then(self._response(asked, error))
            return
        offset = asked.partition.fetch_offset
        answer = self._parting(asked)
        checked = UNCHECKED if answer is not None else offset
        self._log.quorum.step(Fetched(asked.replica, checked, self._clock.now_ms()))
        if answer is not None:
            then(answer)
            return
        known, wait_ms = asked.partition.high_watermark, asked.request.max_wait_ms
        has_more = self._log.readable_offset > offset or self._log.raft.high_watermark > known
        if has_more or wait_ms <= 0:
            then(self._response(asked, records=self._read(asked)))
            return
        waiting = _ParkedFetch(offset, known, lambda: self._answer(asked, then))
        self._waiting[waiting] = None
        waiting.timer = self._timers.after(wait_ms / 1000, lambda: self._wake(waiting))

    def _error_of(self, epoch: int) -> ErrorCode:
        """Why a request to the leader is refused."""
        raft = self._log.raft
        if epoch < raft.epoch:
            return ErrorCode.FENCED_LEADER_EPOCH
        if epoch > raft.epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        return ErrorCode.NONE if raft.is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER

    def _parting(self, asked: _FetchRequest) -> messages.FetchResponse | None:
        """The answer to a replica that has another log than this one, or nothing that this one still has."""
        log, offset, epoch = self._store.log, asked.partition.fetch_offset, asked.partition.last_fetched_epoch
        if log.log_start_offset == 0 and offset == 0 and epoch == 0:
            return None
        snapshots = self._store.snapshots
        if snapshots and self._is_before(snapshots[0], offset, epoch):
            response = self._response(asked)
            newest = response.responses[0].partitions[0].snapshot_id
            newest.end_offset, newest.epoch = snapshots[-1]
            return response
        end_epoch, end_offset = self._store.end_of_epoch(epoch)
        if end_epoch == epoch and offset <= end_offset:
            return None
        response = self._response(asked)
        diverging = response.responses[0].partitions[0].diverging_epoch
        diverging.epoch, diverging.end_offset = end_epoch, end_offset
        return response

    def _is_before(self, oldest: SnapshotId, offset: int, epoch: int) -> bool:
        start = self._store.log.log_start_offset
        is_other = offset == start == oldest.end_offset and epoch != oldest.epoch
        return offset < start or is_other or epoch < oldest.epoch

    def _read(self, asked: _FetchRequest) -> bytes:
        offset, end_offset = asked.partition.fetch_offset, self._log.readable_offset
        return self._store.log.read(offset, asked.request.max_bytes, end_offset, min_one_batch=True).read()

    def _answer(self, asked: _FetchRequest, then: Then) -> None:
        error = self._error_of(asked.partition.current_leader_epoch)
        then(self._response(asked, error, b"" if error else self._read(asked)))

    def _response(
        self, asked: _FetchRequest, error: ErrorCode = ErrorCode.NONE, records: bytes | None = b""
    ) -> messages.FetchResponse:
        raft = self._log.raft
        leader_id, address = self._network.leader_for(raft, asked.listener)
        partition = messages.FetchResponse.PartitionData(
            partition_index=0,
            error_code=error,
            high_watermark=raft.high_watermark,
            log_start_offset=self._store.log.log_start_offset,
            current_leader=messages.FetchResponse.LeaderIdAndEpoch(leader_id=leader_id, leader_epoch=raft.epoch),
            records=records,
        )
        topic = messages.FetchResponse.FetchableTopicResponse(partitions=[partition])
        if asked.version >= _FIRST_WITH_TOPIC_IDS:
            topic.topic_id = TOPIC_ID
        else:
            topic.topic = PARTITION.topic
        response = messages.FetchResponse(responses=[topic])
        if asked.version >= _FIRST_WITH_ENDPOINTS and address is not None:
            make = messages.FetchResponse.NodeEndpoint
            response.node_endpoints = [make(node_id=leader_id, host=address.host, port=address.port)]
        return response

    # What ends the waiting

    def on_appended(self) -> None:
        end_offset = self._log.readable_offset
        for waiting in [one for one in self._waiting if one.offset < end_offset]:
            self._wake(waiting)

    def on_committed(self) -> None:
        high_watermark = self._log.raft.high_watermark
        for waiting in [one for one in self._waiting if one.known_high_watermark < high_watermark]:
            self._wake(waiting)

    def on_stopped(self) -> None:
        """This replica no longer leads: a replica that waits gets who does, if that is known."""
        for waiting in list(self._waiting):
            self._wake(waiting)

    def _wake(self, waiting: _ParkedFetch) -> None:
        if waiting in self._waiting:
            del self._waiting[waiting]
            if waiting.timer is not None:
                waiting.timer.cancel()
            work_for(waiting.work, waiting.wake)

    # Snapshots

    def fetch_snapshot(
        self, request: messages.FetchSnapshotRequest, version: int, then: Then, listener: str = ""
    ) -> None:
        if request.cluster_id is not None and request.cluster_id != self._network.cluster_id:
            then(messages.FetchSnapshotResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
            return
        topics = request.topics
        if len(topics) != 1 or topics[0].name != PARTITION.topic or len(topics[0].partitions) != 1:
            then(messages.FetchSnapshotResponse(error_code=ErrorCode.INVALID_REQUEST))
            return
        asked = topics[0].partitions[0]
        snapshot = SnapshotId(asked.snapshot_id.end_offset, asked.snapshot_id.epoch)
        error = self._error_of(asked.current_leader_epoch)
        if error is ErrorCode.NONE and snapshot not in self._store.snapshots:
            error = ErrorCode.SNAPSHOT_NOT_FOUND
        if error is not ErrorCode.NONE:
            then(self._part(asked, version, listener, error))
            return
        replica = ReplicaKey(request.replica_id, asked.replica_directory_id)
        self._log.quorum.step(Fetched(replica, UNCHECKED, self._clock.now_ms()))

        def found(read: tuple[int, bytes]) -> None:
            size, data = read
            error = ErrorCode.NONE if 0 <= asked.position < size else ErrorCode.POSITION_OUT_OF_RANGE
            then(self._part(asked, version, listener, error, size, data))

        def failed(_problem: Exception) -> None:
            then(self._part(asked, version, listener, ErrorCode.SNAPSHOT_NOT_FOUND))  # removed meanwhile

        most = request.max_bytes
        self._workers.run(lambda: self._store.read_snapshot_part(snapshot, asked.position, most), found, failed)

    def _part(
        self, asked: Any, version: int, listener: str, error: ErrorCode, size: int = 0, data: bytes = b""
    ) -> messages.FetchSnapshotResponse:
        raft = self._log.raft
        leader_id, address = self._network.leader_for(raft, listener)
        partition = messages.FetchSnapshotResponse.PartitionSnapshot(
            index=0,
            error_code=error,
            snapshot_id=messages.FetchSnapshotResponse.SnapshotId(
                end_offset=asked.snapshot_id.end_offset, epoch=asked.snapshot_id.epoch
            ),
            current_leader=messages.FetchSnapshotResponse.LeaderIdAndEpoch(
                leader_id=leader_id, leader_epoch=raft.epoch
            ),
            size=size,
            position=asked.position,
            unaligned_records=data,
        )
        response = messages.FetchSnapshotResponse(
            topics=[messages.FetchSnapshotResponse.TopicSnapshot(name=PARTITION.topic, partitions=[partition])]
        )
        if version >= 1 and address is not None:
            make = messages.FetchSnapshotResponse.NodeEndpoint
            response.node_endpoints = [make(node_id=leader_id, host=address.host, port=address.port)]
        return response


def _metadata_partition(request: messages.FetchRequest, version: int) -> messages.FetchRequest.FetchPartition | None:
    """The one partition that a replica of a quorum may ask for."""
    if len(request.topics) != 1 or len(request.topics[0].partitions) != 1:
        return None
    topic = request.topics[0]
    is_metadata = topic.topic_id == TOPIC_ID if version >= _FIRST_WITH_TOPIC_IDS else topic.topic == PARTITION.topic
    partition = topic.partitions[0]
    if not is_metadata or partition.partition != 0 or partition.fetch_offset < 0:
        return None
    return partition
