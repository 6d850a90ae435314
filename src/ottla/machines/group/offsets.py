"""The committed offsets of all groups of a partition, and those that wait for a transaction to be decided.

Commits of a transaction (KIP-447) are kept aside, by producer, until its marker comes; then they count, unless a later
commit has been made meanwhile: the newer record wins, in the order of the log. A tombstone forgets both.

What was loaded stays encoded until its group is asked after (`encoded_offsets`).
"""

from collections.abc import Callable, Iterator

from ottla.machines.group.commits import Commits
from ottla.machines.group.committed import CommittedOffset, Topics
from ottla.machines.group.encoded_offsets import EncodedOffsets
from ottla.records.kernel import Record
from ottla.wire.messages import OffsetCommitKey, OffsetCommitValue


class Offsets:
    """`by_group` holds what counts, by group, topic and partition, of the groups that are not in `encoded`; `pending`
    the same for each open transaction.
    """

    __slots__ = ("_replayed", "by_group", "encoded", "pending")

    def __init__(self) -> None:
        self.by_group: dict[str, Topics] = {}
        self.encoded = EncodedOffsets()
        self.pending: dict[int, dict[str, Topics]] = {}
        self._replayed = 0

    # Replaying

    def replay(self, key: OffsetCommitKey, value: OffsetCommitValue | None, producer_id: int | None = None) -> None:
        self._decode(key.group)
        if value is None:
            self._forget(self.by_group, key)
            for groups in self.pending.values():
                self._forget(groups, key)
            return
        self._replayed += 1
        groups = self.by_group if producer_id is None else self.pending.setdefault(producer_id, {})
        committed = CommittedOffset.of_record(value, self._replayed)
        groups.setdefault(key.group, {}).setdefault(key.topic, {})[key.partition] = committed

    def replay_commits(self, commits: Commits) -> None:
        """The same for offsets that were just decided on, and are no messages, in no transaction."""
        group_id = commits.group_id
        if group_id in self.encoded.by_group:
            self._decode(group_id)
        topics = self.by_group.get(group_id)
        if topics is None:
            topics = self.by_group[group_id] = {}
        self._replayed = commits.replay_into(topics, self._replayed)

    def replay_encoded(self, records: Iterator[Record], open_group: Callable[[str, int], None]) -> Iterator[Record]:
        """The same, for loading, of the bytes of many records. Gives out those that are to be decoded.

        `open_group` is notified of a group whenever a topic of it is new, with the time of the commit. While a
        transaction is open nothing is kept encoded: it matters which commit was before it and which after.
        """
        if self.pending:
            self.encoded.close_places()
            return records
        return self.encoded.replay(records, lambda group_id: group_id not in self.by_group, open_group)

    def _decode(self, group_id: str) -> None:
        if group_id in self.encoded.by_group:
            self.by_group[group_id] = self.encoded.decoded(group_id)

    def replay_end_of_transaction(self, producer_id: int, *, committed: bool) -> None:
        groups = self.pending.pop(producer_id, {})
        if not committed:
            return
        for group_id, topics in groups.items():
            self._decode(group_id)
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
        self._decode(group_id)
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
        self._decode(group_id)
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
        found.update(dict.fromkeys(self.encoded.groups_of_topic(topic)))
        return iter(found)

    def each(self) -> Iterator[tuple[str, str, int, int]]:
        """Group, topic, partition and offset of all that counts."""
        for group_id, topics in self.by_group.items():
            for topic, partitions in topics.items():
                for partition, committed in partitions.items():
                    yield group_id, topic, partition, committed.offset
        yield from self.encoded.offsets()

    def __len__(self) -> int:
        return sum(1 for _ in self.each())
