"""What clients push (KIP-714): names, kinds, and when."""

from types import SimpleNamespace

from ottla.base.ids import Uuid
from ottla.client.errors import ClientClosed, Disconnected
from ottla.client.promise import Promise, spawn
from ottla.client.telemetry import full_name, points_of, push_metrics
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
    PushTelemetryRequest,
    PushTelemetryResponse,
)
from ottla.wire.otlp import Point, decode_points

ID = Uuid(b"i" * 16)


def test_names_are_kafkas() -> None:
    assert full_name("producer", "record-queue-time-avg") == "org.apache.kafka.producer.record.queue.time.avg"
    assert full_name("consumer", "fetch-latency-avg") == "org.apache.kafka.consumer.fetch.manager.fetch.latency.avg"
    assert full_name("consumer", "commit-latency-avg") == "org.apache.kafka.consumer.coordinator.commit.latency.avg"
    assert full_name("consumer", "time-between-poll-avg") == "org.apache.kafka.consumer.time.between.poll.avg"
    assert full_name("admin.client", "request-total") == "org.apache.kafka.admin.client.request.total"


def test_totals_are_sums_and_what_has_no_value_is_left_out() -> None:
    metrics = {"request-total": 3, "batch-size-avg": 1.5, "latency-avg": float("nan")}
    assert points_of("producer", metrics, ("*",)) == [
        Point("org.apache.kafka.producer.request.total", 3.0, is_sum=True),
        Point("org.apache.kafka.producer.batch.size.avg", 1.5),
    ]
    assert [one.name for one in points_of("producer", metrics, ("org.apache.kafka.producer.b",))] == [
        "org.apache.kafka.producer.batch.size.avg"
    ]


class Brokers:
    """Answer as a test says, and note how long the client sleeps. It is closed after the last answer."""

    def __init__(self, *answers: object) -> None:
        self.answers = list(answers)
        self.asked: list[object] = []
        self.slept_ms: list[float] = []
        self.is_closed = False
        self.world = SimpleNamespace(
            clock=SimpleNamespace(now_ms=lambda: 5),
            entropy=SimpleNamespace(randrange=lambda _stop: 0),
            sleep=self._sleep,
        )

    def _sleep(self, delay_ms: float) -> Promise[None]:
        self.slept_ms.append(delay_ms)
        return Promise.resolved(None)

    def ask_any(self, request: object) -> Promise[object]:
        self.asked.append(request)
        if not self.answers:
            self.is_closed = True
            return Promise.rejected(ClientClosed("closed"))
        answer = self.answers.pop(0)
        return Promise.rejected(answer) if isinstance(answer, Exception) else Promise.resolved(answer)

    def run(self) -> list[object]:
        done = spawn(push_metrics(self, "producer", lambda: {"request-total": 3}))
        assert done.is_done
        return self.asked


def subscribed(*metrics: str) -> GetTelemetrySubscriptionsResponse:
    return GetTelemetrySubscriptionsResponse(
        client_instance_id=ID, subscription_id=7, push_interval_ms=1000, requested_metrics=list(metrics)
    )


def test_a_client_pushes_what_it_is_asked_for_at_the_interval() -> None:
    brokers = Brokers(subscribed("*"), PushTelemetryResponse(), PushTelemetryResponse())
    ask, first, *_ = brokers.run()
    assert isinstance(ask, GetTelemetrySubscriptionsRequest)
    assert isinstance(first, PushTelemetryRequest)
    assert (first.client_instance_id, first.subscription_id, first.terminating) == (ID, 7, False)
    assert decode_points(first.metrics, 10) == [Point("org.apache.kafka.producer.request.total", 3.0, is_sum=True)]
    assert brokers.slept_ms == [500, 1000, 1000], "the first comes after a part of an interval"


def test_a_client_that_is_asked_for_nothing_asks_again_after_the_interval() -> None:
    brokers = Brokers(subscribed(), subscribed())
    asked = brokers.run()
    assert [type(one) for one in asked] == [GetTelemetrySubscriptionsRequest] * 3
    assert asked[1].client_instance_id == ID, "it keeps the id that it was given"
    assert brokers.slept_ms == [1000, 1000]


def test_a_client_asks_again_when_brokers_want_something_else() -> None:
    unknown = PushTelemetryResponse(error_code=ErrorCode.UNKNOWN_SUBSCRIPTION_ID)
    kinds = [type(one) for one in Brokers(subscribed("*"), unknown, subscribed("*")).run()]
    assert kinds[:3] == [GetTelemetrySubscriptionsRequest, PushTelemetryRequest, GetTelemetrySubscriptionsRequest]


def test_what_fails_is_tried_again_later() -> None:
    refused = GetTelemetrySubscriptionsResponse(error_code=ErrorCode.THROTTLING_QUOTA_EXCEEDED)
    brokers = Brokers(Disconnected("gone"), refused, subscribed("*"), Disconnected("gone"), PushTelemetryResponse())
    asked = brokers.run()
    assert brokers.slept_ms == [30_000, 30_000, 500, 1000, 1000]
    assert isinstance(asked[4], PushTelemetryRequest)
