"""Everything the `__cluster_metadata` log says, as it stands after some record.

`replay` is the only thing that changes an image, until a snapshot of the leader's takes its place whole (`become`). A
controller replays what it decided as soon as it is appended, so that its next decision builds on it; a broker replays
what is committed, and acts on the delta. Both get the same image, since there is nothing else to make one from.
`snapshot_records` writes the image as the shortest log that leads to it, in the order in which Apache Kafka writes its
snapshots.

A metadata transaction (KIP-868) is a group of records too large for one batch: what stands between its begin and its
end waits, and happens at the end or, aborted, never. A snapshot is never taken inside one.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from ottla.machines.decision import VersionedRecord
from ottla.machines.metadata.image import features
from ottla.machines.metadata.image.brokers_image import BrokersImage
from ottla.machines.metadata.image.configs_image import ConfigsImage
from ottla.machines.metadata.image.delta import MetadataDelta
from ottla.machines.metadata.image.features import FeaturesImage
from ottla.machines.metadata.image.metadata_errors import CorruptMetadataError
from ottla.machines.metadata.image.producer_ids_image import ProducerIdsImage
from ottla.machines.metadata.image.quotas_image import QuotasImage
from ottla.machines.metadata.image.security_image import SecurityImage
from ottla.machines.metadata.image.topics_image import TopicsImage
from ottla.wire.message import Message
from ottla.wire.messages import RemoveTopicRecord

_RECORDS_OF_A_DELTA: Final = 1000
"""A delta costs as much as replaying a record; one of everything would be as large as the image."""


class MetadataImage:
    __slots__ = (
        "_replayers",
        "_transaction",
        "brokers",
        "configs",
        "features",
        "producer_ids",
        "quotas",
        "security",
        "topics",
    )

    def __init__(self) -> None:
        self.features = FeaturesImage()
        self.brokers = BrokersImage()
        self.topics = TopicsImage()
        self.configs = ConfigsImage()
        self.quotas = QuotasImage()
        self.producer_ids = ProducerIdsImage()
        self.security = SecurityImage()
        self._transaction: list[Message] | None = None
        self._replayers = self._bind_replayers()

    @property
    def is_bootstrapped(self) -> bool:
        """The log has its first records: those that formatting the cluster left, with the metadata.version."""
        return self.features.metadata_version > 0

    @property
    def in_transaction(self) -> bool:
        """A transaction was begun and not ended. A new controller aborts it: the controller that began it is gone."""
        return self._transaction is not None

    def replay(self, record: Message, delta: MetadataDelta | None = None) -> None:
        """Applies one record, and tells `delta` what changed. Raises a `StorageError` for one that does not follow."""
        name = type(record).__name__
        if name in _TRANSACTION_MARKERS:
            self._replay_marker(name, MetadataDelta() if delta is None else delta)
        elif self._transaction is not None:
            self._transaction.append(record)
        else:
            self._apply(record, MetadataDelta() if delta is None else delta)

    def replay_all(self, records: Iterable[Message]) -> None:
        """Applies those of a snapshot, where nobody asks what each of them changed."""
        delta = MetadataDelta()
        for number, record in enumerate(records):
            if number % _RECORDS_OF_A_DELTA == 0:
                delta = MetadataDelta()
            self.replay(record, delta)

    def snapshot_records(self) -> Iterator[VersionedRecord]:
        """The whole image again, in versions that the cluster's metadata.version allows."""
        assert not self.in_transaction, "a snapshot inside a transaction would lose its beginning"
        level = self.features.metadata_version
        versions = {
            "RegisterBrokerRecord": features.register_broker_version(level),
            "PartitionRecord": features.partition_version(level),
        }
        for record in self._all_records(level):
            yield VersionedRecord(record, versions.get(type(record).__name__, 0))

    def copy(self) -> "MetadataImage":
        """An image of its own that shares what never changes."""
        copied = MetadataImage()
        for part in _PARTS:
            setattr(copied, part, getattr(self, part).copy())
        copied._transaction = None if self._transaction is None else list(self._transaction)
        copied._replayers = copied._bind_replayers()
        return copied

    def become(self, other: "MetadataImage") -> None:
        """Takes over all that another says, and the other is used no more: holders of this image continue with it."""
        for part in _PARTS:
            setattr(self, part, getattr(other, part))
        self._transaction, self._replayers = other._transaction, self._bind_replayers()

    def _all_records(self, level: int) -> Iterator[Message]:
        yield from self.features.records()
        yield from self.brokers.records(level)
        if features.has_controller_registration(level):
            yield from self.brokers.controller_records()
        yield from self.topics.records(
            with_elr=features.has_eligible_leaders(level), with_directories=features.has_directory_assignment(level)
        )
        yield from self.configs.records()
        yield from self.quotas.records()
        yield from self.producer_ids.records()
        yield from self.security.records()

    def _replay_marker(self, name: str, delta: MetadataDelta) -> None:
        if (name == "BeginTransactionRecord") == self.in_transaction:
            state = "inside" if self.in_transaction else "outside"
            raise CorruptMetadataError(f"a {name} {state} a transaction")
        records, self._transaction = self._transaction, [] if name == "BeginTransactionRecord" else None
        if records is not None and name == "EndTransactionRecord":
            for record in records:
                self._apply(record, delta)

    def _apply(self, record: Message, delta: MetadataDelta) -> None:
        replay = self._replayers.get(type(record).__name__)
        if replay is None:
            raise CorruptMetadataError(f"{type(record).__name__} is no metadata record")
        replay(record, delta)

    def _replay_remove_topic(self, record: RemoveTopicRecord, delta: MetadataDelta) -> None:
        topic = self.topics.replay_remove(record, delta)
        self.configs.forget_topic(topic.name, delta)

    def _bind_replayers(self) -> dict[str, Callable[..., None]]:
        """Every record that changes an image, and what it changes."""
        return {
            "FeatureLevelRecord": self.features.replay,
            "RegisterBrokerRecord": self.brokers.replay_register,
            "UnregisterBrokerRecord": self.brokers.replay_unregister,
            "FenceBrokerRecord": self.brokers.replay_fence,
            "UnfenceBrokerRecord": self.brokers.replay_fence,
            "BrokerRegistrationChangeRecord": self.brokers.replay_change,
            "RegisterControllerRecord": self.brokers.replay_controller,
            "TopicRecord": self.topics.replay_topic,
            "PartitionRecord": self.topics.replay_partition,
            "PartitionChangeRecord": self.topics.replay_change,
            "RemoveTopicRecord": self._replay_remove_topic,
            "ClearElrRecord": self.topics.replay_clear_elr,
            "ConfigRecord": self.configs.replay,
            "ClientQuotaRecord": self.quotas.replay,
            "ProducerIdsRecord": self.producer_ids.replay,
            "AccessControlEntryRecord": self.security.replay_acl,
            "RemoveAccessControlEntryRecord": self.security.replay_remove_acl,
            "UserScramCredentialRecord": self.security.replay_scram,
            "RemoveUserScramCredentialRecord": self.security.replay_remove_scram,
            "DelegationTokenRecord": self.security.replay_token,
            "RemoveDelegationTokenRecord": self.security.replay_remove_token,
            "NoOpRecord": _changes_nothing,
            "ZkMigrationStateRecord": _changes_nothing,  # of a migration that is over: Kafka 4 has no ZooKeeper
        }


_PARTS = ("features", "brokers", "topics", "configs", "quotas", "producer_ids", "security")
_TRANSACTION_MARKERS = frozenset({"BeginTransactionRecord", "EndTransactionRecord", "AbortTransactionRecord"})


def _changes_nothing(record: Message, delta: MetadataDelta) -> None:
    pass
