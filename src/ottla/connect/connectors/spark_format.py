"""Any format of Spark's as a source or a sink: what is configured. The engine runs them (`engine.spark_formats`):
Spark itself reads and writes, so there is nothing to poll or to put here.

A worker says which formats its connectors may use, in `ottla.connect.spark.formats`: a format may be any program on
Spark's class path, and reach anything that the worker can. Without that property it is those whose files can be held to
`file.allowed.paths`.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import unquote

from ottla.base.ids import TopicPartition
from ottla.config.bounds import OneOf, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Flag, Long, Setting, Text
from ottla.connect.connector import Problem, Sink, Source, SourceRecords
from ottla.connect.connectors.allowed_paths import PROPERTY, allowed_path
from ottla.connect.connectors.known_options import refuse_unknown, setting_of
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError
from ottla.connect.options import InvalidOption, read_options

ALLOWED: Final = "ottla.connect.spark.formats"
"""A property of the worker."""
_SAFE: Final = ("csv", "json", "orc", "parquet", "rate", "rate-micro-batch", "text", "xml")
_PATHS: Final = ("path", "basepath", "sourcearchivedir", "rowvalidationxsdpath")
_OTHER_SYSTEMS: Final = re.compile(r"fs\.(default\.name|defaultfs|viewfs\..*|abstractfilesystem\..*|.*\.impl)")
"""Options of Hadoop's that let a path mean another one: Spark hands every option on to it."""
_STAND_FOR_OTHERS: Final = ("har", "viewfs")
OPTION: Final = "spark.option."
CHECKPOINT: Final = "spark.checkpoint"
_SHARED: Final[tuple[Setting, ...]] = (
    Text("spark.format", REQUIRED, ANY, HIGH, "The format, as Spark calls it: parquet, jdbc, delta.", acted_on=True),
    Text(
        CHECKPOINT,
        None,
        ANY,
        MEDIUM,
        "Where Spark's checkpoint is kept; by default in ottla.connect.state.dir.",
        acted_on=True,
    ),
)


class FormatOptions(NamedTuple):
    format: str
    options: Mapping[str, str]
    """Spark's."""


def format_of(config: Mapping[str, str], worker: Mapping[str, str]) -> FormatOptions:
    """The format and its options, if connectors may use them. Raises `ConnectError`."""
    name = config.get("spark.format", "").strip()
    said = worker.get(ALLOWED)
    allowed = _SAFE if said is None else tuple(one.strip() for one in said.split(","))
    if name.lower() not in (one.lower() for one in allowed) and "*" not in allowed:
        raise ConnectError(
            f"spark.format={name}: connectors of this worker may use {', '.join(allowed)}; add it to the worker's "
            f"property {ALLOWED}"
        )
    options = {key.removeprefix(OPTION): value for key, value in config.items() if key.startswith(OPTION)}
    for key, value in options.items():
        if key.lower() == "paths":
            raise InvalidOption(f"{OPTION}{key}: name one directory or pattern, in {OPTION}path")
        if _OTHER_SYSTEMS.fullmatch(key.lower()):
            raise InvalidOption(
                f"{OPTION}{key}: which file systems there are is not a connector's to say; set it in the worker's "
                "Spark configuration"
            )
        if key.lower() in _PATHS:
            check_path(filled({key: value}, "query", 0)[key], worker, f"{OPTION}{key}")
    return FormatOptions(name, options)


def check_path(text: str, worker: Mapping[str, str], setting: str) -> None:
    """Holds files of this machine to `file.allowed.paths`. Raises `ConnectError`."""
    scheme, path = _parted(text)
    if scheme in _STAND_FOR_OTHERS:
        raise ConnectError(f"{setting}={text}: {scheme} stands for other file systems; name the path as they have it")
    if scheme not in ("", "file"):
        return
    if re.search(r"[{}\\]|(^|/)\.\.(/|$)", f"{path}\n{unquote(path)}", re.MULTILINE):
        raise ConnectError(
            f"{setting}={text}: a path has no {{}}, no backslash and no .. in it, to be held to {PROPERTY}"
        )
    allowed_path(path, worker, setting)


def _parted(text: str) -> tuple[str, str]:
    """The scheme and the path as Hadoop reads them: a path has no query and no fragment, and % is a letter."""
    scheme, colon, rest = text.partition(":")
    if not colon or "/" in scheme:
        return "", text
    if rest.startswith("//"):
        rest = "/" + rest[2:].partition("/")[2]
    return scheme.strip().lower(), rest


def _problems(config: Mapping[str, str], rows: Sequence[Setting], name: str) -> list[Problem]:
    try:
        refuse_unknown(name, rows, config, ignored=(OPTION,))
    except InvalidOption as problem:
        return [(setting_of(str(problem), rows, "spark.format"), str(problem))]
    return []


class SparkSource(Source):
    """ottla.connect.SparkSourceConnector"""

    settings = (
        *_SHARED,
        Text("topic", REQUIRED, ANY, HIGH, "The topic to write to.", acted_on=True),
        Text(
            "spark.key", None, ANY, MEDIUM, "The column whose value is the record's key; none: no key.", acted_on=True
        ),
        Text(
            "spark.read",
            "stream",
            OneOf(("stream", "batch")),
            HIGH,
            "Whether Spark follows the source (readStream), or reads it whole (read).",
            acted_on=True,
        ),
        Text("spark.schema", None, ANY, MEDIUM, "The schema, where the format needs one: `id INT, …`.", acted_on=True),
        Long(
            "spark.interval.ms",
            -1,
            at_least(-1),
            LOW,
            "With batch: the pause before reading again; -1: once.",
            acted_on=True,
        ),
    )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        return _problems(config, cls.settings, "ottla.connect.SparkSourceConnector")

    def poll(self, timeout_s: float) -> Sequence[SourceRecords]:
        raise AssertionError("Spark reads it")


class SparkSink(Sink):
    """ottla.connect.SparkSinkConnector"""

    settings = (
        *_SHARED,
        Text(
            "spark.mode",
            "append",
            OneOf(("append", "overwrite", "ignore", "error")),
            MEDIUM,
            "The mode of Spark's write. overwrite needs ${batch} in the path.",
            acted_on=True,
        ),
        Text("spark.table", None, ANY, MEDIUM, "The table to write to, where the format has tables.", acted_on=True),
        Flag(
            "spark.place.columns",
            False,
            ANY,
            MEDIUM,
            "Whether rows have columns kafka_topic, kafka_partition and kafka_offset too.",
            acted_on=True,
        ),
    )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        found = _problems(config, cls.settings, "ottla.connect.SparkSinkConnector")
        try:
            numbered(config)
        except InvalidOption as problem:
            found.append((setting_of(str(problem), cls.settings, "spark.mode"), str(problem)))
        return found

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        raise AssertionError("Spark writes it")


def numbered(config: Mapping[str, str]) -> bool:
    """Whether the format is told the batch's number, and so can know a batch again. Raises `InvalidOption`."""
    options = {key: value for key, value in config.items() if key.startswith(OPTION)}
    has_batch = any("${batch}" in value for value in options.values())
    if has_batch and not any("${query}" in value for value in options.values()):
        raise InvalidOption(
            "spark.option.…: ${batch} counts from 0 again if the checkpoint is lost; put ${query} into one too"
        )
    mode = read_options(SparkSink.settings, config).text("spark.mode")
    if mode == "overwrite" and "${batch}" not in next(
        (v for k, v in options.items() if k.lower() == f"{OPTION}path"), ""
    ):
        raise InvalidOption(
            f"spark.mode=overwrite: every batch would overwrite the one before; put ${{batch}} into {OPTION}path"
        )
    return has_batch


def filled(options: Mapping[str, str], query: str, batch: int) -> dict[str, str]:
    """The options for one batch."""
    return {key: value.replace("${query}", query).replace("${batch}", str(batch)) for key, value in options.items()}
