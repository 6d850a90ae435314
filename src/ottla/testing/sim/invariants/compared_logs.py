"""Compares logs that must be the same: batch by batch, by place and checksum, whoever had them first.

Each life of a node is followed from the beginning of its logs, so that logs that were recovered or fetched anew are
compared again; and so is a log that has taken another's place, as after a move.
"""

from collections.abc import Hashable, Iterator

from ottla.log.partition_log import PartitionLog
from ottla.log.scan import scan_headers
from ottla.records.batch import BatchHeader
from ottla.testing.sim.cluster.machine import Machine


class ComparedLogs:
    def __init__(self) -> None:
        self._batches: dict[tuple[Hashable, int], tuple[int, int, int]] = {}
        """What is at a base offset: the last offset, the checksum, and the node that was seen to have it first."""
        self._compared: dict[tuple[int, Hashable], tuple[object, PartitionLog | None, int]] = {}
        """Up to where which log was compared in a life."""

    def difference(self, machine: Machine, name: Hashable, log: PartitionLog, end_offset: int) -> str | None:
        """What is not as others have it before this offset, of what was not compared yet."""
        life, compared, offset = self._compared.get((machine.node_id, name), (None, None, 0))
        if life is not machine.life or compared is not log:
            offset = 0
        for header in _headers(log, offset, end_offset):
            had = header.last_offset, header.crc, machine.node_id
            known = self._batches.setdefault((name, header.base_offset), had)
            if known[:2] != had[:2]:
                return f"nodes {known[2]} and {machine.node_id} have other batches at {header.base_offset}"
            offset = header.next_offset
        self._compared[machine.node_id, name] = machine.life, log, offset
        return None


def _headers(log: PartitionLog, offset: int, end_offset: int) -> Iterator[BatchHeader]:
    """Of the batches from one offset to another."""
    if offset >= end_offset:
        return
    for segment in log.segments:
        if segment.next_offset() <= offset:
            continue
        found = segment.find(offset)
        if found is None:
            continue
        for _, header in scan_headers(segment.file, found.position, segment.size):
            if header.base_offset >= offset:
                if header.next_offset > end_offset:
                    return
                yield header
