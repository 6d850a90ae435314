"""The log cleaner. Compaction of topics that keep the last record of every key."""

import sys

from ottla.config.bounds import Between, at_least
from ottla.config.setting import ANY, CLUSTER_WIDE, LONG_MAX, MEDIUM, Double, Flag, Int, Long

SETTINGS = (
    Flag("log.cleaner.enable", True, ANY, MEDIUM,
         "Whether compaction runs at all. Without it compacted topics, the offsets topic among them, only grow.",
         acted_on=True),
    Int("log.cleaner.threads", 1, at_least(0), MEDIUM,
        "Compactions that run at the same time.", CLUSTER_WIDE, acted_on=True),
    Double("log.cleaner.io.max.bytes.per.second", sys.float_info.max, ANY, MEDIUM,
           "Most bytes a second that compaction reads and writes, taken together.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.dedupe.buffer.size", 134_217_728, ANY, MEDIUM,
         "Memory, over all threads, for the map from key to latest offset; a bigger map cleans more in one pass.",
         CLUSTER_WIDE, acted_on=True),
    Double("log.cleaner.io.buffer.load.factor", 0.9, ANY, MEDIUM,
           "How full the map may get: fuller takes more keys and collides more often.", CLUSTER_WIDE, acted_on=True),
    Int("log.cleaner.io.buffer.size", 524_288, at_least(0), MEDIUM,
        "Memory, over all threads, for reading and writing while compacting.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.backoff.ms", 15_000, at_least(0), MEDIUM,
         "Rest when no log needs compaction.", CLUSTER_WIDE, acted_on=True),
    Double("log.cleaner.min.cleanable.ratio", 0.5, Between(0, 1), MEDIUM,
           "Default of `min.cleanable.dirty.ratio`: the part of a log that must be new before it is compacted.",
           CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.delete.retention.ms", 86_400_000, at_least(0), MEDIUM,
         "Default of `delete.retention.ms`: how long tombstones are kept.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.min.compaction.lag.ms", 0, at_least(0), MEDIUM,
         "Default of `min.compaction.lag.ms`: how long a record is safe from compaction.", CLUSTER_WIDE, acted_on=True),
    Long("log.cleaner.max.compaction.lag.ms", LONG_MAX, at_least(1), MEDIUM,
         "Default of `max.compaction.lag.ms`: when a record must have been compacted.", CLUSTER_WIDE, acted_on=True),
)
