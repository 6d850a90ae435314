"""Topics. Given when a topic is created or altered; what is not given comes from the broker's settings."""

from ottla.config.bounds import Between, Items, OneOf, Shaped, at_least
from ottla.config.setting import (
    ANY, LONG_MAX, MEDIUM, Double, Flag, Int, List, Long, Synonym, Text,
)

THROTTLED_REPLICAS = Shaped(r"([0-9]+:[0-9]+)?", "partition:broker pairs, or * for all of them", alone=("*",))

MINUTE_MS = 60 * 1000
HOUR_MS = 60 * MINUTE_MS

SETTINGS = (
    # What is kept, and for how long
    List("cleanup.policy", ("delete",), Items(("compact", "delete")), MEDIUM,
         "How old records go: `delete` drops whole segments by age and size, `compact` keeps the last record of every "
         "key, both do both, and an empty list keeps everything.",
         synonyms=(Synonym("log.cleanup.policy"),), acted_on=True),
    Long("retention.ms", 7 * 24 * HOUR_MS, at_least(-1), MEDIUM,
         "Age at which a segment may be deleted, judged by its newest record; -1 is never.",
         synonyms=(Synonym("log.retention.ms"), Synonym("log.retention.minutes", MINUTE_MS),
                   Synonym("log.retention.hours", HOUR_MS)), acted_on=True),
    Long("retention.bytes", -1, ANY, MEDIUM,
         "Size above which a partition's oldest segments are deleted; -1 is no limit. It counts for each partition.",
         synonyms=(Synonym("log.retention.bytes"),), acted_on=True),
    Long("delete.retention.ms", 86_400_000, at_least(0), MEDIUM,
         "How long compaction keeps a tombstone, so that a reader that started earlier learns of the deletion.",
         synonyms=(Synonym("log.cleaner.delete.retention.ms"),), acted_on=True),
    Long("file.delete.delay.ms", 60_000, at_least(0), MEDIUM,
         "Time between renaming a segment's files to `.deleted` and removing them, for reads that are under way.",
         synonyms=(Synonym("log.segment.delete.delay.ms"),), acted_on=True),

    # Segments and indexes
    Int("segment.bytes", 1_073_741_824, at_least(1_048_576), MEDIUM,
        "Size at which the active segment is closed and a new one begins.",
        synonyms=(Synonym("log.segment.bytes"),), acted_on=True),
    Long("segment.ms", 7 * 24 * HOUR_MS, at_least(1), MEDIUM,
         "Age at which the active segment is closed even if it is not full, so that it can be deleted or compacted.",
         synonyms=(Synonym("log.roll.ms"), Synonym("log.roll.hours", HOUR_MS)), acted_on=True),
    Long("segment.jitter.ms", 0, at_least(0), MEDIUM,
         "Up to this much, different for each segment, is taken off `segment.ms`, so that not all logs roll at once.",
         synonyms=(Synonym("log.roll.jitter.ms"), Synonym("log.roll.jitter.hours", HOUR_MS)), acted_on=True),
    Int("segment.index.bytes", 10_485_760, at_least(4), MEDIUM,
        "Largest size of an offset or time index; the segment rolls when one is full.",
        synonyms=(Synonym("log.index.size.max.bytes"),), acted_on=True),
    Int("index.interval.bytes", 4096, at_least(0), MEDIUM,
        "Bytes of records between two index entries: fewer bytes find a record sooner and make a bigger index.",
        synonyms=(Synonym("log.index.interval.bytes"),), acted_on=True),
    Flag("preallocate", False, ANY, MEDIUM,
         "Whether a new segment's file is given its full size at once.",
         synonyms=(Synonym("log.preallocate"),)),
    Long("flush.messages", LONG_MAX, at_least(1), MEDIUM,
         "Records after which the log is forced to disk. The default leaves that to the operating system, and "
         "durability to replication.",
         synonyms=(Synonym("log.flush.interval.messages"),), acted_on=True),
    Long("flush.ms", LONG_MAX, at_least(0), MEDIUM,
         "Longest time a record may wait in the page cache before it is forced to disk.",
         synonyms=(Synonym("log.flush.interval.ms"), Synonym("log.flush.scheduler.interval.ms")), acted_on=True),

    # Records
    Int("max.message.bytes", 1_048_588, at_least(0), MEDIUM,
        "Largest record batch, as stored and after compression, that producers may send.",
        synonyms=(Synonym("message.max.bytes"),), acted_on=True),
    Text("message.timestamp.type", "CreateTime", OneOf(("CreateTime", "LogAppendTime")), MEDIUM,
         "Whose clock stamps records: the producer's when it made them, or the broker's when it stored them.",
         synonyms=(Synonym("log.message.timestamp.type"),), acted_on=True),
    Long("message.timestamp.before.max.ms", LONG_MAX, at_least(0), MEDIUM,
         "How far a producer's timestamp may lie in the broker's past; older records are refused.",
         synonyms=(Synonym("log.message.timestamp.before.max.ms"),), acted_on=True),
    Long("message.timestamp.after.max.ms", 3_600_000, at_least(0), MEDIUM,
         "How far a producer's timestamp may lie in the broker's future; later records are refused.",
         synonyms=(Synonym("log.message.timestamp.after.max.ms"),), acted_on=True),
    Text("compression.type", "producer", OneOf(("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")), MEDIUM,
         "How batches are compressed on disk: as the producer chose, or all of them the same way.",
         synonyms=(Synonym("compression.type"),), acted_on=True),
    Int("compression.gzip.level", -1, Between(1, 9, also=-1), MEDIUM,
        "Effort of gzip when the broker compresses; -1 is gzip's own default.",
        synonyms=(Synonym("compression.gzip.level"),), acted_on=True),
    Int("compression.lz4.level", 9, Between(1, 17), MEDIUM,
        "Effort of lz4 when the broker compresses.",
        synonyms=(Synonym("compression.lz4.level"),), acted_on=True),
    Int("compression.zstd.level", 3, Between(-131_072, 22), MEDIUM,
        "Effort of zstd when the broker compresses; negative levels trade size for speed.",
        synonyms=(Synonym("compression.zstd.level"),), acted_on=True),

    # Compaction
    Double("min.cleanable.dirty.ratio", 0.5, Between(0, 1), MEDIUM,
           "Part of the log that must be new since the last compaction before the next one: lower wastes less disk and "
           "more work.",
           synonyms=(Synonym("log.cleaner.min.cleanable.ratio"),), acted_on=True),
    Long("min.compaction.lag.ms", 0, at_least(0), MEDIUM,
         "Time a record stays uncompacted at least, so that readers that keep up see every version of a key.",
         synonyms=(Synonym("log.cleaner.min.compaction.lag.ms"),), acted_on=True),
    Long("max.compaction.lag.ms", LONG_MAX, at_least(1), MEDIUM,
         "Time after which a record is compacted whatever the dirty ratio says.",
         synonyms=(Synonym("log.cleaner.max.compaction.lag.ms"),), acted_on=True),

    # Replication
    Int("min.insync.replicas", 1, at_least(1), MEDIUM,
        "Replicas that must be in sync for a write with acks=all to be taken; fewer, and the producer gets an error.",
        synonyms=(Synonym("min.insync.replicas"),), acted_on=True),
    Flag("unclean.leader.election.enable", False, ANY, MEDIUM,
         "Whether a replica out of sync may lead when no other can: the partition serves again, and loses records.",
         synonyms=(Synonym("unclean.leader.election.enable"),), acted_on=True),
    List("leader.replication.throttled.replicas", (), THROTTLED_REPLICAS, MEDIUM,
         "Replicas whose leader counts what it sends them against the replication quota: `partition:broker` pairs, "
         "or `*`.", acted_on=True),
    List("follower.replication.throttled.replicas", (), THROTTLED_REPLICAS, MEDIUM,
         "Replicas that count what they fetch against the replication quota: `partition:broker` pairs, or `*`.",
         acted_on=True),

    # Tiered storage
    Flag("remote.storage.enable", False, ANY, MEDIUM,
         "Whether closed segments are copied to remote storage (KIP-405)."),
    Long("local.retention.ms", -2, at_least(-2), MEDIUM,
         "Age at which a segment that is also in remote storage may leave the local disk; -2 follows `retention.ms`.",
         synonyms=(Synonym("log.local.retention.ms"),)),
    Long("local.retention.bytes", -2, at_least(-2), MEDIUM,
         "Size above which segments that are also in remote storage leave the local disk; -2 follows "
         "`retention.bytes`.",
         synonyms=(Synonym("log.local.retention.bytes"),)),
    Flag("remote.log.copy.disable", False, ANY, MEDIUM,
         "Stops copying to remote storage, and keeps what is there readable."),
    Flag("remote.log.delete.on.disable", False, ANY, MEDIUM,
         "Deletes the topic's remote data when remote storage is switched off for it."),
)

SECTIONS = (("Topics", SETTINGS),)
