"""Ways to break nodes, each of which a run must find: for each, how many nodes it takes and within how many seeds."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from ottla.testing.sim.canaries import broken_brokers, broken_quorums
from ottla.testing.sim.run_plan import ACTORS
from ottla.testing.sim.run_profiles import USUAL


class Canary(NamedTuple):
    """`broken` is a context manager: within it, nodes are broken so."""

    broken: Callable[[], AbstractContextManager[None]]
    nodes: int
    within_seeds: int
    """A run of one of the seeds 1 to this one finds it, at one minute a run."""
    actors: tuple[str, ...] = ACTORS
    """The programs that it takes."""
    profile: str = USUAL
    """Of runs in which it matters."""

    @property
    def summary(self) -> str:
        return (self.broken.__doc__ or "").strip()


CANARIES: Final = {
    "skip-syncs": Canary(broken_brokers.skip_syncs, 1, 5),
    "forget-sequences": Canary(broken_brokers.forget_sequences, 1, 3),
    "forget-producers-at-start": Canary(broken_brokers.forget_producers_at_start, 1, 5),
    "drop-commits": Canary(broken_brokers.drop_commits, 1, 3),
    "show-aborted": Canary(broken_brokers.show_aborted, 1, 5),
    "ack-before-replication": Canary(broken_brokers.ack_before_replication, 3, 3),
    "vote-for-shorter-logs": Canary(broken_quorums.vote_for_shorter_logs, 3, 5, ("topics-1",)),
    "commit-alone": Canary(broken_quorums.commit_alone, 3, 5, ("topics-1",)),
    "skip-truncation": Canary(broken_brokers.skip_truncation, 3, 5),
    "vote-twice": Canary(broken_quorums.vote_twice, 5, 3, ("topics-1",), "elections"),
    "forget-the-vote": Canary(broken_quorums.forget_the_vote, 5, 15, ("topics-1",), "elections"),
    "follow-older-leaders": Canary(broken_quorums.follow_older_leaders, 3, 5, ("topics-1",)),
    "commit-before-flush": Canary(broken_quorums.commit_before_flush, 1, 5, ("topics-1",)),
    "elect-anyone": Canary(broken_quorums.elect_anyone, 3, 5),
}
