"""Committed offsets as they lie in the log, of groups that nobody has asked after since they were loaded.

A coordinator may load a million offsets at its start, and be asked for few of them soon. So a commit is kept as the
bytes of its value, which are there already and small, until its group is asked after; then all of the group's offsets
are decoded, and are here no longer.

A key is a kind, a group, a topic and, in its last four bytes, a partition (`OffsetCommitKey`). Commits come in runs of
the same group and topic: where these keep their offsets is remembered under the key without its partition, and a key is
taken apart only when it is the first of its like.

Taken are values of one shape, the one that commits without metadata have in Kafka 4.1 and later. Of others it is known
only after decoding whether they can be.
"""

from collections.abc import Callable, Iterator
from struct import Struct

from ottla.base.ids import Uuid
from ottla.machines.group.committed import CommittedOffset, Partitions, Topics
from ottla.records.kernel import Record
from ottla.wire.messages import OffsetCommitKey
from ottla.wire.record_values import CoordinatorTopic, decode_key

EncodedTopics = dict[str, dict[int, bytes]]

_KINDS = (b"\0\0", b"\0\1")
_int32 = Struct(">i").unpack
# Version, offset, leader epoch, metadata's length (1 is none), commit timestamp; then one tagged field, with its tag
# and size: the topic's id.
_VALUE = Struct(">hqiBqBBB16s")
_VALUE_SIZE = _VALUE.size
_VERSION_4, _NO_METADATA, _TOPIC_ID_ALONE = b"\0\4", 1, b"\1\0\x10"


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
                and len(value) == _VALUE_SIZE
                and value[:2] == _VERSION_4
                and value[14] == _NO_METADATA
                and value[23:26] == _TOPIC_ID_ALONE
                and key is not None
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
        open_group(commit.group, _VALUE.unpack(value)[4])
        place = self.by_group.setdefault(commit.group, {}).setdefault(commit.topic, {})
        self._places[key[:-4]] = place
        return place

    def close_places(self) -> None:
        """What is replayed next may end groups."""
        self._places.clear()

    def take_up(self, group_id: str) -> Topics:
        """The group's offsets, to be kept elsewhere from now on."""
        self._places.clear()
        return {topic: _decoded(partitions) for topic, partitions in self.by_group.pop(group_id).items()}

    def oldest_commit_ms(self, group_id: str) -> int | None:
        """None: the group is not here."""
        topics = self.by_group.get(group_id)
        if topics is None:
            return None
        # Times since 1970 have the order of their bytes.
        oldest = min(value[15:23] for partitions in topics.values() for value in partitions.values())
        return int.from_bytes(oldest, "big", signed=True)

    def groups_of_topic(self, topic: str) -> Iterator[str]:
        return (group_id for group_id, topics in self.by_group.items() if topic in topics)

    def offsets(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and committed offset of each; they stay as they are."""
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                for partition, value in partitions.items():
                    yield group_id, topic, partition, int.from_bytes(value[2:10], "big", signed=True)


def _decoded(partitions: dict[int, bytes]) -> Partitions:
    decoded: Partitions = {}
    topic_id = Uuid(b"")
    for partition, value in partitions.items():
        _, offset, leader_epoch, _, timestamp_ms, _, _, _, found_id = _VALUE.unpack(value)
        if found_id != topic_id:
            topic_id = found_id  # one object for all
        decoded[partition] = CommittedOffset(offset, leader_epoch, "", timestamp_ms, -1, topic_id)
    return decoded
