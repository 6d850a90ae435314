"""The voters by offset: who had a vote when the log was so long.

A replica goes by the last voters in its log, committed or not (KIP-853). What is not committed may be cut away again,
and then the voters before it count once more. A snapshot holds the voters of its own offset, and not later ones.
"""

from typing import NamedTuple

from ottla.machines.raft.voters import VoterSet


class _Entry(NamedTuple):
    offset: int
    kraft_version: int
    voters: VoterSet


class VoterHistory:
    """The first entry is what formatting, the settings or a snapshot says. Entries come in the order of the log."""

    __slots__ = ("_entries",)

    def __init__(self, kraft_version: int, voters: VoterSet, offset: int = -1) -> None:
        self._entries = [_Entry(offset, kraft_version, voters)]

    @property
    def voters(self) -> VoterSet:
        return self._entries[-1].voters

    @property
    def kraft_version(self) -> int:
        return self._entries[-1].kraft_version

    @property
    def offset(self) -> int:
        """Of the record that named the voters; -1 if no record of the log did."""
        return self._entries[-1].offset

    @property
    def is_in_log(self) -> bool:
        """Whether the log, or a snapshot of it, names the voters. If not, formatting or the settings do."""
        return self.offset >= 0

    @property
    def voters_before(self) -> VoterSet | None:
        """Those whom the last entry replaced; None if it is the only one."""
        return self._entries[-2].voters if len(self._entries) > 1 else None

    def before(self, end_offset: int) -> tuple[int, VoterSet]:
        """kraft.version and the voters as all before `end_offset` says."""
        found = self._entries[0]
        for entry in self._entries:
            if entry.offset < end_offset:
                found = entry
        return found.kraft_version, found.voters

    def note(self, offset: int, *, kraft_version: int | None = None, voters: VoterSet | None = None) -> None:
        """A control record at `offset`, which is after all that were noted."""
        last = self._entries[-1]
        assert offset > last.offset, f"voters at offset {offset}, after those at {last.offset}"
        self._entries.append(
            _Entry(
                offset,
                last.kraft_version if kraft_version is None else kraft_version,
                last.voters if voters is None else voters,
            )
        )

    def truncate(self, end_offset: int) -> None:
        """The log ends here now: what was said at this offset or later was never so."""
        while len(self._entries) > 1 and self._entries[-1].offset >= end_offset:
            self._entries.pop()

    def reset(self, offset: int, kraft_version: int, voters: VoterSet) -> None:
        """The log has been replaced by a snapshot that ends before `offset`."""
        self._entries = [_Entry(offset - 1, kraft_version, voters)]
