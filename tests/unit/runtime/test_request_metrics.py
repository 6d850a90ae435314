from ottla.runtime import request_metrics
from ottla.runtime.request import ClientConnection, RequestContext
from ottla.runtime.request_metrics import RequestMetrics, Times

PRODUCE, FETCH = 0, 1


def context(api_key: int, version: int, received_s: float, size: int) -> RequestContext:
    client = ClientConnection(1, "PLAINTEXT", "127.0.0.1")
    return RequestContext(api_key, version, 1, "client", client, received_s, size)


def test_quantiles_are_within_an_eighth_of_the_truth() -> None:
    times = Times()
    for milliseconds in range(1, 1001):
        times.note(milliseconds / 1000, now_s=1.0)
    found = times.quantiles(now_s=1.0)
    for quantile, truth in ((0.5, 0.5), (0.95, 0.95), (0.99, 0.99), (0.999, 0.999)):
        assert truth <= found[quantile] <= truth * 1.13


def test_what_is_old_is_counted_but_no_longer_shown() -> None:
    times = Times()
    times.note(5.0, now_s=0.0)
    times.note(0.001, now_s=70.0)
    assert max(times.quantiles(now_s=80.0).values()) >= 5.0
    assert max(times.quantiles(now_s=135.0).values()) < 0.002
    assert times.quantiles(now_s=500.0) == {}
    assert (times.count, times.total_s) == (2, 5.001)


def test_times_beyond_the_last_bucket_are_not_lost() -> None:
    times = Times()
    times.note(1e9, now_s=0.0)
    times.note(0.0, now_s=0.0)
    assert times.count == 2
    assert len(times.quantiles(now_s=0.0)) == 6


def test_requests_are_counted_by_api_and_version() -> None:
    metrics = RequestMetrics(now_s=lambda: 1.0)
    asked = ((PRODUCE, 9), (PRODUCE, 9), (PRODUCE, 13), (FETCH, 4))
    metrics.on_responses([context(api_key, version, 1.0, size=100) for api_key, version in asked], now_s=1.002)
    assert metrics.apis[PRODUCE].versions == {9: 2, 13: 1}
    assert metrics.apis[FETCH].versions == {4: 1}
    assert metrics.apis[PRODUCE].bytes == 300
    assert metrics.apis[PRODUCE].times.count == 3
    assert set(metrics.quantiles()) == {PRODUCE, FETCH}


def test_connections_are_counted_as_they_come_and_go() -> None:
    metrics = RequestMetrics(now_s=lambda: 0.0)
    metrics.on_connection("PLAINTEXT", 1)
    metrics.on_connection("PLAINTEXT", 1)
    metrics.on_connection("PLAINTEXT", -1)
    assert metrics.connections["PLAINTEXT"] == 1
    assert metrics.connections_created["PLAINTEXT"] == 2


def test_buckets_that_are_looked_up_are_those_that_are_computed() -> None:
    assert [
        request_metrics._bucket(microseconds) for microseconds in range(request_metrics._QUICK)
    ] == request_metrics._BUCKETS
