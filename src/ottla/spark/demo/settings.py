"""How much the demo does, how fast, and the names of its topics."""

from typing import Final, NamedTuple

PRICES: Final = "prices-by-category"
BIDDERS: Final = "bidders"
PARTITIONS: Final = 2
WINDOW_S: Final = 5
GRACE: Final = "2 seconds"
SEED: Final = 2002
GIVE_UP_AFTER_S: Final = 300.0


class DemoSettings(NamedTuple):
    """`events` at `rate` a second, the pipeline killed when `kill_at` of them (a share) have been sent."""

    events: int = 200_000
    rate: float = 4_000.0
    kill_at: float = 0.5
    keep: bool = False
