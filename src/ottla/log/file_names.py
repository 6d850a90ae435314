"""How the data directory names things, exactly as Apache Kafka does.

A partition's directory is `<topic>-<partition>`; while it is being deleted `<topic>-<partition>.<32 hex>-delete`,
while it moves between disks `….<32 hex>-future`, and when the cluster no longer knows it `….<32 hex>-stray`.
A segment's files are its base offset in 20 digits and a suffix; `.deleted`, `.cleaned` and `.swap` are
appended to that while a file is on its way out or in. `.cut` is ours alone, and neither system looks at it: a segment
that recovery could not make part of the log, kept for a person to look at.
"""

from ottla.base.ids import TopicPartition

LOG = ".log"
INDEX = ".index"
TIME_INDEX = ".timeindex"
TRANSACTION_INDEX = ".txnindex"
PRODUCER_SNAPSHOT = ".snapshot"
SEGMENT_SUFFIXES = (LOG, INDEX, TIME_INDEX, TRANSACTION_INDEX)

DELETED = ".deleted"
CLEANED = ".cleaned"
SWAP = ".swap"
CUT = ".cut"

DELETE_DIR = "-delete"
FUTURE_DIR = "-future"
STRAY_DIR = "-stray"

CLEAN_SHUTDOWN = ".kafka_cleanshutdown"
LOCK = ".lock"
META_PROPERTIES = "meta.properties"
PARTITION_METADATA = "partition.metadata"
LEADER_EPOCHS = "leader-epoch-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
LOG_START_OFFSETS = "log-start-offset-checkpoint"
CLEANER_OFFSETS = "cleaner-offset-checkpoint"

CLUSTER_METADATA_TOPIC = "__cluster_metadata"

_MAX_DIR_NAME = 255


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def offset_of(name: str, suffix: str) -> int | None:
    """The offset in a segment file's name, or None if `name` is not one with exactly this suffix."""
    digits = name[: -len(suffix)]
    return int(digits) if name.endswith(suffix) and len(digits) == 20 and digits.isdecimal() else None


def leading_offset(name: str) -> int | None:
    """The offset that a segment file's name begins with, whatever its suffixes."""
    digits = name[:20]
    return int(digits) if len(digits) == 20 and digits.isdecimal() and name[20:21] == "." else None


def partition_dir(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def marked_dir(partition: TopicPartition, unique: str, mark: str) -> str:
    """A directory name that carries `mark`; long topic names are cut so that file systems accept it."""
    tail = f"-{partition.partition}.{unique}{mark}"
    return partition.topic[: _MAX_DIR_NAME - len(tail)] + tail


def parse_partition_dir(name: str) -> tuple[TopicPartition, str] | None:
    """A directory's partition and mark ("" for a live one); None for a directory that is not a partition's."""
    for mark in (DELETE_DIR, FUTURE_DIR, STRAY_DIR):
        stem, dot, unique = name.removesuffix(mark).rpartition(".")
        if name.endswith(mark) and dot and len(unique) == 32:
            return _marked(stem, mark)
    return _marked(name, "")


def _marked(stem: str, mark: str) -> tuple[TopicPartition, str] | None:
    topic, dash, number = stem.rpartition("-")
    if not (topic and dash and number.isdecimal()):
        return None
    return TopicPartition(topic, int(number)), mark
