"""Logs. Where partitions are kept, and the defaults of topics that do not say otherwise."""

from ottla.config.bounds import Between, Items, OneOf, at_least
from ottla.config.setting import (
    ANY, CLUSTER_WIDE, HIGH, LONG_MAX, LOW, MEDIUM, PER_BROKER, Flag, Int, List, Long, Text,
)

SETTINGS = (
    # Directories
    List("log.dirs", None, Items(may_be_empty=False, may_be_null=True), HIGH,
         "Directories that hold the partitions, ideally one a disk. Not given, `log.dir` counts.", acted_on=True),
    List("log.dir", ("/tmp/kafka-logs",), Items(may_be_empty=False), HIGH,
         "The directories to use when `log.dirs` is not given.", acted_on=True),
    List("cordoned.log.dirs", (), Items(may_be_null=True), MEDIUM,
         "Log directories that get no new partitions, `*` for all of them; those that are there stay (KIP-1066).",
         PER_BROKER),
    Long("log.dir.failure.timeout.ms", 30_000, at_least(1), LOW,
         "How long a broker with a failed directory tries to tell the controller before it ends (KIP-858).",
         acted_on=True),
    Int("num.recovery.threads.per.data.dir", 2, at_least(1), HIGH,
        "Threads that recover a directory's logs at start and flush them at stop.", CLUSTER_WIDE),

    # Rolling
    Int("log.segment.bytes", 1_073_741_824, at_least(1_048_576), HIGH,
        "Default of `segment.bytes`: the size at which a segment is closed.", CLUSTER_WIDE, acted_on=True),
    Long("log.roll.ms", None, ANY, HIGH,
         "Default of `segment.ms`: the age at which a segment is closed. Comes before `log.roll.hours`.",
         CLUSTER_WIDE, acted_on=True),
    Int("log.roll.hours", 168, at_least(1), HIGH,
        "Default of `segment.ms`, in hours, when `log.roll.ms` is not given.", acted_on=True),
    Long("log.roll.jitter.ms", None, ANY, HIGH,
         "Default of `segment.jitter.ms`: the most that chance takes off a segment's age. Comes before "
         "`log.roll.jitter.hours`.", CLUSTER_WIDE, acted_on=True),
    Int("log.roll.jitter.hours", 0, at_least(0), HIGH,
        "Default of `segment.jitter.ms`, in hours, when `log.roll.jitter.ms` is not given.", acted_on=True),
    Int("log.index.size.max.bytes", 10_485_760, at_least(4), MEDIUM,
        "Default of `segment.index.bytes`: the largest size of an index.", CLUSTER_WIDE, acted_on=True),
    Int("log.index.interval.bytes", 4096, at_least(0), MEDIUM,
        "Default of `index.interval.bytes`: the bytes between two index entries.", CLUSTER_WIDE, acted_on=True),
    Flag("log.preallocate", False, ANY, MEDIUM,
         "Default of `preallocate`: whether new segments get their full size at once.", CLUSTER_WIDE),

    # Retention
    Long("log.retention.ms", None, ANY, HIGH,
         "Default of `retention.ms`: the age at which segments go, -1 is never. Comes before minutes and hours.",
         CLUSTER_WIDE, acted_on=True),
    Int("log.retention.minutes", None, ANY, HIGH,
        "Default of `retention.ms`, in minutes, when `log.retention.ms` is not given.", acted_on=True),
    Int("log.retention.hours", 168, ANY, HIGH,
        "Default of `retention.ms`, in hours, when neither milliseconds nor minutes are given.", acted_on=True),
    Long("log.retention.bytes", -1, ANY, HIGH,
         "Default of `retention.bytes`: the size of a partition above which its oldest segments are deleted.",
         CLUSTER_WIDE, acted_on=True),
    Long("log.retention.check.interval.ms", 300_000, at_least(1), MEDIUM,
         "Time between two looks for segments that may be deleted.", acted_on=True),
    Long("log.segment.delete.delay.ms", 60_000, at_least(0), HIGH,
         "Default of `file.delete.delay.ms`: the wait before a deleted segment's files are removed.",
         CLUSTER_WIDE, acted_on=True),
    List("log.cleanup.policy", ("delete",), Items(("compact", "delete")), MEDIUM,
         "Default of `cleanup.policy`: `delete`, `compact`, both, or nothing.", CLUSTER_WIDE, acted_on=True),

    # Flushing
    Long("log.flush.interval.messages", LONG_MAX, at_least(1), HIGH,
         "Default of `flush.messages`: the records after which a log is forced to disk.", CLUSTER_WIDE, acted_on=True),
    Long("log.flush.interval.ms", None, ANY, HIGH,
         "Default of `flush.ms`: the longest a record waits to be forced to disk. Not given, "
         "`log.flush.scheduler.interval.ms` counts.", CLUSTER_WIDE, acted_on=True),
    Long("log.flush.scheduler.interval.ms", LONG_MAX, ANY, HIGH,
         "Time between two looks for logs that are due to be flushed.", acted_on=True),
    Int("log.flush.offset.checkpoint.interval.ms", 60_000, at_least(0), HIGH,
        "Time between two writes of the recovery points, from which a log is checked after a crash.", acted_on=True),
    Int("log.flush.start.offset.checkpoint.interval.ms", 60_000, at_least(0), HIGH,
        "Time between two writes of the log start offsets, which keep deleted records from coming back.",
        acted_on=True),

    # Records
    Int("message.max.bytes", 1_048_588, at_least(0), HIGH,
        "Default of `max.message.bytes`: the largest record batch that is taken.", CLUSTER_WIDE, acted_on=True),
    Text("log.message.timestamp.type", "CreateTime", OneOf(("CreateTime", "LogAppendTime")), MEDIUM,
         "Default of `message.timestamp.type`: the producer's clock or the broker's.", CLUSTER_WIDE, acted_on=True),
    Long("log.message.timestamp.before.max.ms", LONG_MAX, at_least(0), MEDIUM,
         "Default of `message.timestamp.before.max.ms`: how old a timestamp may be.", CLUSTER_WIDE, acted_on=True),
    Long("log.message.timestamp.after.max.ms", 3_600_000, at_least(0), MEDIUM,
         "Default of `message.timestamp.after.max.ms`: how far ahead a timestamp may be.", CLUSTER_WIDE, acted_on=True),
    Text("compression.type", "producer", OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")), HIGH,
         "Default of a topic's `compression.type`: as the producer chose, or one codec for all.",
         CLUSTER_WIDE, acted_on=True),
    Int("compression.gzip.level", -1, Between(1, 9, also=-1), MEDIUM,
        "Default of a topic's `compression.gzip.level`.", CLUSTER_WIDE, acted_on=True),
    Int("compression.lz4.level", 9, Between(1, 17), MEDIUM,
        "Default of a topic's `compression.lz4.level`.", CLUSTER_WIDE, acted_on=True),
    Int("compression.zstd.level", 3, Between(-131_072, 22), MEDIUM,
        "Default of a topic's `compression.zstd.level`.", CLUSTER_WIDE, acted_on=True),
)
