"""Quotas on the metrics page, under Kafka's names."""

from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.machines.quota.limits import Limit, Sharers, TokenBuckets
from ottla.machines.quota.rates import ThrottledClients, Windows
from ottla.node.metrics.quota_metrics import add_connection_rates, client_quotas, mutation_quotas
from ottla.runtime.admission import ConnectionRates
from ottla.runtime.exposition import Exposition
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers


def test_rates_and_throttle_times_of_those_who_have_a_limit() -> None:
    quotas = ClientQuotas(StepTimers(FixedClock()), Values({}, settings(Scope.BROKER)))
    limit = Limit(100.0, Sharers("ann", ""))
    quotas.produce.charge(limit, 1500, 0)
    quotas.produce.note_throttle(limit, 400, 0)
    quotas.produce.note_throttle(limit, 600, 0)
    quotas.request.charge(Limit(10.0, Sharers("", "app")), 50, 0)
    quotas.exempt.record(20, 0)
    page = Exposition()
    text = "".join(client_quotas(page, quotas)) + page.take()
    assert 'kafka_server_produce_byte_rate{user="ann",client_id=""} 150\n' in text
    assert 'kafka_server_produce_throttle_time{user="ann",client_id=""} 500\n' in text
    assert 'kafka_server_request_request_time{user="",client_id="app"} 5\n' in text
    assert "kafka_server_fetch_byte_rate{" not in text
    assert "kafka_server_produce_queue_size 2\n" in text
    assert "kafka_server_fetch_queue_size 0\n" in text
    assert "kafka_server_request_exempt_request_time 2\n" in text


def test_clients_wait_until_their_time_is_over() -> None:
    waiting = ThrottledClients()
    waiting.add(500, 0)
    waiting.add(200, 100)
    assert [waiting.count(now_ms) for now_ms in (0, 299, 300, 499, 500)] == [2, 2, 1, 1, 0]


def test_changes_of_the_cluster() -> None:
    buckets = TokenBuckets(Windows(11, 1000))
    bucket = buckets.of(Sharers("ann", ""))
    bucket.take(60, 5.0, 0)
    bucket.throttle_times.note(bucket.throttle_ms(5.0, 0), 0)
    buckets.waiting.add(1000, 0)
    page = Exposition()
    text = "".join(mutation_quotas(page, buckets, 0)) + page.take()
    of_ann = '{user="ann",client_id=""}'
    assert f"kafka_server_controllermutation_mutation_rate{of_ann} 6\n" in text
    assert f"kafka_server_controllermutation_tokens{of_ann} -5\n" in text
    assert f"kafka_server_controllermutation_throttle_time{of_ann} 1000\n" in text
    assert "kafka_server_controllermutation_queue_size 1\n" in text


def test_how_often_clients_connect() -> None:
    rates = ConnectionRates(Windows())
    for _ in range(20):
        rates.on_accepted("PLAINTEXT", 0, 1e9, 1e9, is_protected=False)
    rates.on_accepted("OTHER", 0, 1e9, 0.05, is_protected=True)
    rates.on_address("PLAINTEXT", "10.0.0.1", 0, 100.0, is_protected=False)
    page = Exposition()
    add_connection_rates(page, rates, 0)
    text = page.take()
    assert "kafka_server_socket_server_metrics_broker_connection_accept_rate 2\n" in text
    assert 'kafka_server_socket_server_metrics_connection_accept_rate{listener="PLAINTEXT"} 2\n' in text
    assert 'kafka_server_socket_server_metrics_connection_accept_rate{ip="10.0.0.1"} 0.1\n' in text
    assert 'kafka_server_socket_server_metrics_connection_accept_throttle_time{listener="OTHER"} 1000\n' in text
    assert 'throttle_time{listener="PLAINTEXT"}' not in text


def test_waits_of_addresses_are_told_by_listener() -> None:
    rates = ConnectionRates(Windows())
    rates.on_accepted("PLAINTEXT", 0, 1e9, 1e9, is_protected=False)
    assert rates.on_address("PLAINTEXT", "10.0.0.1", 0, 0.08, is_protected=False) == 1000
    page = Exposition()
    add_connection_rates(page, rates, 0)
    prefix = "kafka_server_socket_server_metrics_ip_connection_accept_throttle_time"
    assert f'{prefix}{{listener="PLAINTEXT"}} 1000\n' in page.take()
