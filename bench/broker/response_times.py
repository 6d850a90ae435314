"""How long one request takes: in a closed loop, and at a fixed rate."""

from contenders import Contender
from load import SMALL, latencies, latencies_at_rate
from report import Row, compared
from wire_client import WireClient, produce_request

QUANTILES = {"p50": 0.5, "p99": 0.99, "p99.9": 0.999}
RATE_PER_SECOND = 2000


def measure_latency(nodes: list[Contender], rounds: int, seconds: float) -> list[Row]:
    rows = []
    for kind in ("closed loop", f"at {RATE_PER_SECOND}/s"):
        topic = f"latency-{kind.replace(' ', '-').replace('/', '-')}"
        found: dict[str, dict[str, list[float]]] = {name: {node.name: [] for node in nodes} for name in QUANTILES}
        for node in nodes:
            with WireClient(node.bootstrap) as client:
                client.create_topic(topic)
        request = produce_request(topic, bytes(SMALL), -1)
        for number in range(rounds):
            for node in nodes if number % 2 == 0 else reversed(nodes):
                with WireClient(node.bootstrap) as client:
                    if kind == "closed loop":
                        times = sorted(latencies(client.socket, request, seconds))
                    else:
                        times = sorted(latencies_at_rate(client.socket, request, seconds, RATE_PER_SECOND))
                for name, share in QUANTILES.items():
                    found[name][node.name].append(times[int(share * (len(times) - 1))])
        for name in QUANTILES:
            bound = 1.0 if name == "p99" else None
            rows.append(compared(f"produce {kind}, {name}", found[name], _microseconds, at_most=bound))
    return rows


def _microseconds(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} us"
