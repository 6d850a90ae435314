"""The options of kafka-console-producer, and the settings that they are."""

from typing import Final

from ottla.cli.options.table import Option, Program

_READER: Final = (
    "Properties of what reads the lines: parse.key=false, parse.headers=false, ignore.error=false, key.separator=\\t, "
    "headers.delimiter=\\t, headers.separator=, headers.key.separator=: and null.marker, which stands for null. "
    'A line is "h1:v1,h2:v2\\tkey\\tvalue" if both headers and keys are parsed.'
)
_DEPRECATED: Final = "(DEPRECATED) Use --{}."

PROGRAM: Final = Program(
    "kafka-console-producer",
    "This tool reads lines from standard input and sends them to a topic.",
    (
        Option("topic", "REQUIRED: Topic to send to.", "String", "topic"),
        Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "server to connect to"),
        Option("sync", "Wait for each record before the next one is sent."),
        Option(
            "compression-codec",
            "How batches are compressed: none, gzip, snappy, lz4 or zstd; gzip if nothing is said.",
            "String",
            "compression-codec",
            is_optional=True,
        ),
        Option("batch-size", "The setting batch.size.", "Integer", "size", default="16384"),
        Option("message-send-max-retries", "The setting retries.", "Integer", default="3"),
        Option("retry-backoff-ms", "The setting retry.backoff.ms.", "Long", default="100"),
        Option("timeout", "The setting linger.ms.", "Long", "timeout_ms", default="1000"),
        Option("request-required-acks", "The setting acks.", "String", "request required acks", default="-1"),
        Option("request-timeout-ms", "The setting request.timeout.ms.", "Integer", "request timeout ms", "1500"),
        Option(
            "metadata-expiry-ms",
            "The setting metadata.max.age.ms.",
            "Long",
            "metadata expiration interval",
            default="300000",
        ),
        Option("max-block-ms", "The setting max.block.ms.", "Long", "max block on send", default="60000"),
        Option("max-memory-bytes", "The setting buffer.memory.", "Long", "total memory in bytes", default="33554432"),
        Option(
            "max-partition-memory-bytes",
            _DEPRECATED.format("batch-size"),
            "Integer",
            "memory in bytes per partition",
            default="16384",
        ),
        Option(
            "line-reader",
            "What reads the lines. There is one only.",
            "String",
            "reader_class",
            default="org.apache.kafka.tools.LineMessageReader",
        ),
        Option("socket-buffer-size", "The setting send.buffer.bytes.", "Integer", "size", default="102400"),
        Option("property", _DEPRECATED.format("reader-property"), "String", "prop"),
        Option("reader-property", _READER, "String", "prop"),
        Option("reader-config", "File with such properties.", "String", "config file"),
        Option("producer-property", _DEPRECATED.format("command-property"), "String", "producer_prop"),
        Option("command-property", "A setting of the producer, as key=value.", "String", "producer_prop"),
        Option("producer.config", _DEPRECATED.format("command-config"), "String", "config file"),
        Option("command-config", "Properties file with settings of the producer.", "String", "config file"),
    ),
)

SETTINGS: Final = {
    "timeout": "linger.ms",
    "request-required-acks": "acks",
    "request-timeout-ms": "request.timeout.ms",
    "message-send-max-retries": "retries",
    "retry-backoff-ms": "retry.backoff.ms",
    "socket-buffer-size": "send.buffer.bytes",
    "max-memory-bytes": "buffer.memory",
    "batch-size": "batch.size",
    "max-partition-memory-bytes": "batch.size",
    "metadata-expiry-ms": "metadata.max.age.ms",
    "max-block-ms": "max.block.ms",
}
"""Options that are settings. One that is given wins; its default, if no property says otherwise."""
