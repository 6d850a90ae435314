"""The registry's metrics, as one page."""

from collections.abc import Iterator

from ottla.registry.driver import Driver
from ottla.registry.forwarding import LeaderForwarder
from ottla.registry.front import Front
from ottla.registry.texts import Texts
from ottla.runtime.exposition import Exposition
from ottla.runtime.http.http_server import HttpServer


def metrics_page(
    driver: Driver, front: Front, server: HttpServer, texts: Texts, forwarder: LeaderForwarder
) -> Iterator[str]:
    page = Exposition()
    subjects, versions = driver.state.counts()
    page.gauge("ottla_registry_ready", float(driver.is_loaded))
    page.gauge("ottla_registry_leads", float(driver.leads))
    page.gauge("ottla_registry_leader_known", float(driver.leader is not None))
    page.gauge("ottla_registry_subjects", subjects)
    page.gauge("ottla_registry_versions", versions)
    page.gauge("ottla_registry_next_offset", driver.next_offset)
    page.gauge("ottla_registry_load_seconds", driver.loading_s)
    page.gauge("ottla_registry_producer_epoch", driver.writer.epoch)
    page.counter("ottla_registry_batches_total", driver.writer.batches)
    page.counter("ottla_registry_unreadable_records_total", driver.state.unreadable)
    page.counter("ottla_registry_duplicate_ids_total", driver.state.duplicate_ids)
    page.counter("ottla_registry_parsed_total", texts.parsed_count)
    page.counter("ottla_registry_forwarded_total", forwarder.passed_on)
    statuses = sorted(front.statuses.items())
    page.add(
        "ottla_registry_requests_total",
        "counter",
        [({"method": method, "status": str(status)}, count) for (method, status), count in statuses],
    )
    seconds = sorted(front.seconds.items())
    page.add("ottla_registry_request_seconds_total", "counter", [({"method": one}, total) for one, total in seconds])
    page.gauge("ottla_registry_connections", len(server.connections))
    for name in ("bad_requests", "timeouts", "faults", "connections_refused", "idle_closed", "slow_closed"):
        page.counter(f"ottla_registry_http_{name}_total", server.counts[name])
    # By the names that dashboards of Confluent's registry have for them.
    page.gauge("kafka_schema_registry_registered_count", versions)
    page.gauge("kafka_schema_registry_master_slave_role", float(driver.leads))
    yield page.take()
