"""What a consumer has consumed, and committing it: by hand, by the way, and before partitions are given up.

Theory of operation. Offsets are positions at one moment. A commit that is sent again later could set back what was
committed meanwhile: by this consumer, or, once partitions have moved, by another member. So what is committed by the
way has one attempt, and the next one is made of the positions of then. A commit that somebody waits for is tried again.
None is sent unless each of its partitions that this consumer had is its own without interruption.
"""

from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping

from ottla.base.ids import TopicPartition
from ottla.client.consumer.consumer_settings import ConsumerSettings
from ottla.client.consumer.group_bond import Partitions, UserTask
from ottla.client.consumer.offsets.committing import Committer
from ottla.client.consumer.subscription import NO_EPOCH, FetchPosition, Mode, Subscription
from ottla.client.errors import ClientClosed, CommitFailed, InvalidGroupId, KafkaError
from ottla.client.membership.member import NO_GENERATION, Identity
from ottla.client.promise import Promise, all_settled, spawn
from ottla.client.topic_partition import OffsetAndMetadata, with_epoch
from ottla.client.world import ClientWorld

OnCommitted = Callable[[Mapping[TopicPartition, OffsetAndMetadata], Exception | None], None]


class ConsumedOffsets:
    """`identity` tells who commits now. Callbacks of commits wait in `tasks`, and `on_task` is notified of each."""

    def __init__(
        self,
        world: ClientWorld,
        settings: ConsumerSettings,
        subscription: Subscription,
        committer: Committer | None,
        tasks: deque[UserTask],
        *,
        identity: Callable[[], Identity],
        on_task: Callable[[], None],
        on_commit: Callable[[Mapping[TopicPartition, OffsetAndMetadata]], None] | None = None,
    ) -> None:
        self._world = world
        self._settings = settings
        self._subscription = subscription
        self._committer = committer
        self._tasks = tasks
        self._identity = identity
        self._on_task = on_task
        self._on_commit = on_commit
        self._auto_commit_at_s = world.now_s() + settings.auto_commit_interval_ms / 1000
        self._is_auto_committing = False
        self._under_way: dict[Promise[None], None] = {}

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What `commit` commits if it is given nothing else."""
        return {partition: _committable(position) for partition, position in self._subscription.consumed()}

    def _with_epochs(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata]
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        return {partition: with_epoch(place, self._place_in(partition)) for partition, place in offsets.items()}

    def _place_in(self, partition: TopicPartition) -> OffsetAndMetadata | None:
        state = self._subscription.partitions.get(partition)
        return None if state is None or state.position is None else _committable(state.position)

    async def commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, timeout_ms: float) -> None:
        """Done when the coordinator has them."""
        deadline_s = self._world.now_s() + timeout_ms / 1000
        wanted = self.consumed() if offsets is None else self._with_epochs(offsets)
        await self._committer_of(wanted).commit(
            wanted, deadline_s, are_held=self._while_held(wanted), is_tried_again=True
        )
        self._note_commit(wanted)

    def _note_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Tells interceptors, in a call of the application's."""
        callback = self._on_commit
        if callback is not None and offsets:
            self._tasks.append(UserTask(lambda: callback(offsets), _forget))
            self._on_task()

    def _while_held(self, partitions: Iterable[TopicPartition]) -> Callable[[], bool]:
        """Tells whether this consumer has all of these that it has now, and had them all the time."""
        held = self._subscription.partitions
        states = {one: held[one] for one in partitions if one in held}
        return lambda: all(held.get(one) is state for one, state in states.items())

    def commit_later(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata] | None, on_committed: OnCommitted | None
    ) -> None:
        """One attempt. The callback runs in a later call of the application's."""
        wanted = self.consumed() if offsets is None else self._with_epochs(offsets)
        deadline_s = self._world.now_s() + self._settings.request_timeout_ms / 1000
        committing = spawn(self._committer_of(wanted).commit(wanted, deadline_s, are_held=self._while_held(wanted)))
        self._under_way[committing] = None

        def tell(done: Promise[None]) -> None:
            self._under_way.pop(done, None)
            if done.error is None:
                self._note_commit(wanted)
            if on_committed is not None:
                problem = done.error
                self._tasks.append(UserTask(lambda: on_committed(wanted, problem), _forget))
                self._on_task()

        committing.on_done(tell)

    def all_made(self) -> Promise[None]:
        """Done when those that nobody waits for are made, or have failed."""
        return all_settled(self._under_way)

    async def committed(
        self, partitions: Collection[TopicPartition], timeout_ms: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        deadline_s = self._world.now_s() + timeout_ms / 1000
        return await self._any_committer().fetch(partitions, deadline_s)

    def on_poll(self, now_s: float) -> None:
        """What was handed out before counts as processed: it is committed when it is time."""
        if self._settings.auto_commits and now_s >= self._auto_commit_at_s and not self._is_auto_committing:
            self._is_auto_committing = True
            self._world.start(self._auto_commit())

    async def _auto_commit(self) -> None:
        """One attempt. After one that failed for a moment the next poll commits, with the positions of then."""
        pause_ms: float = self._settings.auto_commit_interval_ms
        try:
            deadline_s = self._world.now_s() + self._settings.request_timeout_ms / 1000
            offsets = self.consumed()
            await self._committer_of(offsets).commit(offsets, deadline_s, are_held=self._while_held(offsets))
            self._note_commit(offsets)
        except KafkaError as problem:
            if problem.retriable:
                pause_ms = min(pause_ms, self._settings.retry_backoff_ms)
            self._report(problem)
        self._is_auto_committing = False
        self._auto_commit_at_s = self._world.now_s() + pause_ms / 1000

    async def commit_quietly(self) -> None:
        """Before the consumer ends: nobody hears what fails."""
        try:
            await self.commit(None, self._settings.request_timeout_ms)
        except KafkaError as problem:
            self._report(problem)

    def _report(self, problem: KafkaError) -> None:
        if not problem.retriable and not isinstance(problem, ClientClosed | CommitFailed):
            self._world.report(problem)

    def commit_partitions(self, partitions: Partitions) -> Promise[None]:
        """Before these are given up."""
        offsets = {partition: offset for partition, offset in self.consumed().items() if partition in partitions}
        return spawn(self.commit(offsets, self._settings.request_timeout_ms))

    def _committer_of(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> Committer:
        """Raises `CommitFailed` for a consumer that is not a member of the group it subscribes with: it has lost its
        partitions. Before it has joined it has none, and nothing to commit, which is not an error in Java either.
        """
        is_subscribed = self._subscription.mode not in (Mode.NONE, Mode.ASSIGNED)
        if offsets and is_subscribed and self._identity().generation == NO_GENERATION:
            raise CommitFailed
        return self._any_committer()

    def _any_committer(self) -> Committer:
        if self._committer is None:
            raise InvalidGroupId("offsets are committed for a group: set group.id")
        return self._committer


def _committable(position: FetchPosition) -> OffsetAndMetadata:
    return OffsetAndMetadata(position.offset, "", position.epoch if position.epoch != NO_EPOCH else None)


def _forget(problem: Exception | None) -> None:
    """A commit's callback waits for nobody."""
