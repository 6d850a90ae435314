"""How far each replica has come, as the leader of an epoch knows it, and what is committed by that.

An offset is committed when a majority of voters has everything before it durably. A leader may say so only once that
includes a record of its own epoch: a majority can hold an older record that a later leader still takes back (Raft
paper, section 5.4.2; in Kafka the leader change record of every epoch is what is waited for).

A replica that comes back with less than it had, because its disk lost the rest, counts with what it has now. The high
watermark stays where it was: what was committed, was.
"""

from ottla.machines.raft.voters import ReplicaKey, VoterSet

UNKNOWN = -1
OBSERVER_SESSION_MS = 300_000
"""An observer that has not fetched for so long is not shown any more, as in Kafka."""


class ReplicaProgress:
    """One replica: where its log ends, and when it was last heard of and last had all that the leader had (KIP-836)."""

    __slots__ = ("_last_leader_end", "end_offset", "last_caught_up_ms", "last_fetch_ms")

    def __init__(self) -> None:
        self.end_offset = UNKNOWN
        self.last_fetch_ms = UNKNOWN
        self.last_caught_up_ms = UNKNOWN
        self._last_leader_end = UNKNOWN

    def note(self, end_offset: int, leader_end: int, now_ms: int) -> None:
        """A fetch at the leader's end is caught up now; one at the end of the fetch before it, was so then."""
        if end_offset >= leader_end:
            self.last_caught_up_ms = max(now_ms, self.last_caught_up_ms)
        elif self._last_leader_end != UNKNOWN and end_offset >= self._last_leader_end:
            self.last_caught_up_ms = max(self.last_fetch_ms, self.last_caught_up_ms)
        self.end_offset = end_offset
        self.last_fetch_ms = max(now_ms, self.last_fetch_ms)
        self._last_leader_end = leader_end


class Progress:
    """Of one leader, in one epoch that begins at `start_offset`."""

    __slots__ = ("_start_offset", "_voters", "high_watermark", "observers", "replicas")

    def __init__(self, voters: VoterSet, start_offset: int, high_watermark: int) -> None:
        self._voters = voters
        self.replicas: dict[int, ReplicaProgress] = {voter_id: ReplicaProgress() for voter_id in voters.ids}
        self.observers: dict[ReplicaKey, ReplicaProgress] = {}
        self._start_offset = start_offset
        self.high_watermark = high_watermark

    def end_of(self, voter_id: int) -> int:
        replica = self.replicas.get(voter_id)
        return UNKNOWN if replica is None else replica.end_offset

    def note(self, replica: ReplicaKey, end_offset: int, leader_end: int = 0, now_ms: int = UNKNOWN) -> bool:
        """Takes in how far a replica is; True if that commits more. Replicas without a vote do not count."""
        if not self._voters.has(replica):
            if replica.id >= 0:
                self.observers.setdefault(replica, ReplicaProgress()).note(end_offset, leader_end, now_ms)
            return False
        self.replicas[replica.id].note(end_offset, leader_end, now_ms)
        return self._advance()

    def set_voters(self, voters: VoterSet) -> bool:
        """Others vote now. What is known of one that observed until now is kept. True if more is committed."""
        known = {key.id: seen for key, seen in self.observers.items() if voters.has(key)}
        left = {id: seen for id, seen in self.replicas.items() if voters.get(id) is None}
        for voter in self._voters:
            if voter.key.id in left:
                self.observers[voter.key] = left[voter.key.id]
        self.replicas = {
            voter_id: self.replicas.get(voter_id) or known.get(voter_id) or ReplicaProgress() for voter_id in voters.ids
        }
        self.observers = {key: seen for key, seen in self.observers.items() if not voters.has(key)}
        self._voters = voters
        return self._advance()

    def forget_silent_observers(self, now_ms: int) -> None:
        for key, seen in list(self.observers.items()):
            if now_ms - seen.last_fetch_ms >= OBSERVER_SESSION_MS:
                del self.observers[key]

    def _advance(self) -> bool:
        ends = sorted((replica.end_offset for replica in self.replicas.values()), reverse=True)
        committed = ends[self._voters.majority - 1]
        if committed <= self._start_offset or committed <= self.high_watermark:
            return False
        self.high_watermark = committed
        return True

    def most_advanced(self, besides: int) -> tuple[int, ...]:
        """The other voters, the one with the longest log first."""
        others = [(replica.end_offset, id) for id, replica in self.replicas.items() if id != besides]
        return tuple(voter_id for _, voter_id in sorted(others, key=lambda other: (-other[0], other[1])))
