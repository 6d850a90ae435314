"""What runs are like: which faults happen, how often, how far nodes are from each other, and which of them vote.

`usual` has a bit of everything. The others look into one corner, where what they look for happens much more often.
"""

from collections.abc import Mapping
from typing import Final, NamedTuple


class Profile(NamedTuple):
    summary: str
    faults: Mapping[str, int]
    """By kind, how often it is drawn against others. A seed prefers some of them, and leaves out others."""
    between_ms: tuple[int, ...]
    """How far faults are apart on average; a seed has one of these."""
    spread_us: tuple[int, ...]
    """How far latencies are apart."""
    nodes: int = 3
    """How many, unless somebody says."""
    most_controllers: int = 3
    isolated: bool = False
    """Controllers are nodes of their own."""
    settings: Mapping[str, str] = {}
    """Of every node."""
    more_actors: tuple[str, ...] = ()
    """Programs besides the usual ones."""
    lasting: int = 1
    """How many times as long as usual faults may last."""
    minutes: float = 1.0
    """How long faults happen, unless somebody says."""
    dynamic_voters: bool = False
    """The voters are data (KIP-853), and not a setting."""
    flushes: bool | None = None
    """Whether every record is on the disk before it is acknowledged; None: the seed decides."""
    apart: Mapping[str, float] = {}
    """Kinds that this share of the seeds has besides, some times each: drawn apart, so that what else a seed has is the
    same with and without them."""
    while_starting: str = ""
    """A fault that half of the seeds have while the cluster starts for the first time."""


_USUAL: Final = {
    "kill": 6,
    "power cut": 6,
    "restart": 4,
    "pause": 5,
    "clock jump": 2,
    "clock stall": 2,
    "slow disk": 3,
    "full disk": 2,
    "failed sync": 3,
    "failed write": 2,
    "partition": 8,
    "swizzle": 3,
    "slow links": 3,
    "resets": 5,
    "client kill": 5,
    "client pause": 3,
    "client clock": 1,
    "stale leader": 2,
    "pair": 2,
    "one way": 2,
    "bridge": 1,
    "ring": 1,
    "late replies": 1,
    "lost replies": 3,
    "clock set": 1,
    "no descriptors": 1,
    "no memory": 1,
    "no space": 1,
    "disk errors": 1,
    "lost files": 2,
}

_REPEATED: Final = {"repeated replies": 0.3}
_SHAPES: Final = {"partition": 2, "pair": 5, "one way": 5, "bridge": 5, "ring": 5, "swizzle": 1}
_ERRORS: Final = {"no descriptors": 4, "no memory": 4, "no space": 4, "disk errors": 4}

PROFILES: Final = {
    "usual": Profile("a bit of everything", _USUAL, (1_500, 4_000, 10_000), (200, 2_000, 30_000), apart=_REPEATED),
    "elections": Profile(
        "leaders of the quorum come and go, far from each other; up to five vote",
        {"leader kill": 8, "voter kill": 8, "resets": 2, "slow links": 2, "power cut": 1, "swizzle": 1},
        (1_500, 3_000),
        (30_000, 150_000, 400_000),
        nodes=5,
        most_controllers=5,
        settings={"controller.quorum.election.timeout.ms": "400", "controller.quorum.election.backoff.max.ms": "100"},
    ),
    "voters": Profile(
        "controllers lose their vote and ask for it again, while leaders of the quorum come and go",
        {"leader kill": 6, "partition": 6, "kill": 4, "resets": 3, "power cut": 3, "swizzle": 3, "slow links": 2},
        (1_500, 4_000),
        (200, 30_000, 150_000),
        nodes=5,
        most_controllers=5,
        settings={"controller.quorum.election.timeout.ms": "400", "controller.quorum.election.backoff.max.ms": "100"},
        more_actors=("voters-1",),
        dynamic_voters=True,
    ),
    "quorum": Profile(
        "what the rules of Raft are for: schedules in which breaking one of them loses what was committed",
        {"figure 8": 1, "split vote": 1, "voters at once": 1},
        (4_000, 8_000),
        (200, 2_000, 30_000),
        nodes=5,
        most_controllers=5,
        settings={
            "controller.quorum.election.timeout.ms": "400",
            "controller.quorum.election.backoff.max.ms": "100",
            "controller.quorum.fetch.max.bytes": "1",  # A batch at a time: one of an older epoch comes alone.
        },
        dynamic_voters=True,
        while_starting="lost epoch",
    ),
    "late": Profile(
        "brokers hear of changes late, and requests come late: schedules in which one check keeps that from harm",
        {"stale follower": 1, "late delta": 1, "late request": 1, "overtaken assignment": 1},
        (2_000, 6_000),
        (200, 2_000, 10_000),
        nodes=6,
        isolated=True,
        flushes=False,
        settings={
            "log.dirs": "/data,/data-2,/data-3",
            "replica.lag.time.max.ms": "3000",
            "broker.session.timeout.ms": "18000",
            # Each change is heard of on its own: a batch at a time, and no snapshots.
            "controller.quorum.fetch.max.bytes": "1",
            "metadata.log.max.record.bytes.between.snapshots": "20971520",
        },
    ),
    "isolated": Profile(
        "as usual, and controllers are nodes of their own",
        _USUAL,
        (1_500, 4_000, 10_000),
        (200, 30_000),
        nodes=6,
        isolated=True,
        apart=_REPEATED,
    ),
    "cuts": Profile(
        "links are cut in pairs, bridges and rings, one way or both; replies come too late, twice or never",
        {**_SHAPES, "late replies": 4, "lost replies": 5, "slow links": 1, "kill": 2, "client kill": 2},
        (1_500, 4_000, 10_000),
        (200, 2_000, 30_000),
        nodes=5,
        most_controllers=5,
        apart={"repeated replies": 0.6},
    ),
    "patient": Profile(
        "nodes are paused and cut off for minutes",
        {**_SHAPES, "pause": 8, "client pause": 6, "clock set": 2, "kill": 1, "restart": 1, "client kill": 1},
        (5_000, 15_000),
        (200, 2_000, 30_000),
        lasting=10,
        minutes=4.0,
    ),
    "errors": Profile(
        "disks answer with errors now and then: no descriptors, no memory, no space, or none at all",
        {**_ERRORS, "failed sync": 6, "failed write": 1, "full disk": 1, "kill": 4, "resets": 1, "partition": 2},
        (1_500, 4_000),
        (200, 2_000),
    ),
    "files": Profile(
        "nodes start without some of their checkpoints, indexes, snapshots and metadata, or with damaged ones",
        {
            "lost files": 10,
            "damaged metadata": 10,
            "rotten metadata": 5,
            "power cut": 3,
            "restart": 2,
            "partition": 3,
            "pause": 1,
            "resets": 1,
        },
        (1_500, 4_000),
        (200, 2_000),
        nodes=6,
        isolated=True,
        settings={
            "metadata.log.max.record.bytes.between.snapshots": "1000",
            "metadata.max.retention.bytes": "20000",
        },
    ),
    "rot": Profile(
        "bits turn over on disks",
        {"bit rot": 12, "kill": 3, "restart": 2, "pause": 2, "partition": 4, "resets": 3, "client kill": 2},
        (1_500, 4_000),
        (200, 2_000),
    ),
    "moves": Profile(
        "replicas move between log directories all the time, while leaders come and go and logs are cut",
        {"stale leader": 10, "partition": 2, "pause": 1, "kill": 2, "restart": 1, "slow disk": 5},
        (2_000, 4_000),
        (200, 2_000, 30_000, 150_000),
        settings={"log.dirs": "/data,/data-2,/data-3", "broker.session.timeout.ms": "3000"},
        more_actors=("moves-1", "moves-2", "moves-3"),
    ),
    "levels": Profile(
        "min.insync.replicas changes all the time, while brokers are cut off and others hear of it late",
        {"partition": 8, "pause": 4, "slow disk": 10, "slow links": 2, "kill": 1},
        (800, 2_000),
        (200, 2_000, 30_000),
        settings={"broker.session.timeout.ms": "3000"},
        more_actors=("levels-1", "levels-2"),
    ),
    "leaders": Profile(
        "preferred leaders are elected all the time, while brokers die and come back",
        {"kill": 8, "restart": 4, "pause": 1, "slow disk": 4},
        (800, 2_000),
        (200, 2_000, 30_000),
        more_actors=("elector-1",),
    ),
    "directories": Profile(
        "nodes have three log directories, which fail one by one, while replicas move between them",
        {"lost directory": 10, "kill": 3, "restart": 3, "power cut": 2, "pause": 2, "partition": 4, "resets": 2},
        (1_500, 4_000),
        (200, 2_000, 30_000),
        settings={"log.dirs": "/data,/data-2,/data-3", "log.dir.failure.timeout.ms": "6000"},
        more_actors=("moves-1",),
    ),
}
USUAL: Final = "usual"
