"""The options of kafka-console-consumer, and which of them go together."""

from typing import Final

from ottla.cli.options.checks import UsageError, require
from ottla.cli.options.reading import Given
from ottla.cli.options.table import Option, Program

_FORMATTER: Final = (
    "Properties of the formatter: print.timestamp, print.key, print.offset, print.partition, print.headers, "
    "print.epoch=true|false, print.value=true|false, key.separator, line.separator, headers.separator, null.literal, "
    "key.deserializer, value.deserializer, headers.deserializer."
)
_DEPRECATED: Final = "(DEPRECATED) Use --{}."

PROGRAM: Final = Program(
    "kafka-console-consumer",
    "This tool reads records from topics and prints them.",
    (
        Option("topic", "Topic to read.", "String", "topic"),
        Option("include", "Regular expression of topics to read.", "String", "Java regex (String)"),
        Option("partition", "Partition to read, from its end unless --offset is given.", "Integer", "partition"),
        Option(
            "offset",
            "Where to begin: a number, earliest or latest.",
            "String",
            "consume offset",
            default="latest",
        ),
        Option("consumer-property", _DEPRECATED.format("command-property"), "String", "consumer_prop"),
        Option("command-property", "A setting of the consumer, as key=value.", "String", "consumer_prop"),
        Option("consumer.config", _DEPRECATED.format("command-config"), "String", "config file"),
        Option("command-config", "Properties file with settings of the consumer.", "String", "config file"),
        Option(
            "formatter",
            "What prints records: DefaultMessageFormatter, LoggingMessageFormatter or NoOpMessageFormatter; "
            "OffsetsMessageFormatter, GroupMetadataMessageFormatter or ShareGroupMessageFormatter for "
            "__consumer_offsets; TransactionLogMessageFormatter for __transaction_state.",
            "String",
            "class",
            default="org.apache.kafka.tools.consumer.DefaultMessageFormatter",
        ),
        Option("property", _DEPRECATED.format("formatter-property"), "String", "prop"),
        Option("formatter-property", _FORMATTER, "String", "prop"),
        Option("formatter-config", "File with such properties.", "String", "config file"),
        Option("from-beginning", "Where the group has no offset yet, begin with the first record, not with new ones."),
        Option("max-messages", "End after so many records.", "Integer", "num_messages"),
        Option("timeout-ms", "End when no record has come for so long.", "Long", "timeout_ms"),
        Option("skip-message-on-error", "Pass over a record that cannot be printed."),
        Option("bootstrap-server", "REQUIRED: Brokers to begin with.", "String", "server to connect to"),
        Option("key-deserializer", "What keys are, such as string or long.", "String", "deserializer for keys"),
        Option("value-deserializer", "What values are, such as string or long.", "String", "deserializer for values"),
        Option("enable-systest-events", "Print a line when the tool has ended."),
        Option(
            "isolation-level",
            "read_committed leaves out records of transactions that are not committed.",
            "String",
            default="read_uncommitted",
        ),
        Option("group", "The group to read in.", "String", "consumer group id"),
    ),
)


def check(given: Given) -> None:
    """Raises `UsageError` for options that do not go together."""
    if ("topic" in given) == ("include" in given):
        raise UsageError("Exactly one of the following arguments is required: [topic], [include]")
    require(given, "bootstrap-server")
    if "partition" in given and "topic" not in given:
        raise UsageError("The topic is required when partition is specified.")
    if "offset" in given and "partition" not in given:
        raise UsageError("The partition is required when offset is specified.")
    if "offset" in given and "from-beginning" in given:
        raise UsageError("Options from-beginning and offset cannot be specified together.")
    if "group" in given and "partition" in given:
        raise UsageError("Options group and partition cannot be specified together.")


def offset_of(given: Given) -> int | str:
    """A number, `earliest` or `latest`: where to begin in a partition."""
    if "offset" not in given:
        return "earliest" if "from-beginning" in given else "latest"
    text = given.text("offset")
    if text.lower() in ("earliest", "latest"):
        return text.lower()
    if not text.isdecimal():
        raise UsageError(
            f"The provided offset value '{text}' is incorrect. Valid values are 'earliest', 'latest', or a "
            "non-negative long."
        )
    return int(text)
