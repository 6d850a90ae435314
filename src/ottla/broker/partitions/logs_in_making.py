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

from ottla.apis.description import ITSELF, Coordinated, NamedPartitions
from ottla.apis.table import APIS
from ottla.base.ports import Timers
from ottla.broker.coordination.placement import partition_of
from ottla.runtime.attribution import attributed
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

_MOST_MS: Final = 5_000

Names = Iterator[tuple[str | None, Iterable[int]]]
"""Topics, and numbers of their partitions."""


def wait_for_logs(
    partitions: "Partitions",
    timers: Timers,
    context: RequestContext,
    request: Message,
    respond: Respond,
    handler: Handler,
) -> bool:
    """Whether `request` has to wait. Then `handler` is called when the logs are there, or its time is up."""
    row = APIS.get(context.api_key)
    where = row.waits_for if row is not None else None
    if where is None:
        return False
    in_making = partitions.in_making
    names = {
        (topic, index)
        for topic, indexes in _named(partitions, context.api_version, request, where)
        for index in indexes
        if topic is not None and (topic, index) in in_making
    }
    if not names:
        return False
    if context.api_key == ApiKey.PRODUCE:
        from ottla.broker.data.batch_checks import keep_records

        keep_records(request)  # type: ignore[arg-type]
    _DelayedRequest(partitions, timers, names, context, lambda: handler(context, request, respond)).begin(
        _timeout_ms(request, context.api_version)
    )
    return True


def _timeout_ms(request: Any, version: int) -> int:
    """What the request says, if its version says anything: ListOffsets does from 10 on, and has 0 before."""
    for field in request._struct.fields:
        if field.attribute == "timeout_ms" and version in field.versions:
            return min(max(int(request.timeout_ms), 0), _MOST_MS)
    return _MOST_MS


class _DelayedRequest:
    """One request. `_names` are the partitions that are still being made."""

    __slots__ = ("_context", "_names", "_partitions", "_proceed", "_timer", "_timers")

    def __init__(
        self,
        partitions: "Partitions",
        timers: Timers,
        names: set[tuple[str, int]],
        context: RequestContext,
        proceed: Callable[[], None],
    ) -> None:
        self._partitions = partitions
        self._timers = timers
        self._names = names
        self._context = context
        self._proceed: Callable[..., None] | None = attributed(proceed)
        self._timer: Any = None

    def begin(self, timeout_ms: int) -> None:
        self._context.connection.pause()
        self._timer = self._timers.after(timeout_ms / 1000, self._resume)
        for name in self._names:
            self._partitions.in_making[name].append(self._on_made)

    def _on_made(self, name: tuple[str, int]) -> None:
        self._names.discard(name)
        if not self._names:
            self._resume()

    def _resume(self) -> None:
        proceed, self._proceed = self._proceed, None
        if proceed is None:
            return
        self._timer.cancel()
        self._context.connection.resume_with(proceed)


def _named(partitions: "Partitions", version: int, request: Any, where: NamedPartitions | Coordinated) -> Names:
    """The partitions that a request is answered from, or by whose coordinator."""
    if isinstance(where, Coordinated):
        yield from _coordinators(partitions, request, where)
        return
    by_id = where.ids_since is not None and version >= where.ids_since
    for topic in getattr(request, where.topics):
        name = partitions.metadata.topic_name(topic.topic_id) if by_id else getattr(topic, where.name)
        entries = getattr(topic, where.partitions)
        yield name, entries if where.number == ITSELF else [getattr(entry, where.number) for entry in entries]


def _coordinators(partitions: "Partitions", request: Any, where: Coordinated) -> Names:
    """The partitions of a coordinator's topic that the keys in a request belong to."""
    topic = partitions.metadata.image.topics.by_name.get(where.topic)
    if topic is None:
        return
    for owner in (request, *(getattr(request, where.inside) if where.inside else ())):
        given = getattr(owner, where.key)
        keys = [given] if isinstance(given, str) else given or ()
        yield where.topic, [partition_of(key, len(topic.partitions)) for key in keys if key]
