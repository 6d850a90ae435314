"""GetTelemetrySubscriptions 0 and PushTelemetry 0: what clients are to measure, and what they have measured (KIP-714).

Which client is asked for what is in the settings of client metrics (`kafka-configs --entity-type client-metrics`): each
subscription names prefixes of metrics, an interval, and clients by selectors. A client gets all that match it, at the
shortest interval. The id of what it is asked for follows from the subscriptions and its own id, so that any broker can
say whether a push is about the same.

Kafka's clients compress what they push. It is unpacked and read on a worker, within limits.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache, partial
from typing import Final
from zlib import crc32

from ottla.base.errors import OttlaError
from ottla.base.ids import ZERO_UUID, Uuid, random_uuid, uuid_text
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.telemetry.client_metrics import MOST_POINTS, ClientInstance, ClientMetrics, Subscription
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.settings.effective_settings import CLIENT_METRICS_SETTINGS
from ottla.machines.patterns import ClientPattern, InvalidPattern
from ottla.records.compression import decompress
from ottla.records.header import Compression
from ottla.runtime.request import RequestContext, Respond
from ottla.runtime.world import World
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from ottla.wire.otlp import Point, decode_points

_DEFAULT_INTERVAL_MS: Final = 300_000
_MOST_UNPACKED: Final = 8 << 20
_ALL: Final = "*"
_ACCEPTED: Final = (Compression.ZSTD, Compression.LZ4, Compression.GZIP, Compression.SNAPPY)
_EARLY: Final = 0.9
"""Of an interval. A client's clock is not ours."""


def handle_get_telemetry_subscriptions(
    client_metrics: ClientMetrics,
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    world: World,
    context: RequestContext,
    request: GetTelemetrySubscriptionsRequest,
    respond: Respond,
) -> None:
    if not client_metrics.is_on:
        respond(GetTelemetrySubscriptionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    instance_id = request.client_instance_id
    if instance_id == ZERO_UUID:
        instance_id = random_uuid(world.entropy.randbytes)
    asked = subscription_of(metadata, instance_id, context)
    now_ms = world.clock.now_ms()
    instance = client_metrics.instance(instance_id, context.client_id or "", now_ms, asked.interval_ms)
    if instance is None or instance.is_terminating:
        error = ErrorCode.THROTTLING_QUOTA_EXCEEDED if instance is None else ErrorCode.INVALID_REQUEST
        respond(GetTelemetrySubscriptionsResponse(error_code=error))
        return
    instance.asked_ms = now_ms
    respond(
        GetTelemetrySubscriptionsResponse(
            client_instance_id=instance_id,
            subscription_id=asked.id,
            accepted_compression_types=list(_ACCEPTED),
            push_interval_ms=asked.interval_ms,
            telemetry_max_bytes=node_settings.effective.integer("telemetry.max.bytes"),
            delta_temporality=False,
            requested_metrics=list(asked.metrics),
        )
    )


def handle_push_telemetry(
    client_metrics: ClientMetrics,
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    world: World,
    context: RequestContext,
    request: PushTelemetryRequest,
    respond: Respond,
) -> None:
    if not client_metrics.is_on:
        respond(PushTelemetryResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    asked = subscription_of(metadata, request.client_instance_id, context)
    now_ms = world.clock.now_ms()
    instance: ClientInstance | None = None
    if request.client_instance_id != ZERO_UUID:
        client_id = context.client_id or ""
        instance = client_metrics.instance(request.client_instance_id, client_id, now_ms, asked.interval_ms)
    most = node_settings.effective.integer("telemetry.max.bytes")
    error = _refusal(request, asked, instance, now_ms, most)
    if error or instance is None:
        respond(PushTelemetryResponse(error_code=error))
        return
    held = instance
    held.pushed_ms = now_ms
    held.is_terminating = request.terminating

    def taken(points: list[Point]) -> None:
        client_metrics.pushes += 1
        held.take([one for one in points if _is_wanted(one.name, asked.metrics)])
        respond(PushTelemetryResponse())

    def failed(problem: Exception) -> None:
        if not isinstance(problem, OttlaError):
            raise problem
        respond(PushTelemetryResponse(error_code=ErrorCode.INVALID_RECORD))

    read = partial(_read, request.compression_type, bytes(request.metrics))
    world.workers.run(read, taken, failed, key=("telemetry", request.client_instance_id))


def _refusal(
    request: PushTelemetryRequest, asked: Subscription, instance: ClientInstance | None, now_ms: int, most: int
) -> ErrorCode:
    if request.client_instance_id == ZERO_UUID:
        return ErrorCode.INVALID_REQUEST
    if instance is None:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if instance.is_terminating:
        return ErrorCode.INVALID_REQUEST
    is_early = instance.pushed_ms >= 0 and now_ms < instance.pushed_ms + asked.interval_ms * _EARLY
    if is_early and instance.asked_ms <= instance.pushed_ms and not request.terminating:
        return ErrorCode.THROTTLING_QUOTA_EXCEEDED
    if request.subscription_id != asked.id:
        return ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    if request.compression_type != Compression.NONE and request.compression_type not in _ACCEPTED:
        return ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    return ErrorCode.TELEMETRY_TOO_LARGE if len(request.metrics) > most else ErrorCode.NONE


def _read(codec: int, data: bytes) -> list[Point]:
    return decode_points(bytes(decompress(codec, data, _MOST_UNPACKED)), MOST_POINTS)


def _is_wanted(name: str, prefixes: tuple[str, ...]) -> bool:
    """Clients may push what they like; no more than was asked for is kept."""
    return any(prefix == _ALL or name.startswith(prefix) for prefix in prefixes)


# What a client is asked for


def subscription_of(metadata: ClusterMetadata, instance_id: Uuid, context: RequestContext) -> Subscription:
    metrics: set[str] = set()
    intervals = []
    client = _selected_by(instance_id, context)
    for values in _subscriptions(metadata):
        selectors = values["match"]
        assert isinstance(selectors, tuple)
        if all(_matches(str(selector), client) for selector in selectors):
            wanted = values["metrics"]
            assert isinstance(wanted, tuple)
            metrics.update(map(str, wanted))
            interval_ms = values["interval.ms"]
            assert isinstance(interval_ms, int)
            intervals.append(interval_ms)
    if _ALL in metrics:
        metrics = {_ALL}
    named = tuple(sorted(metrics))
    interval_ms = min(intervals, default=_DEFAULT_INTERVAL_MS)
    number = crc32(f"{named}{interval_ms}".encode() + bytes(instance_id))
    return Subscription(named, interval_ms, number - (1 << 32) if number >= 1 << 31 else number)


def _subscriptions(metadata: ClusterMetadata) -> Iterator[Mapping[str, object]]:
    configs = metadata.image.configs
    for kind, name in list(configs.by_resource):
        if kind == ResourceType.CLIENT_METRICS:
            given = configs.of(ResourceType.CLIENT_METRICS, name)
            yield {
                key: row.parse(given[key]) if key in given else row.default
                for key, row in CLIENT_METRICS_SETTINGS.items()
            }


def _selected_by(instance_id: Uuid, context: RequestContext) -> dict[str, str]:
    connection = context.connection
    return {
        "client_instance_id": uuid_text(instance_id),
        "client_id": context.client_id or "",
        "client_software_name": connection.software_name,
        "client_software_version": connection.software_version,
        "client_source_address": connection.client_host,
        "client_source_port": "",
    }


def _matches(selector: str, client: Mapping[str, str]) -> bool:
    name, _, pattern = selector.partition("=")
    try:
        return _pattern(pattern.strip()).matches(client.get(name.strip(), ""))
    except InvalidPattern:
        return False  # Java's, which can look ahead and back.


@lru_cache(128)
def _pattern(expression: str) -> ClientPattern:
    return ClientPattern(expression)
