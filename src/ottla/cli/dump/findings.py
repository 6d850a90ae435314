"""What was found wrong while printing, collected per file and printed at the end, as kafka-dump-log does."""

from collections.abc import Iterator
from dataclasses import dataclass, field

Pairs = dict[str, list[tuple[int, int]]]


@dataclass(slots=True)
class Findings:
    index_mismatches: Pairs = field(default_factory=dict)
    timestamp_mismatches: Pairs = field(default_factory=dict)
    timestamps_out_of_order: Pairs = field(default_factory=dict)
    offsets_not_found: Pairs = field(default_factory=dict)
    non_consecutive_offsets: Pairs = field(default_factory=dict)
    invalid_batches: dict[str, list[int]] = field(default_factory=dict)
    unreadable: list[str] = field(default_factory=list)

    def of_indexes(self) -> Iterator[str]:
        """Index entries that do not say what the log says."""
        yield from _printed(self.index_mismatches, "Mismatches in :{}", "  Index offset: {}, log offset: {}")
        yield from _printed(
            self.timestamp_mismatches,
            "Found timestamp mismatch in :{}",
            "  Index timestamp: {}, log timestamp: {}",
        )
        yield from _printed(
            self.timestamps_out_of_order,
            "Found out of order timestamp in :{}",
            "  Index timestamp: {}, Previously indexed timestamp: {}",
        )
        yield from _printed(
            self.offsets_not_found,
            "The following indexed offsets are not found in :{}",
            "Indexed offset: {}, found log offset: {}",
        )

    def of_offsets(self) -> Iterator[str]:
        """Gaps between offsets: normal after compaction. Kafka also counts the one before the first record."""
        yield from _printed(self.non_consecutive_offsets, "Non-consecutive offsets in {}", "  {} is followed by {}")

    def of_checksums(self) -> Iterator[str]:
        for path, positions in self.invalid_batches.items():
            for position in positions:
                yield f"{path}: the batch at position {position} does not match its checksum"


def _printed(pairs: Pairs, heading: str, line: str) -> Iterator[str]:
    for path, found in pairs.items():
        yield heading.format(path)
        for pair in found:
            yield line.format(*pair)
