"""What an admin asks is understood by a broker of version 2.1, or refused as too much for it."""

from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ottla.client.admin import configs, log_dirs, records, topics, transaction_states
from ottla.client.admin.access import acls
from ottla.client.admin.asking import Asking
from ottla.client.admin.groups import describing, listing, offsets, removal
from ottla.client.errors import KafkaError, UnsupportedVersion
from ottla.client.topic_partition import TopicPartition
from ottla.wire import messages
from ottla.wire.apis import ApiKey
from tests.unit.client.admin.fake_cluster import FakeCluster

# The newest versions that Apache Kafka 2.1 serves, of what an admin asks for.
NEWEST = {
    ApiKey.LIST_OFFSETS: 4,
    ApiKey.METADATA: 7,
    ApiKey.OFFSET_COMMIT: 6,
    ApiKey.OFFSET_FETCH: 5,
    ApiKey.FIND_COORDINATOR: 2,
    ApiKey.LEAVE_GROUP: 2,
    ApiKey.DESCRIBE_GROUPS: 2,
    ApiKey.LIST_GROUPS: 2,
    ApiKey.CREATE_TOPICS: 3,
    ApiKey.DELETE_TOPICS: 3,
    ApiKey.DELETE_RECORDS: 1,
    ApiKey.INIT_PRODUCER_ID: 1,
    ApiKey.DESCRIBE_ACLS: 1,
    ApiKey.CREATE_ACLS: 1,
    ApiKey.DELETE_ACLS: 1,
    ApiKey.DESCRIBE_CONFIGS: 2,
    ApiKey.ALTER_REPLICA_LOG_DIRS: 1,
    ApiKey.DESCRIBE_LOG_DIRS: 1,
    ApiKey.CREATE_PARTITIONS: 1,
    ApiKey.DELETE_GROUPS: 1,
}
A0 = TopicPartition("a", 0)
RULE = acls.AclBinding(acls.AclResourceType.TOPIC, "a", "User:x", acls.AclOperation.READ)

UNDERSTOOD: dict[str, Callable[[Asking], Coroutine[Any, Any, Any]]] = {
    "CreateTopicsRequest": lambda asking: topics.create_topics(asking, [topics.NewTopic("a", 1, 1)]),
    "DeleteTopicsRequest": lambda asking: topics.delete_topics(asking, ["a"]),
    "MetadataRequest": lambda asking: topics.describe_topics(asking, ["a"]),
    "CreatePartitionsRequest": lambda asking: topics.create_partitions(asking, {"a": 3}),
    "DescribeConfigsRequest": lambda asking: configs.describe_configs(asking, [configs.ConfigResource.topic("a")]),
    "ListOffsetsRequest": lambda asking: records.list_offsets(asking, {A0: -1}),
    "DeleteRecordsRequest": lambda asking: records.delete_records(asking, {A0: 5}),
    "ListGroupsRequest": lambda asking: listing.list_groups(asking),
    "DescribeGroupsRequest": lambda asking: describing.describe_consumer_groups(asking, ["g"]),
    "OffsetFetchRequest": lambda asking: offsets.list_consumer_group_offsets(asking, ["g"]),
    "OffsetCommitRequest": lambda asking: offsets.alter_consumer_group_offsets(asking, "g", {A0: 5}),
    "DeleteGroupsRequest": lambda asking: removal.delete_groups(asking, ["g"]),
    "DescribeLogDirsRequest": lambda asking: log_dirs.describe_log_dirs(asking),
    "AlterReplicaLogDirsRequest": lambda asking: log_dirs.alter_replica_log_dirs(
        asking, {log_dirs.TopicPartitionReplica("a", 0, 1): "/d"}
    ),
    "InitProducerIdRequest": lambda asking: transaction_states.fence_producers(asking, ["t"]),
    "DescribeAclsRequest": lambda asking: acls.describe_acls(asking),
    "CreateAclsRequest": lambda asking: acls.create_acls(asking, [RULE]),
    "DeleteAclsRequest": lambda asking: acls.delete_acls(asking, [acls.AclFilter()]),
}
TOO_MUCH: dict[str, Callable[[Asking], Coroutine[Any, Any, Any]]] = {
    "states of groups": lambda asking: listing.list_groups(asking, states=[listing.GroupState.STABLE]),
    "authorized operations": lambda asking: describing.describe_classic_groups(
        asking, ["g"], include_authorized_operations=True
    ),
    "stable offsets": lambda asking: offsets.list_consumer_group_offsets(asking, ["g"], require_stable=True),
    "defaults of topics": lambda asking: topics.create_topics(asking, ["a"]),
    "topics by id": lambda asking: topics.delete_topics_by_id(asking, ["AAAAAAAAAAAAAAAAAAAAAQ"]),
    "members by name": lambda asking: removal.remove_members_from_consumer_group(asking, "g", ["instance"]),
}


def old_cluster() -> FakeCluster:
    cluster = FakeCluster()
    for key in ApiKey:
        name = "".join(word.title() for word in key.name.split("_")) + "Request"
        cluster.newest[name] = NEWEST.get(key, -1)
        cluster.on(name, Stop())
    response = messages.MetadataResponse
    cluster.on(
        "MetadataRequest",
        response(
            brokers=[response.MetadataResponseBroker(node_id=1, host="fake", port=1)],
            topics=[
                response.MetadataResponseTopic(
                    name="a", partitions=[response.MetadataResponsePartition(partition_index=0, leader_id=1)]
                )
            ],
        ),
    )
    cluster.on("FindCoordinatorRequest", messages.FindCoordinatorResponse(node_id=1, host="fake", port=1))
    return cluster


class Stop(KafkaError):
    """What every request is answered with: it is the request that matters."""


@pytest.mark.parametrize("request_name", UNDERSTOOD)
def test_a_request_has_a_form_that_the_old_broker_understands(request_name: str) -> None:
    cluster = old_cluster()
    try:
        results = cluster.run(UNDERSTOOD[request_name](cluster.asking))
        errors = list(results.errors.values())
    except KafkaError as error:
        errors = [error]
    assert [type(error) for error in errors] == ([] if request_name == "MetadataRequest" else [Stop])
    assert cluster.requests(request_name)


@pytest.mark.parametrize("what", TOO_MUCH)
def test_what_the_old_broker_has_no_form_for_is_refused(what: str) -> None:
    cluster = old_cluster()
    try:
        results = cluster.run(TOO_MUCH[what](cluster.asking))
        errors = list(results.errors.values())
    except KafkaError as error:
        errors = [error]
    assert [type(error) for error in errors] == [UnsupportedVersion]
