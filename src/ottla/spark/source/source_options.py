"""The options of the source, read and checked against one another."""

import re
from collections.abc import Collection
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.config.scopes import Scope
from ottla.spark.options import ClientOptions, OptionError, Options, Use, checked_client_settings
from ottla.spark.source.offsets_json import EARLIEST, LATEST, Offsets, parse_assignment, parse_offsets
from ottla.spark.source.values.value_options import ValueOptions, read_value_options

_DECIDED: Final = {
    "auto.offset.reset": "startingOffsets says where to begin, and failOnDataLoss what to do when that is gone",
    "enable.auto.commit": "Spark's checkpoint keeps the progress; with kafka.group.id it is committed after each batch",
    "key.deserializer": "keys come as bytes; cast or decode the column",
    "value.deserializer": "values come as bytes; see value.format",
    "interceptor.classes": "the source calls no interceptors",
}
_PREFETCH_BYTES: Final = 32 << 20
_TASK_PATIENCE_MS: Final = 120_000
_IDLE_WAIT_MS: Final = 1_000


class Boundary(NamedTuple):
    """Where a read begins or ends: exactly one is given."""

    option: str
    everywhere: int | None = None
    """EARLIEST or LATEST for all partitions."""
    offsets: Offsets | None = None
    """One for each partition; EARLIEST and LATEST among them."""
    timestamp_ms: int | None = None
    """The first record of each partition that is as young."""
    timestamps_ms: Offsets | None = None
    """The same with one for each partition."""


class SourceOptions(NamedTuple):
    client: dict[str, str]
    """Settings of a consumer, checked."""
    topics: tuple[str, ...] | None
    pattern: str | None
    assigned: tuple[TopicPartition, ...] | None
    starting: Boundary
    ending: Boundary
    no_timestamp_is_latest: bool
    """Where no record is as young as a starting timestamp: begin at the end, rather than fail."""
    max_offsets_per_trigger: int | None
    min_offsets_per_trigger: int | None
    max_trigger_delay_ms: int
    max_bytes_per_trigger: int | None
    min_partitions: int | None
    max_records_per_partition: int | None
    includes_headers: bool
    columns: tuple[str, ...] | None
    fails_on_data_loss: bool
    task_patience_ms: int
    lookup_retries: int
    lookup_pause_ms: int
    idle_wait_ms: int
    keeps_topic_ids: bool
    """In the checkpoint, which Spark's own connector cannot read then."""
    values: ValueOptions

    @property
    def group_id(self) -> str | None:
        return self.client.get("group.id")


def read_source_options(options: Options, use: Use) -> SourceOptions:
    """Raises `OptionError` with the first thing that is wrong."""
    topics, pattern, assigned = _subscription(options)
    return SourceOptions(
        client=_client_settings(options),
        topics=topics,
        pattern=pattern,
        assigned=assigned,
        starting=_starting(options, use),
        ending=_boundary(options, "ending", LATEST),
        no_timestamp_is_latest=options.choice(
            "startingOffsetsByTimestampStrategy", {"error": False, "latest": True}, False
        ),
        max_offsets_per_trigger=options.integer("maxOffsetsPerTrigger"),
        min_offsets_per_trigger=_min_offsets(options),
        max_trigger_delay_ms=duration_ms(options, "maxTriggerDelay", "15m"),
        max_bytes_per_trigger=options.integer("maxBytesPerTrigger"),
        min_partitions=options.integer("minPartitions"),
        max_records_per_partition=options.integer("maxRecordsPerPartition"),
        includes_headers=options.flag("includeHeaders", False),
        columns=_columns(options),
        fails_on_data_loss=options.flag("failOnDataLoss", True),
        task_patience_ms=options.integer("kafkaConsumer.pollTimeoutMs", _TASK_PATIENCE_MS) or 0,
        lookup_retries=options.integer("fetchOffset.numRetries", 3, least=0) or 0,
        lookup_pause_ms=options.integer("fetchOffset.retryIntervalMs", 1000, least=0) or 0,
        idle_wait_ms=options.integer("idleWaitMs", _IDLE_WAIT_MS, least=0) or 0,
        keeps_topic_ids=options.flag("checkpointTopicIds", True),
        values=read_value_options(options, topics),
    )


def _subscription(
    options: Options,
) -> tuple[tuple[str, ...] | None, str | None, tuple[TopicPartition, ...] | None]:
    given = options.given("subscribe", "subscribePattern", "assign")
    if len(given) != 1:
        said = "none is given" if not given else f"{' and '.join(given)} are given"
        raise OptionError(f"one of the options subscribe, subscribePattern and assign says what to read; {said}")
    if text := options.text("assign"):
        return None, None, tuple(parse_assignment("assign", text))
    if pattern := options.text("subscribePattern"):
        try:
            re.compile(pattern)
        except re.error as problem:
            raise OptionError(
                f"option subscribePattern is {pattern!r}, which is not a regular expression: {problem}"
            ) from None
        return None, pattern, None
    topics = tuple(dict.fromkeys(name.strip() for name in (options.text("subscribe") or "").split(",") if name.strip()))
    if not topics:
        raise OptionError(f"option {given[0]} is empty; subscribe takes the names of topics, with commas between")
    return topics, None, None


def _client_settings(options: Options) -> ClientOptions:
    found = options.client_settings(_DECIDED)
    prefetch_bytes = options.integer("prefetchBytes", _PREFETCH_BYTES, least=1 << 16) or _PREFETCH_BYTES
    # Read committed is our default, not Kafka's: an aborted transaction's rows were never there.
    found.setdefault("isolation.level", "read_committed")
    # A job that reads a topic which was deleted must not make it anew.
    found.setdefault("allow.auto.create.topics", "false")
    found.setdefault("fetch.max.bytes", str(prefetch_bytes))
    found.setdefault("max.partition.fetch.bytes", str(min(prefetch_bytes // 4, 4 << 20)))
    return checked_client_settings(Scope.CONSUMER, found)


def _starting(options: Options, use: Use) -> Boundary:
    starting = _boundary(options, "starting", LATEST if use is Use.STREAM_READ else EARLIEST)
    if use is Use.BATCH_READ and (starting.everywhere == LATEST or LATEST in (starting.offsets or {}).values()):
        raise OptionError("option startingOffsets asks for latest (-1): a batch would read nothing from there")
    return starting


def _boundary(options: Options, side: str, default: int) -> Boundary:
    names = f"{side}Timestamp", f"{side}OffsetsByTimestamp", f"{side}Offsets"
    if len(options.given(*names)) > 1:
        raise OptionError(f"options {' and '.join(options.given(*names))} contradict each other: give one of them")
    words = {"earliest": EARLIEST, "latest": LATEST} if side == "starting" else {"latest": LATEST}
    for name in options.given(*names):
        text = options.text(name) or ""
        if name == names[0]:
            return Boundary(name, timestamp_ms=options.integer(name, least=0))
        if name == names[1]:
            return Boundary(name, timestamps_ms=parse_offsets(name, text, least=0))
        if text.lower() in words:
            return Boundary(name, everywhere=words[text.lower()])
        if text.lower() == "earliest":
            raise OptionError(f"option {name} is 'earliest': then nothing would be read")
        if not text.lstrip().startswith("{"):
            raise OptionError(_no_boundary(name, text, words))
        offsets = parse_offsets(name, text, least=EARLIEST if side == "starting" else LATEST)
        return Boundary(name, offsets=offsets)
    return Boundary(names[2], everywhere=default)


def _no_boundary(name: str, text: str, words: Collection[str]) -> str:
    from difflib import get_close_matches  # only a mistyped word pays for it

    nearest = get_close_matches(text.lower(), list(words), n=1)
    hint = f"; did you mean {nearest[0]}?" if nearest else ""
    known = ", ".join(words)
    return (
        f'option {name} is {text!r}, and must be {known}, or offsets such as {{"topic": {{"0": 23, "1": 345}}}}{hint}'
    )


def _min_offsets(options: Options) -> int | None:
    least, most = options.integer("minOffsetsPerTrigger"), options.integer("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        raise OptionError(f"option minOffsetsPerTrigger ({least}) is larger than maxOffsetsPerTrigger ({most})")
    return least


_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


def duration_ms(options: Options, name: str, default: str) -> int:
    """As Spark writes a duration: a number with ms, s, m, h or d behind it; without, it is milliseconds."""
    text = options.text(name) or default
    found = re.fullmatch(r"(\d+)\s*([a-z]*)", text.lower())
    if found is None or (found[2] or "ms") not in _UNITS_MS:
        raise OptionError(f"option {name} is {text!r}, and must be a duration such as 500ms, 10s or 15m")
    return int(found[1]) * _UNITS_MS[found[2] or "ms"]


def _columns(options: Options) -> tuple[str, ...] | None:
    text = options.text("columns")
    if text is None:
        return None
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))
