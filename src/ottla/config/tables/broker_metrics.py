"""Metrics. How they are sampled and who is told."""

from ottla.config.bounds import Items, at_least
from ottla.config.setting import ANY, CLUSTER_WIDE, LOW, Int, List, Long, Text

SETTINGS = (
    List("metric.reporters", ("org.apache.kafka.common.metrics.JmxReporter",), Items(), LOW,
         "Classes that are told of every metric.", CLUSTER_WIDE),
    Int("metrics.num.samples", 2, at_least(1), LOW,
        "Samples from which an average or a rate is made."),
    Long("metrics.sample.window.ms", 30_000, at_least(1), LOW,
         "Length of one sample."),
    Text("metrics.recording.level", "INFO", ANY, LOW,
         "How much is measured: INFO, or more with DEBUG and TRACE."),
    List("kafka.metrics.reporters", (), Items(), LOW,
         "Classes that report the broker's older (Yammer) metrics."),
    Int("kafka.metrics.polling.interval.secs", 10, at_least(1), LOW,
        "Time between two of their reports."),
    Int("telemetry.max.bytes", 1_048_576, at_least(1), LOW,
        "Largest batch of metrics that a client may push (KIP-714)."),
)
