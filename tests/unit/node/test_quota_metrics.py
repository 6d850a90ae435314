"""Quotas on the metrics page, under Kafka's names."""

from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.config.parse import Values
from ottla.config.scopes import Scope, settings
from ottla.machines.quota.applicable_limit import Limit, Sharers
from ottla.machines.quota.sampled_rate import Windows
from ottla.node.metrics.quota_metrics import add_connection_rates, client_quotas
from ottla.runtime.connection_rates import ConnectionRates
from ottla.runtime.exposition import Exposition
from ottla.testing.clock import FixedClock
from ottla.testing.step_timers import StepTimers


def test_rates_and_throttle_times_of_those_who_have_a_limit() -> None:
    quotas = ClientQuotas(StepTimers(FixedClock()), Values({}, settings(Scope.BROKER)))
    limit = Limit(100.0, Sharers("ann", ""))
    quotas.produce.charge(limit, 1500, 0)
    quotas.produce.note_throttle(limit, 500, 0)
    quotas.request.charge(Limit(10.0, Sharers("", "app")), 50, 0)
    page = Exposition()
    text = "".join(client_quotas(page, quotas)) + page.take()
    assert 'kafka_server_produce_byte_rate{user="ann",client_id=""} 150\n' in text
    assert 'kafka_server_produce_throttle_time{user="ann",client_id=""} 500\n' in text
    assert 'kafka_server_request_request_time{user="",client_id="app"} 5\n' in text
    assert "kafka_server_fetch" not in text


def test_how_often_clients_connect() -> None:
    rates = ConnectionRates(Windows())
    for _ in range(20):
        rates.on_accepted("PLAINTEXT", 0, 1e9, 1e9, is_protected=False)
    rates.on_address("PLAINTEXT", "10.0.0.1", 0, 100.0, is_protected=False)
    page = Exposition()
    add_connection_rates(page, rates, 0)
    text = page.take()
    assert "kafka_server_socket_server_metrics_broker_connection_accept_rate 2\n" in text
    assert 'kafka_server_socket_server_metrics_connection_accept_rate{listener="PLAINTEXT"} 2\n' in text
    assert 'kafka_server_socket_server_metrics_connection_accept_rate{ip="10.0.0.1"} 0.1\n' in text
