"""Requests for partitions whose logs are being made wait until they are there.

A partition is announced when its metadata is committed, by this node and by every other, and a client may ask for it a
moment later. Its log is made by a disk thread, which takes that moment, or longer for one of thousands. The requests
that name such a partition wait, and no others. The connection is paused meanwhile, so that the requests behind it do
not overtake. A request that has waited for longer than a sound disk needs is answered as things are, with
NOT_LEADER_OR_FOLLOWER: its client looks again.

A coordinator is announced with the partition that it keeps its state in, so that requests to it wait in the same way.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from ottla.broker.coordination.placement import partition_of
from ottla.runtime.attribution import attributed
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_MOST_MS: Final = 5_000
_FIRST_PRODUCE_WITH_IDS: Final = 13
_FIRST_FETCH_WITH_IDS: Final = 13
_GROUPS: Final = "__consumer_offsets"
_TRANSACTIONS: Final = "__transaction_state"

Names = Iterator[tuple[str | None, Iterable[int]]]
"""Topics, and numbers of their partitions."""


def wait_for_logs(
    partitions: "Partitions", context: RequestContext, request: Message, respond: Respond, handler: Handler
) -> bool:
    """Whether `request` has to wait. Then `handler` is called when the logs are there, or its time is up."""
    names_in = _NAMES.get(context.api_key)
    if names_in is None:
        return False
    in_making = partitions.in_making
    names = {
        (topic, index)
        for topic, indexes in names_in(partitions, context.api_version, request)
        for index in indexes
        if topic is not None and (topic, index) in in_making
    }
    if not names:
        return False
    if context.api_key == ApiKey.PRODUCE:
        from ottla.broker.data.batch_checks import keep_records

        keep_records(request)  # type: ignore[arg-type]
    _Waiting(partitions, names, context, lambda: handler(context, request, respond)).begin(
        _timeout_ms(request, context.api_version)
    )
    return True


def _timeout_ms(request: Any, version: int) -> int:
    """What the request says, if its version says anything: ListOffsets does from 10 on, and has 0 before."""
    for field in request._struct.fields:
        if field.attribute == "timeout_ms" and version in field.versions:
            return min(max(int(request.timeout_ms), 0), _MOST_MS)
    return _MOST_MS


class _Waiting:
    """One request. `_names` are the partitions that are still being made."""

    __slots__ = ("_context", "_go_on", "_names", "_partitions", "_timer")

    def __init__(
        self, partitions: "Partitions", names: set[tuple[str, int]], context: RequestContext, go_on: Callable[[], None]
    ) -> None:
        self._partitions = partitions
        self._names = names
        self._context = context
        self._go_on: Callable[..., None] | None = attributed(go_on)
        self._timer: Any = None

    def begin(self, timeout_ms: int) -> None:
        self._context.connection.pause()
        self._timer = self._partitions.world.timers.after(timeout_ms / 1000, self._resume)
        for name in self._names:
            self._partitions.in_making[name].append(self._on_made)

    def _on_made(self, name: tuple[str, int]) -> None:
        self._names.discard(name)
        if not self._names:
            self._resume()

    def _resume(self) -> None:
        go_on, self._go_on = self._go_on, None
        if go_on is None:
            return
        self._timer.cancel()
        self._context.connection.resume_with(go_on)


def _in_produce(partitions: "Partitions", version: int, request: Any) -> Names:
    for topic in request.topic_data:
        by_id = version >= _FIRST_PRODUCE_WITH_IDS
        name = partitions.metadata.topic_name(topic.topic_id) if by_id else topic.name
        yield name, (one.index for one in topic.partition_data)


def _in_fetch(partitions: "Partitions", version: int, request: Any) -> Names:
    for topic in request.topics:
        by_id = version >= _FIRST_FETCH_WITH_IDS
        name = partitions.metadata.topic_name(topic.topic_id) if by_id else topic.topic
        yield name, (one.partition for one in topic.partitions)


def _in_topics(_partitions: "Partitions", _version: int, request: Any) -> Names:
    for topic in request.topics:
        yield topic.name, (one.partition_index for one in topic.partitions)


def _in_epochs(_partitions: "Partitions", _version: int, request: Any) -> Names:
    for topic in request.topics:
        yield topic.topic, (one.partition for one in topic.partitions)


def _in_producers(_partitions: "Partitions", _version: int, request: Any) -> Names:
    for topic in request.topics:
        yield topic.name, topic.partition_indexes


def _coordinated_by(topic_name: str, *fields: str) -> Callable[["Partitions", int, Any], Names]:
    """For requests to a coordinator: the partitions of its topic that the keys in these fields belong to."""

    def names_in(partitions: "Partitions", _version: int, request: Any) -> Names:
        topic = partitions.metadata.image.topics.by_name.get(topic_name)
        if topic is not None:
            given = [getattr(request, field) for field in fields]
            keys = [key for one in given for key in ([one] if isinstance(one, str) else one or ())]
            yield topic_name, [partition_of(key, len(topic.partitions)) for key in keys if key]

    return names_in


def _in_offset_fetch(partitions: "Partitions", version: int, request: Any) -> Names:
    for one in (request, *request.groups):
        yield from _of_group(partitions, version, one)


_of_group = _coordinated_by(_GROUPS, "group_id")
_of_transaction = _coordinated_by(_TRANSACTIONS, "transactional_id")

_NAMES: Final[dict[int, Callable[["Partitions", int, Any], Names]]] = {
    ApiKey.PRODUCE: _in_produce,
    ApiKey.FETCH: _in_fetch,
    ApiKey.LIST_OFFSETS: _in_topics,
    ApiKey.DELETE_RECORDS: _in_topics,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _in_epochs,
    ApiKey.DESCRIBE_PRODUCERS: _in_producers,
    # Groups
    ApiKey.JOIN_GROUP: _of_group,
    ApiKey.SYNC_GROUP: _of_group,
    ApiKey.HEARTBEAT: _of_group,
    ApiKey.LEAVE_GROUP: _of_group,
    ApiKey.OFFSET_COMMIT: _of_group,
    ApiKey.OFFSET_FETCH: _in_offset_fetch,
    ApiKey.OFFSET_DELETE: _of_group,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _of_group,
    ApiKey.CONSUMER_GROUP_DESCRIBE: _coordinated_by(_GROUPS, "group_ids"),
    ApiKey.DESCRIBE_GROUPS: _coordinated_by(_GROUPS, "groups"),
    ApiKey.DELETE_GROUPS: _coordinated_by(_GROUPS, "groups_names"),
    # Transactions
    ApiKey.TXN_OFFSET_COMMIT: _of_group,
    ApiKey.INIT_PRODUCER_ID: _of_transaction,
    ApiKey.ADD_PARTITIONS_TO_TXN: _coordinated_by(_TRANSACTIONS, "v3_and_below_transactional_id"),
    ApiKey.ADD_OFFSETS_TO_TXN: _of_transaction,
    ApiKey.END_TXN: _of_transaction,
    ApiKey.DESCRIBE_TRANSACTIONS: _coordinated_by(_TRANSACTIONS, "transactional_ids"),
}
"""The APIs that are answered from a partition's log, or by the coordinator whose log it is, and the partitions that a
request of theirs names.
"""
