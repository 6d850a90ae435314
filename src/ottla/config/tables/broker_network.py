"""Listeners and connections. Where a node listens, and how much it takes."""

from ottla.config.bounds import Items, at_least
from ottla.config.setting import (
    ANY, CLUSTER_WIDE, HIGH, INT_MAX, LOW, MEDIUM, PER_BROKER, REQUIRED, Int, List, Long, Text,
)

SETTINGS = (
    # Addresses
    List("listeners", ("PLAINTEXT://:9092",), Items(may_be_empty=False), HIGH,
         "Where the node listens, as `NAME://host:port`; no host is every interface.", PER_BROKER, acted_on=True),
    List("advertised.listeners", None, Items(may_be_empty=False, may_be_null=True), HIGH,
         "Addresses that clients are told to connect to, if they are not those of `listeners`: behind NAT, or in "
         "containers.", acted_on=True),
    Text("listener.security.protocol.map",
         "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT", ANY, LOW,
         "The security protocol of each listener name, as `NAME:PROTOCOL` pairs.", PER_BROKER, acted_on=True),
    Text("inter.broker.listener.name", None, ANY, MEDIUM,
         "Listener over which brokers talk to each other. Not given, the one of `security.inter.broker.protocol`.",
         acted_on=True),
    List("controller.listener.names", REQUIRED, Items(may_be_empty=False), HIGH,
         "Listeners of the controllers; brokers use the first to reach them.", acted_on=True),

    # Sockets
    Int("socket.send.buffer.bytes", 102_400, ANY, HIGH,
        "Kernel send buffer of a connection (SO_SNDBUF); -1 leaves it to the operating system.", acted_on=True),
    Int("socket.receive.buffer.bytes", 102_400, ANY, HIGH,
        "Kernel receive buffer of a connection (SO_RCVBUF); -1 leaves it to the operating system.", acted_on=True),
    Int("socket.request.max.bytes", 104_857_600, at_least(1), HIGH,
        "Largest request that is read; a client that announces a bigger one is disconnected.", acted_on=True),
    Int("socket.listen.backlog.size", 50, at_least(1), MEDIUM,
        "Connections that may wait to be accepted.", acted_on=True),
    Long("socket.connection.setup.timeout.ms", 10_000, ANY, MEDIUM,
         "How long the node waits for a connection of its own to be established.", acted_on=True),
    Long("socket.connection.setup.timeout.max.ms", 30_000, ANY, MEDIUM,
         "The most that the wait for a connection grows to."),

    # Limits
    Int("max.connections", INT_MAX, at_least(0), MEDIUM,
        "Connections to this broker; more wait to be accepted. One of another broker is always taken, and the "
        "connection that has been idle longest is closed for it.", CLUSTER_WIDE, acted_on=True),
    Int("max.connections.per.ip", INT_MAX, at_least(0), MEDIUM,
        "Connections from one address; more are closed.", CLUSTER_WIDE, acted_on=True),
    Text("max.connections.per.ip.overrides", "", ANY, MEDIUM,
         "Other limits for some addresses or host names, as `host:number` pairs.", CLUSTER_WIDE, acted_on=True),
    Int("max.connection.creation.rate", INT_MAX, at_least(0), MEDIUM,
        "New connections a second; more are delayed.", CLUSTER_WIDE, acted_on=True),
    Long("connections.max.idle.ms", 600_000, ANY, MEDIUM,
         "Idle time after which a connection is closed.", acted_on=True),
    Int("connection.failed.authentication.delay.ms", 100, at_least(0), LOW,
        "Wait before a connection that failed to authenticate is closed, which slows guessing; less than "
        "`connections.max.idle.ms`.", acted_on=True),

    # Fetching
    Int("fetch.max.bytes", 57_671_680, at_least(1024), MEDIUM,
        "Most bytes of records in one reply to a fetch, whatever the client asks for.", acted_on=True),
    Int("max.incremental.fetch.session.cache.slots", 1000, at_least(0), MEDIUM,
        "Incremental fetch sessions that are remembered (KIP-227).", acted_on=True),
    Int("max.request.partition.size.limit", 2000, at_least(1), MEDIUM,
        "Partitions in one reply to DescribeTopicPartitions (KIP-966).", acted_on=True),
)
