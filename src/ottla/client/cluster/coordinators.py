"""Which broker coordinates a group or a transactional id: asked once, kept until it is said to be wrong."""

from enum import IntEnum
from typing import Any

from ottla.client.client_log import LONG_S
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import Disconnected, KafkaError, RequestTimedOut, error_for
from ottla.client.network.connections import Purpose
from ottla.client.promise import Promise
from ottla.client.topic_partition import Broker
from ottla.wire.apis import ApiKey
from ottla.wire.errors import ErrorCode
from ottla.wire.exchange.open_request import Ask
from ottla.wire.messages import FindCoordinatorRequest

_FIRST_WITH_MANY_KEYS = 4


class CoordinatorKind(IntEnum):
    GROUP = 0
    TRANSACTION = 1
    SHARE = 2


class Coordinators:
    """One client's. What is asked of a coordinator has a connection of its own, so that it never waits for a fetch."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self._known: dict[tuple[CoordinatorKind, str], int] = {}

    def known(self, kind: CoordinatorKind, key: str) -> int | None:
        return self._known.get((kind, key))

    def forget(self, kind: CoordinatorKind, key: str) -> None:
        """It has moved, or cannot be reached: the next one who asks looks for it anew."""
        self._known.pop((kind, key), None)

    async def find(self, kind: CoordinatorKind, key: str, deadline_s: float) -> int:
        """The id of the broker, looked for until the deadline. Raises what kept it from being found."""
        known = self._known.get((kind, key))
        if known is not None and known in self._cluster.view.brokers:
            return known
        world = self._cluster.world
        failures = 0
        while True:
            try:
                return await self._find_once(kind, key, deadline_s)
            except KafkaError as problem:
                left_ms = (deadline_s - world.now_s()) * 1000
                if not problem.retriable or left_ms <= 0:
                    raise
                text = f"cannot find the coordinator of {kind.name.lower()} {key!r}; trying again: {problem}"
                world.log.trouble(("coordinator", kind, key), text, after_s=LONG_S)
            await world.sleep(min(self._cluster.backoff.after(failures, world.entropy), left_ms))
            failures += 1

    async def ask(
        self,
        kind: CoordinatorKind,
        key: str,
        request: Ask,
        deadline_s: float,
        *,
        api_key: int | None = None,
        newest: int | None = None,
        line: Purpose = Purpose.COORDINATOR,
    ) -> Any:
        """One attempt at the coordinator, once it is found. A connection that breaks makes it unknown again."""
        node_id = await self.find(kind, key, deadline_s)
        left_ms = max((deadline_s - self._cluster.world.now_s()) * 1000, 1)
        try:
            return await self._cluster.ask(
                node_id, request, api_key=api_key, timeout_ms=left_ms, newest=newest, line=line
            )
        except (Disconnected, RequestTimedOut):
            self.forget(kind, key)
            raise

    async def _find_once(self, kind: CoordinatorKind, key: str, deadline_s: float) -> int:
        def request(version: int) -> FindCoordinatorRequest:
            if version >= _FIRST_WITH_MANY_KEYS:
                return FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            return FindCoordinatorRequest(key_type=kind, key=key)

        left_ms = max((deadline_s - self._cluster.world.now_s()) * 1000, 1)
        asked: Promise[Any] = self._cluster.ask_any(request, api_key=ApiKey.FIND_COORDINATOR)
        response = await self._cluster.world.within(
            asked, left_ms, lambda: RequestTimedOut(f"no broker answered who coordinates {key!r} in time")
        )
        found = response.coordinators[0] if response.coordinators else response
        if found.error_code != ErrorCode.NONE:
            raise error_for(found.error_code, found.error_message)
        self._cluster.learn(Broker(found.node_id, found.host, found.port))
        self._known[kind, key] = found.node_id
        self._cluster.world.log.over(("coordinator", kind, key), f"found the coordinator of {key!r}")
        return int(found.node_id)
