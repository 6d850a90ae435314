"""What joins a consumer to its group: its member works on its own, the application only in its calls of `poll`.

Theory of operation. When the group takes partitions away, the consumer stops handing out their records at once. The
records that were handed out before count as processed when the application polls again: then, and not before, their
offsets are committed, the application's listener runs, and the member may continue. When partitions are lost or
come, only the listener waits for that poll. So listeners run on the application's own thread, one at a time.
"""

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol

from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_metrics import ConsumerMetrics
from ottla.client.consumer.subscription import Subscription
from ottla.client.errors import KafkaError
from ottla.client.promise import Promise, spawn
from ottla.client.world import ClientWorld

Partitions = tuple[TopicPartition, ...]


class RebalanceListener(Protocol):
    """What an application gives to `subscribe`. All three are optional for classes that inherit from it.

    They run within `poll` (or `close`, `unsubscribe`), and may call the consumer: commit, seek, pause. With asyncio
    they may be coroutines.
    """

    def on_partitions_assigned(self, partitions: Partitions) -> Any:
        """These come on top of those that the consumer has."""
        return None

    def on_partitions_revoked(self, partitions: Partitions) -> Any:
        """These are given up. What was committed until this returns is where the next member continues."""
        return None

    def on_partitions_lost(self, partitions: Partitions) -> Any:
        """These may be another member's already: it is too late to commit."""
        return self.on_partitions_revoked(partitions)


class UserTask(NamedTuple):
    """Something to run in the application's call; then `done` is called with its outcome, an error or None."""

    run: Callable[[], Any]
    done: Callable[[Exception | None], None]


class GroupBond:
    """The `MembershipListener` of a consumer. `commit` commits the consumed offsets of some partitions."""

    def __init__(
        self,
        world: ClientWorld,
        subscription: Subscription,
        metrics: ConsumerMetrics,
        *,
        commit: Callable[[Partitions], Promise[None]] | None,
        is_member: Callable[[], bool],
        tell: Callable[[Exception], None],
        on_activity: Callable[[], None],
    ) -> None:
        self.listener: RebalanceListener | None = None
        self.tasks: deque[UserTask] = deque()
        self._world = world
        self._subscription = subscription
        self._metrics = metrics
        self._commit = commit
        self._is_member = is_member
        self._tell = tell
        self._on_activity = on_activity
        self._next_poll: Promise[None] = Promise()
        self.is_leaving = False
        """Whether the consumer closes or unsubscribes: it polls no more, and what it was given counts as processed."""

    def on_poll(self) -> None:
        """The application is back: what it was given before counts as processed."""
        waiting, self._next_poll = self._next_poll, Promise()
        waiting.resolve(None)

    # --- what the member says ---

    def on_revoked(self, partitions: Partitions) -> Awaitable[None] | None:
        self._stop(partitions)
        return spawn(self._revoke(partitions))

    def on_lost(self, partitions: Partitions) -> Awaitable[None] | None:
        self._stop(partitions)
        return spawn(self._lose(partitions))

    def on_assigned(self, partitions: Partitions) -> Awaitable[None] | None:
        self._metrics.on_rebalanced()
        self._subscription.add(partitions)
        for partition in partitions:
            self._subscription.partitions[partition].is_coming = self.listener is not None
        return spawn(self._assign(partitions))

    def on_failed(self, error: Exception) -> None:
        self._tell(error)

    # ---

    def _stop(self, partitions: Partitions) -> None:
        """No more records of these are handed out or fetched."""
        for partition in partitions:
            state = self._subscription.partitions.get(partition)
            if state is not None:
                state.is_revoking = True

    async def _revoke(self, partitions: Partitions) -> None:
        if not self.is_leaving:
            self._on_activity()
            await self._next_poll
        if not self._is_member():
            await self._tell_lost(partitions)
            return
        if self._commit is not None:
            try:
                await self._commit(partitions)
            except KafkaError as problem:
                self._world.report(problem)  # The partitions go all the same, as with Kafka's consumer.
        listener = self.listener
        if listener is not None:
            await self._in_poll(lambda: listener.on_partitions_revoked(partitions))
        self._subscription.remove(partitions)

    async def _lose(self, partitions: Partitions) -> None:
        if not self.is_leaving:
            self._on_activity()
            await self._next_poll
        await self._tell_lost(partitions)

    async def _tell_lost(self, partitions: Partitions) -> None:
        listener = self.listener
        if listener is not None:
            await self._in_poll(lambda: listener.on_partitions_lost(partitions))
        self._subscription.remove(partitions)

    async def _assign(self, partitions: Partitions) -> None:
        listener = self.listener
        if listener is not None:
            await self._in_poll(lambda: listener.on_partitions_assigned(partitions))
            for partition in partitions:
                state = self._subscription.partitions.get(partition)
                if state is not None:
                    state.is_coming = False
        self._on_activity()

    def _in_poll(self, run: Callable[[], Any]) -> Promise[None]:
        """What the application's listener raises is raised by its call, too."""
        over: Promise[None] = Promise()

        def done(problem: Exception | None) -> None:
            over.resolve(None)

        self.tasks.append(UserTask(run, done))
        self._on_activity()
        return over
