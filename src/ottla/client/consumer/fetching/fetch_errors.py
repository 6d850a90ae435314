"""What a consumer does about the errors of a fetch, as Kafka's own does.

the broker does not lead, hold or know the partition, or not yet    look at the metadata, and try again
the offset is not in the log                                        reset the position, or tell the application
anything else that may pass                                         try again after a pause
all the rest                                                        tell the application
"""

from collections.abc import Callable, Sequence
from typing import Final

from ottla.client.client_log import LONG_S
from ottla.client.cluster.cluster import Cluster
from ottla.client.consumer.offsets.offset_reset import OffsetReset
from ottla.client.consumer.subscription import PartitionState, Subscription
from ottla.client.errors import CorruptMessage, KafkaError, OffsetOutOfRange, TopicAuthorizationFailed, error_for
from ottla.client.promise import Promise
from ottla.wire.errors import ErrorCode

_QUIETLY_AGAIN: Final = frozenset((ErrorCode.UNKNOWN_SERVER_ERROR, ErrorCode.OFFSET_NOT_AVAILABLE))


class FetchErrors:
    """`tell` hands an error to the application's next poll; `retry` is called when a pause is over."""

    def __init__(
        self,
        cluster: Cluster,
        subscription: Subscription,
        default_reset: OffsetReset,
        *,
        tell: Callable[[Exception], None],
        retry: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._default_reset = default_reset
        self._tell = tell
        self._retry = retry
        self._is_refreshing = False

    def want_metadata(self) -> None:
        """Something is missing or wrong in what is known of the cluster."""
        if not self._is_refreshing:
            self._is_refreshing = True
            pause_ms = self._cluster.backoff.after(0, self._cluster.world.entropy)
            self._cluster.world.timers.after(pause_ms / 1000, self._refresh)

    def _refresh(self) -> None:
        def refreshed(done: Promise[object]) -> None:
            self._is_refreshing = False
            if done.error is None:
                self._retry()

        self._cluster.refresh().on_done(refreshed)

    def on_request_failed(self, problem: KafkaError, states: Sequence[PartitionState]) -> None:
        """No answer came. A replica that the leader has named for our rack (KIP-392) is forgotten: it may be gone."""
        for state in states:
            state.preferred_replica = None
        if problem.retriable:
            self._pause(states)
        else:
            self._tell(problem)

    def on_partition(self, state: PartitionState, node_id: int, code: int) -> None:
        """The answer for one partition was an error."""
        problem = error_for(code, f"{state.partition} could not be fetched")
        problem.partition = state.partition
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._on_out_of_range(state, node_id)
        elif isinstance(problem, TopicAuthorizationFailed):
            self._tell(problem)
            self._pause([state])
        elif problem.retriable or code in _QUIETLY_AGAIN:
            text = f"{state.partition} cannot be fetched; trying again: {ErrorCode(code).name}"
            self._cluster.world.log.trouble(("fetch", state.partition), text, after_s=LONG_S)
            if problem.needs_metadata:
                state.preferred_replica = None
                leader = self._cluster.view.leader_of(state.partition)
                if leader is not None and leader.node_id != node_id:
                    return  # The answer named the new leader (KIP-951): there is nothing to wait for.
                self.want_metadata()
            self._pause([state])
        else:
            self._tell(problem)
            self._pause([state])

    def on_no_batch(self, state: PartitionState) -> None:
        """Bytes came and no batch: asking again at once would bring the same, for ever."""
        position = state.fetch_position
        offset = None if position is None else position.offset
        problem = CorruptMessage(f"what was fetched from {state.partition} at offset {offset} has no whole batch")
        problem.partition = state.partition
        self._tell(problem)
        self._pause([state])

    def _on_out_of_range(self, state: PartitionState, node_id: int) -> None:
        if state.preferred_replica is not None:
            state.preferred_replica = None  # A follower may lag behind: the leader knows better.
            return
        position = state.fetch_position
        if position is not None and state.position is not None and position.offset != state.position.offset:
            # Ahead of the application: it may never come there. Until it does, its position is as good as before.
            self._pause([state])
            return
        if self._default_reset.is_none:
            error = OffsetOutOfRange(
                f"offset {None if position is None else position.offset} is not in the log of {state.partition}, "
                "and auto.offset.reset is none"
            )
            error.partition = state.partition
            error.offset = None if position is None else position.offset
            self._tell(error)
            self._pause([state])
        else:
            self._cluster.world.log.trouble(
                ("offset", state.partition),
                f"offset {None if position is None else position.offset} is not in the log of {state.partition}: "
                f"begins again at {self._default_reset.name} (auto.offset.reset)",
            )
            self._subscription.reset(state.partition, self._default_reset)
            self._retry()

    def _pause(self, states: Sequence[PartitionState]) -> None:
        world = self._cluster.world
        pause_s = self._cluster.backoff.after(0, world.entropy) / 1000
        for state in states:
            state.error_until_s = world.now_s() + pause_s
        world.timers.after(pause_s, self._retry)
