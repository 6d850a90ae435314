"""The orders of a cleaning, and its reports: plain values that can be sent to another process and back."""

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from ottla.log.transaction_index import AbortedTransaction


class LastRecord(NamedTuple):
    """The last thing that a producer wrote: its sequence or, if that is of no more use, its epoch must not be lost."""

    last_data_offset: int
    """-1 when what came last is a marker."""
    epoch: int


class CleaningJob(NamedTuple):
    """One cleaning of one partition's log."""

    directory: str
    base_offsets: tuple[int, ...]
    """The segments that may be cleaned, oldest first: durable, decided, and no longer written to."""
    first_dirty_offset: int
    end_offset: int
    """Where the last of the segments ends and the next one begins."""
    now_ms: int
    delete_retention_ms: int
    segment_bytes: int
    segment_index_bytes: int
    index_interval_bytes: int
    map_slots: int
    map_capacity: int
    seed: str
    """32 hex digits, for the map's fingerprints."""
    buffer_bytes: int = 1 << 18
    bytes_per_s: float = float("inf")
    """As fast as it may read and write, taken together."""
    aborted: tuple[AbortedTransaction, ...] = ()
    """Those whose markers are after `end_offset`; the others are found in the segments' own indexes."""
    producers: Mapping[int, LastRecord] = MappingProxyType({})

    def to_json(self) -> str:
        return json.dumps({**self._asdict(), "producers": dict(self.producers)})

    @classmethod
    def of_json(cls, text: str) -> "CleaningJob":
        fields: dict[str, Any] = json.loads(text)
        fields["base_offsets"] = tuple(fields["base_offsets"])
        fields["aborted"] = tuple(AbortedTransaction._make(entry) for entry in fields["aborted"])
        fields["producers"] = {int(id): LastRecord._make(last) for id, last in fields["producers"].items()}
        return cls(**fields)


class CleanedSegment(NamedTuple):
    """A finished segment: its files have the suffix .cleaned and are on the disk."""

    base_offsets: tuple[int, ...]
    """The segments that it stands for; it begins where the first of them does."""


class CleaningStats:
    """How it went: counts, which grow while it runs. Times are for who runs it to fill in."""

    def __init__(self, **counts: Any) -> None:
        self.map_bytes_read = 0
        self.map_utilization = 0.0
        self.bytes_read = 0
        self.bytes_written = 0
        self.records_read = 0
        self.records_written = 0
        self.keyless_records = 0
        self.elapsed_s = 0.0
        vars(self).update(counts)


class CleaningDone(NamedTuple):
    """All segments have been reported; the log is clean up to here once they are swapped in."""

    clean_offset: int
    stats: CleaningStats


class CleaningFailed(NamedTuple):
    """It came to an end before that. What was reported until then is good."""

    reason: str
    errno: int = 0
    """If the disk failed."""
    is_crash: bool = False
    """The process that did it has died."""
    is_put_off: bool = False
    """It was not begun, for a reason that passes."""


CleaningStep: TypeAlias = CleanedSegment | CleaningDone | CleaningFailed


def step_to_json(step: CleaningStep) -> str:
    if isinstance(step, CleaningDone):
        return json.dumps({"done": {"clean_offset": step.clean_offset, "stats": vars(step.stats)}})
    return json.dumps({"cleaned" if isinstance(step, CleanedSegment) else "failed": step._asdict()})


def step_of_json(text: str) -> CleaningStep:
    ((kind, fields),) = json.loads(text).items()
    if kind == "cleaned":
        return CleanedSegment(tuple(fields["base_offsets"]))
    if kind == "failed":
        return CleaningFailed(**fields)
    return CleaningDone(fields["clean_offset"], CleaningStats(**fields["stats"]))
