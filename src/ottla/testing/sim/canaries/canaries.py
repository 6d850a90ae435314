"""Ways to break nodes, each of which a run must find: for each, what runs it takes, and the seed that finds it."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, NamedTuple

from ottla.testing.sim.canaries import broken_brokers, broken_quorums
from ottla.testing.sim.run_plan import RunPlan, draw_plan
from ottla.testing.sim.run_profiles import USUAL


class Canary(NamedTuple):
    """`broken` is a context manager: within it, nodes are broken so."""

    broken: Callable[[], AbstractContextManager[None]]
    nodes: int
    seed: int
    """A run of this seed finds it."""
    actors: tuple[str, ...] | None = None
    """The programs that it takes, if it takes others than the seed has."""
    profile: str = USUAL
    """Of runs in which it matters."""
    minutes: float = 1
    faults: tuple[str, ...] | None = None
    """The kinds of faults that it takes; None: all that the seed has."""
    found_by: str = ""
    """The invariant that was violated."""
    within_seeds: int = 20
    """If the product has changed since, and the seed finds it no longer, one of the seeds 1 to this one does."""
    is_quick: bool = False
    """Whether it is looked for in every `make test`."""

    @property
    def summary(self) -> str:
        return (self.broken.__doc__ or "").strip()

    def plan(self, seed: int | None = None) -> RunPlan:
        """A run that finds it; with another seed, one that may."""
        duration_ms = round(self.minutes * 60_000)
        plan = draw_plan(self.seed if seed is None else seed, self.nodes, duration_ms, self.profile)
        faults = None if self.faults is None else [one.number for one in plan.faults if one.kind in self.faults]
        return plan.only(faults, self.actors)


_TOPICS: Final = ("topics-1",)
_WRITTEN: Final = ("writer-1", "writer-2")
_READ: Final = ("writer-1", "reader-1", "reader-2")
_MIX: Final = ("writer-1", "transactions-1", "mix-1", "mix-2")
_TRANSACTIONS: Final = ("transactions-1", "transactions-2", "reader-1")
_OPERATED: Final = ("writer-1", "writer-2", "operator-1")
_MOVED: Final = ("writer-1", "writer-2", "moves-1")

CANARIES: Final = {
    "skip-syncs": Canary(
        broken_brokers.skip_syncs,
        1,
        1,
        _WRITTEN,
        found_by="what a replica knows of its log follows from it",
        is_quick=True,
    ),
    "take-failed-syncs-for-full-disks": Canary(
        broken_brokers.take_failed_syncs_for_full_disks,
        1,
        13,
        _WRITTEN,
        "errors",
        0.5,
        found_by="an offset has one value",
        is_quick=True,
    ),
    "forget-sequences": Canary(
        broken_brokers.forget_sequences,
        1,
        1,
        _WRITTEN,
        found_by="idempotent records are there once and in order",
        is_quick=True,
    ),
    "forget-producers-at-start": Canary(
        broken_brokers.forget_producers_at_start,
        1,
        1,
        _WRITTEN,
        found_by="what a replica knows of its log follows from it",
        is_quick=True,
    ),
    "drop-commits": Canary(
        broken_brokers.drop_commits, 1, 1, _READ, found_by="a group continues where it had committed", is_quick=True
    ),
    "show-aborted": Canary(
        broken_brokers.show_aborted, 1, 3, _TRANSACTIONS, found_by="transactions are atomic", is_quick=True
    ),
    "ack-before-replication": Canary(
        broken_brokers.ack_before_replication,
        3,
        1,
        _WRITTEN,
        found_by="ISR and eligible leaders have every acknowledged record",
        is_quick=True,
    ),
    "vote-for-shorter-logs": Canary(
        broken_quorums.vote_for_shorter_logs,
        3,
        1,
        _TOPICS,
        found_by="what was below the high watermark stays there",
        is_quick=True,
    ),
    "commit-alone": Canary(
        broken_quorums.commit_alone,
        3,
        1,
        _TOPICS,
        found_by="what was below the high watermark stays there",
        is_quick=True,
    ),
    "skip-truncation": Canary(
        broken_brokers.skip_truncation,
        3,
        1,
        _WRITTEN,
        found_by="replicas match below the high watermark",
        is_quick=True,
    ),
    "vote-twice": Canary(
        broken_quorums.vote_twice, 5, 2, _TOPICS, "elections", found_by="there is one leader in an epoch", is_quick=True
    ),
    "forget-the-vote": Canary(
        broken_quorums.forget_the_vote,
        5,
        4,
        _TOPICS,
        "quorum",
        0.5,
        ("split vote",),
        "there is one leader in an epoch",
        is_quick=True,
    ),
    "follow-older-leaders": Canary(
        broken_quorums.follow_older_leaders, 3, 5, _TOPICS, found_by="there is one leader in an epoch", is_quick=True
    ),
    "commit-before-flush": Canary(
        broken_quorums.commit_before_flush,
        1,
        4,
        _TOPICS,
        found_by="what was below the high watermark stays there",
        is_quick=True,
    ),
    "elect-anyone": Canary(broken_quorums.elect_anyone, 3, 1, _WRITTEN, found_by="becoming whole takes at most 60 s"),
    "store-lent-bytes": Canary(
        broken_brokers.store_lent_bytes, 3, 1, _MIX, found_by="replicas match below the high watermark", is_quick=True
    ),
    "move-what-was-cut": Canary(
        broken_brokers.move_what_was_cut,
        3,
        15,
        (*_MOVED, "moves-2"),
        "moves",
        0.5,
        found_by="replicas match below the high watermark",
        within_seeds=80,
    ),
    "checkpoint-over-a-cut": Canary(
        broken_brokers.checkpoint_over_a_cut,
        3,
        6,
        _WRITTEN,
        found_by="the offsets of a log are in their order",
        is_quick=True,
    ),
    "roles-before-settings": Canary(
        broken_brokers.roles_before_settings,
        6,
        8,
        _WRITTEN,
        "late",
        0.5,
        ("late delta",),
        "ISR and eligible leaders have every acknowledged record",
        is_quick=True,
    ),
    "end-fetchers": Canary(broken_brokers.end_fetchers, 3, 3, _WRITTEN, found_by="becoming whole takes at most 60 s"),
    "drop-ready": Canary(
        broken_quorums.drop_ready,
        5,
        3,
        _TOPICS,
        "quorum",
        0.5,
        ("lost epoch",),
        "what is asked comes to an end",
        is_quick=True,
    ),
    "reassign-for-ever": Canary(
        broken_quorums.reassign_for_ever, 4, 1, _OPERATED, found_by="settling takes at most 60 s"
    ),
    "load-after-closing": Canary(
        broken_brokers.load_after_closing,
        3,
        1,
        (*_TRANSACTIONS, "elector-1"),
        "leaders",
        0.5,
        found_by="a coordinator that has lost its partition does not come back",
        is_quick=True,
    ),
    "overtake-assignments": Canary(
        broken_brokers.overtake_assignments,
        6,
        6,
        _WRITTEN,
        "late",
        0.5,
        ("overtaken assignment",),
        "the metadata keep the directory that a broker has reported last",
        is_quick=True,
    ),
    "commit-older-epochs": Canary(
        broken_quorums.commit_older_epochs,
        5,
        5,
        _TOPICS,
        "quorum",
        0.5,
        ("figure 8",),
        "replicas match below the high watermark",
        is_quick=True,
    ),
    "vote-before-saving": Canary(
        broken_quorums.vote_before_saving,
        5,
        1,
        _TOPICS,
        "elections",
        found_by="a node gives up only when its disk fails",
        is_quick=True,
    ),
    "change-voters-at-once": Canary(
        broken_quorums.change_voters_at_once,
        5,
        1,
        _TOPICS,
        "quorum",
        0.5,
        ("voters at once",),
        "what was below the high watermark stays there",
        is_quick=True,
    ),
    "fetch-in-any-epoch": Canary(
        broken_brokers.fetch_in_any_epoch,
        6,
        6,
        _WRITTEN,
        "late",
        0.5,
        ("stale follower",),
        "who is taken into an ISR follows the leader in its epoch",
        is_quick=True,
    ),
    "grow-isr-early": Canary(
        broken_brokers.grow_isr_early,
        3,
        5,
        _WRITTEN,
        found_by="ISR and eligible leaders have every acknowledged record",
    ),
    "reply-before-commit": Canary(
        broken_quorums.reply_before_commit, 3, 1, _TOPICS, found_by="what is asked comes to an end", is_quick=True
    ),
    "admit-old-brokers": Canary(
        broken_quorums.admit_old_brokers,
        6,
        9,
        _WRITTEN,
        "late",
        0.5,
        ("late request",),
        "ISR and eligible leaders have every acknowledged record",
        is_quick=True,
    ),
    "admit-old-producers": Canary(
        broken_brokers.admit_old_producers, 3, 2, _TRANSACTIONS, found_by="transactions are atomic", is_quick=True
    ),
    "verify-nothing": Canary(
        broken_brokers.verify_nothing, 3, 1, _TRANSACTIONS, found_by="settling takes at most 60 s"
    ),
}
