"""A coordinator that moves, and a member whose session is over at once.

A move is what happens when another broker takes over a partition of `__consumer_offsets` or `__transaction_state`: the
state in memory is gone, requests that wait are sent away with NOT_COORDINATOR, and so is every request that comes.
As there is one node, it is also the one that takes over: when a client asks where its coordinator is, the partition is
loaded from its log again. All groups or transactional ids of the partition move together.

A leader of a partition that a transaction writes to looks for the coordinator by itself, and does not tell the client.
"""

from typing import TYPE_CHECKING, Any, Final

from ottla.apis.description import Coordinated
from ottla.apis.error_responses import error_response
from ottla.apis.table import APIS, TRANSACTIONS
from ottla.broker.broker import Broker
from ottla.broker.partitions.partition import Partition
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.broker.coordination.topic_coordinator import TopicCoordinator

_GROUP, _TRANSACTION = 0, 1
_SESSION: Final = "session"
_FIRST_WITH_SEVERAL: Final = 4
_ASKED_ABOUT_BY_LEADERS: Final = (ApiKey.PRODUCE, ApiKey.TXN_OFFSET_COMMIT)


class _Moved:
    """A coordinator's partition that clients have to look for. `is_loaded`: a leader on this node has found it."""

    __slots__ = ("is_loaded", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.is_loaded = False


class CoordinatorFaults:
    """`handle` is called with every request, and passes most of them on to `inner`."""

    def __init__(self, inner: Handler, broker: Broker) -> None:
        self._inner = inner
        self._coordinators: dict[int, TopicCoordinator[Any]] = {
            _GROUP: broker.groups,
            _TRANSACTION: broker.transactions,
        }
        self._moved: dict[tuple[int, int], _Moved] = {}

    def handle(self, context: RequestContext, message: Message, respond: Respond) -> None:
        if self._moved:
            request: Any = message
            if context.api_key == ApiKey.FIND_COORDINATOR:
                self._on_find(request, context.api_version)
            elif context.api_key in _ASKED_ABOUT_BY_LEADERS and request.transactional_id:
                self._on_leader_asks(request.transactional_id)
            elif self._must_look(context.api_key, request):
                respond(error_response(message, context.api_version, ErrorCode.NOT_COORDINATOR))
                return
        self._inner(context, message, respond)

    def _on_find(self, request: Any, version: int) -> None:
        """A client looks for its coordinator: if that has moved, it is there from now on."""
        coordinator = self._coordinators.get(request.key_type)
        if coordinator is None:
            return
        for key in [request.key] if version < _FIRST_WITH_SEVERAL else request.coordinator_keys:
            moved = self._moved.pop((request.key_type, coordinator.partition_for(key)), None)
            if moved is not None and not moved.is_loaded:
                coordinator.on_leadership(moved.partition)

    def _on_leader_asks(self, transactional_id: str) -> None:
        """The leader of a partition asks the coordinator about a transaction (KIP-890), and knows where it is now.

        Its client does not.
        """
        coordinator = self._coordinators[_TRANSACTION]
        moved = self._moved.get((_TRANSACTION, coordinator.partition_for(transactional_id)))
        if moved is not None and not moved.is_loaded:
            moved.is_loaded = True
            coordinator.on_leadership(moved.partition)

    def _must_look(self, api_key: int, request: Any) -> bool:
        """Whether the request is to the coordinator of one transactional id, and that has moved."""
        row = APIS.get(api_key)
        where = row.waits_for if row is not None else None
        if not isinstance(where, Coordinated) or where.topic != TRANSACTIONS:
            return False
        key = getattr(request, where.key)
        if not isinstance(key, str) or not key:
            return False
        return (_TRANSACTION, self._coordinators[_TRANSACTION].partition_for(key)) in self._moved

    def move_group(self, group: str) -> bool:
        """Whether there is a coordinator that could be moved: without any group there is none yet."""
        return self._move(_GROUP, group)

    def move_transaction(self, transactional_id: str) -> bool:
        return self._move(_TRANSACTION, transactional_id)

    def _move(self, key_type: int, key: str) -> bool:
        coordinator = self._coordinators[key_type]
        index = coordinator.partition_for(key)
        led = coordinator.partitions.pop(index, None)
        if led is not None:
            led.write()
            led.close()
            self._moved[key_type, index] = _Moved(led.partition)
        return (key_type, index) in self._moved

    def settle(self) -> None:
        """Every coordinator is back, whether it was asked for or not."""
        for (key_type, _), moved in self._moved.items():
            if not moved.is_loaded:
                self._coordinators[key_type].on_leadership(moved.partition)
        self._moved.clear()

    def expire_members(self, group: str, member_id: str | None) -> list[str]:
        """Ends the session of a member, or of all that have one. Returns whose it was."""
        led = self._coordinators[_GROUP].find(group)
        if led is None:
            return []
        return [str(member) for _, _, member in led.expire_now(_SESSION, group, member_id)]
