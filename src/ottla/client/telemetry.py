"""A client's metrics, pushed to brokers that ask for them (KIP-714, `enable.metrics.push`).

A client asks any broker what it is to push and how often, waits for a part of that time, so that a thousand clients
that were started together do not push together, and pushes until the broker says that it wants something else. What a
broker refuses or does not answer is tried again with the next interval: metrics are no reason to trouble anybody.

Names are Kafka's: `record-queue-time-avg` of a producer is `org.apache.kafka.producer.record.queue.time.avg`. Values
are since the start of the client (cumulative), and not compressed: they are a few kilobytes. There is no last push when
a client is closed; the broker forgets it after three intervals.
"""

from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Final

from ottla.base.ids import ZERO_UUID
from ottla.client.errors import ClientClosed, KafkaError
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from ottla.wire.otlp import Point, encode_points

if TYPE_CHECKING:
    from ottla.client.cluster.cluster import Cluster

_AGAIN_MS: Final = 30_000
_PREFIX: Final = "org.apache.kafka."
_TOTAL: Final = "-total"
_ALL: Final = "*"
_ROOMS: Final = {
    "consumer": {
        "consumer.fetch.manager.": ("fetch-", "records-", "bytes-"),
        "consumer.coordinator.": ("commit-", "rebalance-", "assigned-"),
    }
}
"""Groups of metrics that are named in the middle of a name."""

Read = Callable[[], Mapping[str, float]]


def points_of(kind: str, metrics: Mapping[str, float], wanted: tuple[str, ...]) -> list[Point]:
    """Those that are wanted, by prefix, and that have a value."""
    named = ((full_name(kind, name), name, value) for name, value in metrics.items())
    return [
        Point(full, float(value), is_sum=name.endswith(_TOTAL))
        for full, name, value in named
        if isfinite(value) and any(prefix == _ALL or full.startswith(prefix) for prefix in wanted)
    ]


def full_name(kind: str, name: str) -> str:
    room = next((room for room, begins in _ROOMS.get(kind, {}).items() if name.startswith(begins)), f"{kind}.")
    return f"{_PREFIX}{room}{name.replace('-', '.')}"


async def push_metrics(cluster: "Cluster", kind: str, read: Read) -> None:
    """Until the client is closed."""
    world = cluster.world
    start_ns = world.clock.now_ms() * 1_000_000
    instance_id = ZERO_UUID
    while not cluster.is_closed:
        try:
            asked = await cluster.ask_any(GetTelemetrySubscriptionsRequest(client_instance_id=instance_id))
        except ClientClosed:
            return
        except KafkaError:
            await world.sleep(_AGAIN_MS)
            continue
        if asked.error_code:
            await world.sleep(max(asked.throttle_time_ms, _AGAIN_MS))
            continue
        instance_id = asked.client_instance_id
        interval_ms = max(asked.push_interval_ms, 1)
        wanted = tuple(asked.requested_metrics)
        if not wanted:
            await world.sleep(interval_ms)
            continue
        await world.sleep(interval_ms * (0.5 + world.entropy.randrange(1000) / 1000))
        while not cluster.is_closed:
            metrics = encode_points(
                points_of(kind, read(), wanted), start_ns=start_ns, now_ns=world.clock.now_ms() * 1_000_000
            )
            request = PushTelemetryRequest(
                client_instance_id=instance_id,
                subscription_id=asked.subscription_id,
                terminating=False,
                compression_type=0,
                metrics=metrics,
            )
            try:
                error = ErrorCode((await cluster.ask_any(request)).error_code)
            except ClientClosed:
                return
            except KafkaError:
                error = ErrorCode.NETWORK_EXCEPTION
            if error is ErrorCode.UNKNOWN_SUBSCRIPTION_ID:
                break
            await world.sleep(interval_ms)
