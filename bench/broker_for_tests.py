"""How long a suite waits for the broker that it tests against: to be there, with a topic, and again after a crash.

The median of several, in milliseconds of the clock. `Broker` is what the fixture `ottla_broker` gives out.
"""

import time
from collections.abc import Callable
from statistics import median

from compare import print_table

from ottla.testing import Broker

ROUNDS = 7


def clocked(step: Callable[[], object]) -> float:
    begun_s = time.perf_counter()
    step()
    return (time.perf_counter() - begun_s) * 1000


def one_life(*, faults: bool) -> dict[str, float]:
    broker = Broker(faults=faults)
    try:
        return {
            "started": clocked(broker.start),
            "a topic": clocked(lambda: broker.create_topic("orders")),
            "a fault asked for": clocked(lambda: broker.fail_next("Produce", "CORRUPT_MESSAGE")) if faults else 0.0,
            "killed, started again": clocked(lambda: broker.restart(clean=False)),
            "stopped, started again": clocked(broker.restart),
            "ended": clocked(broker.close),
        }
    finally:
        broker.close()


def main() -> None:
    rounds = [(one_life(faults=True), one_life(faults=False)) for _ in range(ROUNDS)]
    rows = [
        [step, *(f"{median(life[step] for life in lives):.0f}" for lives in zip(*rounds, strict=True))]
        for step in rounds[0][0]
    ]
    print_table(["a broker for tests, ms", "with faults", "without"], rows)


if __name__ == "__main__":
    main()
