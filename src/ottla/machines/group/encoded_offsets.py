"""Committed offsets as they lie in the log, of groups that nobody has asked after since they were loaded.

A coordinator may load a million offsets at its start, and be asked for few of them soon. So a commit is kept as the
bytes of its value, which are there already and small, until its group is asked after; then all of the group's offsets
are decoded, and are here no longer.

A key is a kind, a group, a topic and, in its last four bytes, a partition (`OffsetCommitKey`). Commits come in runs of
the same group and topic: where these keep their offsets is remembered under the key without its partition, and a key is
taken apart only when it is the first of its like.

Taken are values of three shapes, those that commits without metadata have had since Kafka 2.1. Of others it is known
only after decoding whether they can be. New commits are written in the newest of them (`commits`).
"""

from collections.abc import Callable, Iterator
from functools import lru_cache
from struct import Struct

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.machines.group.committed import CommittedOffset, Partitions, Topics
from ottla.records.kernel import Record
from ottla.wire.messages import OffsetCommitKey
from ottla.wire.record_values import CoordinatorTopic, decode_key, encode_key

EncodedTopics = dict[str, dict[int, bytes]]

_KINDS = (b"\0\0", b"\0\1")
_int32 = Struct(">i").unpack
_offset_of = Struct(">q").unpack_from
# Version, offset, leader epoch, metadata's length (of none), commit timestamp; in version 4 then the number of tagged
# fields, of which there is at most one, the topic's id, after its tag and size.
_LATEST = Struct(">hqiBqBBB16s")
_WITHOUT_ID = Struct(">hqiBqB")
_VERSION_3 = Struct(">hqihq")
_LATEST_SIZE = _LATEST.size
_4, _NO_METADATA, _TOPIC_ID_ALONE = b"\0\4", 1, b"\1\0\x10"


class EncodedOffsets:
    """`by_group` has no group that `Offsets.by_group` has."""

    __slots__ = ("_places", "by_group")

    def __init__(self) -> None:
        self.by_group: dict[str, EncodedTopics] = {}
        self._places: dict[bytes, dict[int, bytes]] = {}

    def replay(
        self, records: Iterator[Record], may_keep: Callable[[str], bool], open_group: Callable[[str, int], None]
    ) -> Iterator[Record]:
        """Takes the commits that it can, and gives out the other records.

        One loop with nothing called in it but for the first commit of a group in a topic: see the module.
        """
        places = self._places
        for record in records:
            key, value = record.key, record.value
            if (
                value is not None
                and key is not None
                and (
                    (
                        len(value) == _LATEST_SIZE
                        and value[:2] == _4
                        and value[14] == _NO_METADATA
                        and value[23:26] == _TOPIC_ID_ALONE
                    )
                    or _has_older_shape(value)
                )
            ):
                partitions = places.get(key[:-4])
                if partitions is None:
                    partitions = self._open_place(key, value, may_keep, open_group)
                if partitions is not None:
                    partitions[_int32(key[-4:])[0]] = value
                    continue
            places.clear()
            yield record

    def _open_place(
        self, key: bytes, value: bytes, may_keep: Callable[[str], bool], open_group: Callable[[str, int], None]
    ) -> dict[int, bytes] | None:
        """For commits whose key differs from this one in nothing but the partition."""
        commit = decode_key(CoordinatorTopic.CONSUMER_OFFSETS, key) if key[:2] in _KINDS else None
        if not isinstance(commit, OffsetCommitKey) or not may_keep(commit.group):
            return None
        open_group(commit.group, _decoded(value).commit_timestamp_ms)
        place = self.by_group.setdefault(commit.group, {}).setdefault(commit.topic, {})
        self._places[key[:-4]] = place
        return place

    def close_places(self) -> None:
        """What is replayed next may end groups, or nothing more is."""
        self._places.clear()

    def decoded(self, group_id: str) -> Topics:
        """The group's offsets, to be kept elsewhere from now on."""
        self._places.clear()
        return {topic: _all_decoded(partitions) for topic, partitions in self.by_group.pop(group_id).items()}

    def oldest_commit_ms(self, group_id: str) -> int | None:
        """None: the group is not here."""
        topics = self.by_group.get(group_id)
        if topics is None:
            return None
        # Times since 1970 have the order of their bytes, which come a byte later in version 3.
        values = (value for partitions in topics.values() for value in partitions.values())
        oldest = min(value[15:23] if value[1] == 4 else value[16:24] for value in values)
        return int.from_bytes(oldest, "big", signed=True)

    def groups_of_topic(self, topic: str) -> Iterator[str]:
        return (group_id for group_id, topics in self.by_group.items() if topic in topics)

    def offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and committed offset of each; they stay as they are."""
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    yield group_id, topic, partition, _offset_of(value, 2)[0]


@lru_cache(maxsize=4096)
def key_up_to_partition(group_id: str, topic: str) -> bytes:
    return encode_key(OffsetCommitKey(group=group_id, topic=topic, partition=0))[:-4]


def _has_older_shape(value: bytes) -> bool:
    """Without a topic's id: as Kafka wrote it before 4.1, or for a topic that was gone."""
    return len(value) == _WITHOUT_ID.size and (
        (value[:2] == b"\0\3" and value[14:16] == b"\0\0")
        or (value[:2] == _4 and value[14] == _NO_METADATA and value[23] == 0)
    )


def _decoded(value: bytes, topic_id: Uuid = ZERO_UUID) -> CommittedOffset:
    """With the `topic_id` that is given if it is the one, so that many offsets have one object for it."""
    if len(value) == _LATEST_SIZE:
        _, offset, leader_epoch, _, timestamp_ms, _, _, _, found_id = _LATEST.unpack(value)
        if found_id != topic_id:
            topic_id = found_id
    else:
        shape = _WITHOUT_ID if value[1] == 4 else _VERSION_3
        _, offset, leader_epoch, _, timestamp_ms, *_ = shape.unpack(value)
        topic_id = ZERO_UUID
    return CommittedOffset(offset, leader_epoch, "", timestamp_ms, -1, topic_id)


def _all_decoded(partitions: dict[int, bytes]) -> Partitions:
    decoded: Partitions = {}
    topic_id = ZERO_UUID
    for partition, value in partitions.items():
        committed = decoded[partition] = _decoded(value, topic_id)
        topic_id = committed.topic_id
    return decoded
