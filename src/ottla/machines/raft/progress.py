"""How far each voter has come, as the leader of an epoch knows it, and what is committed by that.

An offset is committed when a majority of voters has everything before it durably. A leader may say so only once that
includes a record of its own epoch: a majority can hold an older record that a later leader still takes back (Raft
paper, section 5.4.2; in Kafka the leader change record of every epoch is what is waited for).
"""

from ottla.machines.raft.voters import ReplicaKey, VoterSet

UNKNOWN = -1


class Progress:
    """Of one leader, in one epoch that begins at `start_offset`."""

    __slots__ = ("_ends", "_start_offset", "_voters", "high_watermark")

    def __init__(self, voters: VoterSet, start_offset: int, high_watermark: int) -> None:
        self._voters = voters
        self._ends = dict.fromkeys(voters.ids, UNKNOWN)
        self._start_offset = start_offset
        self.high_watermark = high_watermark

    def end_of(self, voter_id: int) -> int:
        return self._ends.get(voter_id, UNKNOWN)

    def note(self, replica: ReplicaKey, end_offset: int) -> bool:
        """Takes in how far a replica is; True if that commits more. Replicas without a vote do not count."""
        if not self._voters.has(replica) or end_offset <= self._ends[replica.id]:
            return False
        self._ends[replica.id] = end_offset
        committed = sorted(self._ends.values(), reverse=True)[self._voters.majority - 1]
        if committed <= self._start_offset or committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def most_advanced(self, besides: int) -> tuple[int, ...]:
        """The other voters, the one with the longest log first."""
        others = [(end, voter_id) for voter_id, end in self._ends.items() if voter_id != besides]
        return tuple(voter_id for _, voter_id in sorted(others, key=lambda other: (-other[0], other[1])))
