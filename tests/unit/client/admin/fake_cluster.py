"""A cluster that answers as a test says, at once, and keeps what it was asked."""

import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from ottla.base.pacing import Backoff
from ottla.client.admin.asking import Asking
from ottla.client.cluster.cluster import Cluster
from ottla.client.cluster.view import ClusterView
from ottla.client.errors import KafkaError, RequestTimedOut, UnsupportedVersion
from ottla.client.promise import Promise, spawn
from ottla.client.settings import read_settings
from ottla.client.topic_partition import Broker
from ottla.client.world import ClientWorld
from ottla.config.scopes import Scope
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers
from ottla.wire.apis import ApiKey, all_apis
from ottla.wire.exchange.api_versions import ApiVersions
from ottla.wire.faults import EncodeError
from ottla.wire.frame import encode_request
from ottla.wire.message import Message

T = TypeVar("T")
Answer = Message | KafkaError


class FakeCluster:
    """Brokers 1 to `count`. `on(name, answer)` sets what the brokers say to a request: a message, an error, a list of
    those to be used one after the other, or a function of node and request.
    """

    def __init__(self, count: int = 1, **settings: object) -> None:
        self.clock = FixedClock()
        self.timers = StepTimers(self.clock)
        self.world = ClientWorld(self.clock, self.timers, random.Random(1), cast(Any, None), self._report)
        self.settings = read_settings(Scope.ADMIN, None, {"bootstrap_servers": "fake:1", **settings})
        self.backoff = Backoff(100, 1000)
        self.view = ClusterView({node: Broker(node, "fake", node) for node in range(1, count + 1)}, 1, "cluster")
        self.asked: list[tuple[int, Message]] = []
        self.refreshes = 0
        self.newest: dict[str, int] = {}
        """The newest version that brokers know of a request, if it is not ours; -1 if they do not know it."""
        self._answers: dict[str, Any] = {}
        self.has_reached_any = True
        self.asking = Asking(cast(Cluster, self))

    def no_metadata(self) -> KafkaError:
        return RequestTimedOut("no broker answered a metadata request in time")

    def may_pass(self, problem: KafkaError) -> bool:
        return problem.retriable

    def on(self, request: str, answer: Answer | list[Answer] | Callable[[int, Any], Answer]) -> None:
        self._answers[request] = answer

    def run(self, call: Coroutine[Any, Any, T]) -> T:
        """What the call comes to; time goes by as far as it waits."""
        running = spawn(call)
        while not running.is_done:
            assert self.timers.agenda.fire_next(), "it waits for something that never comes"
        return running.value()

    def requests(self, name: str) -> list[Any]:
        return [request for _, request in self.asked if type(request).__name__ == name]

    def ask(
        self,
        node_id: int,
        request: Any,
        *,
        api_key: int | None = None,
        timeout_ms: float = 0,
        newest: int | None = None,
    ) -> Promise[Any]:
        if api_key is None:
            api_key = request._schema.api_key
        version = self._newest(api_key) if newest is None else min(self._newest(api_key), newest)
        if version < all_apis()[api_key].stable_versions[0]:
            return Promise.rejected(UnsupportedVersion(f"the broker does not serve {ApiKey(api_key).name}"))
        try:
            if callable(request):
                request = request(version)
            encode_request(request, version, 1, None)
        except (EncodeError, KafkaError) as problem:
            return Promise.rejected(problem)
        self.asked.append((node_id, request))
        answer = self._answers[type(request).__name__]
        if isinstance(answer, list):
            answer = answer.pop(0)
        elif callable(answer):
            answer = answer(node_id, request)
        return Promise.rejected(answer) if isinstance(answer, KafkaError) else Promise.resolved(answer)

    def versions_of(self, node_id: int) -> Promise[ApiVersions]:
        bounds = {
            key: (fact.stable_versions[0], self._newest(key))
            for key, fact in all_apis().items()
            if fact.stable_versions
        }
        return Promise.resolved(ApiVersions({key: both for key, both in bounds.items() if both[0] <= both[1]}))

    def _newest(self, api_key: int) -> int:
        return self.newest.get(_request_name(api_key), all_apis()[api_key].stable_versions[-1])

    def least_busy(self) -> int:
        return min(self.view.brokers)

    def learn(self, broker: Broker) -> None:
        self.view = self.view._replace(brokers={**self.view.brokers, broker.id: broker})

    def refresh(self) -> Promise[ClusterView]:
        self.refreshes += 1
        return Promise.resolved(self.view)

    def _report(self, error: Exception) -> None:
        raise error


def _request_name(api_key: int) -> str:
    return "".join(word.title() for word in ApiKey(api_key).name.split("_")) + "Request"
