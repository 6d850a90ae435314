"""Positions: found for partitions that have none, and held against the log of a new leader.

Theory of operation. A partition without a position is looked up: at first the group's committed offset, then, if there
is none, what `auto.offset.reset` says, or what a `seek_to_…` asked for. Lookups of one kind go one at a time; what they
bring is of use if the partition has not been moved since.

A position that was reached by reading has the leader epoch of the last record. When another leader comes, it is asked
where that epoch ends in its log (KIP-320): an end before the position means that records which were read are gone. Then
the position goes back to that end, or, with `auto.offset.reset` none, the application gets an error.
"""

from collections.abc import Callable, Mapping
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.view import Leader
from ottla.client.consumer.consumer_settings import ConsumerSettings
from ottla.client.consumer.fetching.fetched_chunks import FetchedChunks
from ottla.client.consumer.offsets.committing import Committer
from ottla.client.consumer.offsets.offset_lookup import look_up_offsets
from ottla.client.consumer.offsets.offset_reset import LATEST
from ottla.client.consumer.subscription import NO_EPOCH, FetchPosition, PartitionState, Subscription
from ottla.client.errors import ClientClosed, KafkaError, LogTruncated, NoOffsetForPartition, error_for
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetForLeaderEpochRequest

_FIRST_FOR_CONSUMERS: Final = 3
_UNKNOWN: Final = -1
_SHOWN: Final = 5


class Positions:
    """`tell` hands an error to the application's next poll; `on_found` is called when something can be fetched."""

    def __init__(
        self,
        cluster: Cluster,
        settings: ConsumerSettings,
        subscription: Subscription,
        chunks: FetchedChunks,
        committer: Committer | None,
        *,
        tell: Callable[[Exception], None],
        on_found: Callable[[], None],
    ) -> None:
        self._cluster = cluster
        self._settings = settings
        self._subscription = subscription
        self._chunks = chunks
        self._committer = committer
        self._tell = tell
        self._on_found = on_found
        self._is_fetching_committed = False
        self._is_resetting = False
        self._validating: dict[TopicPartition, None] = {}

    def find_missing(self) -> None:
        """Begins to look for what is missing."""
        missing = [
            one for one in self._subscription.partitions.values() if one.position is None and not one.is_revoking
        ]
        if not missing:
            return
        without_reset = [state for state in missing if state.reset is None]
        if without_reset and self._committer is None:
            self._fall_back(without_reset)
        elif without_reset and not self._is_fetching_committed:
            self._is_fetching_committed = True
            self._cluster.world.start(self._fetch_committed({state: state.moves for state in without_reset}))
        resets = {state: state.moves for state in missing if state.reset is not None}
        if resets and not self._is_resetting:
            self._is_resetting = True
            self._cluster.world.start(self._reset(resets))

    # --- without a position ---

    async def _fetch_committed(self, asked: Mapping[PartitionState, int]) -> None:
        assert self._committer is not None
        try:
            committed = await self._committer.fetch([state.partition for state in asked], self._deadline_s())
        except KafkaError as problem:
            self._tell_unless_closed(problem)
            return
        finally:
            self._is_fetching_committed = False
        without: list[PartitionState] = []
        for state, moves in asked.items():
            if state.moves != moves or state.position is not None:
                continue
            found = committed.get(state.partition)
            if found is None:
                without.append(state)
            else:
                epoch = NO_EPOCH if found.leader_epoch is None else found.leader_epoch
                state.move_to(FetchPosition(found.offset, epoch))
        self._fall_back(without)
        self._on_found()

    def _fall_back(self, states: list[PartitionState]) -> None:
        """Nothing is committed for these."""
        reset = self._settings.offset_reset
        if not reset.is_none:
            for state in states:
                state.move_by(reset)
            if states:
                self._tell_first_positions(states)
                self.find_missing()
        elif states:
            partitions = tuple(state.partition for state in states)
            error = NoOffsetForPartition(
                f"no offset is known for {', '.join(map(str, partitions))}, and auto.offset.reset is none"
            )
            error.partitions = partitions
            self._tell(error)

    def _tell_first_positions(self, states: list[PartitionState]) -> None:
        if self._committer is None:
            return
        names = ", ".join(str(state.partition) for state in states[:_SHOWN]) + (", …" if len(states) > _SHOWN else "")
        which = f"{len(states)} partitions ({names})" if len(states) > 1 else names
        self._cluster.world.log.news(
            "first offsets",
            f"no committed offset for {which}: begins at {self._settings.offset_reset.name} (auto.offset.reset)",
        )

    async def _reset(self, asked: Mapping[PartitionState, int]) -> None:
        now_ms = self._cluster.world.clock.now_ms()
        wanted: dict[TopicPartition, int] = {}
        for state in asked:
            assert state.reset is not None
            wanted[state.partition] = state.reset.timestamp_at(now_ms)
        try:
            found = await look_up_offsets(self._cluster, wanted, self._settings.isolation_level, self._deadline_s())
        except KafkaError as problem:
            self._tell_unless_closed(problem)
            return
        finally:
            self._is_resetting = False
        for state, moves in asked.items():
            if state.moves != moves or state.partition not in found:
                continue
            offset, _, epoch = found[state.partition]
            if offset == _UNKNOWN:  # No record is as young as that: what comes next will be.
                state.move_by(LATEST)
            else:
                state.move_to(FetchPosition(offset, epoch))
        self._on_found()

    # --- another leader ---

    def is_validated(self, state: PartitionState, leader: Leader) -> bool:
        """Whether the position is known to be in that leader's log. If not, it is asked."""
        if state.validated_epoch == leader.epoch:
            return True
        position = state.fetch_position
        if position is None or state.partition in self._validating:
            return False
        versions = self._cluster.known_versions(leader.node_id)
        can_ask = versions is None or versions.serves(ApiKey.OFFSET_FOR_LEADER_EPOCH, _FIRST_FOR_CONSUMERS)
        if position.epoch == NO_EPOCH or leader.epoch == NO_EPOCH or position.epoch == leader.epoch or not can_ask:
            state.validated_epoch = leader.epoch
            return True
        self._validating[state.partition] = None
        if position.epoch > leader.epoch:
            self._cluster.world.start(self._await_newer_leader(state))
        else:
            self._cluster.world.start(self._validate(state, position, leader, state.moves))
        return False

    async def _await_newer_leader(self, state: PartitionState) -> None:
        """What was read is of a newer epoch than this leader's: it was deposed, and the metadata are old.

        Its log may end before the position, and is no reason to begin anew. Kafka's consumer waits for newer metadata
        in the same way (KIP-320).
        """
        try:
            await self._try_again(state, error_for(ErrorCode.FENCED_LEADER_EPOCH))
        finally:
            self._validating.pop(state.partition, None)
        self._on_found()

    async def _validate(self, state: PartitionState, position: FetchPosition, leader: Leader, moves: int) -> None:
        partition = state.partition
        asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
            partition=partition.partition, current_leader_epoch=leader.epoch, leader_epoch=position.epoch
        )
        topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic=partition.topic, partitions=[asked])
        request = OffsetForLeaderEpochRequest(replica_id=-1, topics=[topic])
        problem: KafkaError | None = None
        try:
            response = await self._cluster.ask(leader.node_id, request)
            [[answer]] = [one.partitions for one in response.topics]
            problem = error_for(answer.error_code) if answer.error_code else None
        except ClientClosed:
            return
        except KafkaError as failed:
            problem = failed
        finally:
            self._validating.pop(partition, None)
        if state.moves != moves:
            return
        if problem is not None:
            await self._try_again(state, problem)
        elif answer.end_offset == _UNKNOWN or answer.leader_epoch == _UNKNOWN:
            self._on_truncated(state, None, NO_EPOCH)
        elif answer.end_offset < position.offset:
            self._on_truncated(state, answer.end_offset, answer.leader_epoch)
        else:
            state.validated_epoch = leader.epoch
        self._on_found()

    async def _try_again(self, state: PartitionState, problem: KafkaError) -> None:
        if not problem.retriable:
            self._tell(problem)
        world = self._cluster.world
        pause_ms = self._cluster.backoff.after(0, world.entropy)
        state.error_until_s = world.now_s() + pause_ms / 1000
        if problem.needs_metadata:
            self._cluster.refresh()
        await world.sleep(pause_ms)

    def _on_truncated(self, state: PartitionState, end_offset: int | None, epoch: int) -> None:
        """What is buffered may be of the part that is gone. Only what was handed out is a loss to the application."""
        self._chunks.discard(state)
        position = state.position
        assert position is not None
        if end_offset is not None and end_offset >= position.offset:
            return  # only what was buffered is gone; the position itself is looked at next
        reset = self._settings.offset_reset
        if reset.is_none:
            error = LogTruncated(
                f"{state.partition} was read to offset {position.offset}, and its log now differs from "
                f"{'an unknown offset' if end_offset is None else f'offset {end_offset}'} on"
            )
            error.partition = state.partition
            error.diverging_offset = end_offset
            self._tell(error)
            state.move_to(position._replace(epoch=NO_EPOCH))
        else:
            whence = f"at {reset.name} (auto.offset.reset)" if end_offset is None else f"at offset {end_offset}"
            self._cluster.world.log.trouble(
                ("offset", state.partition),
                f"{state.partition} was read to offset {position.offset}, and its log was truncated since: begins "
                f"again {whence}",
            )
            if end_offset is None:
                self._subscription.reset(state.partition, reset)
            else:
                self._subscription.seek(state.partition, FetchPosition(end_offset, epoch))

    # ---

    def _deadline_s(self) -> float:
        return self._cluster.world.now_s() + self._settings.api_timeout_ms / 1000

    def _tell_unless_closed(self, problem: KafkaError) -> None:
        if not isinstance(problem, ClientClosed):
            self._tell(problem)
