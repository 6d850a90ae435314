"""What a member's partitions are, and asking the consumer to give some up or take others on."""

from collections.abc import Awaitable, Iterable
from contextlib import suppress

from ottla.base.ids import TopicPartition
from ottla.client.membership.member import MembershipListener
from ottla.client.promise import Promise, spawn


class Holdings:
    """The partitions that the listener has. One that is given up is still in `owned` until the listener is done."""

    def __init__(self, listener: MembershipListener) -> None:
        self._listener = listener
        self.owned: frozenset[TopicPartition] = frozenset()
        self.telling: Promise[None] = Promise.resolved(None)
        """What the listener was last asked to do."""

    async def assign(self, wanted: frozenset[TopicPartition]) -> None:
        """These are the member's from now on; the listener gets those that are new, or that there are none."""
        added = wanted - self.owned
        self.owned = wanted
        await self._tell(self._listener.on_assigned(in_order(added)))

    async def revoke(self, partitions: frozenset[TopicPartition]) -> None:
        if partitions:
            await self._tell(self._listener.on_revoked(in_order(partitions)))
            self.owned -= partitions

    async def lose(self) -> None:
        """All of them."""
        if lost := self.owned:
            await self._tell(self._listener.on_lost(in_order(lost)))
            self.owned -= lost

    async def _tell(self, task: Awaitable[None] | None) -> None:
        self.telling = spawn(_done(task))
        await self.telling


def in_order(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(partitions))


async def _done(task: Awaitable[None] | None) -> None:
    """What the application's listener raises is raised to the application, by the consumer; the member continues."""
    if task is not None:
        with suppress(Exception):
            await task
