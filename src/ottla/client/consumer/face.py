"""What the blocking and the asyncio consumer have in common."""

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from ottla.base.ids import TopicPartition
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import Coordinators
from ottla.client.consumer.consumer_core import ConsumerCore
from ottla.client.consumer.group_bond import GroupBond, RebalanceListener
from ottla.client.consumer.group_metadata import ConsumerGroupMetadata
from ottla.client.consumer.offsets.consumed_offsets import OnCommitted
from ottla.client.consumer.offsets.offset_lookup import FoundOffset
from ottla.client.errors import KafkaError
from ottla.client.membership.member import Member, MemberSettings
from ottla.client.settings import ClientSettings
from ottla.client.topic_partition import OffsetAndMetadata, OffsetAndTimestamp

if TYPE_CHECKING:
    import re

T = TypeVar("T")

Offsets = Mapping[TopicPartition, OffsetAndMetadata | int]
OneOrMore = TopicPartition | tuple[str, int] | Iterable[TopicPartition | tuple[str, int]]


def committable(offsets: Offsets | None) -> dict[TopicPartition, OffsetAndMetadata] | None:
    """Offsets of the next records to read, with metadata or as bare numbers."""
    if offsets is None:
        return None
    return {
        partition: OffsetAndMetadata(offset) if isinstance(offset, int) else offset
        for partition, offset in offsets.items()
    }


def seekable(offset: OffsetAndMetadata | int) -> OffsetAndMetadata:
    place = OffsetAndMetadata(offset) if isinstance(offset, int) else offset
    if place.offset < 0:
        raise ValueError(f"an offset cannot be negative, as {place.offset} is")
    return place


def partitions_of(given: Iterable[TopicPartition | tuple[str, int]]) -> list[TopicPartition]:
    return [TopicPartition(*one) for one in given]


def spread(given: Iterable[OneOrMore]) -> list[TopicPartition]:
    """Partitions that were given one by one, or in lists."""
    found: list[TopicPartition] = []
    for one in given:
        if isinstance(one, tuple) and len(one) == 2 and isinstance(one[0], str):
            found.append(TopicPartition(*one))
        else:
            found += partitions_of(one)
    return found


def found_times(found: Mapping[TopicPartition, FoundOffset]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
    """None where no record is as young."""
    return {
        partition: None
        if one.offset < 0
        else OffsetAndTimestamp(one.offset, one.timestamp_ms, one.leader_epoch if one.leader_epoch >= 0 else None)
        for partition, one in found.items()
    }


def group_metadata(core: ConsumerCore) -> ConsumerGroupMetadata:
    group_id, identity = core.group_identity()
    return ConsumerGroupMetadata(group_id, *identity, consumed=tuple(core.offsets.consumed().items()))


def make_member(cluster: Cluster, coordinators: Coordinators, settings: ClientSettings, bond: GroupBond) -> Member:
    """The member of the group, of either protocol. Only those who subscribe pay for loading it, and for one of them."""
    strategy: Any = settings.plug_in("partition.assignment.strategy")
    member_settings = MemberSettings(
        group_id=settings.text("group.id"),
        group_instance_id=settings.optional_text("group.instance.id"),
        session_timeout_ms=settings.integer("session.timeout.ms"),
        heartbeat_interval_ms=settings.integer("heartbeat.interval.ms"),
        max_poll_interval_ms=settings.integer("max.poll.interval.ms"),
        retry_backoff_ms=settings.integer("retry.backoff.ms"),
        retry_backoff_max_ms=settings.integer("retry.backoff.max.ms"),
        request_timeout_ms=settings.integer("request.timeout.ms"),
        client_rack=settings.text("client.rack"),
        partition_assignment_strategy=tuple(strategy),
        group_remote_assignor=settings.optional_text("group.remote.assignor"),
    )
    if settings.text("group.protocol").lower() == "consumer":
        from ottla.client.membership.consumer.consumer_member import ConsumerGroupMember

        return ConsumerGroupMember(cluster, coordinators, member_settings, bond)
    from ottla.client.membership.classic.classic_member import ClassicMember

    return ClassicMember(cluster, coordinators, member_settings, bond)


class ConsumerFace:
    """The calls that wait for nothing, the same for both faces. `_call` is around everything they do."""

    _core: ConsumerCore
    _api_timeout_s: float

    def _call(self, work: Callable[[], T]) -> T:
        """Has the core do something. Raises if the consumer cannot be used now, or another thread uses it."""
        raise NotImplementedError

    def _look(self, work: Callable[[], T]) -> T:
        """As `_call`, for what other threads may look at."""
        raise NotImplementedError

    def _unsubscribe_at_once(self) -> None:
        raise NotImplementedError

    def _ms(self, timeout: float | None) -> float:
        return (self._api_timeout_s if timeout is None else timeout) * 1000

    # --- what is read ---

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: "str | re.Pattern[str] | None" = None,
        listener: RebalanceListener | None = None,
    ) -> None:
        """Joins the group and has it assign partitions of these topics. Replaces an earlier subscription.

        `pattern` is a compiled `re.Pattern`, which this client matches against the names of topics as it learns of
        them; or, with `group_protocol="consumer"`, text in RE2's syntax, which the coordinator matches. An empty list
        of topics unsubscribes, as with Java's consumer.
        """
        if (topics is None) == (pattern is None):
            raise ValueError("subscribe to topics or to a pattern: one of the two")
        if isinstance(topics, str):
            raise TypeError("topics is a list of names, not one name")
        if topics is not None and not (topics := tuple(topics)):
            self._unsubscribe_at_once()
            return
        core = self._core
        if topics is not None:
            self._call(lambda: core.subscribe(topics, listener))
        elif isinstance(pattern, str):
            self._call(lambda: core.subscribe_server_pattern(pattern, listener))
        elif pattern is not None:
            self._call(lambda: core.subscribe_pattern(pattern.pattern, pattern.fullmatch, listener))
        else:
            self._call(lambda: None)

    def subscription(self) -> frozenset[str]:
        """The topics that are subscribed, or that match the pattern so far."""
        return self._core.subscription.topics

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        """Reads these partitions, without a group deciding. Replaces those that were assigned before."""
        self._call(lambda: self._core.assign(partitions_of(partitions)))

    def assignment(self) -> frozenset[TopicPartition]:
        return self._call(lambda: frozenset(self._core.subscription.partitions))

    def pause(self, *partitions: OneOrMore) -> None:
        """Hands out no records of these until they are resumed. The group does not notice.

        Partitions come one by one, or in a list: `pause(a, b)` or `pause([a, b])`.
        """
        self._call(lambda: self._core.pause(spread(partitions), is_paused=True))

    def resume(self, *partitions: OneOrMore) -> None:
        self._call(lambda: self._core.pause(spread(partitions), is_paused=False))

    def paused(self) -> frozenset[TopicPartition]:
        return self._call(lambda: self._core.subscription.paused())

    # --- positions ---

    def seek(self, partition: TopicPartition, offset: OffsetAndMetadata | int) -> None:
        """The next record to hand out is the one at this offset."""
        place = seekable(offset)
        self._call(lambda: self._core.seek(partition, place))

    def seek_to_beginning(self, *partitions: OneOrMore) -> None:
        """Of these, or of all that are assigned. Looked up when it is needed."""
        self._call(lambda: self._core.seek_to_end_of(spread(partitions), beginning=True))

    def seek_to_end(self, *partitions: OneOrMore) -> None:
        """Behind the last record; with read committed, the last one that is stable."""
        self._call(lambda: self._core.seek_to_end_of(spread(partitions), beginning=False))

    def current_lag(self, partition: TopicPartition) -> int | None:
        """Records that are there and not handed out, as the last fetch said; None if none has. Asks nobody."""
        return self._call(lambda: self._core.lag(partition))

    # --- the group ---

    def commit_async(self, offsets: Offsets | None = None, on_committed: OnCommitted | None = None) -> None:
        """The same without waiting, and without a second attempt.

        `on_committed(offsets, error)` runs within a later call of `poll`, `commit` or `close`.
        """
        self._call(lambda: self._core.offsets.commit_later(committable(offsets), on_committed))

    def group_metadata(self) -> ConsumerGroupMetadata:
        """For `producer.send_offsets`."""
        return self._call(lambda: group_metadata(self._core))

    def enforce_rebalance(self, reason: str = "the application asked for it") -> None:
        """Has the group divide its partitions anew, in the next polls."""
        self._call(lambda: self._core.enforce_rebalance(reason))

    def on_error(self, callback: Callable[[KafkaError], None]) -> None:
        """Calls back with every connection that is lost or cannot be made, within a later call of `poll`.

        Most errors pass, and calls raise what does not: this is for logs and alarms.
        """
        self._call(lambda: self._core.on_error(callback))

    def on_statistics(self, callback: Callable[[dict[str, float]], None], interval: float) -> None:
        """Calls back with `metrics()` every `interval` seconds, within a later call of `poll`."""
        self._call(lambda: self._core.on_statistics(callback, interval))

    def metrics(self) -> dict[str, float]:
        """What was counted so far, by the names of Kafka's consumer metrics. From any thread."""
        return self._look(self._core.snapshot)
