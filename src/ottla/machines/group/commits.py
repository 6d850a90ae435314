"""The offsets that a request commits: the records that say so, as bytes, and what is replayed.

Committing is what coordinators are asked for most, and most of it is the same few bytes for each partition. So a commit
is not made of messages: its records are written as `OffsetCommitKey` and `OffsetCommitValue` are, in the version that
Apache Kafka 4.3 writes, and what they would be replayed to is taken from the request. A test holds both against the
codec and against the replaying of the records that a log has.

`encode` and `replay` are compiled, where there is a compiler; the functions here are their twins.
"""

from collections.abc import Callable, Mapping
from struct import Struct
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.coordinator_machine import EncodedRecord, size_of
from ottla.machines.group.committed import CommittedOffset, Topics, as_committed
from ottla.machines.group.encoded_offsets import key_up_to_partition
from ottla.machines.group.records import offset_committed
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like
from ottla.wire.messages import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.record_values import encode_key, encode_versioned
from ottla.wire.varint import encode_varint

if TYPE_CHECKING:
    from ottla.machines.group.group_coordinator import GroupCoordinator
    from ottla.machines.metadata.image.topics_image import TopicImage

_Topic = OffsetCommitRequest.OffsetCommitRequestTopic
_Partition = OffsetCommitRequest.OffsetCommitRequestPartition
Answered: TypeAlias = list[OffsetCommitResponse.OffsetCommitResponseTopic]
Committed: TypeAlias = list[tuple[str, Uuid, _Partition]]
"""The name and the id of a topic, and what is committed in a partition of it."""

# What answers are made like.
_TAKEN: Final = OffsetCommitResponse.OffsetCommitResponsePartition()
_TOPIC: Final = OffsetCommitResponse.OffsetCommitResponseTopic()
_TOO_LARGE: Final = int(ErrorCode.OFFSET_METADATA_TOO_LARGE)

_VALUE_VERSION: Final = 4
NO_EXPIRY: Final = -1
_PARTITION = Struct(">i")
_START = Struct(">hqi")
_TIMESTAMP = Struct(">q")
_TOPIC_ID_ALONE = b"\1\0\x10"


class Commits:
    """See the module, and `coordinator_machine.EncodedRecords`."""

    __slots__ = ("_committed", "_expires_ms", "_now_ms", "encoded", "group_id", "size")

    group_id: str
    encoded: list[EncodedRecord]
    size: int
    _committed: Committed
    _now_ms: int
    _expires_ms: int

    def __len__(self) -> int:
        return len(self.encoded)

    def replay(self, machine: "GroupCoordinator") -> None:
        machine.replay_commits(self, self._now_ms)

    def replay_into(self, topics: Topics, order: int) -> int:
        """Puts what is committed among the offsets of its group. `order` counts what was replayed before, and is
        returned as it is then.
        """
        return replay(topics, self._committed, self._now_ms, self._expires_ms, order)


def take_apart(
    group_id: str, topics: list[_Topic], now_ms: int, expires_ms: int, longest: int
) -> tuple[Answered, Commits]:
    """What each partition is answered, and the records of those that are taken. Metadata that is longer than `longest`
    is not taken.
    """
    commits = like(_BLANK)
    commits.group_id = group_id
    answered, commits.encoded, commits.size, commits._committed = encode(group_id, topics, now_ms, longest)
    commits._now_ms = now_ms
    commits._expires_ms = expires_ms
    if expires_ms != NO_EXPIRY:
        # What its record does not have, the machine does not know either: it would not be loaded again.
        commits._committed = [(name, ZERO_UUID, partition) for name, _, partition in commits._committed]
        for _, _, partition in commits._committed:
            partition.committed_leader_epoch = -1
        commits.encoded = [
            encode_with_expiry(group_id, name, partition, now_ms, expires_ms)
            for name, _, partition in commits._committed
        ]
        commits.size = size_of(commits.encoded)
    return answered, commits


def name_all_in_python(topics: list[_Topic], known: "Mapping[Any, TopicImage]", by_id: bool) -> bool:
    """Gives all topics of a commit their names and ids, by those that are known. Whether all partitions are there."""
    for topic in topics:
        found = known.get(topic.topic_id if by_id else topic.name)
        if found is None or any(partition.partition_index not in found.partitions for partition in topic.partitions):
            return False
        topic.name, topic.topic_id = found.name, found.id
    return True


def encode_in_python(
    group_id: str, topics: list[_Topic], now_ms: int, longest: int
) -> tuple[Answered, list[EncodedRecord], int, Committed]:
    """What each partition is answered, the records of those that are taken, at least what these take in a batch, and
    what they commit.
    """
    answered, encoded, committed = Answered(), list[EncodedRecord](), Committed()
    for topic in topics:
        prefix, answers = key_up_to_partition(group_id, topic.name), []
        for partition in topic.partitions:
            answer = like(_TAKEN)
            answer.partition_index = partition.partition_index
            answers.append(answer)
            metadata = partition.committed_metadata or ""
            if len(metadata) > longest:
                answer.error_code = _TOO_LARGE
                continue
            key = prefix + _PARTITION.pack(partition.partition_index)
            encoded.append((key, _encode_value(partition, metadata, now_ms, topic.topic_id)))
            committed.append((topic.name, topic.topic_id, partition))
        of_topic = like(_TOPIC)
        of_topic.name, of_topic.topic_id, of_topic.partitions = topic.name, topic.topic_id, answers
        answered.append(of_topic)
    return answered, encoded, size_of(encoded), committed


def _encode_value(partition: _Partition, metadata: str, now_ms: int, topic_id: Uuid) -> bytes:
    text = metadata.encode()
    return b"".join(
        (
            _START.pack(_VALUE_VERSION, partition.committed_offset, partition.committed_leader_epoch),
            encode_varint(len(text) + 1),
            text,
            _TIMESTAMP.pack(now_ms),
            b"\0" if topic_id == ZERO_UUID else _TOPIC_ID_ALONE + topic_id,
        )
    )


def encode_with_expiry(group_id: str, topic: str, partition: _Partition, now_ms: int, expires_ms: int) -> EncodedRecord:
    """The record of a client so old that it says how long its offset is to be kept: no newer version has that."""
    metadata = partition.committed_metadata or ""
    committed = CommittedOffset(partition.committed_offset, -1, metadata, now_ms, expires_ms)
    key, value, version = offset_committed(group_id, topic, partition.partition_index, committed)
    assert value is not None, "a commit is no tombstone"
    return encode_key(key), encode_versioned(value, version)


def replay_in_python(topics: Topics, committed: Committed, now_ms: int, expires_ms: int, order: int) -> int:
    """See `Commits.replay_into`."""
    for name, topic_id, partition in committed:
        order += 1
        offset, leader_epoch = partition.committed_offset, partition.committed_leader_epoch
        metadata = partition.committed_metadata or ""
        topics.setdefault(name, {})[partition.partition_index] = as_committed(
            (offset, leader_epoch, metadata, now_ms, expires_ms, topic_id, order)
        )
    return order


_BLANK: Final = Commits()

name_all: Callable[[list[_Topic], Mapping[Any, "TopicImage"], bool], bool] = name_all_in_python
encode: Callable[[str, list[_Topic], int, int], tuple[Answered, list[EncodedRecord], int, Committed]]
encode = encode_in_python
replay: Callable[[Topics, Committed, int, int, int], int] = replay_in_python
try:
    from ottla.machines.group._commit_records import CommitRecords
except ImportError:  # there was no C compiler when the package was installed
    pass
else:
    _records = CommitRecords(
        OffsetCommitRequest,
        OffsetCommitResponse,
        CommittedOffset,
        _TAKEN,
        _TOPIC,
        key_up_to_partition,
        _TOO_LARGE,
        bytes(ZERO_UUID),
    )
    name_all, encode, replay = _records.name_all, _records.encode, _records.replay
