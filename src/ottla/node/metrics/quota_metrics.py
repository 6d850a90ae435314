"""What clients use of their quotas, and how often clients connect, under Kafka's names.

`kafka.server:type=Produce,user=ann,client-id=app` with its attribute `byte-rate` is there as
`kafka_server_produce_byte_rate{user="ann",client_id="app"}`. A label is empty where the limit is for all: of a user's
limit the client id. Clients without a limit are not counted, and not shown. `…_queue_size` is how many clients wait.
"""

from collections.abc import Callable, Iterator

from ottla.broker.quotas.client_quotas import ClientQuotas
from ottla.machines.quota.limits import TokenBucket, TokenBuckets
from ottla.runtime.admission import ConnectionRates
from ottla.runtime.exposition import Exposition

_MUTATIONS = "kafka_server_controllermutation_"
_SOCKETS = "kafka_server_socket_server_metrics_"


def client_quotas(page: Exposition, quotas: ClientQuotas) -> Iterator[str]:
    now_ms = quotas.now_ms()
    for kind, rate_name, accounts in (
        ("produce", "byte_rate", quotas.produce),
        ("fetch", "byte_rate", quotas.fetch),
        ("request", "request_time", quotas.request),
    ):
        held = [({"user": user, "client_id": client_id}, account) for (user, client_id), account in accounts.items()]
        yield from page.add_in_pieces(
            f"kafka_server_{kind}_{rate_name}",
            "gauge",
            ((labels, account.rate.measure(now_ms).rate) for labels, account in held),
        )
        yield from page.add_in_pieces(
            f"kafka_server_{kind}_throttle_time",
            "gauge",
            ((labels, account.throttle_times.mean_ms(now_ms)) for labels, account in held),
        )
        page.gauge(f"kafka_server_{kind}_queue_size", accounts.waiting.count(now_ms))
    page.gauge("kafka_server_request_exempt_request_time", quotas.exempt.measure(now_ms).rate)


def mutation_quotas(page: Exposition, buckets: TokenBuckets, now_ms: int) -> Iterator[str]:
    """What clients change of the cluster (KIP-599), as the active controller counts it."""
    values: dict[str, Callable[[TokenBucket], float]] = {
        "mutation_rate": lambda bucket: bucket.rate.measure(now_ms).rate,
        "tokens": lambda bucket: bucket.tokens(bucket.limit, now_ms),
        "throttle_time": lambda bucket: bucket.throttle_times.mean_ms(now_ms),
    }
    held = [({"user": user, "client_id": client_id}, bucket) for (user, client_id), bucket in buckets.items()]
    for name, value in values.items():
        samples = ((labels, value(bucket)) for labels, bucket in held)
        yield from page.add_in_pieces(_MUTATIONS + name, "gauge", samples)
    page.gauge(_MUTATIONS + "queue_size", buckets.waiting.count(now_ms))


def add_connection_rates(page: Exposition, rates: ConnectionRates, now_ms: int) -> None:
    page.gauge(_SOCKETS + "broker_connection_accept_rate", rates.of_broker.measure(now_ms).rate)
    page.add(
        _SOCKETS + "connection_accept_rate",
        "gauge",
        [
            *(({"listener": name}, rate.measure(now_ms).rate) for name, rate in rates.of_listeners.items()),
            *(({"ip": host}, rate.measure(now_ms).rate) for host, rate in rates.of_addresses.items()),
        ],
    )
    for name, waits in (("", rates.waits_at_listeners), ("ip_", rates.waits_of_addresses)):
        page.add(
            f"{_SOCKETS}{name}connection_accept_throttle_time",
            "gauge",
            [({"listener": listener}, times.mean_ms(now_ms)) for listener, times in waits.items()],
        )
