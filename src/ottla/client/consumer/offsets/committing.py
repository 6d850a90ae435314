"""Offsets to and from the group's coordinator (OffsetCommit, OffsetFetch).

What passes is tried again until the deadline: a coordinator that loads or has moved, a transaction that still holds an
offset (KIP-447). A refusal because of the member's generation is final, as the partitions may be another's already.
With the new protocol (KIP-848) a refusal may merely mean that the coordinator has given the member a newer epoch, whose
heartbeat is on its way: as long as the member is one, it is tried again, with the epoch of then.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from ottla.base.ids import TopicPartition
from ottla.client.client_log import LONG_S
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import CoordinatorKind, Coordinators
from ottla.client.consumer.consumer_metrics import ConsumerMetrics
from ottla.client.errors import CommitFailed, KafkaError, RebalanceInProgress, error_for
from ottla.client.membership.member import NO_GENERATION, Identity
from ottla.client.network.connections import Purpose
from ottla.client.topic_partition import OffsetAndMetadata, by_topic
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import OffsetCommitRequest, OffsetFetchRequest

_LAST_WITH_TOPIC_NAMES: Final = 9
_FIRST_WITH_INSTANCE: Final = 7
_FIRST_WITH_EPOCHS: Final = 6
_FIRST_STABLE: Final = 7
_FIRST_WITH_GROUPS: Final = 8
_FIRST_WITH_MEMBER: Final = 9

_MOVED: Final = frozenset((ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR, ErrorCode.REQUEST_TIMED_OUT))
_NO_MEMBER: Final = frozenset((ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.FENCED_INSTANCE_ID))

_OLD_EPOCH: Final = frozenset((ErrorCode.STALE_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID))
"""What the coordinator says to a member whose newer epoch, or whose end, is on its way to it (KIP-848)."""
_MOVED_ON: Final = "the group {!r} has moved on without this member: other members may have its partitions"


class Committer:
    """`identity` tells who commits now; `on_refused` is called when the coordinator does not know that one."""

    def __init__(
        self,
        cluster: Cluster,
        coordinators: Coordinators,
        group_id: str,
        metrics: ConsumerMetrics,
        *,
        is_new_protocol: bool,
        identity: Callable[[], Identity],
        on_refused: Callable[[ErrorCode, Identity], None],
    ) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._group_id = group_id
        self._metrics = metrics
        self._is_new_protocol = is_new_protocol
        self._identity = identity
        self._on_refused = on_refused
        self._begun = 0
        """How many commits have begun: a commit's number."""
        self._sent: dict[TopicPartition, int] = {}
        """The number of the last commit that was sent for each partition."""

    async def commit(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        deadline_s: float,
        *,
        are_held: Callable[[], bool] = lambda: True,
        is_tried_again: bool = False,
    ) -> None:
        """Done when the coordinator has them. Raises `CommitFailed`, `RebalanceInProgress`, or what else it says.

        `are_held` is asked whenever they are about to be sent: by then their partitions may be another member's.
        """
        if not offsets:
            return
        world = self._cluster.world
        first = self._identity()
        self._begun += 1
        number = self._begun
        failures = 0
        while True:
            began_s, identity = world.now_s(), self._identity()
            try:
                await self._commit_once(offsets, identity, deadline_s, number, are_held)
                self._metrics.on_committed(began_s, world.now_s())
                return
            except KafkaError as problem:
                is_stale = problem.code == ErrorCode.STALE_MEMBER_EPOCH
                left_ms = (deadline_s - world.now_s()) * 1000
                if left_ms <= 0 or not (problem.retriable or is_stale) or not is_tried_again or not are_held():
                    if is_stale:
                        raise CommitFailed(_MOVED_ON.format(self._group_id)) from problem
                    raise
                text = f"offsets of group {self._group_id!r} are not committed yet; trying again: {problem}"
                world.log.trouble(("commit", self._group_id), text, after_s=LONG_S)
            await world.sleep(min(self._cluster.backoff.after(failures, world.entropy), left_ms))
            if not self._is_same_member(first):
                raise CommitFailed(_MOVED_ON.format(self._group_id))
            failures += 1

    def _is_same_member(self, first: Identity) -> bool:
        """A classic member has its partitions for one generation; one of the new protocol keeps them over epochs."""
        now = self._identity()
        if self._is_new_protocol:
            return now.member_id == first.member_id
        return now == first

    async def fetch(
        self, partitions: Iterable[TopicPartition], deadline_s: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has committed; None where it has nothing. Waits for transactions that are under way."""
        wanted = list(partitions)
        world = self._cluster.world
        failures = 0
        while True:
            identity = self._identity()
            try:
                return await self._fetch_once(wanted, identity, deadline_s)
            except KafkaError as problem:
                may_pass = problem.retriable or (self._is_new_protocol and problem.code in _OLD_EPOCH)
                left_ms = (deadline_s - world.now_s()) * 1000
                if not may_pass or left_ms <= 0:
                    raise
            await world.sleep(min(self._cluster.backoff.after(failures, world.entropy), left_ms))
            failures += 1

    # --- one attempt ---

    async def _commit_once(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        identity: Identity,
        deadline_s: float,
        number: int,
        are_held: Callable[[], bool],
    ) -> None:
        def request(version: int) -> OffsetCommitRequest:
            """Called when it is sent: the coordinator may have been looked for until then."""
            if not are_held():
                raise CommitFailed(_MOVED_ON.format(self._group_id))
            self._overtake(offsets, number)

            def of_partition(partition: TopicPartition) -> OffsetCommitRequest.OffsetCommitRequestPartition:
                offset = offsets[partition]
                one = OffsetCommitRequest.OffsetCommitRequestPartition(
                    partition_index=partition.partition,
                    committed_offset=offset.offset,
                    committed_metadata=offset.metadata,
                )
                if offset.leader_epoch is not None and version >= _FIRST_WITH_EPOCHS:
                    one.committed_leader_epoch = offset.leader_epoch
                return one

            asked = OffsetCommitRequest(
                group_id=self._group_id,
                generation_id_or_member_epoch=identity.generation,
                member_id=identity.member_id,
                topics=[
                    OffsetCommitRequest.OffsetCommitRequestTopic(name=topic, partitions=list(map(of_partition, those)))
                    for topic, those in by_topic(offsets).items()
                ],
            )
            if version >= _FIRST_WITH_INSTANCE:
                asked.group_instance_id = identity.group_instance_id
            return asked

        response = await self._ask(ApiKey.OFFSET_COMMIT, request, deadline_s)
        codes = {
            TopicPartition(topic.name, one.partition_index): one.error_code
            for topic in response.topics
            for one in topic.partitions
            if one.error_code
        }
        for partition, code in codes.items():
            self._raise_refusal(partition, code, identity)

    def _overtake(self, partitions: Iterable[TopicPartition], number: int) -> None:
        """Raises `CommitFailed` if a commit that began later was sent earlier, and would be set back."""
        if any(self._sent.get(partition, 0) > number for partition in partitions):
            raise CommitFailed("a later commit of this consumer has overtaken this one")
        self._sent.update(dict.fromkeys(partitions, number))

    def _raise_refusal(self, partition: TopicPartition, code: int, identity: Identity) -> None:
        if code in _MOVED:
            self._coordinators.forget(CoordinatorKind.GROUP, self._group_id)
        if code in _NO_MEMBER or code in (ErrorCode.REBALANCE_IN_PROGRESS, ErrorCode.STALE_MEMBER_EPOCH):
            self._on_refused(ErrorCode(code), identity)
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION):
            raise CommitFailed
        if code == ErrorCode.REBALANCE_IN_PROGRESS:
            raise RebalanceInProgress(
                "offsets cannot be committed while the group rebalances: poll until it is over, and commit then"
            )
        raise error_for(code, f"the offset of {partition} could not be committed")

    async def _fetch_once(
        self, partitions: list[TopicPartition], identity: Identity, deadline_s: float
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        indexes = {topic: [one.partition for one in those] for topic, those in by_topic(partitions).items()}

        def request(version: int) -> OffsetFetchRequest:
            if version < _FIRST_WITH_GROUPS:
                old = OffsetFetchRequest(
                    group_id=self._group_id,
                    topics=[
                        OffsetFetchRequest.OffsetFetchRequestTopic(name=name, partition_indexes=found)
                        for name, found in indexes.items()
                    ],
                )
                if version >= _FIRST_STABLE:
                    old.require_stable = True
                return old
            group = OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=self._group_id,
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=found)
                    for name, found in indexes.items()
                ],
            )
            if self._is_new_protocol and version >= _FIRST_WITH_MEMBER and identity.generation != NO_GENERATION:
                group.member_id, group.member_epoch = identity.member_id, identity.generation
            return OffsetFetchRequest(groups=[group], require_stable=True)

        response = await self._ask(ApiKey.OFFSET_FETCH, request, deadline_s)
        answer = response.groups[0] if response.groups else response
        if answer.error_code:
            if answer.error_code in _MOVED:
                self._coordinators.forget(CoordinatorKind.GROUP, self._group_id)
            if answer.error_code in _OLD_EPOCH:
                self._on_refused(ErrorCode(answer.error_code), identity)
            raise error_for(answer.error_code, f"the offsets of group {self._group_id!r} could not be fetched")
        committed: dict[TopicPartition, OffsetAndMetadata | None] = dict.fromkeys(partitions)
        for topic in answer.topics:
            for one in topic.partitions:
                if one.error_code:
                    raise error_for(one.error_code)
                committed[TopicPartition(topic.name, one.partition_index)] = _committed(one)
        return committed

    async def _ask(self, api_key: ApiKey, request: Callable[[int], Any], deadline_s: float) -> Any:
        return await self._coordinators.ask(
            CoordinatorKind.GROUP,
            self._group_id,
            request,
            deadline_s,
            api_key=api_key,
            newest=_LAST_WITH_TOPIC_NAMES,
            line=Purpose.MAIN,  # A JoinGroup that waits for other members holds up all that comes behind it.
        )


def _committed(one: Any) -> OffsetAndMetadata | None:
    if one.committed_offset < 0:
        return None
    epoch = one.committed_leader_epoch
    return OffsetAndMetadata(one.committed_offset, one.metadata or "", epoch if epoch >= 0 else None)
