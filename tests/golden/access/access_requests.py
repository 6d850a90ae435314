"""One request of every API, about resources that begin with `mine` and others that do not.

What a request would change if it were allowed is nothing of importance: it is only tried out (`validate_only`), or
wrong in a way that is found once it was allowed. So the requests can be asked in any order, and again.
"""

from collections.abc import Callable
from typing import Any

from ottla.base.ids import Uuid
from ottla.records.builder import BatchBuilder
from ottla.wire import messages as m
from ottla.wire.apis import ApiKey

MINE, OTHER = "mine", "other"
GONE, OTHER_GONE = "mine-gone", "other-gone"
NAMES = (MINE, OTHER, GONE, OTHER_GONE)
NO_CLUSTER = "no-such-cluster-0000"
AN_ID = Uuid(b"a directory's id")
A_FINE_TIME_MS = 1_700_000_000_000

TopicIds = dict[str, Uuid]
Make = Callable[[int, TopicIds], Any]


def batch(**fields: Any) -> bytes:
    builder = BatchBuilder(**fields)
    builder.append(A_FINE_TIME_MS, None, b"v")
    return bytes(builder.build())


def a_produce(version: int, ids: TopicIds, transactional_id: str | None = None) -> Any:
    fields = {} if transactional_id is None else {"producer_id": 1, "producer_epoch": 0, "base_sequence": 0}
    records = batch(transactional=transactional_id is not None, **fields)
    return m.ProduceRequest(
        acks=1,
        timeout_ms=1000,
        transactional_id=transactional_id,
        topic_data=[
            m.ProduceRequest.TopicProduceData(
                **({"topic_id": ids[name]} if version >= 13 else {"name": name}),
                partition_data=[m.ProduceRequest.PartitionProduceData(index=0, records=records)],
            )
            for name in (MINE, OTHER)
        ],
    )


def a_fetch(version: int, ids: TopicIds, *, replica_id: int = -1, session_epoch: int = -1) -> Any:
    state = {"replica_state": m.FetchRequest.ReplicaState(replica_id=replica_id, replica_epoch=-1)}
    return m.FetchRequest(
        **(state if version >= 15 else {"replica_id": replica_id}),
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1000,
        session_epoch=session_epoch,
        topics=[
            m.FetchRequest.FetchTopic(
                **({"topic_id": ids[name]} if version >= 13 else {"topic": name}),
                partitions=[m.FetchRequest.FetchPartition(partition=0, partition_max_bytes=1000)],
            )
            for name in (MINE, OTHER)
        ],
    )


def metadata_of_names(version: int, ids: TopicIds) -> Any:
    names = [m.MetadataRequest.MetadataRequestTopic(name=name) for name in NAMES]
    return m.MetadataRequest(
        topics=names,
        **({"allow_auto_topic_creation": False} if version >= 4 else {}),
        **({"include_topic_authorized_operations": True} if version >= 8 else {}),
        **({"include_cluster_authorized_operations": True} if 8 <= version <= 10 else {}),
    )


def metadata_of_one_hidden(version: int, ids: TopicIds) -> Any:
    return m.MetadataRequest(topics=[m.MetadataRequest.MetadataRequestTopic(name=OTHER)])


def metadata_of_all(version: int, ids: TopicIds) -> Any:
    return m.MetadataRequest(topics=[] if version == 0 else None)


def metadata_of_ids(version: int, ids: TopicIds) -> Any:
    topic = m.MetadataRequest.MetadataRequestTopic
    return m.MetadataRequest(topics=[topic(name=None, topic_id=ids[name]) for name in (MINE, OTHER)])


def offset_commit(version: int, ids: TopicIds) -> Any:
    topic, partition = (
        m.OffsetCommitRequest.OffsetCommitRequestTopic,
        m.OffsetCommitRequest.OffsetCommitRequestPartition,
    )
    return m.OffsetCommitRequest(
        group_id=MINE,
        generation_id_or_member_epoch=-1,
        topics=[
            topic(
                **({"topic_id": ids[name]} if version >= 10 else {"name": name}),
                partitions=[partition(partition_index=0, committed_offset=0)],
            )
            for name in (MINE, OTHER)
        ],
    )


def offset_fetch(version: int, ids: TopicIds, *, all_topics: bool = False) -> Any:
    if version < 8:
        old = m.OffsetFetchRequest.OffsetFetchRequestTopic
        topics = None if all_topics else [old(name=name, partition_indexes=[0]) for name in (MINE, OTHER)]
        return m.OffsetFetchRequest(group_id=MINE, topics=topics)
    new, group = m.OffsetFetchRequest.OffsetFetchRequestTopics, m.OffsetFetchRequest.OffsetFetchRequestGroup

    def topics_of_group() -> Any:
        if all_topics:
            return None
        return [
            new(**({"topic_id": ids[name]} if version >= 10 else {"name": name}), partition_indexes=[0])
            for name in (MINE, OTHER)
        ]

    return m.OffsetFetchRequest(
        groups=[group(group_id=name, member_epoch=-1, topics=topics_of_group()) for name in (MINE, OTHER)]
    )


def find_coordinator(version: int, key_type: int) -> Any:
    keys = {"coordinator_keys": [MINE, OTHER]} if version >= 4 else {"key": MINE}
    return m.FindCoordinatorRequest(**keys, **({"key_type": key_type} if version >= 1 else {}))


def add_partitions(version: int, ids: TopicIds, *names: str) -> Any:
    topic = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    topics = [topic(name=name, partitions=[0]) for name in names or (MINE, OTHER)]
    if version < 4:
        return m.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=MINE,
            v3_and_below_producer_id=77,
            v3_and_below_producer_epoch=0,
            v3_and_below_topics=topics,
        )
    transaction = m.AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
    return m.AddPartitionsToTxnRequest(
        transactions=[
            transaction(transactional_id=MINE, producer_id=77, producer_epoch=0, verify_only=True, topics=topics)
        ]
    )


def delete_topics(version: int, ids: TopicIds) -> Any:
    if version < 6:
        return m.DeleteTopicsRequest(topic_names=[GONE, OTHER_GONE], timeout_ms=1000)
    state = m.DeleteTopicsRequest.DeleteTopicState
    return m.DeleteTopicsRequest(topics=[state(name=GONE), state(name=OTHER_GONE)], timeout_ms=1000)


def delete_a_hidden_topic_by_id(version: int, ids: TopicIds) -> Any:
    state = m.DeleteTopicsRequest.DeleteTopicState
    return m.DeleteTopicsRequest(topics=[state(name=None, topic_id=ids[OTHER])], timeout_ms=1000)


def create_topics(version: int, ids: TopicIds) -> Any:
    topic = m.CreateTopicsRequest.CreatableTopic
    return m.CreateTopicsRequest(
        topics=[topic(name=name, num_partitions=1, replication_factor=1) for name in (GONE, OTHER_GONE)],
        timeout_ms=1000,
        validate_only=True,
    )


CONFIG_RESOURCES = ((2, MINE), (2, OTHER), (4, "1"), (16, "metrics"), (32, MINE), (32, OTHER))


def configs(request: Any, listed: str, **fields: Any) -> Any:
    """Of topics, a broker, client metrics and groups: version 0 knows of these too."""
    resource = getattr(request, listed)
    return request(
        resources=[resource(resource_type=kind, resource_name=name, **fields) for kind, name in CONFIG_RESOURCES],
        **({"validate_only": True} if "Alter" in request.__name__ else {}),
    )


def topics_of(request: Any, kind: str, names: tuple[str, ...] = (MINE, OTHER), **fields: Any) -> Any:
    """Entries of a request that are named, and have the same fields else."""
    return [getattr(request, kind)(name=name, **fields) for name in names]


def _metadata_partition(request: Any, **fields: Any) -> Any:
    """The one partition of the metadata log, in a request of replicas."""
    partition = request.PartitionData(partition_index=0, **fields)
    return [request.TopicData(topic_name="__cluster_metadata", partitions=[partition])]


BROKER_REQUESTS: dict[str, tuple[ApiKey, Make]] = {
    "produce": (ApiKey.PRODUCE, a_produce),
    "produce in my transaction": (ApiKey.PRODUCE, lambda v, ids: a_produce(v, ids, MINE)),
    "produce in another's transaction": (ApiKey.PRODUCE, lambda v, ids: a_produce(v, ids, OTHER)),
    "fetch": (ApiKey.FETCH, a_fetch),
    "fetch in a session": (ApiKey.FETCH, lambda v, ids: a_fetch(v, ids, session_epoch=0 if v >= 7 else -1)),
    "fetch as a replica": (ApiKey.FETCH, lambda v, ids: a_fetch(v, ids, replica_id=5)),
    "list offsets": (
        ApiKey.LIST_OFFSETS,
        lambda v, ids: m.ListOffsetsRequest(
            replica_id=-1,
            topics=topics_of(
                m.ListOffsetsRequest,
                "ListOffsetsTopic",
                partitions=[m.ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=-1)],
            ),
        ),
    ),
    "offset for leader epoch": (
        ApiKey.OFFSET_FOR_LEADER_EPOCH,
        lambda v, ids: m.OffsetForLeaderEpochRequest(
            topics=[
                m.OffsetForLeaderEpochRequest.OffsetForLeaderTopic(
                    topic=name, partitions=[m.OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=0)]
                )
                for name in (MINE, OTHER)
            ]
        ),
    ),
    "delete records": (
        ApiKey.DELETE_RECORDS,
        lambda v, ids: m.DeleteRecordsRequest(
            timeout_ms=1000,
            topics=topics_of(
                m.DeleteRecordsRequest,
                "DeleteRecordsTopic",
                partitions=[m.DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=0)],
            ),
        ),
    ),
    "init producer id": (ApiKey.INIT_PRODUCER_ID, lambda v, ids: m.InitProducerIdRequest(transactional_id=None)),
    "init my transactional id": (
        ApiKey.INIT_PRODUCER_ID,
        lambda v, ids: m.InitProducerIdRequest(transactional_id=MINE, transaction_timeout_ms=-5),
    ),
    "init another's transactional id": (
        ApiKey.INIT_PRODUCER_ID,
        lambda v, ids: m.InitProducerIdRequest(transactional_id=OTHER, transaction_timeout_ms=-5),
    ),
    "describe producers": (
        ApiKey.DESCRIBE_PRODUCERS,
        lambda v, ids: m.DescribeProducersRequest(
            topics=topics_of(m.DescribeProducersRequest, "TopicRequest", partition_indexes=[0])
        ),
    ),
    "add partitions to txn": (ApiKey.ADD_PARTITIONS_TO_TXN, add_partitions),
    "add my partitions to txn": (ApiKey.ADD_PARTITIONS_TO_TXN, lambda v, ids: add_partitions(v, ids, MINE)),
    "add offsets to txn": (
        ApiKey.ADD_OFFSETS_TO_TXN,
        lambda v, ids: m.AddOffsetsToTxnRequest(transactional_id=MINE, producer_id=77, producer_epoch=0, group_id=MINE),
    ),
    "end txn": (
        ApiKey.END_TXN,
        lambda v, ids: m.EndTxnRequest(transactional_id=MINE, producer_id=77, producer_epoch=0, committed=True),
    ),
    "txn offset commit": (
        ApiKey.TXN_OFFSET_COMMIT,
        lambda v, ids: m.TxnOffsetCommitRequest(
            transactional_id=MINE,
            group_id=MINE,
            producer_id=77,
            producer_epoch=0,
            topics=topics_of(
                m.TxnOffsetCommitRequest,
                "TxnOffsetCommitRequestTopic",
                partitions=[
                    m.TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=0)
                ],
            ),
        ),
    ),
    "write txn markers": (
        ApiKey.WRITE_TXN_MARKERS,
        lambda v, ids: m.WriteTxnMarkersRequest(
            markers=[
                m.WriteTxnMarkersRequest.WritableTxnMarker(
                    producer_id=77,
                    topics=topics_of(
                        m.WriteTxnMarkersRequest, "WritableTxnMarkerTopic", (OTHER_GONE,), partition_indexes=[0]
                    ),
                )
            ]
        ),
    ),
    "describe transactions": (
        ApiKey.DESCRIBE_TRANSACTIONS,
        lambda v, ids: m.DescribeTransactionsRequest(transactional_ids=[MINE, OTHER]),
    ),
    "list transactions": (ApiKey.LIST_TRANSACTIONS, lambda v, ids: m.ListTransactionsRequest()),
    "find group": (ApiKey.FIND_COORDINATOR, lambda v, ids: find_coordinator(v, 0)),
    "find transaction": (ApiKey.FIND_COORDINATOR, lambda v, ids: find_coordinator(v, 1 if v else 0)),
    "join group": (
        ApiKey.JOIN_GROUP,
        lambda v, ids: m.JoinGroupRequest(group_id=MINE, session_timeout_ms=0, protocol_type="consumer"),
    ),
    "sync group": (
        ApiKey.SYNC_GROUP,
        lambda v, ids: m.SyncGroupRequest(
            group_id=MINE,
            member_id="nobody",
            **({"protocol_type": "consumer", "protocol_name": "range"} if v >= 5 else {}),
        ),
    ),
    "heartbeat": (ApiKey.HEARTBEAT, lambda v, ids: m.HeartbeatRequest(group_id=MINE, member_id="nobody")),
    "leave group": (
        ApiKey.LEAVE_GROUP,
        lambda v, ids: m.LeaveGroupRequest(
            group_id=MINE,
            **(
                {"member_id": "nobody"}
                if v < 3
                else {"members": [m.LeaveGroupRequest.MemberIdentity(member_id="nobody")]}
            ),
        ),
    ),
    "offset commit": (ApiKey.OFFSET_COMMIT, offset_commit),
    "offset fetch": (ApiKey.OFFSET_FETCH, offset_fetch),
    "offset fetch of all topics": (ApiKey.OFFSET_FETCH, lambda v, ids: offset_fetch(v, ids, all_topics=v >= 2)),
    "offset delete": (
        ApiKey.OFFSET_DELETE,
        lambda v, ids: m.OffsetDeleteRequest(
            group_id=MINE,
            topics=topics_of(
                m.OffsetDeleteRequest,
                "OffsetDeleteRequestTopic",
                (GONE, OTHER_GONE),
                partitions=[m.OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=0)],
            ),
        ),
    ),
    "consumer group heartbeat": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        lambda v, ids: m.ConsumerGroupHeartbeatRequest(
            group_id=MINE, member_id="nobody", member_epoch=5, subscribed_topic_names=[MINE]
        ),
    ),
    "consumer group heartbeat for another's topic": (
        ApiKey.CONSUMER_GROUP_HEARTBEAT,
        lambda v, ids: m.ConsumerGroupHeartbeatRequest(
            group_id=MINE, member_id="nobody", member_epoch=5, subscribed_topic_names=[MINE, OTHER]
        ),
    ),
    "consumer group describe": (
        ApiKey.CONSUMER_GROUP_DESCRIBE,
        lambda v, ids: m.ConsumerGroupDescribeRequest(group_ids=[MINE, OTHER], include_authorized_operations=True),
    ),
    "list groups": (ApiKey.LIST_GROUPS, lambda v, ids: m.ListGroupsRequest()),
    "describe groups": (
        ApiKey.DESCRIBE_GROUPS,
        lambda v, ids: m.DescribeGroupsRequest(
            groups=[MINE, OTHER], **({"include_authorized_operations": True} if v >= 3 else {})
        ),
    ),
    "delete groups": (ApiKey.DELETE_GROUPS, lambda v, ids: m.DeleteGroupsRequest(groups_names=[GONE, OTHER_GONE])),
    "describe log dirs": (
        ApiKey.DESCRIBE_LOG_DIRS,
        lambda v, ids: m.DescribeLogDirsRequest(
            topics=[m.DescribeLogDirsRequest.DescribableLogDirTopic(topic=MINE, partitions=[0])]
        ),
    ),
    "alter replica log dirs": (
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        lambda v, ids: m.AlterReplicaLogDirsRequest(
            dirs=[
                m.AlterReplicaLogDirsRequest.AlterReplicaLogDir(
                    path="/no/such/directory",
                    topics=topics_of(m.AlterReplicaLogDirsRequest, "AlterReplicaLogDirTopic", partitions=[0]),
                )
            ]
        ),
    ),
    "api versions": (
        ApiKey.API_VERSIONS,
        lambda v, ids: m.ApiVersionsRequest(client_software_name="test", client_software_version="1"),
    ),
    "metadata of names": (ApiKey.METADATA, metadata_of_names),
    "metadata of a hidden topic": (ApiKey.METADATA, metadata_of_one_hidden),
    "metadata of all": (ApiKey.METADATA, metadata_of_all),
    "metadata of ids": (ApiKey.METADATA, lambda v, ids: metadata_of_ids(v, ids) if v >= 12 else None),
    "describe cluster": (
        ApiKey.DESCRIBE_CLUSTER,
        lambda v, ids: m.DescribeClusterRequest(include_cluster_authorized_operations=True),
    ),
    "describe topic partitions": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        lambda v, ids: m.DescribeTopicPartitionsRequest(
            topics=topics_of(m.DescribeTopicPartitionsRequest, "TopicRequest", NAMES), response_partition_limit=100
        ),
    ),
    "describe all topics' partitions": (
        ApiKey.DESCRIBE_TOPIC_PARTITIONS,
        lambda v, ids: m.DescribeTopicPartitionsRequest(response_partition_limit=100),
    ),
    "list config resources": (ApiKey.LIST_CONFIG_RESOURCES, lambda v, ids: m.ListConfigResourcesRequest()),
    "describe client quotas": (ApiKey.DESCRIBE_CLIENT_QUOTAS, lambda v, ids: m.DescribeClientQuotasRequest()),
}

ADMIN_REQUESTS: dict[str, tuple[ApiKey, Make]] = {
    "create topics": (ApiKey.CREATE_TOPICS, create_topics),
    "delete topics": (ApiKey.DELETE_TOPICS, delete_topics),
    "delete a hidden topic by its id": (
        ApiKey.DELETE_TOPICS,
        lambda v, ids: delete_a_hidden_topic_by_id(v, ids) if v >= 6 else None,
    ),
    "create partitions": (
        ApiKey.CREATE_PARTITIONS,
        lambda v, ids: m.CreatePartitionsRequest(
            topics=topics_of(m.CreatePartitionsRequest, "CreatePartitionsTopic", count=5),
            timeout_ms=1000,
            validate_only=True,
        ),
    ),
    "elect leaders": (
        ApiKey.ELECT_LEADERS,
        lambda v, ids: m.ElectLeadersRequest(
            topic_partitions=[m.ElectLeadersRequest.TopicPartitions(topic=OTHER_GONE, partitions=[0])], timeout_ms=1000
        ),
    ),
    "alter partition reassignments": (
        ApiKey.ALTER_PARTITION_REASSIGNMENTS,
        lambda v, ids: m.AlterPartitionReassignmentsRequest(
            timeout_ms=1000,
            topics=topics_of(
                m.AlterPartitionReassignmentsRequest,
                "ReassignableTopic",
                (OTHER_GONE,),
                partitions=[
                    m.AlterPartitionReassignmentsRequest.ReassignablePartition(partition_index=0, replicas=[1])
                ],
            ),
        ),
    ),
    "list partition reassignments": (
        ApiKey.LIST_PARTITION_REASSIGNMENTS,
        lambda v, ids: m.ListPartitionReassignmentsRequest(timeout_ms=1000, topics=None),
    ),
    "describe configs": (
        ApiKey.DESCRIBE_CONFIGS,
        lambda v, ids: configs(m.DescribeConfigsRequest, "DescribeConfigsResource", configuration_keys=["no.such"]),
    ),
    "incremental alter configs": (
        ApiKey.INCREMENTAL_ALTER_CONFIGS,
        lambda v, ids: configs(m.IncrementalAlterConfigsRequest, "AlterConfigsResource"),
    ),
    "alter client quotas": (
        ApiKey.ALTER_CLIENT_QUOTAS,
        lambda v, ids: m.AlterClientQuotasRequest(
            validate_only=True,
            entries=[
                m.AlterClientQuotasRequest.EntryData(
                    entity=[m.AlterClientQuotasRequest.EntityData(entity_type="user", entity_name="x")]
                )
            ],
        ),
    ),
    "alter user scram credentials": (
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
        lambda v, ids: m.AlterUserScramCredentialsRequest(
            upsertions=[
                m.AlterUserScramCredentialsRequest.ScramCredentialUpsertion(name="x", mechanism=1, iterations=1)
            ]
        ),
    ),
    "describe user scram credentials": (
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda v, ids: m.DescribeUserScramCredentialsRequest(
            users=[m.DescribeUserScramCredentialsRequest.UserName(name="x")]
        ),
    ),
    "update features": (
        ApiKey.UPDATE_FEATURES,
        lambda v, ids: m.UpdateFeaturesRequest(
            timeout_ms=1000,
            feature_updates=[m.UpdateFeaturesRequest.FeatureUpdateKey(feature="no.such", max_version_level=1)],
        ),
    ),
    "unregister broker": (ApiKey.UNREGISTER_BROKER, lambda v, ids: m.UnregisterBrokerRequest(broker_id=99)),
    "describe quorum": (
        ApiKey.DESCRIBE_QUORUM,
        lambda v, ids: m.DescribeQuorumRequest(topics=_metadata_partition(m.DescribeQuorumRequest)),
    ),
    "add raft voter": (
        ApiKey.ADD_RAFT_VOTER,
        lambda v, ids: m.AddRaftVoterRequest(cluster_id=NO_CLUSTER, timeout_ms=1000, voter_id=9),
    ),
    "remove raft voter": (
        ApiKey.REMOVE_RAFT_VOTER,
        lambda v, ids: m.RemoveRaftVoterRequest(cluster_id=NO_CLUSTER, voter_id=9),
    ),
    "describe acls": (
        ApiKey.DESCRIBE_ACLS,
        lambda v, ids: m.DescribeAclsRequest(
            resource_type_filter=2,
            resource_name_filter="nothing",
            pattern_type_filter=3,
            operation=1,
            permission_type=1,
        ),
    ),
    "create acls": (
        ApiKey.CREATE_ACLS,
        lambda v, ids: m.CreateAclsRequest(
            creations=[
                m.CreateAclsRequest.AclCreation(
                    resource_type=2,
                    resource_name=MINE,
                    resource_pattern_type=3,
                    principal="no principal",
                    host="*",
                    operation=3,
                    permission_type=3,
                )
            ]
        ),
    ),
    "delete acls": (
        ApiKey.DELETE_ACLS,
        lambda v, ids: m.DeleteAclsRequest(
            filters=[
                m.DeleteAclsRequest.DeleteAclsFilter(
                    resource_type_filter=2,
                    resource_name_filter="nothing",
                    pattern_type_filter=3,
                    operation=1,
                    permission_type=1,
                )
            ]
        ),
    ),
}
"""What brokers answer or pass on, and controllers answer."""

ALTER_CONFIGS: dict[str, tuple[ApiKey, Make]] = {
    "alter configs": (ApiKey.ALTER_CONFIGS, lambda v, ids: configs(m.AlterConfigsRequest, "AlterConfigsResource")),
}

CONTROLLER_REQUESTS: dict[str, tuple[ApiKey, Make]] = {
    "envelope": (
        ApiKey.ENVELOPE,
        lambda v, ids: m.EnvelopeRequest(request_data=b"nothing", request_principal=b"", client_host_address=b"1234"),
    ),
    "describe cluster of controllers": (
        ApiKey.DESCRIBE_CLUSTER,
        lambda v, ids: m.DescribeClusterRequest(
            include_cluster_authorized_operations=True, **({"endpoint_type": 2} if v >= 1 else {})
        ),
    ),
    "broker registration": (
        ApiKey.BROKER_REGISTRATION,
        lambda v, ids: m.BrokerRegistrationRequest(broker_id=99, cluster_id=NO_CLUSTER, incarnation_id=AN_ID),
    ),
    "broker heartbeat": (
        ApiKey.BROKER_HEARTBEAT,
        lambda v, ids: m.BrokerHeartbeatRequest(broker_id=99, broker_epoch=1, current_metadata_offset=0),
    ),
    "alter partition": (
        ApiKey.ALTER_PARTITION,
        lambda v, ids: m.AlterPartitionRequest(broker_id=99, broker_epoch=1),
    ),
    "assign replicas to dirs": (
        ApiKey.ASSIGN_REPLICAS_TO_DIRS,
        lambda v, ids: m.AssignReplicasToDirsRequest(broker_id=99, broker_epoch=1),
    ),
    "allocate producer ids": (
        ApiKey.ALLOCATE_PRODUCER_IDS,
        lambda v, ids: m.AllocateProducerIdsRequest(broker_id=99, broker_epoch=1),
    ),
    "vote": (
        ApiKey.VOTE,
        lambda v, ids: m.VoteRequest(cluster_id=NO_CLUSTER, topics=_metadata_partition(m.VoteRequest, replica_id=9)),
    ),
    "begin quorum epoch": (
        ApiKey.BEGIN_QUORUM_EPOCH,
        lambda v, ids: m.BeginQuorumEpochRequest(
            cluster_id=NO_CLUSTER, topics=_metadata_partition(m.BeginQuorumEpochRequest, leader_id=9)
        ),
    ),
    "end quorum epoch": (
        ApiKey.END_QUORUM_EPOCH,
        lambda v, ids: m.EndQuorumEpochRequest(
            cluster_id=NO_CLUSTER, topics=_metadata_partition(m.EndQuorumEpochRequest, leader_id=9)
        ),
    ),
    "fetch snapshot": (
        ApiKey.FETCH_SNAPSHOT,
        lambda v, ids: m.FetchSnapshotRequest(
            cluster_id=NO_CLUSTER,
            topics=[
                m.FetchSnapshotRequest.TopicSnapshot(
                    name="__cluster_metadata", partitions=[m.FetchSnapshotRequest.PartitionSnapshot(partition=0)]
                )
            ],
        ),
    ),
    "fetch from a controller": (ApiKey.FETCH, lambda v, ids: m.FetchRequest(cluster_id=NO_CLUSTER)),
    "update raft voter": (
        ApiKey.UPDATE_RAFT_VOTER,
        lambda v, ids: m.UpdateRaftVoterRequest(cluster_id=NO_CLUSTER, voter_id=9),
    ),
}

ON_BROKERS = BROKER_REQUESTS | ADMIN_REQUESTS | ALTER_CONFIGS
ON_CONTROLLERS = {
    name: one
    for name, one in (ADMIN_REQUESTS | CONTROLLER_REQUESTS).items()
    if name != "describe user scram credentials"  # which Apache Kafka's controller serves, and cannot answer
}
