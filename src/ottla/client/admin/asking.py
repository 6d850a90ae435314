"""How the admin asks: whom, until when, and how often again.

Theory of operation. Every call has a deadline, `default.api.timeout.ms` from its start if the caller names none. A
request that fails as a whole with a retriable error is sent again after a growing pause, to the node that is right by
then. A call on many items (`each`) asks for all of them at once, and again only for the items whose errors may pass.
What is still failing at the deadline keeps its last error, so that the caller learns why and not only that time was
over.

With `bootstrap.controllers` the nodes that are asked are the quorum's, and DescribeCluster takes the place of metadata,
which controllers do not serve (KIP-919).
"""

from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple, TypeVar

from ottla.base.ids import ZERO_UUID
from ottla.client.admin.admin_metrics import AdminMetrics
from ottla.client.admin.results import Outcome, Results
from ottla.client.client_log import LONG_S
from ottla.client.cluster.cluster import Cluster
from ottla.client.errors import (
    Disconnected,
    KafkaError,
    NoBrokerReachable,
    NotController,
    RebalanceInProgress,
    RequestTimedOut,
    ThrottlingQuotaExceeded,
    UnknownServerError,
    UnknownTopicOrPartition,
    UnsupportedVersion,
    error_for,
)
from ottla.client.promise import all_settled, spawn
from ottla.client.topic_partition import Broker
from ottla.wire import messages
from ottla.wire.apis import ApiKey
from ottla.wire.exchange.open_request import Ask
from ottla.wire.faults import EncodeError

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")

Attempt = Callable[[list[K]], Awaitable[Mapping[K, Outcome[V]]]]
"""Asks for some items of a call once, and tells the outcome of each of them."""

_CONTROLLERS: Final = 2
"""DescribeCluster's endpoint type."""
UNKNOWN_TOPIC_PATIENCE_S: Final = 5.0
"""How long a topic that a broker does not know may be one that it has not heard of yet."""


class Deadline(NamedTuple):
    """When a call must be over, in the world's elapsed time."""

    started_s: float
    at_s: float


ANY_BROKER: Final = -(1 << 31)
"""In place of a node's id: any node."""


class Asking:
    """One admin's."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.via_controllers: Final = bool(cluster.settings.given.get("bootstrap.controllers"))
        self.metrics = AdminMetrics()
        self._timeout_s = cluster.settings.integer("default.api.timeout.ms") / 1000
        self._request_timeout_ms = cluster.settings.integer("request.timeout.ms")
        self._retries = cluster.settings.integer("retries")
        self._active_controller: int | None = None
        self.instance_id = ZERO_UUID
        """What brokers that collect metrics know this client by, once it has asked (KIP-714)."""

    # --- time ---

    def deadline(self, timeout: float | None) -> Deadline:
        """`timeout` is in seconds, as all that callers of clients give."""
        now_s = self.cluster.world.now_s()
        return Deadline(now_s, now_s + (self._timeout_s if timeout is None else timeout))

    def left_ms(self, deadline: Deadline) -> float:
        return max((deadline.at_s - self.cluster.world.now_s()) * 1000, 0)

    def server_timeout_ms(self, deadline: Deadline) -> int:
        """For requests that carry a time limit of their own: what the broker may take before the client gives up."""
        return int(min(self.left_ms(deadline), self._request_timeout_ms))

    # --- one request ---

    async def any(self, request: Ask, deadline: Deadline, *, api: ApiKey | None = None) -> Any:
        """Asked of the least busy broker, again until it is answered."""

        async def attempt() -> Any:
            return await self.once(self.cluster.least_busy(), request, deadline, api=api)

        return await self.until_answered(attempt, deadline)

    async def controller(self, request: Ask, deadline: Deadline, *, api: ApiKey | None = None) -> Any:
        """Asked of the controller, again until it is answered."""

        async def attempt() -> Any:
            response = await self.once(await self.controller_id(deadline), request, deadline, api=api)
            if getattr(response, "error_code", 0) == NotController.code:
                raise NotController
            return response

        return await self.until_answered(attempt, deadline)

    async def broker(self, node_id: int, request: Ask, deadline: Deadline, *, api: ApiKey | None = None) -> Any:
        """Asked of one broker, again until it is answered; of `ANY_BROKER`, each time of one that may be up."""
        if node_id == ANY_BROKER:
            return await self.any(request, deadline, api=api)

        async def attempt() -> Any:
            await self.know(node_id, deadline)
            return await self.once(node_id, request, deadline, api=api)

        return await self.until_answered(attempt, deadline)

    async def every_broker(self, request: Ask, deadline: Deadline) -> dict[int, Any]:
        """Asked of all brokers side by side, each until it is answered. Raises the error of any of them."""

        async def ask(node_id: int) -> Any:
            async def attempt() -> Any:
                await self.know(node_id, deadline)
                response = await self.once(node_id, request, deadline)
                if response.error_code:
                    raise error_for(response.error_code)
                return response

            return await self.until_answered(attempt, deadline)

        node_ids = await self.brokers(deadline)
        answers = await self.together(ask(node_id) for node_id in node_ids)
        for answer in answers:
            if isinstance(answer, KafkaError):
                raise answer
        return dict(zip(node_ids, answers, strict=True))

    async def once(
        self, node_id: int, request: Ask, deadline: Deadline, *, api: ApiKey | None = None, newest: int | None = None
    ) -> Any:
        """One attempt at one node, in version `newest` at most."""
        timeout_ms = min(self.left_ms(deadline), self._request_timeout_ms)
        started_s = self.cluster.world.now_s()
        self.metrics.on_request()
        try:
            response = await self.cluster.ask(node_id, request, api_key=api, timeout_ms=timeout_ms, newest=newest)
        except EncodeError as problem:
            # What a caller asked for has no place in the newest version that the broker knows.
            raise UnsupportedVersion(f"the broker is too old for this: {problem}") from None
        self.metrics.on_response(self.cluster.world.now_s() - started_s)
        return response

    async def until_answered(self, attempt: Callable[[], Awaitable[T]], deadline: Deadline) -> T:
        """Attempts it again and again while its errors may pass and there is time."""
        failures = 0
        failed: KafkaError | None = None
        while True:
            try:
                return await attempt()
            except KafkaError as problem:
                if not self.cluster.may_pass(problem) or failures >= self._retries or not self.left_ms(deadline):
                    raise self._telling(failed, problem, deadline) from None
                failed = problem
                self.cluster.world.log.trouble(("call", problem.code), f"trying again: {problem}", after_s=LONG_S)
            await self.pause(failures, deadline)
            failures += 1
            if failed.needs_metadata or isinstance(failed, NotController | RequestTimedOut):
                with suppress(RequestTimedOut):
                    await self.refresh(deadline)

    def _telling(self, before: KafkaError | None, now: KafkaError, deadline: Deadline) -> KafkaError:
        """Of a call's last two errors the one that says why: the last attempt may only have had no time left."""
        is_only_late = isinstance(now, RequestTimedOut) and self.left_ms(deadline) < 1
        return before if before is not None and is_only_late else now

    def failure_of(self, call: str, problem: KafkaError) -> KafkaError:
        """What a call raises: the same, or, if none of the addresses that were given has ever answered, that.

        One that did and is slow now, or gone, is not reported as if the address were wrong.
        """
        if isinstance(problem, NoBrokerReachable) or not isinstance(problem, Disconnected | RequestTimedOut):
            return problem
        if self.cluster.has_reached_any:
            return problem
        unreachable = NoBrokerReachable(self.cluster.last_reason or problem.message)
        unreachable.call = call
        return unreachable

    async def pause(self, failures: int, deadline: Deadline) -> None:
        world = self.cluster.world
        await world.sleep(min(self.cluster.backoff.after(failures, world.entropy), self.left_ms(deadline)))

    # --- many items ---

    async def each(
        self,
        call: str,
        items: Iterable[K],
        attempt: Attempt[K, V],
        deadline: Deadline,
        *,
        may_pass: Callable[[KafkaError], bool] | None = None,
    ) -> Results[K, V]:
        """The outcome of every item. `attempt` is given those that are left, and says what became of each of them.

        `may_pass` tells which errors of an item are worth another attempt: without it, those that are retriable.
        """
        outcomes: dict[K, Outcome[V]] = {}
        wanted = left = list(dict.fromkeys(items))
        failures = 0
        while left:
            try:
                by_item = await attempt(left)
            except KafkaError as problem:
                by_item = dict.fromkeys(left, problem)
            for item in left:
                outcome = by_item[item] if item in by_item else UnknownServerError(f"the answer leaves out {item}")
                before = outcomes.get(item)
                if isinstance(outcome, KafkaError) and isinstance(before, KafkaError):
                    outcome = self._telling(before, outcome, deadline)
                outcomes[item] = outcome
            now_s = self.cluster.world.now_s()
            left = [item for item in left if self._is_open(outcomes[item], may_pass, now_s, deadline)]
            if not left or failures >= self._retries or now_s >= deadline.at_s:
                break
            await self.pause(failures, deadline)
            failures += 1
        return Results(call, {item: self._outcome_of(call, outcomes[item]) for item in wanted})

    def _outcome_of(self, call: str, outcome: Outcome[V]) -> Outcome[V]:
        return self.failure_of(call, outcome) if isinstance(outcome, KafkaError) else outcome

    def _is_open(
        self, outcome: Outcome[Any], may_pass: Callable[[KafkaError], bool] | None, now_s: float, deadline: Deadline
    ) -> bool:
        if not isinstance(outcome, KafkaError):
            return False
        if isinstance(outcome, UnknownTopicOrPartition) and now_s - deadline.started_s > UNKNOWN_TOPIC_PATIENCE_S:
            return False
        return outcome.retriable if may_pass is None else may_pass(outcome)

    async def together(self, work: Iterable[Coroutine[Any, Any, T]]) -> list[T | KafkaError]:
        """All of these side by side. An error is the outcome of one, and does not end the others."""
        running = [spawn(one) for one in work]
        await all_settled(running)
        outcomes: list[T | KafkaError] = []
        for one in running:
            if one.error is not None and not isinstance(one.error, KafkaError):
                raise one.error
            outcomes.append(one.error if isinstance(one.error, KafkaError) else one.value())
        return outcomes

    # --- nodes ---

    async def refresh(self, deadline: Deadline) -> None:
        if self.via_controllers:
            await self._find_controllers(deadline)
            return
        refreshed = self.cluster.refresh()
        await self.cluster.world.within(refreshed, self.left_ms(deadline), self.cluster.no_metadata)

    async def brokers(self, deadline: Deadline) -> list[int]:
        """The ids of the cluster's nodes, in order."""
        if all(node_id < 0 for node_id in self.cluster.view.brokers):
            await self.refresh(deadline)
        return sorted(node_id for node_id in self.cluster.view.brokers if node_id >= 0)

    async def know(self, node_id: int, deadline: Deadline) -> None:
        """Makes sure that the node's address is known. Raises `Disconnected` if the cluster has no such node now."""
        if node_id not in self.cluster.view.brokers:
            with suppress(RequestTimedOut):
                await self.refresh(deadline)
        if node_id not in self.cluster.view.brokers:
            raise Disconnected(f"the cluster has no node {node_id} that is known")

    async def controller_id(self, deadline: Deadline) -> int:
        """Where requests for the controller go. Any broker passes them on (KIP-590); controllers name their leader."""
        if self.via_controllers:
            if self._active_controller is None:
                await self._find_controllers(deadline)
            assert self._active_controller is not None
            return self._active_controller
        controller_id = self.cluster.view.controller_id
        return controller_id if controller_id in self.cluster.view.brokers else self.cluster.least_busy()

    async def _find_controllers(self, deadline: Deadline) -> None:
        request = messages.DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        # Any that was named or learnt may be gone, so each is tried.
        outcomes = await self.together(self.once(node_id, request, deadline) for node_id in self.cluster.view.brokers)
        answers = [outcome for outcome in outcomes if not isinstance(outcome, KafkaError)]
        if not answers:
            raise next(outcome for outcome in outcomes if isinstance(outcome, KafkaError))
        response = next((answer for answer in answers if not answer.error_code), answers[0])
        if response.error_code:
            raise error_for(response.error_code, response.error_message)
        for node in response.brokers:
            self.cluster.learn(Broker(node.broker_id, node.host, node.port, node.rack))
        self._active_controller = response.controller_id if response.controller_id >= 0 else None
        if self._active_controller is None:
            raise NotController("the quorum has no leader at the moment")


def is_throttled(error: KafkaError) -> bool:
    """Of what changes the cluster, only what was certainly not done is tried again."""
    return isinstance(error, ThrottlingQuotaExceeded | NotController)


def is_about_the_coordinator(error: KafkaError) -> bool:
    """A group that rebalances, or a coordinator on its way, is waited for; a topic that is not known is not there."""
    if isinstance(error, UnknownTopicOrPartition):
        return False
    return error.retriable or isinstance(error, RebalanceInProgress)


def never(error: KafkaError) -> bool:
    return False
