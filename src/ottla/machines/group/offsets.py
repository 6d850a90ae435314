"""The committed offsets of all groups of a partition, and those that wait for a transaction to be decided.

Commits of a transaction (KIP-447) are kept aside, by producer, until its marker comes; then they count, unless a later
commit has been made meanwhile: the newer record wins, in the order of the log. A tombstone forgets both.
"""

from collections.abc import Iterator

from ottla.machines.group.committed import CommittedOffset
from ottla.wire.messages import OffsetCommitKey, OffsetCommitValue

Partitions = dict[int, CommittedOffset]
Topics = dict[str, Partitions]


class Offsets:
    """`by_group` holds what counts, by group, topic and partition; `pending` the same for each open transaction."""

    __slots__ = ("_replayed", "by_group", "pending")

    def __init__(self) -> None:
        self.by_group: dict[str, Topics] = {}
        self.pending: dict[int, dict[str, Topics]] = {}
        self._replayed = 0

    # Replaying

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int | None = None) -> None:
        if value is None:
            self._forget(self.by_group, key)
            for groups in self.pending.values():
                self._forget(groups, key)
            return
        self._replayed += 1
        groups = self.by_group if producer_id is None else self.pending.setdefault(producer_id, {})
        committed = CommittedOffset.of_record(value, self._replayed)
        groups.setdefault(key.group, {}).setdefault(key.topic, {})[key.partition] = committed

    def replay_end_of_transaction(self, producer_id: int, *, committed: bool) -> None:
        groups = self.pending.pop(producer_id, {})
        if not committed:
            return
        for group_id, topics in groups.items():
            for topic, partitions in topics.items():
                kept = self.by_group.setdefault(group_id, {}).setdefault(topic, {})
                for partition, offset in partitions.items():
                    known = kept.get(partition)
                    if known is None or offset.order > known.order:
                        kept[partition] = offset

    @staticmethod
    def _forget(groups: dict[str, Topics], key: OffsetCommitKey) -> None:
        topics = groups.get(key.group)
        partitions = topics.get(key.topic) if topics else None
        if topics is None or partitions is None:
            return
        partitions.pop(key.partition, None)
        if not partitions:
            del topics[key.topic]
        if not topics:
            del groups[key.group]

    # Asking

    def of_group(self, group_id: str) -> Topics:
        return self.by_group.get(group_id, {})

    def get(self, group_id: str, topic: str, partition: int) -> CommittedOffset | None:
        return self.of_group(group_id).get(topic, {}).get(partition)

    def is_pending(self, group_id: str, topic: str, partition: int) -> bool:
        """Whether an open transaction has committed an offset here: the one that counts may be about to change."""
        return bool(self.pending) and any(
            partition in groups.get(group_id, {}).get(topic, {}) for groups in self.pending.values()
        )

    def has_open_transaction(self, group_id: str) -> bool:
        return any(group_id in groups for groups in self.pending.values())

    def known_partitions(self, group_id: str) -> Iterator[tuple[str, int]]:
        """Every partition with an offset of the group's, committed or pending, once."""
        found: dict[tuple[str, int], None] = {}
        for groups in (self.by_group, *self.pending.values()):
            for topic, partitions in groups.get(group_id, {}).items():
                found.update(dict.fromkeys((topic, partition) for partition in partitions))
        return iter(found)

    def groups_of_topic(self, topic: str) -> Iterator[str]:
        """Groups with an offset in the topic, committed or pending."""
        found: dict[str, None] = {}
        for groups in (self.by_group, *self.pending.values()):
            found.update(dict.fromkeys(group_id for group_id, topics in groups.items() if topic in topics))
        return iter(found)

    def __len__(self) -> int:
        return sum(len(partitions) for topics in self.by_group.values() for partitions in topics.values())
