"""Confluent's S3 sink: io.confluent.connect.s3.S3SinkConnector, with the options that most configurations have.

Files are where Confluent's are, `TOPICS_DIR/TOPIC/partition=0/TOPIC+0+0000000042+w7.json`; `w7` is the worker that
wrote it (`s3_directory`). What is different: nothing is held back until `flush.size` records are there, so files may be
smaller and records arrive sooner; and manifests in `TOPICS_DIR/_manifest` say which files count and where to go on,
instead of Kafka's group.
"""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ottla.base.ids import TopicPartition
from ottla.config.bounds import OneOf, at_least
from ottla.config.setting import ANY, HIGH, LOW, MEDIUM, REQUIRED, Int, Long, Text
from ottla.connect.connector import Problem, Sink
from ottla.connect.connectors.files import new_files, refuse_renamed
from ottla.connect.connectors.known_options import refuse_unknown, setting_of
from ottla.connect.connectors.s3 import S3_SETTINGS, S3Access
from ottla.connect.connectors.s3_directory import Layout, NewFile, S3Directory
from ottla.connect.data.records import Records
from ottla.connect.errors import ConnectError
from ottla.connect.options import read_options

_NAME: Final = "io.confluent.connect.s3.S3SinkConnector"
_FORMATS: Final = {
    "io.confluent.connect.s3.format.json.JsonFormat": ("json", ".json"),
    "io.confluent.connect.s3.format.parquet.ParquetFormat": ("parquet", ".snappy.parquet"),
}


class ConfluentS3Sink(Sink):
    settings = (
        Text("s3.bucket.name", REQUIRED, ANY, HIGH, "The bucket.", acted_on=True),
        Text("topics.dir", "topics", ANY, HIGH, "The prefix of all files.", acted_on=True),
        Text("format.class", REQUIRED, OneOf(tuple(_FORMATS)), HIGH, "JSON lines or Parquet.", acted_on=True),
        Int(
            "flush.size", REQUIRED, at_least(1), HIGH, "The most records of a file; none is waited for.", acted_on=True
        ),
        Text(
            "behavior.on.null.values",
            "fail",
            OneOf(("fail", "ignore")),
            LOW,
            "Whether a record without a value fails the connector or is left out.",
            acted_on=True,
        ),
        Int(
            "filename.offset.zero.pad.width",
            10,
            at_least(0),
            LOW,
            "How many digits offsets have in names, with zeros before them.",
            acted_on=True,
        ),
        Text(
            "storage.class",
            "io.confluent.connect.s3.storage.S3Storage",
            OneOf(("io.confluent.connect.s3.storage.S3Storage",)),
            LOW,
            "Accepted; it is S3.",
        ),
        Text(
            "partitioner.class",
            "io.confluent.connect.storage.partitioner.DefaultPartitioner",
            OneOf(("io.confluent.connect.storage.partitioner.DefaultPartitioner",)),
            HIGH,
            "Accepted; files are below the partitions of Kafka.",
        ),
        Text("s3.compression.type", "none", OneOf(("none",)), LOW, "Accepted; files of JSON are not compressed."),
        Text("schema.compatibility", "NONE", OneOf(("NONE",)), LOW, "Accepted; records of two schemas are two files."),
        Long("rotate.interval.ms", -1, ANY, MEDIUM, "Accepted; records are not held back."),
        Long("rotate.schedule.interval.ms", -1, ANY, MEDIUM, "Accepted; records are not held back."),
        Int("s3.part.size", 26_214_400, ANY, LOW, "Accepted; pyarrow decides."),
        *S3_SETTINGS,
    )

    @classmethod
    def validate(cls, config: Mapping[str, str]) -> Sequence[Problem]:
        try:
            refuse_unknown(_NAME, cls.settings, config)
            S3Access.of(read_options(cls.settings, config))
        except ConnectError as problem:
            return [(setting_of(str(problem), cls.settings, "s3.bucket.name"), str(problem))]
        return []

    def start(self) -> None:
        refuse_unknown(_NAME, self.settings, self.config)
        options = self.options()
        self._most = options.integer("flush.size")
        self._ignores = options.text("behavior.on.null.values") == "ignore"
        self._format, suffix = _FORMATS[options.text("format.class")]
        address = f"s3://{options.text('s3.bucket.name')}/{options.text('topics.dir')}"
        layout = _layout(options.integer("filename.offset.zero.pad.width"), suffix)
        self._directory = S3Directory(address, S3Access.of(options), layout, self.context.log, "s3.bucket.name")

    def positions(self) -> Mapping[TopicPartition, int]:
        return self._directory.positions()

    def put(self, batches: Sequence[Records], positions: Mapping[TopicPartition, int]) -> None:
        refuse_renamed(batches, positions, self.context.places)
        whole: list[Records] = []
        for records in batches:
            gone, there = records.split(records.value.is_null())
            if gone is not None and not self._ignores:
                raise ConnectError(
                    f"{gone.where(0)} has no value: set behavior.on.null.values=ignore to leave such records out"
                )
            whole += [] if there is None else [there]
        self._directory.put(new_files(whole, self._format, self._most), positions)


def _layout(width: int, suffix: str) -> Layout:
    def name(file: NewFile, owner: int) -> str:
        place = f"{file.topic}/partition={file.partition}"
        return f"{place}/{file.topic}+{file.partition}+{file.first:0{width}}+w{owner}{suffix}"

    pattern = (
        r"(?P<topic>[^/]+)/partition=(?P<partition>\d+)/(?P=topic)\+(?P=partition)\+(?P<first>\d+)\+w(?P<owner>\d+)"
    )
    return Layout(name, re.compile(pattern + re.escape(suffix)))
