"""What is given to an admin and what it gives back, by name: `from ottla.admin import NewTopic`."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ottla.client.admin.access.acls import AclBinding as AclBinding
    from ottla.client.admin.access.acls import AclFilter as AclFilter
    from ottla.client.admin.access.acls import AclPermission as AclPermission
    from ottla.client.admin.access.acls import AclResourceType as AclResourceType
    from ottla.client.admin.access.acls import DeletedAcl as DeletedAcl
    from ottla.client.admin.access.acls import PatternType as PatternType
    from ottla.client.admin.access.quotas import ANY_NAME as ANY_NAME
    from ottla.client.admin.access.quotas import QuotaEntity as QuotaEntity
    from ottla.client.admin.access.scram import Password as Password
    from ottla.client.admin.access.scram import ScramCredential as ScramCredential
    from ottla.client.admin.access.scram import ScramDeletion as ScramDeletion
    from ottla.client.admin.access.scram import ScramMechanism as ScramMechanism
    from ottla.client.admin.access.scram import ScramUpsertion as ScramUpsertion
    from ottla.client.admin.access.tokens import DelegationToken as DelegationToken
    from ottla.client.admin.cluster_nodes import ClusterDescription as ClusterDescription
    from ottla.client.admin.configs import AlterConfig as AlterConfig
    from ottla.client.admin.configs import AlterOperation as AlterOperation
    from ottla.client.admin.configs import ConfigEntry as ConfigEntry
    from ottla.client.admin.configs import ConfigResource as ConfigResource
    from ottla.client.admin.configs import ConfigSource as ConfigSource
    from ottla.client.admin.configs import ConfigSynonym as ConfigSynonym
    from ottla.client.admin.configs import ConfigType as ConfigType
    from ottla.client.admin.configs import ResourceType as ResourceType
    from ottla.client.admin.feature_levels import Features as Features
    from ottla.client.admin.feature_levels import FeatureUpdate as FeatureUpdate
    from ottla.client.admin.feature_levels import LevelRange as LevelRange
    from ottla.client.admin.feature_levels import UpgradeType as UpgradeType
    from ottla.client.admin.groups.describing import ClassicGroupDescription as ClassicGroupDescription
    from ottla.client.admin.groups.describing import ConsumerGroupDescription as ConsumerGroupDescription
    from ottla.client.admin.groups.describing import GroupMember as GroupMember
    from ottla.client.admin.groups.listing import GroupListing as GroupListing
    from ottla.client.admin.groups.listing import GroupState as GroupState
    from ottla.client.admin.groups.listing import GroupType as GroupType
    from ottla.client.admin.groups.removal import MemberToRemove as MemberToRemove
    from ottla.client.admin.groups.share import ShareGroupDescription as ShareGroupDescription
    from ottla.client.admin.groups.share import ShareGroupMember as ShareGroupMember
    from ottla.client.admin.groups.share import SharePartitionOffset as SharePartitionOffset
    from ottla.client.admin.groups.streams import InternalTopic as InternalTopic
    from ottla.client.admin.groups.streams import StreamsGroupDescription as StreamsGroupDescription
    from ottla.client.admin.groups.streams import StreamsMember as StreamsMember
    from ottla.client.admin.groups.streams import StreamsTask as StreamsTask
    from ottla.client.admin.groups.streams import StreamsTasks as StreamsTasks
    from ottla.client.admin.groups.streams import Subtopology as Subtopology
    from ottla.client.admin.log_dirs import LogDir as LogDir
    from ottla.client.admin.log_dirs import LogDirReplica as LogDirReplica
    from ottla.client.admin.log_dirs import ReplicaPlace as ReplicaPlace
    from ottla.client.admin.log_dirs import TopicPartitionReplica as TopicPartitionReplica
    from ottla.client.admin.operations import AclOperation as AclOperation
    from ottla.client.admin.quorum_voters import QuorumInfo as QuorumInfo
    from ottla.client.admin.quorum_voters import QuorumReplica as QuorumReplica
    from ottla.client.admin.quorum_voters import VoterEndpoint as VoterEndpoint
    from ottla.client.admin.records import HIGH_WATERMARK as HIGH_WATERMARK
    from ottla.client.admin.records import IsolationLevel as IsolationLevel
    from ottla.client.admin.records import ListedOffset as ListedOffset
    from ottla.client.admin.records import OffsetSpec as OffsetSpec
    from ottla.client.admin.replicas import ElectionType as ElectionType
    from ottla.client.admin.replicas import PartitionReassignment as PartitionReassignment
    from ottla.client.admin.results import Results as Results
    from ottla.client.admin.results import UnnoticedErrors as UnnoticedErrors
    from ottla.client.admin.topics import CreatedTopic as CreatedTopic
    from ottla.client.admin.topics import NewPartitions as NewPartitions
    from ottla.client.admin.topics import NewTopic as NewTopic
    from ottla.client.admin.topics import PartitionDescription as PartitionDescription
    from ottla.client.admin.topics import TopicDescription as TopicDescription
    from ottla.client.admin.topics import TopicListing as TopicListing
    from ottla.client.admin.transaction_states import AbortTransaction as AbortTransaction
    from ottla.client.admin.transaction_states import ProducerIdAndEpoch as ProducerIdAndEpoch
    from ottla.client.admin.transaction_states import ProducerState as ProducerState
    from ottla.client.admin.transaction_states import TransactionDescription as TransactionDescription
    from ottla.client.admin.transaction_states import TransactionListing as TransactionListing
    from ottla.client.admin.transaction_states import TransactionState as TransactionState

_PLACES = {
    "access.acls": "AclBinding AclFilter AclPermission AclResourceType DeletedAcl PatternType",
    "access.quotas": "ANY_NAME QuotaEntity",
    "access.scram": "Password ScramCredential ScramDeletion ScramMechanism ScramUpsertion",
    "access.tokens": "DelegationToken",
    "cluster_nodes": "ClusterDescription",
    "configs": (
        "AlterConfig AlterOperation ConfigEntry ConfigResource ConfigSource ConfigSynonym ConfigType ResourceType"
    ),
    "feature_levels": "FeatureUpdate Features LevelRange UpgradeType",
    "groups.describing": "ClassicGroupDescription ConsumerGroupDescription GroupMember",
    "groups.listing": "GroupListing GroupState GroupType",
    "groups.removal": "MemberToRemove",
    "groups.share": "ShareGroupDescription ShareGroupMember SharePartitionOffset",
    "groups.streams": "InternalTopic StreamsGroupDescription StreamsMember StreamsTask StreamsTasks Subtopology",
    "log_dirs": "LogDir LogDirReplica ReplicaPlace TopicPartitionReplica",
    "operations": "AclOperation",
    "quorum_voters": "QuorumInfo QuorumReplica VoterEndpoint",
    "records": "HIGH_WATERMARK IsolationLevel ListedOffset OffsetSpec",
    "replicas": "ElectionType PartitionReassignment",
    "results": "Results UnnoticedErrors",
    "topics": "CreatedTopic NewPartitions NewTopic PartitionDescription TopicDescription TopicListing",
    "transaction_states": (
        "AbortTransaction ProducerIdAndEpoch ProducerState TransactionDescription TransactionListing TransactionState"
    ),
}
"""The modules, and the names in each. They are imported when one of their names is asked for."""

_PUBLIC = {name: f"ottla.client.admin.{module}" for module, names in _PLACES.items() for name in names.split()}


def __getattr__(name: str) -> Any:
    if name not in _PUBLIC:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(_PUBLIC[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})
