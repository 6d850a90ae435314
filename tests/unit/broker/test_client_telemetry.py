"""Metrics that clients push (KIP-714): who is asked for what, what is taken, and what is refused."""

from types import SimpleNamespace

import pytest

from ottla.base.ids import ZERO_UUID, Uuid, uuid_text
from ottla.broker.telemetry import client_metrics as kept
from ottla.broker.telemetry.client_metrics import ClientMetrics
from ottla.broker.telemetry.telemetry_requests import handle_get_telemetry_subscriptions, handle_push_telemetry
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.node.metrics.client_metrics_page import client_metrics_page
from ottla.records.compression import compress
from ottla.records.header import Compression
from ottla.runtime.exposition import Exposition
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConfigRecord, GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from ottla.wire.otlp import Point, decode_points, encode_points

ME = Uuid(b"m" * 16)
POINTS = [
    Point("org.apache.kafka.producer.request.latency.avg", 2.5, (("node_id", "1"),)),
    Point("org.apache.kafka.producer.record.send.total", 7, (), is_sum=True),
]


class Scene:
    def __init__(self, *subscriptions: dict[str, str]) -> None:
        self.now_ms = 1_000_000
        image = MetadataImage()
        for number, subscription in enumerate(subscriptions):
            for name, value in subscription.items():
                image.replay(
                    ConfigRecord(
                        resource_type=ResourceType.CLIENT_METRICS, resource_name=f"s{number}", name=name, value=value
                    )
                )
        self.pushed = ClientMetrics()
        self.pushed.is_on = True
        self.metadata = SimpleNamespace(image=image)
        self.settings = SimpleNamespace(effective=SimpleNamespace(integer=lambda _name: 1_000))
        self.world = SimpleNamespace(
            clock=SimpleNamespace(now_ms=lambda: self.now_ms),
            entropy=SimpleNamespace(randbytes=lambda size: b"r" * size),
            workers=SimpleNamespace(run=self._run),
        )
        connection = SimpleNamespace(software_name="ottla", software_version="1", client_host="10.0.0.1")
        self.context = SimpleNamespace(client_id="orders-1", connection=connection)

    def _run(self, job, then, failed, key) -> None:
        try:
            result = job()
        except Exception as problem:
            failed(problem)
        else:
            then(result)

    def _handle(self, handler, request):
        replies = []
        handler(self.pushed, self.metadata, self.settings, self.world, self.context, request, replies.append)
        (reply,) = replies
        return reply

    def ask(self, instance_id: Uuid = ME):
        return self._handle(
            handle_get_telemetry_subscriptions, GetTelemetrySubscriptionsRequest(client_instance_id=instance_id)
        )

    def push(self, metrics: bytes | None = None, subscription_id: int | None = None, codec: int = 0, **fields):
        if metrics is None:
            metrics = encode_points(POINTS, start_ns=1, now_ns=2)
        if subscription_id is None:
            subscription_id = self.ask().subscription_id
        request = PushTelemetryRequest(
            client_instance_id=ME, subscription_id=subscription_id, metrics=metrics, compression_type=codec, **fields
        )
        return ErrorCode(self._handle(handle_push_telemetry, request).error_code)

    def page(self) -> str:
        page = Exposition()
        return "".join(client_metrics_page(page, self.pushed, self.now_ms)) + page.take()


ALL = {"metrics": "*", "interval.ms": "1000"}


def test_points_come_out_as_they_went_in() -> None:
    assert decode_points(encode_points(POINTS, start_ns=1, now_ns=2), 10) == POINTS
    assert decode_points(encode_points(POINTS, start_ns=1, now_ns=2), 1) == POINTS[:1]


@pytest.mark.parametrize("data", [b"\x0a", b"\x0a\xff", b"\x0b", b"\xff" * 20, b"\x0a\x05ab"])
def test_what_is_no_protobuf_is_refused(data: bytes) -> None:
    assert Scene(ALL).push(data) is ErrorCode.INVALID_RECORD


def test_a_new_client_is_given_an_id_and_without_subscriptions_asked_for_nothing() -> None:
    reply = Scene().ask(ZERO_UUID)
    assert reply.client_instance_id != ZERO_UUID
    assert (list(reply.requested_metrics), reply.push_interval_ms) == ([], 300_000)
    assert list(reply.accepted_compression_types) == [4, 3, 1, 2]


def test_a_client_is_asked_for_all_that_matches_it_at_the_shortest_interval() -> None:
    scene = Scene(
        {"metrics": "org.apache.kafka.producer.", "interval.ms": "5000", "match": "client_id=orders-.*"},
        {"metrics": "org.apache.kafka.consumer.", "interval.ms": "100", "match": "client_id=billing-.*"},
        {"metrics": "org.apache.kafka.admin.", "match": f"client_instance_id={uuid_text(ME)}"},
    )
    reply = scene.ask()
    assert list(reply.requested_metrics) == ["org.apache.kafka.admin.", "org.apache.kafka.producer."]
    assert reply.push_interval_ms == 5000


@pytest.mark.parametrize("codec", list(Compression))
def test_what_is_pushed_is_on_the_page(codec: Compression) -> None:
    scene = Scene(ALL)
    data = bytes(compress(codec, encode_points(POINTS, start_ns=1, now_ns=2)))
    assert scene.push(data, codec=codec) is ErrorCode.NONE
    page = scene.page()
    own = f'client_id="orders-1",client_instance_id="{uuid_text(ME)}"'
    assert f'kafka_client_producer_request_latency_avg{{node_id="1",{own}}} 2.5\n' in page
    assert "# TYPE kafka_client_producer_record_send_total counter\n" in page
    assert f"kafka_client_producer_record_send_total{{{own}}} 7\n" in page
    assert "ottla_client_metrics_instances 1\n" in page


def test_no_more_is_kept_than_was_asked_for() -> None:
    scene = Scene({"metrics": "org.apache.kafka.producer.record", "interval.ms": "1000"})
    assert scene.push() is ErrorCode.NONE
    assert "kafka_client_producer_record_send_total" in scene.page()
    assert "latency" not in scene.page()


def test_differences_are_added_up() -> None:
    scene = Scene(ALL)
    data = encode_points([POINTS[1]._replace(is_delta=True)], start_ns=1, now_ns=2)
    for _ in range(2):
        assert scene.push(data) is ErrorCode.NONE
        scene.now_ms += 1000
    assert "} 14\n" in scene.page()


def test_what_is_refused() -> None:
    scene = Scene(ALL)
    known = scene.ask().subscription_id
    assert scene.push(subscription_id=known + 1) is ErrorCode.UNKNOWN_SUBSCRIPTION_ID
    assert scene.push(bytes(1001), known) is ErrorCode.TELEMETRY_TOO_LARGE
    assert scene.push(codec=9) is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert scene.push(subscription_id=known) is ErrorCode.NONE
    scene.now_ms += 10
    assert scene.push(subscription_id=known) is ErrorCode.THROTTLING_QUOTA_EXCEEDED
    assert scene.push(subscription_id=known, terminating=True) is ErrorCode.NONE
    assert scene.push(subscription_id=known) is ErrorCode.INVALID_REQUEST


def test_clients_that_are_silent_are_forgotten_and_there_are_only_so_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "MOST_CLIENTS", 1)
    scene = Scene(ALL)
    assert scene.push() is ErrorCode.NONE
    assert scene.ask(Uuid(b"o" * 16)).error_code == ErrorCode.THROTTLING_QUOTA_EXCEEDED
    scene.now_ms += 3_001
    assert scene.ask(Uuid(b"o" * 16)).error_code == ErrorCode.NONE
    assert uuid_text(ME) not in scene.page()


def test_vulnerability_a_bomb_of_telemetry_is_refused_before_it_grows() -> None:
    """Metrics of clients come compressed (KIP-714)."""
    for codec in Compression:
        if codec is not Compression.NONE:
            scene = Scene(ALL)
            scene.settings.effective.integer = lambda _name: 1 << 20
            bomb = bytes(compress(codec, bytes(9 << 20)))
            if len(bomb) <= 1 << 20:
                assert scene.push(bomb, codec=codec) is ErrorCode.INVALID_RECORD
                assert scene.pushed.instances[ME].gauges == {}


def test_where_nobody_would_see_it_nothing_is_taken() -> None:
    scene = Scene(ALL)
    known = scene.ask().subscription_id
    scene.pushed.is_on = False
    assert scene.ask().error_code == ErrorCode.UNSUPPORTED_VERSION
    assert scene.push(subscription_id=known) is ErrorCode.UNSUPPORTED_VERSION
