"""What a consumer sees of its membership in a group, the same for both protocols.

Theory of operation: a member works on its own. Once the application has polled for the first time it finds its
coordinator, joins, and sends heartbeats from timers, whether or not the application polls. What it needs from the
consumer it asks of a `MembershipListener`: to give partitions up, to take others on. Each of these may take a while,
because the offsets are committed and the application's own listener runs in its next call of `poll`; the member waits
for the awaitable that it is given and continues from there. So the same code serves a thread that blocks and asyncio.

    member = ClassicMember(cluster, coordinators, settings, listener)
    member.subscribe({"orders"})
    member.on_poll()                      at every poll of the application
    ...
    await member.leave()
"""

from __future__ import annotations

from collections.abc import Awaitable, Collection
from enum import Enum
from typing import NamedTuple, Protocol

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import Assignor
from ottla.wire.errors import ErrorCode

NO_GENERATION = -1
"""The generation or member epoch of a consumer that is no member."""


class Identity(NamedTuple):
    """Who commits: what OffsetCommit, OffsetFetch and TxnOffsetCommit carry."""

    generation: int = NO_GENERATION
    """The generation of a classic group, or the member's epoch (KIP-848)."""
    member_id: str = ""
    group_instance_id: str | None = None


class LeaveBehaviour(Enum):
    """What becomes of the membership when a consumer closes (KIP-1092)."""

    DEFAULT = "default"
    """A dynamic member leaves; a static one stays until its session is over."""
    LEAVE = "leave"
    REMAIN = "remain"


class MembershipListener(Protocol):
    """The consumer, as its member sees it. Partitions come sorted.

    A method returns None when it is done, or an awaitable that is done when the member may continue. What an awaitable
    raises is the affair of the application (its listener failed): the member continues as if it had not been raised.
    """

    def on_revoked(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These are given up in good order: stop fetching, wait for the application to poll, commit, tell it.

        The identity stays valid for committing until the awaitable is done, unless the member is fenced meanwhile: if
        `identity` has no generation any more when the application polls, the partitions are lost after all.
        """
        ...

    def on_lost(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These may already be another member's: nothing can be committed for them any more."""
        ...

    def on_assigned(self, partitions: tuple[TopicPartition, ...]) -> Awaitable[None] | None:
        """These come on top of those that the consumer has. The end of every rebalance, so there may be none."""
        ...

    def on_failed(self, error: Exception) -> None:
        """The member cannot continue: the error is for the application's next call of `poll`.

        The member has stopped. It begins anew when the application polls after that, as Java's does.
        """
        ...


class Member(Protocol):
    """One consumer's place in one group. Called by one thread at a time."""

    @property
    def identity(self) -> Identity:
        """Who this member is now. `Identity()` with its instance id alone while it is no member."""
        ...

    @property
    def assignment(self) -> frozenset[TopicPartition]:
        """What the listener has been given and not been asked to give up: includes partitions being revoked."""
        ...

    @property
    def is_rebalancing(self) -> bool:
        """Joining, or moving partitions: an offset that is committed now may be refused."""
        ...

    def subscribe(self, topics: Collection[str]) -> None:
        """Replaces the subscription. A consumer with a pattern of its own calls this when other topics match it."""
        ...

    def subscribe_pattern(self, pattern: str) -> None:
        """A regular expression in RE2's syntax that the coordinator matches. Classic groups have none: ValueError."""
        ...

    def on_poll(self) -> None:
        """The application polled: it has until `max.poll.interval.ms` from now to do so again.

        The first one after `subscribe` starts the member. One after the interval was over makes it join again.
        """
        ...

    def request_rejoin(self, reason: str) -> None:
        """Has a classic group divide its partitions anew (`enforceRebalance`). In others the coordinator decides."""
        ...

    def on_commit_refused(self, error: ErrorCode, identity: Identity) -> None:
        """The coordinator refused to commit for this identity: the member learns from it if it is still that one."""
        ...

    def leave(self, behaviour: LeaveBehaviour = LeaveBehaviour.DEFAULT) -> Awaitable[None]:
        """Gives up all partitions and leaves the group; for `unsubscribe` and for closing.

        What the listener was asked before is to be finished first. Done when the coordinator has answered or cannot
        be reached. Never raises. Afterwards `subscribe` may start over.
        """
        ...


class MemberSettings(NamedTuple):
    """The consumer's settings that concern its membership, under Kafka's names."""

    group_id: str
    group_instance_id: str | None = None
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    request_timeout_ms: int = 30_000
    client_rack: str = ""
    partition_assignment_strategy: tuple[str | Assignor, ...] = ("range", "cooperative-sticky")
    """Assignors, by name or the application's own, the preferred one first. Classic groups only."""
    group_remote_assignor: str | None = None
    """The coordinator's assignor; the group's own choice if None. New protocol only."""
