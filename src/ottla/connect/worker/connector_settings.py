"""Settings that every connector has, beside its own: one row each, with where a console shows it.

Names, types, defaults, groups and order are Kafka Connect 4.3.1's, so that forms of consoles look as before; what a
setting does is said in words of our own. `KafkaRow` is a row of the house's settings tables with those columns.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from ottla.config.bounds import Between, Bound, NotEmpty, OneOf
from ottla.config.setting import REQUIRED, Setting
from ottla.config.values import Type


class KafkaRow(NamedTuple):
    """A setting as `validate` shows it."""

    name: str
    type: str
    default: str | None
    importance: str
    group: str | None
    order: int
    width: str
    display_name: str
    doc: str
    bound: Bound | None = None
    is_required: bool = False


class NotNull(NamedTuple):
    """A number that must be there."""

    low: int

    def allows(self, value: object) -> bool:
        return isinstance(value, int) and value >= self.low

    def __str__(self) -> str:
        return f"at least {self.low}"


class NoControls(NamedTuple):
    """A name without control characters, that is not empty."""

    def allows(self, value: object) -> bool:
        return (
            isinstance(value, str)
            and bool(value.strip())
            and not any(ord(one) < 32 or ord(one) == 127 for one in value)
        )

    def __str__(self) -> str:
        return "not empty, and without control characters"


_COMMON: Final = "Common"
_ERRORS: Final = "Error Handling"
_EXACTLY: Final = "Exactly Once Support"

COMMON: Final = (
    KafkaRow(
        "name",
        "STRING",
        None,
        "HIGH",
        _COMMON,
        1,
        "MEDIUM",
        "Connector name",
        "What the connector is called. No other of this cluster of workers has the same name.",
        NoControls(),
        is_required=True,
    ),
    KafkaRow(
        "connector.class",
        "STRING",
        None,
        "HIGH",
        _COMMON,
        2,
        "LONG",
        "Connector class",
        "Which connector: its class name, or the last word of it, with or without `Connector` behind it.",
        is_required=True,
    ),
    KafkaRow(
        "connector.plugin.version",
        "STRING",
        None,
        "MEDIUM",
        _COMMON,
        3,
        "MEDIUM",
        "Connector version",
        "Which version of the connector. There is one of each here.",
    ),
    KafkaRow(
        "tasks.max",
        "INT",
        "1",
        "HIGH",
        _COMMON,
        4,
        "SHORT",
        "Tasks max",
        "The most tasks that Kafka Connect may make of the connector. Here it has one, which Spark spreads.",
        NotNull(1),
    ),
    KafkaRow(
        "tasks.max.enforce",
        "BOOLEAN",
        "true",
        "LOW",
        _COMMON,
        5,
        "SHORT",
        "Enforce tasks max",
        "Whether a connector with more tasks than tasks.max fails. Deprecated in Kafka, and without effect here.",
    ),
    KafkaRow(
        "key.converter",
        "CLASS",
        None,
        "LOW",
        _COMMON,
        6,
        "SHORT",
        "Key converter class",
        "How keys are written to topics and read from them. The worker's, unless given here.",
    ),
    KafkaRow(
        "key.converter.plugin.version",
        "STRING",
        None,
        "LOW",
        _COMMON,
        7,
        "SHORT",
        "Key converter version",
        "Which version of the converter of keys.",
    ),
    KafkaRow(
        "value.converter",
        "CLASS",
        None,
        "LOW",
        _COMMON,
        8,
        "SHORT",
        "Value converter class",
        "How values are written to topics and read from them. The worker's, unless given here.",
    ),
    KafkaRow(
        "value.converter.plugin.version",
        "STRING",
        None,
        "LOW",
        _COMMON,
        9,
        "SHORT",
        "Value converter version",
        "Which version of the converter of values.",
    ),
    KafkaRow(
        "header.converter",
        "CLASS",
        None,
        "LOW",
        _COMMON,
        10,
        "SHORT",
        "Header converter class",
        "How headers are written to topics and read from them. The worker's, unless given here.",
    ),
    KafkaRow(
        "header.converter.plugin.version",
        "STRING",
        None,
        "LOW",
        _COMMON,
        11,
        "SHORT",
        "Header converter version",
        "Which version of the converter of headers.",
    ),
    KafkaRow(
        "transforms",
        "LIST",
        "",
        "LOW",
        "Transforms",
        12,
        "LONG",
        "Transforms",
        "Names of the transforms that records go through, in this order; transforms.NAME.type says which each is.",
    ),
    KafkaRow(
        "predicates",
        "LIST",
        "",
        "LOW",
        "Predicates",
        13,
        "LONG",
        "Predicates",
        "Names of predicates, which transforms may refer to; predicates.NAME.type says which each is.",
    ),
    KafkaRow(
        "config.action.reload",
        "STRING",
        "restart",
        "LOW",
        _COMMON,
        14,
        "MEDIUM",
        "Reload Action",
        "What to do when a value of a config provider expires. Those that are here have none that do.",
        OneOf(("none", "restart")),
    ),
    KafkaRow(
        "errors.retry.timeout",
        "LONG",
        "0",
        "MEDIUM",
        _ERRORS,
        1,
        "MEDIUM",
        "Retry Timeout for Errors",
        "How long, in milliseconds, what failed for a record is tried again; -1 is for ever.",
    ),
    KafkaRow(
        "errors.retry.delay.max.ms",
        "LONG",
        "60000",
        "MEDIUM",
        _ERRORS,
        2,
        "MEDIUM",
        "Maximum Delay Between Retries for Errors",
        "The longest pause between two tries, in milliseconds.",
    ),
    KafkaRow(
        "errors.tolerance",
        "STRING",
        "none",
        "MEDIUM",
        _ERRORS,
        3,
        "SHORT",
        "Error Tolerance",
        "none: the first record that cannot be converted or transformed fails the connector. all: such records are "
        "left out, and go to the dead-letter topic if there is one.",
        OneOf(("none", "all")),
    ),
    KafkaRow(
        "errors.log.enable",
        "BOOLEAN",
        "false",
        "MEDIUM",
        _ERRORS,
        4,
        "SHORT",
        "Log Errors",
        "Whether records that are left out are logged, beside failures.",
    ),
    KafkaRow(
        "errors.log.include.messages",
        "BOOLEAN",
        "false",
        "MEDIUM",
        _ERRORS,
        5,
        "SHORT",
        "Log Error Details",
        "Whether the log also says which record it was: topic, partition, offset.",
    ),
)
"""Of sources and sinks."""

SOURCE: Final = (
    KafkaRow(
        "topic.creation.groups",
        "LIST",
        "",
        "LOW",
        "Topic Creation",
        1,
        "LONG",
        "Topic Creation Groups",
        "Groups of topics that are created with settings of their own (KIP-158).",
    ),
    KafkaRow(
        "exactly.once.support",
        "STRING",
        "requested",
        "MEDIUM",
        _EXACTLY,
        2,
        "SHORT",
        "Exactly once support",
        "required: the connector is refused if it cannot write exactly once. requested: it does what it can.",
        OneOf(("requested", "required"), any_case=True),
    ),
    KafkaRow(
        "transaction.boundary",
        "STRING",
        "poll",
        "MEDIUM",
        _EXACTLY,
        3,
        "SHORT",
        "Transaction Boundary",
        "Where a transaction ends. Here a batch is one, whatever is given.",
        OneOf(("INTERVAL", "POLL", "CONNECTOR"), any_case=True),
    ),
    KafkaRow(
        "transaction.boundary.interval.ms",
        "LONG",
        None,
        "LOW",
        _EXACTLY,
        4,
        "SHORT",
        "Transaction boundary interval",
        "How often a transaction ends, for transaction.boundary=interval.",
        Between(0),
    ),
    KafkaRow(
        "offsets.storage.topic",
        "STRING",
        None,
        "LOW",
        "offsets.topic",
        1,
        "LONG",
        "Offsets topic",
        "A topic of its own for the offsets of this connector. The worker's, unless given here.",
        NotEmpty(),
    ),
)
"""Of sources alone."""

SINK: Final = (
    KafkaRow(
        "topics",
        "LIST",
        "",
        "HIGH",
        _COMMON,
        4,
        "LONG",
        "Topics",
        "Topics that are read. Either these, or those that match topics.regex.",
    ),
    KafkaRow(
        "topics.regex",
        "STRING",
        "",
        "HIGH",
        _COMMON,
        4,
        "LONG",
        "Topics regex",
        "A regular expression of Java's that names of topics must match as a whole.",
    ),
    KafkaRow(
        "errors.deadletterqueue.topic.name",
        "STRING",
        "",
        "MEDIUM",
        _ERRORS,
        6,
        "MEDIUM",
        "Dead Letter Queue Topic Name",
        "Where records go that are left out by errors.tolerance=all; nowhere, if it is empty.",
    ),
    KafkaRow(
        "errors.deadletterqueue.topic.replication.factor",
        "SHORT",
        "3",
        "MEDIUM",
        _ERRORS,
        7,
        "MEDIUM",
        "Dead Letter Queue Topic Replication Factor",
        "Replicas of that topic, if it has to be created.",
    ),
    KafkaRow(
        "errors.deadletterqueue.context.headers.enable",
        "BOOLEAN",
        "false",
        "MEDIUM",
        _ERRORS,
        8,
        "MEDIUM",
        "Enable Error Context Headers",
        "Whether records there have headers that say what went wrong, and where (`__connect.errors.…`).",
    ),
)
"""Of sinks alone."""

_TYPES: Final = {
    Type.BOOLEAN: "BOOLEAN",
    Type.STRING: "STRING",
    Type.SHORT: "SHORT",
    Type.INT: "INT",
    Type.LONG: "LONG",
    Type.DOUBLE: "DOUBLE",
    Type.LIST: "LIST",
    Type.CLASS: "CLASS",
    Type.PASSWORD: "PASSWORD",
}
TYPES: Final = {shown: type for type, shown in _TYPES.items()}


_CONVERTER_TYPE: Final = KafkaRow(
    "converter.type",
    "STRING",
    None,
    "LOW",
    None,
    -1,
    "NONE",
    "converter.type",
    "Whether it is for keys, for values or for headers. The worker says so.",
    is_required=True,
)
_FORMS: Final = {
    "schemas.enable": ("Schemas", 0, "Enable Schemas"),
    "schemas.cache.size": ("Schemas", 1, "Schema Cache Size"),
    "schema.content": ("Schemas", 2, "Schema Content"),
    "decimal.format": ("Serialization", 0, "Decimal Format"),
    "replace.null.with.default": ("Serialization", 1, "Replace null with default"),
}
"""Where a form has options of converters: group, order, name."""


def converter_rows(options: Sequence[Setting]) -> list[KafkaRow]:
    """The options of a converter, and what it is for."""
    rows = [_CONVERTER_TYPE]
    for option in options:
        row = row_of(option)
        if option.name in _FORMS:
            group, order, name = _FORMS[option.name]
            row = row._replace(group=group, order=order, width="MEDIUM", display_name=name)
        rows.append(row)
    return rows


def row_of(setting: Setting) -> KafkaRow:
    """A setting of a connector, converter or transform as `validate` shows it: it says nothing about forms."""
    from ottla.config.values import value_text

    is_required = setting.default is REQUIRED
    default = None if is_required or setting.default is None else value_text(setting.default)  # type: ignore[arg-type]
    return KafkaRow(
        setting.name,
        _TYPES[setting.type],
        default,
        setting.importance.name,
        None,
        -1,
        "NONE",
        setting.name,
        setting.doc,
        setting.bound,
        is_required,
    )
