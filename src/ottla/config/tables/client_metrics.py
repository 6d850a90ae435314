"""Client metrics subscriptions (KIP-714). What clients are asked to push, how often, and which clients."""

from ottla.config.bounds import Between, Items
from ottla.config.setting import ANY, MEDIUM, Int, List

SETTINGS = (
    Int("interval.ms", 300_000, Between(100, 3_600_000), MEDIUM, "Time between two pushes of a client."),
    List("match", (), ANY, MEDIUM, "Clients that are meant: `selector=regular expression` pairs; none is all of them."),
    List("metrics", (), Items(), MEDIUM, "Prefixes of the names of metrics that are wanted; a `*` is all of them."),
)
