"""What clients have pushed, for the metrics page. Bounded in clients and numbers, and forgotten when it is old.

A broker takes metrics when there is a place to show them, a metrics listener: `is_on`. Otherwise it does not advertise
that it does, as Apache Kafka without a receiver of telemetry.
"""

from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.base.ids import Uuid

if TYPE_CHECKING:
    from ottla.wire.otlp import Point

MOST_CLIENTS: Final = 1_000
MOST_POINTS: Final = 500
"""Of one client."""
_STALE_AFTER: Final = 3
"""Intervals without a push."""

Series = tuple[str, tuple[tuple[str, str], ...]]


class Subscription(NamedTuple):
    """What a client is asked for. `metrics` are prefixes; one that is empty stands for all."""

    metrics: tuple[str, ...]
    interval_ms: int
    id: int


class ClientInstance:
    def __init__(self, client_id: str) -> None:
        self.client_id = client_id
        self.asked_ms = -1
        self.pushed_ms = -1
        self.stale_ms = 0
        self.is_terminating = False
        self.gauges: dict[Series, float] = {}
        self.sums: dict[Series, float] = {}

    def take(self, points: "list[Point]") -> None:
        """Gauges are replaced; sums that tell a difference are added up."""
        self.gauges = {(one.name, one.attributes): one.value for one in points if not one.is_sum}
        sums = {}
        for one in points:
            if one.is_sum:
                series = one.name, one.attributes
                sums[series] = one.value + (self.sums.get(series, 0.0) if one.is_delta else 0.0)
        self.sums = {**self.sums, **sums} if len(self.sums) < MOST_POINTS else sums


class ClientMetrics:
    """See the module."""

    def __init__(self) -> None:
        self.is_on = False
        self.instances: dict[Uuid, ClientInstance] = {}
        self.refused = 0
        self.pushes = 0

    def instance(self, instance_id: Uuid, client_id: str, now_ms: int, interval_ms: int) -> ClientInstance | None:
        """None if there are too many."""
        found = self.instances.get(instance_id)
        if found is None:
            if len(self.instances) >= MOST_CLIENTS:
                self.forget_stale(now_ms)
            if len(self.instances) >= MOST_CLIENTS:
                self.refused += 1
                return None
            found = self.instances[instance_id] = ClientInstance(client_id)
        found.stale_ms = now_ms + _STALE_AFTER * interval_ms
        return found

    def forget_stale(self, now_ms: int) -> None:
        self.instances = {key: one for key, one in self.instances.items() if one.stale_ms > now_ms}
