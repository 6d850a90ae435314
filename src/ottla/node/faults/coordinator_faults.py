"""A coordinator that moves, and a member whose session is over at once.

A move is what happens when another broker takes over a partition of `__consumer_offsets` or `__transaction_state`: the
state in memory is gone, requests that wait are sent away with NOT_COORDINATOR, and so is every request that comes.
As there is one node, it is also the one that takes over: when a client asks where its coordinator is, the partition is
loaded from its log again. All groups or transactional ids of the partition move together.
"""

from typing import TYPE_CHECKING, Any, Final

from ottla.broker.broker import Broker
from ottla.broker.partitions.partition import Partition
from ottla.runtime.request import Handler, RequestContext, Respond
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message

if TYPE_CHECKING:
    from ottla.broker.coordination.topic_coordinator import TopicCoordinator

_GROUP, _TRANSACTION = 0, 1
_SESSION: Final = "session"
_FIRST_WITH_SEVERAL: Final = 4


class CoordinatorFaults:
    """`handle` is called with every request, and passes it on to `inner`."""

    def __init__(self, inner: Handler, broker: Broker) -> None:
        self._inner = inner
        self._coordinators: dict[int, TopicCoordinator[Any]] = {
            _GROUP: broker.groups,
            _TRANSACTION: broker.transactions,
        }
        self._moved: dict[tuple[int, int], Partition] = {}

    def handle(self, context: RequestContext, message: Message, respond: Respond) -> None:
        if self._moved and context.api_key == ApiKey.FIND_COORDINATOR:
            self._on_find(message, context.api_version)
        self._inner(context, message, respond)

    def _on_find(self, request: Any, version: int) -> None:
        """A client looks for its coordinator: if that has moved, it is there from now on."""
        coordinator = self._coordinators.get(request.key_type)
        if coordinator is None:
            return
        for key in [request.key] if version < _FIRST_WITH_SEVERAL else request.coordinator_keys:
            moved = self._moved.pop((request.key_type, coordinator.partition_for(key)), None)
            if moved is not None:
                coordinator.on_leadership(moved)

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
            self._moved[key_type, index] = led.partition
        return (key_type, index) in self._moved

    def settle(self) -> None:
        """Every coordinator is back, whether it was asked for or not."""
        for (key_type, _), partition in self._moved.items():
            self._coordinators[key_type].on_leadership(partition)
        self._moved.clear()

    def expire_members(self, group: str, member_id: str | None) -> list[str]:
        """Ends the session of a member, or of all that have one. Returns whose it was."""
        led = self._coordinators[_GROUP].find(group)
        if led is None:
            return []
        return [str(member) for _, _, member in led.expire_now(_SESSION, group, member_id)]
