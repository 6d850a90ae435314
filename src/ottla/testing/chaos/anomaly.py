"""One thing that a cluster must not do, with what shows it."""

from enum import StrEnum
from typing import Final, NamedTuple


class AnomalyKind(StrEnum):
    """The names are Jepsen's. The value is what a table shows."""

    LOST_WRITE = "lost write"
    INCONSISTENT_OFFSETS = "inconsistent offsets"
    DUPLICATE = "duplicate"
    ABORTED_READ = "aborted read"
    PRECOMMITTED_READ = "precommitted read"
    POLL_SKIP = "poll skip"
    NONMONOTONIC_POLL = "nonmonotonic poll"
    NONMONOTONIC_SEND = "nonmonotonic send"
    G0 = "G0"
    G1C = "G1c"
    G1C_WITH_WRITES = "G1c with writes"


MEANINGS: Final = {
    AnomalyKind.LOST_WRITE: "an acknowledged record that is not there in the end",
    AnomalyKind.INCONSISTENT_OFFSETS: "one offset, two records",
    AnomalyKind.DUPLICATE: "one record, two offsets",
    AnomalyKind.ABORTED_READ: "a record of an aborted transaction is read",
    AnomalyKind.PRECOMMITTED_READ: "a record is read before its transaction was asked to commit",
    AnomalyKind.POLL_SKIP: "a consumer passes over a record",
    AnomalyKind.NONMONOTONIC_POLL: "a consumer goes back in a partition that it keeps",
    AnomalyKind.NONMONOTONIC_SEND: "a producer's later record is before its earlier one",
    AnomalyKind.G0: "transactions write around each other in a circle",
    AnomalyKind.G1C: "transactions read from each other in a circle",
    AnomalyKind.G1C_WITH_WRITES: "transactions read from and write around each other in a circle",
}

# Kafka lets the records of open transactions stand between each other: it promises nothing about the order of
# their writes in several partitions, and transactions that run side by side show such circles all the time.
ALLOWED_BY_KAFKA: Final = frozenset({AnomalyKind.G0, AnomalyKind.G1C_WITH_WRITES})


class Anomaly(NamedTuple):
    kind: AnomalyKind
    evidence: str
