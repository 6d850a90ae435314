"""Runs that have failed once, each with why. They must never fail again.

A seed means another run whenever the simulator draws something else; the test of the fix says what was wrong. What is
left of an old one is one more run.
"""

from typing import NamedTuple

PROGRAMS_THEN = (
    "writer-1",
    "writer-2",
    "transactions-1",
    "transactions-2",
    "reader-1",
    "reader-2",
    "reader-3",
    "topics-1",
)
"""Those that every run had when the first of these failed."""


class FailedOnce(NamedTuple):
    seed: int
    nodes: int
    minutes: float
    why: str
    profile: str = "usual"
    actors: tuple[str, ...] | None = PROGRAMS_THEN


FAILED_ONCE = [
    FailedOnce(0, 1, 1, "a producer's timer for batches that are due fired for ever, as rounding said that none was"),
    FailedOnce(3, 1, 1, "after a clean stop, batches that came again were taken for out of order, then written twice"),
    FailedOnce(52, 1, 1, "a consumer group waited for an hour that the clock had shown before it was set back"),
    FailedOnce(200, 3, 0.5, "a broker that lost records in a power cut led again, by old metadata, in the same epoch"),
    FailedOnce(13, 3, 0.5, "a node ended because a directory failed while its logs were taken up", "directories"),
    FailedOnce(20, 3, 0.5, "what was left of a metadata log that was cut was taken for committed", "elections"),
    FailedOnce(1030, 3, 0.5, "a marker of the older protocol ended a transaction of the newer one", "elections"),
    FailedOnce(
        8,
        3,
        0.5,
        "a move that was ended before it began dropped the copy of the one before, and the next one never ended",
        "moves",
        ("writer-1", "writer-2", "moves-1", "moves-2"),
    ),
    FailedOnce(
        6,
        3,
        0.5,
        "the client of a majority reached the node that clients were cut off from, and believed its metadata",
        "levels",
        ("writer-1", "writer-2", "levels-1", "levels-2"),
    ),
    FailedOnce(
        1,
        3,
        1,
        "nobody mended the directory of the last eligible leader: another node had lost other partitions",
        "directories",
        ("writer-1", "writer-2", "moves-1"),
    ),
    FailedOnce(
        11,
        3,
        0.5,
        "a directory failed while a worker removed files of a log: both took the same entry out of the list",
        "errors",
        None,
    ),
    FailedOnce(
        4,
        6,
        0.5,
        "a transformer waited five minutes for its group: its coordinator had lost its power while it joined",
        "files",
        None,
    ),
    FailedOnce(
        2,
        3,
        0.5,
        "a node was down when it lost the files of its epochs, and its logs were held to know them",
        "files",
        None,
    ),
    FailedOnce(
        101,
        5,
        1,
        "a crash brought deleted records back, and the file of leader epochs had forgotten theirs",
        "quorum",
        None,
    ),
    FailedOnce(
        28032,
        3,
        1,
        "a producer without idempotence gave a request up, which was carried out behind the next: held to be in order",
        "usual",
        None,
    ),
    FailedOnce(
        30012,
        5,
        1,
        "a controller that knew who led, but not where, was taken for the leader, and asked for another voter's vote",
        "voters",
        None,
    ),
    FailedOnce(
        31002,
        5,
        1,
        "a broker that had registered was unregistered, late, before it served, and no operator restarted it",
        "voters",
        None,
    ),
    FailedOnce(
        52023,
        3,
        1,
        "min.insync.replicas was lowered while nobody led, and those who were not elected stayed eligible leaders",
        "levels",
        None,
    ),
    FailedOnce(
        52011,
        3,
        4,
        "offsets of a transaction were committed without epochs: a leader deposed long ago had one begin anew",
        "patient",
        None,
    ),
    FailedOnce(
        52027,
        3,
        1,
        "a moment without descriptors kept a flush of the metadata log from being begun, and no other one ever was",
        "errors",
        None,
    ),
    FailedOnce(
        52011,
        6,
        1,
        "a bit was turned in a batch's epoch, which no checksum covers, and a controller was elected by that epoch",
        "files",
        None,
    ),
]
