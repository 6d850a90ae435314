"""Asking the coordinator of one group."""

from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.coordinators import CoordinatorKind, Coordinators
from ottla.client.errors import KafkaError
from ottla.client.network.connections import Purpose
from ottla.client.promise import Promise
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.open_request import Ask

_HAS_MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})


class GroupCoordinator:
    def __init__(self, cluster: Cluster, coordinators: Coordinators, group_id: str) -> None:
        self._cluster = cluster
        self._coordinators = coordinators
        self._group_id = group_id

    def ask(self, request: Ask, timeout_ms: float, *, api_key: int | None = None) -> Coroutine[Promise[Any], None, Any]:
        """One attempt, in that time. Raises `KafkaError`; a coordinator that did not answer is looked for anew."""
        deadline_s = self._cluster.world.now_s() + timeout_ms / 1000
        return self._coordinators.ask(CoordinatorKind.GROUP, self._group_id, request, deadline_s, api_key=api_key)

    async def tell(self, request: Ask, timeout_ms: float, *, api_key: int | None = None, at_once: bool) -> None:
        """One attempt, if a coordinator is known; what becomes of it is nobody's concern.

        `at_once`: not on the connection on which a JoinGroup may be waiting for the other members.
        """
        node_id = self._coordinators.known(CoordinatorKind.GROUP, self._group_id)
        if node_id is None:
            return
        line = Purpose.MAIN if at_once else Purpose.COORDINATOR
        with suppress(KafkaError):
            await self._cluster.ask(node_id, request, api_key=api_key, timeout_ms=timeout_ms, line=line)

    def note(self, error: int) -> None:
        """Forgets the coordinator if its answer says that it is not, or cannot be."""
        if error in _HAS_MOVED:
            self._coordinators.forget(CoordinatorKind.GROUP, self._group_id)
