"""The options of a write, read and checked where the query starts, on the driver."""

import re
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.config.scopes import Scope
from ottla.spark.options import REGISTRY_PREFIX, OptionError, Options, checked_client_settings
from ottla.spark.sink.names import QUERY, SinkNames
from ottla.spark.sink.task_writer import INLINE_BYTES

if TYPE_CHECKING:
    from ottla.spark.schemas.encoding import ValueEncoding


class Delivery(Enum):
    EXACTLY_ONCE = "exactly-once"
    SINGLE_TRANSACTION = "single-transaction"
    AT_LEAST_ONCE = "at-least-once"


_REFUSED: Final = {
    "transactional.id": "the sink names its transactions itself; they begin with ottla-spark.",
    "key.serializer": "rows are written as the bytes or text that they are",
    "value.serializer": "rows are written as the bytes or text that they are",
    "partitioner.class": "give rows a column partition instead",
    "enable.idempotence": "the sink sees to it by itself",
}


_NAMES: Final = {"decisionsTopic": "decisions", "stagingTopic": "staging", "transactionalIdPrefix": "transactions"}


class SinkOptions(NamedTuple):
    topic: str | None
    delivery: Delivery
    inline_bytes: int
    fails_on_loss: bool
    checks_rows: bool
    """Whether a replayed batch must have the rows that were decided, or only as many."""
    write_name: str
    """Which of several writes of one `foreachBatch` this is."""
    settings: dict[str, str]
    """Of producers."""
    names: SinkNames
    encoding: "ValueEncoding | None" = None
    """How values become bytes; None if they are bytes or text."""


def read_sink_options(options: Options, default: Delivery) -> SinkOptions:
    topic = options.text("topic")
    if topic == "":
        raise OptionError('option topic is empty: name a topic, or leave it out for a column "topic"')
    delivery = options.choice("delivery", {one.value: one for one in Delivery}, default)
    settings = options.client_settings(_REFUSED)
    if delivery is not Delivery.AT_LEAST_ONCE and settings.get("acks", "all") not in ("all", "-1"):
        raise OptionError(
            f"option kafka.acks is {settings['acks']!r}: must be all, or option delivery {Delivery.AT_LEAST_ONCE.value}"
        )
    inline_bytes = options.integer("inlineBytes", INLINE_BYTES, least=0)
    assert inline_bytes is not None
    return SinkOptions(
        topic,
        delivery,
        inline_bytes,
        options.flag("failOnDataLoss", True),
        options.choice("replayCheck", {"rows": True, "count": False}, True),
        options.text("writeName") or topic or "topics",
        checked_client_settings(Scope.PRODUCER, settings),
        _names(options),
        _encoding(options, topic),
    )


def _encoding(options: Options, topic: str | None) -> "ValueEncoding | None":
    """Asks the registry, if one is named."""
    value_format = (options.text("value.format") or "").lower()
    if not value_format and not options.beginning_with(REGISTRY_PREFIX):
        if given := options.given("value.schema", "value.subject", "value.version", "value.schemaId", "value.message"):
            raise OptionError(f"option {given[0]} has no meaning without value.format=avro, protobuf or json")
        return None
    from ottla.spark.schemas.encoding import ValueEncoding
    from ottla.spark.schemas.schema_options import KINDS, find_schema_to_write, read_wanted

    if value_format not in KINDS:
        raise OptionError(f"option value.format is {value_format!r}, and must be one of: {', '.join(KINDS)}")
    wanted = read_wanted(options, value_format, None if topic is None else (topic,))
    if wanted is None:
        raise OptionError(f"option {REGISTRY_PREFIX}url is missing: value.format={value_format} needs a registry")
    return ValueEncoding(wanted, find_schema_to_write(wanted, options.text("value.schema")))


def _names(options: Options) -> SinkNames:
    names = SinkNames()
    for option, field in _NAMES.items():
        text = options.text(option)
        if text is None:
            continue
        allowed = text.replace(QUERY, "") if field != "transactions" else text
        if re.fullmatch(r"[a-zA-Z0-9._-]*", allowed) is None or not text:
            raise OptionError(
                f"option {option} is {text!r}: letters, digits, dots, underscores and hyphens make a name"
                + ("" if field == "transactions" else f", and {QUERY} in it stands for the query's id")
            )
        names = names._replace(**{field: text})
    if names.decisions == names.staging:
        raise OptionError(
            f"options decisionsTopic and stagingTopic are both {names.decisions!r}: give one another name"
        )
    return names
