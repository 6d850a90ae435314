"""Sets of GTIDs: which transactions were read.

MariaDB counts in each domain, in order: the last of a domain says all (`0-1-270,1-1-14`). MySQL has intervals for each
server that wrote (`3e11fa47-…:1-5:7-9`).
"""

import struct
from bisect import insort
from collections.abc import Mapping
from uuid import UUID


class MariaDbGtids:
    """The last GTID of each domain."""

    def __init__(self, text: str = "") -> None:
        self._last: dict[int, tuple[int, int]] = {}
        """Domain to sequence and server."""
        for part in text.replace("\n", "").split(","):
            if not part.strip():
                continue
            domain, server, sequence = map(int, part.strip().split("-"))
            # Debezium's sets may have several of a domain, in any order: the highest counts.
            self._last[domain] = max(self._last.get(domain, (0, 0)), (sequence, server))

    def add(self, gtid: str) -> None:
        """The next of the log takes the place of the last of its domain. It need not have a higher number: without
        `gtid_strict_mode` servers that write to one domain may count as they like, and the log's order is the truth."""
        domain, server, sequence = map(int, gtid.split("-"))
        self._last[domain] = sequence, server

    def __str__(self) -> str:
        return ",".join(f"{domain}-{server}-{sequence}" for domain, (sequence, server) in sorted(self._last.items()))


class MySqlGtids:
    """Intervals of each server, both ends included. Tags (`3e11fa47-…:1-5:nightly:1-3`, since MySQL 8.3) are not
    understood: see `has_tags`."""

    @staticmethod
    def has_tags(text: str) -> bool:
        """Whether a server's set has transactions whose GTIDs have tags."""
        parts = (interval for part in text.split(",") for interval in part.strip().split(":")[1:])
        return any(not interval.strip()[:1].isdigit() for interval in parts)

    def __init__(self, text: str = "") -> None:
        self._intervals: dict[str, list[tuple[int, int]]] = {}
        for part in text.replace("\n", "").split(","):
            if not part.strip():
                continue
            server, *intervals = part.strip().split(":")
            for interval in intervals:
                first, _, last = interval.partition("-")
                self._add(server.lower(), int(first), int(last or first))

    def add(self, gtid: str) -> None:
        server, _, number = gtid.rpartition(":")
        self._add(server.lower(), int(number), int(number))

    def _add(self, server: str, first: int, last: int) -> None:
        known = self._intervals.setdefault(server, [])
        if known and known[-1][0] <= first <= known[-1][1] + 1:  # the next of the last interval, nearly always
            known[-1] = known[-1][0], max(known[-1][1], last)
            return
        insort(known, (first, last))
        joined: list[tuple[int, int]] = []
        for start, end in known:
            if joined and start <= joined[-1][1] + 1:
                joined[-1] = joined[-1][0], max(joined[-1][1], end)
            else:
                joined.append((start, end))
        self._intervals[server] = joined

    def __contains__(self, gtid: object) -> bool:
        server, _, number = str(gtid).rpartition(":")
        return any(first <= int(number) <= last for first, last in self._intervals.get(server.lower(), ()))

    @property
    def intervals(self) -> Mapping[str, list[tuple[int, int]]]:
        return self._intervals

    def holds(self, other: "MySqlGtids") -> bool:
        """Whether all of the other's are here."""
        return all(
            any(first <= start and end <= last for first, last in self._intervals.get(server, ()))
            for server, intervals in other._intervals.items()
            for start, end in intervals
        )

    def encoded(self) -> bytes:
        """As COM_BINLOG_DUMP_GTID has it; ends are not included there."""
        parts = [struct.pack("<Q", len(self._intervals))]
        for server, intervals in self._intervals.items():
            parts += [UUID(server).bytes, struct.pack("<Q", len(intervals))]
            parts += [struct.pack("<QQ", first, last + 1) for first, last in intervals]
        return b"".join(parts)

    def __str__(self) -> str:
        return ",".join(
            ":".join([server, *(str(first) if first == last else f"{first}-{last}" for first, last in intervals)])
            for server, intervals in sorted(self._intervals.items())
        )


Gtids = MariaDbGtids | MySqlGtids
