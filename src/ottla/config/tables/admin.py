"""Admin clients. How they reach the cluster, and for how long they try."""

from ottla.config.bounds import Between, Items, at_least
from ottla.config.setting import ANY, HIGH, INT_MAX, LOW, MEDIUM, Flag, Int, List, Long, Text

SETTINGS = (
    List("bootstrap.servers", (), Items(), HIGH,
         "Some brokers to ask first, as `host:port`; this or `bootstrap.controllers` must be given.", acted_on=True),
    List("bootstrap.controllers", (), Items(), HIGH,
         "Some controllers to ask first, to work with the quorum directly (KIP-919).", acted_on=True),
    Text("client.id", "", ANY, MEDIUM,
         "Name that brokers log and count quotas under.", acted_on=True),
    Int("default.api.timeout.ms", 60_000, at_least(0), MEDIUM,
        "How long calls without a timeout of their own may take, retries included.", acted_on=True),
    Int("retries", INT_MAX, Between(0, INT_MAX), LOW,
        "How often a failed call is tried again; `default.api.timeout.ms` is the better limit.", acted_on=True),
    Int("receive.buffer.bytes", 65_536, at_least(-1), MEDIUM,
        "Kernel receive buffer of a connection (SO_RCVBUF); -1 leaves it to the operating system.", acted_on=True),
    Long("connections.max.idle.ms", 300_000, ANY, MEDIUM,
         "Idle time after which a connection is closed.", acted_on=True),
    Flag("enable.metrics.push", False, ANY, LOW,
         "Whether metrics are pushed to brokers that ask for them (KIP-714).", acted_on=True),
)

SECTIONS = (("Admin clients", SETTINGS),)
