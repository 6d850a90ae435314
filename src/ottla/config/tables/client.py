"""Connections of a client. What producer, consumer and admin have in common."""

from ottla.config.bounds import Items, OneOf, at_least
from ottla.config.setting import ANY, LOW, MEDIUM, Int, List, Long, Text

SETTINGS = (
    # Finding brokers
    Text("client.dns.lookup", "use_all_dns_ips",
         OneOf(("use_all_dns_ips", "resolve_canonical_bootstrap_servers_only")), MEDIUM,
         "Whether all addresses of a host name are tried in turn, or bootstrap names first become canonical ones.",
         acted_on=True),
    Long("metadata.max.age.ms", 300_000, at_least(0), LOW,
         "Age at which what is known of the cluster is asked for again, even if nothing failed.", acted_on=True),
    Text("metadata.recovery.strategy", "rebootstrap", OneOf(("REBOOTSTRAP", "NONE"), any_case=True), LOW,
         "What to do when no known broker can be reached: start over from the bootstrap servers, or go on failing.",
         acted_on=True),
    Long("metadata.recovery.rebootstrap.trigger.ms", 300_000, at_least(0), LOW,
         "Time without metadata after which the client starts over from the bootstrap servers.", acted_on=True),

    # Sockets
    Int("send.buffer.bytes", 131_072, at_least(-1), MEDIUM,
        "Kernel send buffer of a connection (SO_SNDBUF); -1 leaves it to the operating system.", acted_on=True),
    Long("socket.connection.setup.timeout.ms", 10_000, ANY, MEDIUM,
         "How long a connection may take to be established; grows with each failure.", acted_on=True),
    Long("socket.connection.setup.timeout.max.ms", 30_000, ANY, MEDIUM,
         "The most that this time grows to.", acted_on=True),
    Long("reconnect.backoff.ms", 50, at_least(0), LOW,
         "First pause before connecting again to a broker that could not be reached.", acted_on=True),
    Long("reconnect.backoff.max.ms", 1000, at_least(0), LOW,
         "The most that this pause grows to.", acted_on=True),

    # Requests
    Int("request.timeout.ms", 30_000, at_least(0), MEDIUM,
        "How long to wait for a reply before the request counts as failed and is tried again.", acted_on=True),
    Long("retry.backoff.ms", 100, at_least(0), LOW,
         "First pause before a failed request is tried again; grows with each failure (KIP-580).", acted_on=True),
    Long("retry.backoff.max.ms", 1000, at_least(0), LOW,
         "The most that this pause grows to.", acted_on=True),

    # Metrics and plug-ins
    List("metric.reporters", ("org.apache.kafka.common.metrics.JmxReporter",), Items(), LOW,
         "Classes that are told of every metric."),
    Int("metrics.num.samples", 2, at_least(1), LOW,
        "Samples from which an average or a rate is made."),
    Long("metrics.sample.window.ms", 30_000, at_least(0), LOW,
         "Length of one sample."),
    Text("metrics.recording.level", "INFO", OneOf(("INFO", "DEBUG", "TRACE")), LOW,
         "How much is measured."),
    List("config.providers", (), Items(), LOW,
         "Names of providers that stand behind `${provider:path:key}` references."),
)
