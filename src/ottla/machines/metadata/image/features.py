"""Feature levels (KIP-584): what a cluster has agreed to use, and what this version can.

`metadata.version` says which versions of records may be written; the other features switch protocols on. Levels are
raised by an operator when every node supports them, so that a rolling upgrade never writes what a node cannot read.
`kraft.version` is the odd one: it belongs to the Raft layer, and is kept in control records and not in the image.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.metadata_errors import UnsupportedMetadataError
from ottla.wire.messages import FeatureLevelRecord

METADATA_VERSION: Final = "metadata.version"
KRAFT_VERSION: Final = "kraft.version"
GROUP_VERSION: Final = "group.version"
TRANSACTION_VERSION: Final = "transaction.version"
ELIGIBLE_LEADER_REPLICAS_VERSION: Final = "eligible.leader.replicas.version"
SHARE_VERSION: Final = "share.version"
STREAMS_VERSION: Final = "streams.version"


class Range(NamedTuple):
    lowest: int
    highest: int

    def __contains__(self, level: object) -> bool:
        return isinstance(level, int) and self.lowest <= level <= self.highest


class Feature(NamedTuple):
    supported: Range
    since: tuple[int, ...]
    """For each level, the metadata.version from which a newly formatted cluster has it."""
    needs_metadata_version: int = 0
    """The metadata.version below which the feature cannot be switched on at all."""
    is_served: bool = True
    """Whether nodes of ours do what it switches on."""


NOT_SUPPORTED: Final = Range(0, 0)

OLDEST_METADATA_VERSION: Final = 7
LATEST_METADATA_VERSION: Final = 30

FEATURES: Final[Mapping[str, Feature]] = {
    METADATA_VERSION: Feature(Range(OLDEST_METADATA_VERSION, LATEST_METADATA_VERSION), ()),
    KRAFT_VERSION: Feature(Range(0, 1), (7, 21)),
    TRANSACTION_VERSION: Feature(Range(0, 2), (7, 24, 24)),
    GROUP_VERSION: Feature(Range(0, 1), (7, 22)),
    ELIGIBLE_LEADER_REPLICAS_VERSION: Feature(Range(0, 1), (7, 26), needs_metadata_version=23),
    SHARE_VERSION: Feature(Range(0, 1), (7, 28), is_served=False),
    STREAMS_VERSION: Feature(Range(0, 1), (7, 29), is_served=False),
}
"""Everything that Apache Kafka 4.3 knows, with its ranges."""

SERVED: Final = {name: feature.supported for name, feature in FEATURES.items() if feature.is_served}
"""What nodes of ours say that they support. Other features are at level 0 wherever one of them is (decision 15)."""


class MetadataVersion(NamedTuple):
    name: str
    changes_records: bool
    """Brought new records or fields: going down across it would lose metadata."""


METADATA_VERSIONS: Final[Mapping[int, MetadataVersion]] = {
    7: MetadataVersion("3.3-IV3", True),
    8: MetadataVersion("3.4-IV0", True),
    9: MetadataVersion("3.5-IV0", False),
    10: MetadataVersion("3.5-IV1", False),
    11: MetadataVersion("3.5-IV2", True),
    12: MetadataVersion("3.6-IV0", False),
    13: MetadataVersion("3.6-IV1", True),
    14: MetadataVersion("3.6-IV2", True),
    15: MetadataVersion("3.7-IV0", True),
    16: MetadataVersion("3.7-IV1", False),
    17: MetadataVersion("3.7-IV2", True),
    18: MetadataVersion("3.7-IV3", False),
    19: MetadataVersion("3.7-IV4", False),
    20: MetadataVersion("3.8-IV0", False),
    21: MetadataVersion("3.9-IV0", False),
    22: MetadataVersion("4.0-IV0", False),
    23: MetadataVersion("4.0-IV1", True),
    24: MetadataVersion("4.0-IV2", False),
    25: MetadataVersion("4.0-IV3", False),
    26: MetadataVersion("4.1-IV0", False),
    27: MetadataVersion("4.1-IV1", False),
    28: MetadataVersion("4.2-IV0", False),
    29: MetadataVersion("4.2-IV1", False),
    30: MetadataVersion("4.3-IV0", True),
}


def default_level(feature: str, metadata_version: int) -> int:
    """The level that Apache Kafka gives a feature in a cluster that is formatted at `metadata_version`."""
    if feature == METADATA_VERSION:
        return metadata_version
    return max(level for level, since in enumerate(FEATURES[feature].since) if since <= metadata_version)


NO_EPOCH_BUMP_ON_SHRINK: Final = 12
"""The metadata.version from which a smaller ISR needs no new leader epoch."""


def has_scram(metadata_version: int) -> bool:
    return metadata_version >= 11


def has_metadata_transactions(metadata_version: int) -> bool:
    return metadata_version >= 13


def has_delegation_tokens(metadata_version: int) -> bool:
    return metadata_version >= 14


def has_controller_registration(metadata_version: int) -> bool:
    return metadata_version >= 15


def has_directory_assignment(metadata_version: int) -> bool:
    return metadata_version >= 17


def has_eligible_leaders(metadata_version: int) -> bool:
    """Records can say which replicas are eligible to lead (KIP-966); whether any are found is a feature of its own."""
    return metadata_version >= 23


def has_cordoned_directories(metadata_version: int) -> bool:
    return metadata_version >= 30


def register_broker_version(metadata_version: int) -> int:
    """Version 2 brought ZooKeeper migration, 3 log directories (KIP-858), 4 cordoned ones (KIP-1066)."""
    return 1 + sum(metadata_version >= since for since in (8, 17, 30))


def partition_version(metadata_version: int) -> int:
    """Of PartitionRecord and PartitionChangeRecord alike: 1 brought log directories, 2 the ELR (KIP-966)."""
    return sum(metadata_version >= since for since in (17, 23))


class FeaturesImage:
    """The finalized levels. A feature that is not listed has level 0."""

    __slots__ = ("levels",)

    def __init__(self) -> None:
        self.levels: dict[str, int] = {}

    @property
    def metadata_version(self) -> int:
        """0 until the log says: a cluster that was never bootstrapped."""
        return self.levels.get(METADATA_VERSION, 0)

    @property
    def is_elr_enabled(self) -> bool:
        return self.levels.get(ELIGIBLE_LEADER_REPLICAS_VERSION, 0) > 0

    def level(self, feature: str) -> int:
        return self.levels.get(feature, 0)

    def replay(self, record: FeatureLevelRecord, delta: MetadataDelta) -> None:
        if record.name == KRAFT_VERSION:
            return
        if record.name == METADATA_VERSION and record.feature_level not in FEATURES[METADATA_VERSION].supported:
            lowest, highest = FEATURES[METADATA_VERSION].supported
            raise UnsupportedMetadataError(
                f"the log is at metadata.version {record.feature_level}; this version reads {lowest} to {highest}"
            )
        delta.features.add(record.name)
        if record.feature_level:
            self.levels[record.name] = record.feature_level
        else:
            self.levels.pop(record.name, None)

    def records(self) -> Iterator[FeatureLevelRecord]:
        """`metadata.version` comes first: it may decide how what follows is read."""
        for name in sorted(self.levels, key=lambda name: (name != METADATA_VERSION, name)):
            yield FeatureLevelRecord(name=name, feature_level=self.levels[name])

    def copy(self) -> "FeaturesImage":
        copied = FeaturesImage()
        copied.levels = dict(self.levels)
        return copied
