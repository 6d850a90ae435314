"""A commit like one before it: the same member of the same group, for the same partitions, with other offsets.

A consumer commits again and again, and all that changes is how far it has come. What stays the same is taken apart once
(`KnownCommit`). Whether the group still takes it is asked each time, of the group itself; then the offsets are replayed
as they are, without the messages that their records would be, and the records are made around them.

Known are only commits without metadata, as most are, that do not say how long they are to be kept.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ottla.machines.coordinator_machine import EncodedRecord, Timer
from ottla.machines.group.encoded_offsets import commit_key, commit_value

if TYPE_CHECKING:
    from ottla.machines.group.group_coordinator import GroupCoordinator
    from ottla.wire.messages import OffsetCommitRequest


class KnownCommit:
    """See the module, and `coordinator_machine.KnownCommand`. Made of a request whose topics have names and ids."""

    __slots__ = (
        "_api_version",
        "_generation",
        "_instance_id",
        "_member_id",
        "_partitions",
        "_places",
        "subject",
    )

    def __init__(self, request: "OffsetCommitRequest", api_version: int) -> None:
        self.subject = request.group_id
        self._api_version = api_version
        self._generation = request.generation_id_or_member_epoch
        self._instance_id = request.group_instance_id
        self._member_id = request.member_id
        places = [
            ((self.subject, topic.name, partition.partition_index), topic.topic_id)
            for topic in request.topics
            for partition in topic.partitions
        ]
        self._places = [(place, topic_id, commit_key(*place)) for place, topic_id in places]
        self._partitions = [(topic_id, partition) for (_, _, partition), topic_id in places]

    def is_taken(self, machine: "GroupCoordinator") -> bool:
        group = machine.groups.get(self.subject)
        return group is not None and not group.check_commit(
            self._member_id,
            self._instance_id,
            self._generation,
            is_transactional=False,
            api_version=self._api_version,
            partitions=self._partitions,
        )

    def replay(
        self, machine: "GroupCoordinator", committed: Iterable[tuple[int, int]], now_ms: int
    ) -> list[EncodedRecord]:
        """Takes up the offsets and leader epochs that are `committed` now, and returns the records that say so."""
        replay, records = machine.offsets.replay_commit, list[EncodedRecord]()
        for (place, topic_id, key), (offset, leader_epoch) in zip(self._places, committed, strict=True):
            replay(place, offset, leader_epoch, now_ms, topic_id)
            records.append((key, commit_value(offset, leader_epoch, now_ms, topic_id)))
        return records

    def sample(self) -> list[EncodedRecord]:
        """Records as it writes them: they have the same size each time."""
        return [(key, commit_value(0, 0, 0, topic_id)) for _, topic_id, key in self._places]

    def timers(self, machine: "GroupCoordinator") -> Sequence[Timer]:
        return machine.kept_session(machine.groups.get(self.subject), self._member_id) if self._member_id else ()
