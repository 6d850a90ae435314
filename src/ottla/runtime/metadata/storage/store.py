"""The directory `__cluster_metadata-0`: the log, its snapshots and its quorum state, in Apache Kafka's formats.

What survives a crash: the log is scanned from its start whenever it is opened, as Kafka does, so a torn end is cut off;
a snapshot has its name only once it is whole; the quorum state is replaced atomically. A snapshot at or after the log's
start is always there, unless the log begins at 0: segments and older snapshots go only after a newer one is durable.

What is damaged at rest is named. Leader epochs are found again in the log. A snapshot is set aside where an older one,
or none, and the log lead to the same metadata; else the node does not start, and neither does it with a damaged quorum
state, on which a vote rests. Damage in the log ends it there, as a torn end does, and the leader has what followed.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ottla.base.errors import ProtocolError
from ottla.base.ids import TopicPartition, Uuid
from ottla.base.ports import Buffer, Clock, Disk
from ottla.log import file_names
from ottla.log.checkpoint import format_partition_metadata
from ottla.log.errors import CorruptFile
from ottla.log.files import make_dirs, replace_file
from ottla.log.flush import Flush
from ottla.log.leader_epochs import UNDEFINED_OFFSET
from ottla.log.log_config import LogConfig
from ottla.log.partition_log import PartitionLog
from ottla.log.reading import slot_of
from ottla.log.scan import scan_headers
from ottla.machines.raft.events import LogEnd, QuorumState
from ottla.machines.raft.voters import STATIC_VOTERS, VoterSet
from ottla.records.batch import complete_batches
from ottla.records.control import KraftMessage
from ottla.runtime.metadata.storage.metadata_batches import MetadataBatch, read_batch
from ottla.runtime.metadata.storage.quorum_state_file import NAME as QUORUM_STATE
from ottla.runtime.metadata.storage.quorum_state_file import read_quorum_state, write_quorum_state
from ottla.runtime.metadata.storage.snapshots import (
    BOOTSTRAP_ID,
    CHECKPOINT,
    DAMAGED,
    DELETED,
    PART,
    Snapshot,
    SnapshotId,
    last_contained_log_timestamp,
    opened,
    read_snapshot,
    write_batches,
)
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import KRaftVersionRecord, VotersRecord

PARTITION = TopicPartition(file_names.CLUSTER_METADATA_TOPIC, 0)
TOPIC_ID = Uuid(bytes(15) + b"\x01")
_READ_BYTES = 1 << 20


class StoreConfig(NamedTuple):
    """`metadata.log.segment.bytes`, `.segment.ms` and `metadata.max.retention.bytes`, `.ms`."""

    segment_bytes: int = 1 << 30
    segment_ms: int = 604_800_000
    retention_bytes: int = 104_857_600
    retention_ms: int = 604_800_000


class VoterChange(NamedTuple):
    """What a control record of the log says of the quorum; one of the two is None."""

    offset: int
    kraft_version: int | None
    voters: VoterSet | None


def voter_changes(base_offset: int, control: Iterable[KraftMessage]) -> Iterator[VoterChange]:
    """Of one control batch."""
    for offset, message in enumerate(control, start=base_offset):
        match message:
            case KRaftVersionRecord():
                yield VoterChange(offset, message.k_raft_version, None)
            case VotersRecord():
                yield VoterChange(offset, None, VoterSet.of_record(message))


class MetadataStore:
    """An open directory. One thread owns it; a `Flush` and `write_snapshot` may run on another."""

    def __init__(self, disk: Disk, log_dir: str, clock: Clock, config: StoreConfig | None = None) -> None:
        """Opens the metadata log of a log directory, or begins one."""
        self.directory = f"{log_dir}/{file_names.partition_dir(PARTITION)}"
        self.config = config or StoreConfig()
        self._disk = disk
        self._clock = clock
        make_dirs(disk, self.directory)
        topic_id = f"{self.directory}/{file_names.PARTITION_METADATA}"
        if not disk.exists(topic_id):
            replace_file(disk, topic_id, format_partition_metadata(TOPIC_ID))
        # Neither time nor size alone deletes a segment here: only a snapshot makes one dispensable.
        kept = LogConfig(
            segment_bytes=self.config.segment_bytes,
            segment_ms=self.config.segment_ms,
            retention_bytes=-1,
            retention_ms=-1,
        )
        self.log = PartitionLog.open(disk, self.directory, PARTITION, kept, clock)
        self.warnings = list(self.log.warnings)
        """What a person should know of how the directory was found."""
        newest_epoch = self.read_quorum_state().epoch
        self._cut_later_epochs(newest_epoch)
        if self.log.log_start_offset == self.log.log_end_offset:
            self.log.epochs.clear()  # Nothing in the log says that its file is right; the snapshot has an epoch.
        self.snapshots = self._find_snapshots()
        self.kraft_version = STATIC_VOTERS
        self.voters: VoterSet | None = None
        self.newest_snapshot = self._read_newest_snapshot()
        self._catch_up_with_snapshot()
        self._look_at_quorum_state(newest_epoch)
        self.snapshot_voters = self.kraft_version, self.voters
        """kraft.version and the voters as the newest snapshot has them."""
        self.voter_changes: list[VoterChange] = []
        """What the log after the snapshot says of them, in order."""
        self._find_voters()

    # Opening

    def _cut_later_epochs(self, newest: int) -> None:
        """A batch's checksum does not cover its epoch, and with a larger one than others have this replica would be
        elected with whatever it has. But an epoch is in the quorum state, on the disk, before any batch of it is here:
        a batch of a later one is damage."""
        if newest <= 0:
            return  # It is lost: nothing is known.
        later = [(epoch, start) for epoch, start in self.log.epochs.entries if epoch > newest]
        if later:
            epoch, start = later[0]
            self.log.truncate_to(start)
            self.warnings.append(
                f"{self.directory}: the batch at offset {start} is damaged: its epoch {epoch} is later than {newest}, "
                f"that of {QUORUM_STATE}; the log is cut there"
            )

    def _find_snapshots(self) -> list[SnapshotId]:
        """Those that are whole, oldest first. Unfinished ones, and ones that the log begins after, are removed."""
        found: list[SnapshotId] = []
        for name in self._disk.list_dir(self.directory):
            snapshot = SnapshotId.of_name(name)
            if snapshot and snapshot.end_offset >= self.log.log_start_offset:
                found.append(snapshot)
            elif snapshot or name.endswith((CHECKPOINT + PART, CHECKPOINT + DELETED)):
                self._disk.remove(f"{self.directory}/{name}")
        if self.log.log_start_offset > 0 and not found:
            raise CorruptFile(
                f"{self.directory}: the log begins at offset {self.log.log_start_offset}, "
                "and no snapshot says what was before"
            )
        return sorted(found)

    def _catch_up_with_snapshot(self) -> None:
        """A crash between fetching a snapshot and emptying the log leaves a log that ends before it."""
        if self.snapshots:
            newest = self.snapshots[-1]
            if (newest.epoch, newest.end_offset) > (max(self.log.epochs.latest, 0), self.log.log_end_offset):
                self.log.truncate_fully(newest.end_offset)

    def _read_newest_snapshot(self) -> Snapshot | None:
        """The newest that is whole. Damaged ones after it are set aside if the log has all that was in them."""
        damaged: dict[SnapshotId, CorruptFile] = {}
        found: Snapshot | None = None
        while self.snapshots and found is None:
            newest = self.snapshots[-1]
            try:
                found = read_snapshot(self._disk, f"{self.directory}/{newest.name}")
                self.kraft_version, self.voters = found.kraft_version, found.voters
            except CorruptFile as problem:
                damaged[self.snapshots.pop()] = problem
        if damaged:
            self._do_without(damaged)
        return found

    def _do_without(self, damaged: dict[SnapshotId, CorruptFile]) -> None:
        """Raises `CorruptFile`, and has changed nothing, where the newest of them cannot be done without."""
        newest, problem = next(iter(damaged.items()))
        start, end = self.log.log_start_offset, self.log.log_end_offset
        if (
            BOOTSTRAP_ID in damaged
            or start > (self.snapshots[-1].end_offset if self.snapshots else 0)
            or end < newest.end_offset
        ):
            raise CorruptFile(
                f"{problem}. No other snapshot and the log, from offset {start} to {end}, lead to the same metadata"
            ) from problem
        instead = f"{self.snapshots[-1].name} and the log after it" if self.snapshots else "the log"
        for snapshot, problem in damaged.items():
            path = f"{self.directory}/{snapshot.name}"
            self._disk.rename(path, path + DAMAGED)
            self.warnings.append(f"{problem}. It is kept as {snapshot.name}{DAMAGED}; instead {instead} are read")
        self._disk.sync_dir(self.directory)

    def _look_at_quorum_state(self, newest: int) -> None:
        """One that is lost, Apache Kafka continues without, too."""
        epoch = self.log_end.epoch
        if newest < epoch:
            self.warnings.append(
                f"{self.directory}/{QUORUM_STATE}: missing, or older than epoch {epoch} of the log; this replica goes "
                "on in that epoch, and does not know for whom it has voted"
            )

    def _find_voters(self) -> None:
        """The last control records of the log win, committed or not (KIP-853)."""
        start = self.snapshot_offset
        for segment in self.log.segments[slot_of(self.log.segments, start) :]:
            for position, header in scan_headers(segment.file, 0, segment.size):
                if header.is_control and header.next_offset > start:
                    self._take_control(read_batch(segment.file.read_at(position, header.size), 0, header))

    def _take_control(self, batch: MetadataBatch) -> None:
        for change in voter_changes(batch.base_offset, batch.control):
            self.voter_changes.append(change)
            if change.kraft_version is not None:
                self.kraft_version = change.kraft_version
            if change.voters is not None:
                self.voters = change.voters

    # The quorum's state

    @property
    def snapshot_offset(self) -> int:
        """Where replaying the log begins, after the newest snapshot."""
        return self.snapshots[-1].end_offset if self.snapshots else self.log.log_start_offset

    @property
    def log_end(self) -> LogEnd:
        epoch = self.log.epochs.latest
        if epoch < 0:
            epoch = self.snapshots[-1].epoch if self.snapshots else 0
        return LogEnd(epoch, self.log.log_end_offset)

    def read_quorum_state(self) -> QuorumState:
        return read_quorum_state(self._disk, self.directory)

    def save_quorum_state(self, state: QuorumState, kraft_version: int, voter_ids: list[int]) -> None:
        write_quorum_state(self._disk, self.directory, state, kraft_version, voter_ids)

    # The log

    def append(self, batch: bytearray, epoch: int) -> int:
        """Writes a batch at the end of the log, not durably yet; returns its base offset."""
        appended = self.log.append_as_leader(batch, epoch)
        assert appended.error == ErrorCode.NONE, f"the log refused its leader's batch: {appended.error.name}"
        return appended.base_offset

    def append_as_follower(self, data: Buffer) -> list[MetadataBatch]:
        """Writes whole batches of the leader's, not durably yet. Returns those that are the quorum's own.

        Raises an error of the protocol family, and has written nothing, where one of these cannot be read: this replica
        would not know the voters by which it counts.
        """
        control = [
            read_batch(data, position, header) for position, header in complete_batches(data) if header.is_control
        ]
        appended = self.log.append_as_follower(data)
        assert appended.error == ErrorCode.NONE, f"the log refused what its leader wrote: {appended.error.name}"
        return control

    def end_of_epoch(self, epoch: int) -> LogEnd:
        """The largest epoch up to `epoch` that this log knows, and where it ends; the end of the log if it is newer."""
        found_epoch, end_offset = self.log.epochs.end_offset(epoch, self.log.log_end_offset)
        return self.log_end if end_offset == UNDEFINED_OFFSET else LogEnd(found_epoch, end_offset)

    def truncate(self, end_offset: int) -> None:
        """A flush has to follow: until then a crash may bring back what was cut away."""
        self.log.truncate_to(end_offset, durably=False)

    def read(self, offset: int, end_offset: int) -> Iterator[MetadataBatch]:
        """The batches from `offset` to `end_offset`."""
        while offset < end_offset:
            found = self.log.read(offset, _READ_BYTES, end_offset, min_one_batch=True)
            assert found.file is not None, f"the metadata log has nothing at offset {offset}"
            data = found.file.read_at(found.position, found.size)
            try:
                for position, header in complete_batches(data):
                    yield read_batch(data, position, header)
                    offset = header.next_offset
            except ProtocolError as problem:
                raise CorruptFile(f"{self.directory}: the batch at offset {offset}: {problem}") from problem

    def start_flush(self) -> Flush:
        return self.log.start_flush()

    def finish_flush(self, flush: Flush) -> int:
        """Returns the offset before which records are on the disk."""
        return self.log.finish_flush(flush)

    # Snapshots

    def write_snapshot(self, snapshot: SnapshotId, batches: Iterable[bytearray]) -> None:
        """Durable when it returns; `snapshot_written` makes it known. May run on another thread."""
        write_batches(self._disk, f"{self.directory}/{snapshot.name}", batches)

    def snapshot_written(self, snapshot: SnapshotId) -> None:
        if snapshot not in self.snapshots:
            self.snapshots = sorted([*self.snapshots, snapshot])

    def read_snapshot_part(self, snapshot: SnapshotId, position: int, most_bytes: int) -> tuple[int, bytes]:
        """The size of a snapshot, and a part of it. May run on another thread."""
        with opened(self._disk, f"{self.directory}/{snapshot.name}") as file:
            return file.size(), file.read_at(position, most_bytes) if position >= 0 else b""

    def keep_snapshot_part(self, snapshot: SnapshotId, position: int, data: bytes, size: int) -> Snapshot | None:
        """A part of a snapshot that the leader has sent; the whole of it, durable, when that was the last one.

        May run on another thread. A crash leaves a file that the next start removes.
        """
        path = f"{self.directory}/{snapshot.name}"
        with opened(self._disk, path + PART, create=True) as file:
            if position == 0:
                file.truncate(0)
            file.write_at(position, data)
            if position + len(data) < size:
                return None
            file.sync()
        read = read_snapshot(self._disk, path + PART)
        read = read._replace(records=list(read.records))  # decoded here, and not on the loop
        self._disk.rename(path + PART, path)
        self._disk.sync_dir(self.directory)
        return read

    def begin_after(self, snapshot: SnapshotId) -> None:
        """Replaces the log by a snapshot of the leader's, which is durable."""
        self.snapshot_written(snapshot)
        self.log.truncate_fully(snapshot.end_offset)

    def clean(self) -> bool:
        """Deletes the oldest snapshots, and the log before the next, as far as retention wants; the newest stays."""
        is_cleaned = False
        while len(self.snapshots) > 1 and self._is_oldest_expired():
            oldest, following = self.snapshots[:2]
            self.log.advance_log_start_offset(following.end_offset)
            self.log.apply_retention()
            self.snapshots = self.snapshots[1:]
            self._disk.remove(f"{self.directory}/{oldest.name}")
            is_cleaned = True
        self.log.remove_deleted()
        return is_cleaned

    def _is_oldest_expired(self) -> bool:
        oldest, following = self.snapshots[:2]
        if following.end_offset > self.log.high_watermark:
            return False
        if self.config.retention_bytes >= 0:
            sizes = (self._disk.size(f"{self.directory}/{snapshot.name}") for snapshot in self.snapshots)
            if self.log.size + sum(sizes) > self.config.retention_bytes:
                return True
        if self.config.retention_ms < 0:
            return False
        written_ms = last_contained_log_timestamp(self._disk, f"{self.directory}/{oldest.name}")
        return self._clock.now_ms() - written_ms > self.config.retention_ms

    def close(self) -> None:
        """Makes all of the log durable, and closes it."""
        self.log.close()

    def release(self) -> None:
        """Closes the files of a disk that has failed."""
        self.log.release()
