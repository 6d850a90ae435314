"""Our admin against our node and Apache Kafka: every family of calls, blocking and with asyncio."""

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from confluent_kafka import Consumer, Producer

from ottla import Admin, OffsetAndMetadata, TopicPartition, aio
from ottla.admin import (
    ANY_NAME,
    HIGH_WATERMARK,
    AbortTransaction,
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    AclResourceType,
    AlterConfig,
    AlterOperation,
    ConfigResource,
    ConfigSource,
    ElectionType,
    FeatureUpdate,
    GroupState,
    GroupType,
    NewTopic,
    OffsetSpec,
    Password,
    PatternType,
    QuotaEntity,
    ResourceType,
    ScramCredential,
    ScramDeletion,
    ScramMechanism,
    ScramUpsertion,
    TopicPartitionReplica,
    TransactionState,
    UnnoticedErrors,
)
from ottla.errors import (
    BrokerIdNotRegistered,
    ClientClosed,
    DelegationTokenRequestNotAllowed,
    Disconnected,
    ElectionNotNeeded,
    GroupIdNotFound,
    GroupSubscribedToTopic,
    InvalidReplicaAssignment,
    InvalidRequest,
    InvalidTopic,
    InvalidUpdateVersion,
    KafkaError,
    LogDirNotFound,
    NonEmptyGroup,
    NoReassignmentInProgress,
    OffsetOutOfRange,
    ResourceNotFound,
    TopicAlreadyExists,
    TransactionalIdNotFound,
    UnacceptableCredential,
    UnknownMemberId,
    UnknownTopicOrPartition,
    UnsupportedVersion,
)
from ottla.testing.node import RunningNode
from tests.clients.eventually import eventually
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.target import Target

QUICK = {"group.initial.rebalance.delay.ms": 0}
GUARDED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}
SHARING = {
    "share.coordinator.state.topic.replication.factor": 1,
    "share.coordinator.state.topic.min.isr": 1,
}


@pytest.fixture(scope="module", params=["ottla", pytest.param("apache-kafka", marks=pytest.mark.interop)])
def broker(request: pytest.FixtureRequest) -> Iterator[Target]:
    settings = QUICK | GUARDED
    with RunningNode(config=settings) if request.param == "ottla" else ApacheKafka(config=settings | SHARING) as node:
        yield node


@pytest.fixture(scope="module")
def admin(broker: Target) -> Iterator[Admin]:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        yield admin


def made(admin: Admin, *topics: NewTopic | str) -> None:
    """Creates them, and waits until the broker knows: at Apache Kafka it hears of them a moment later."""
    names = [topic if isinstance(topic, str) else topic.name for topic in topics]
    admin.create_topics(topics).raise_first()
    eventually(lambda: admin.describe_topics(names).errors, {})


def fill(broker: Target, topic: str, partitions: int, records: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for number in range(records):
        producer.produce(topic, b"v", partition=number % partitions, timestamp=1000 + number)
    assert producer.flush(20) == 0


def test_topics_are_created_described_grown_and_deleted(admin: Admin) -> None:
    made = admin.create_topics([NewTopic("life", 3, 1, config={"retention.ms": "1000"}), "life2", "no good"])
    assert made["life"].config is not None
    assert (made["life"].partitions, made["life"].config["retention.ms"]) == (3, "1000")
    assert type(made.errors["no good"]) is InvalidTopic
    assert type(admin.create_topics(["life"]).errors["life"]) is TopicAlreadyExists
    eventually(lambda: {"life", "life2"} <= {listing.name for listing in admin.list_topics()}, True)
    described = admin.describe_topics(["life", "nowhere"], partitions_per_page=1)
    assert [(one.partition, one.leader, one.replicas) for one in described["life"].partitions] == [
        (index, 1, (1,)) for index in range(3)
    ]
    with pytest.raises(UnknownTopicOrPartition, match="'nowhere'"):
        described["nowhere"]
    admin.create_partitions({"life": 5}).raise_first()
    topic_id = made["life"].topic_id
    assert topic_id is not None
    eventually(lambda: len(admin.describe_topics_by_id([topic_id])[topic_id].partitions), 5)
    admin.delete_topics(["life2"]).raise_first()
    admin.delete_topics_by_id([topic_id]).raise_first()
    eventually(lambda: {"life", "life2"} & {listing.name for listing in admin.list_topics()}, set())


def test_nothing_is_created_when_a_topic_is_only_validated(admin: Admin) -> None:
    admin.create_topics(["unmade"], validate_only=True).raise_first()
    assert type(admin.describe_topics(["unmade"]).errors["unmade"]) is UnknownTopicOrPartition


def test_settings_are_described_changed_and_taken_back(admin: Admin) -> None:
    made(admin, "tuned")
    tuned, node, nowhere = (ConfigResource.topic("tuned"), ConfigResource.broker(1), ConfigResource.topic("nowhere"))
    described = admin.describe_configs({tuned: None, node: ["node.id"], nowhere: None})
    assert described[tuned]["retention.ms"].is_default
    assert list(described[node]) == ["node.id"]
    assert type(described.errors[nowhere]) is UnknownTopicOrPartition
    admin.incremental_alter_configs({tuned: {"retention.ms": "5000"}}).raise_first()
    eventually(lambda: admin.describe_configs([tuned])[tuned]["retention.ms"].value, "5000")
    changed = admin.describe_configs([tuned], include_synonyms=True)[tuned]["retention.ms"]
    assert changed.source is ConfigSource.DYNAMIC_TOPIC
    assert changed.synonyms[0].source is ConfigSource.DYNAMIC_TOPIC
    append = AlterConfig("cleanup.policy", "compact", AlterOperation.APPEND)
    admin.incremental_alter_configs({tuned: [append]}).raise_first()
    eventually(lambda: admin.describe_configs([tuned])[tuned]["cleanup.policy"].value, "delete,compact")
    admin.incremental_alter_configs({tuned: {"retention.ms": None}}).raise_first()
    eventually(lambda: admin.describe_configs([tuned])[tuned]["retention.ms"].is_default, True)
    assert tuned in admin.list_config_resources([ResourceType.TOPIC])


def test_offsets_are_found_by_place_and_time_and_records_are_deleted(broker: Target, admin: Admin) -> None:
    made(admin, NewTopic("placed", 2))
    fill(broker, "placed", 2, 10)
    zero, one = TopicPartition("placed", 0), TopicPartition("placed", 1)
    assert admin.list_offsets({zero: OffsetSpec.LATEST, one: OffsetSpec.EARLIEST})[zero].offset == 5
    assert admin.list_offsets({one: OffsetSpec.EARLIEST})[one].offset == 0
    found = admin.list_offsets({zero: 1005, one: 9999})
    assert (found[zero].offset, found[zero].timestamp_ms, found[one].offset) == (3, 1006, None)
    assert admin.list_offsets({zero: OffsetSpec.MAX_TIMESTAMP})[zero].offset == 4
    deleted = admin.delete_records({zero: 2, one: HIGH_WATERMARK})
    assert (deleted[zero], deleted[one]) == (2, 5)
    assert admin.list_offsets({zero: OffsetSpec.EARLIEST})[zero].offset == 2
    with pytest.raises(OffsetOutOfRange):
        admin.delete_records({zero: 200})[zero]


def test_groups_are_listed_described_and_deleted_and_their_offsets_changed(broker: Target, admin: Admin) -> None:
    made(admin, NewTopic("grouped", 2))
    fill(broker, "grouped", 2, 4)
    zero, one = TopicPartition("grouped", 0), TopicPartition("grouped", 1)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "crew", "auto.offset.reset": "earliest"})
    consumer.subscribe(["grouped"])
    for _ in range(4):
        message = consumer.poll(20)
        assert message is not None
        assert message.error() is None
    consumer.commit(asynchronous=False)
    [listing] = [group for group in admin.list_groups() if group.group_id == "crew"]
    assert listing == ("crew", GroupType.CLASSIC, "consumer", GroupState.STABLE)
    assert listing in admin.list_consumer_groups(states=[GroupState.STABLE])
    described = admin.describe_consumer_groups(["crew", "nobody"])
    assert described["crew"].members[0].assignment == (zero, one)
    assert (described["crew"].type, described["crew"].coordinator.id) == (GroupType.CLASSIC, 1)
    assert type(described.errors["nobody"]) is GroupIdNotFound
    assert admin.describe_classic_groups(["crew"])["crew"].protocol_data == "range"

    assert type(admin.alter_consumer_group_offsets("crew", {zero: 0}).errors[zero]) is UnknownMemberId
    assert type(admin.delete_consumer_group_offsets("crew", [zero]).errors[zero]) is GroupSubscribedToTopic
    assert type(admin.delete_groups(["crew"]).errors["crew"]) is NonEmptyGroup
    admin.remove_members_from_consumer_group("crew", reason="the test says so").raise_first()
    consumer.close()

    admin.alter_consumer_group_offsets("crew", {zero: 1, one: OffsetAndMetadata(0, "again")}).raise_first()
    committed = admin.list_consumer_group_offsets({"crew": None, "nobody": [zero]})
    assert committed["crew"] == {zero: OffsetAndMetadata(1), one: OffsetAndMetadata(0, "again")}
    assert committed["nobody"] == {zero: None}
    admin.delete_consumer_group_offsets("crew", [zero]).raise_first()
    assert list(admin.list_consumer_group_offsets("crew")["crew"]) == [one]
    admin.delete_groups(["crew"]).raise_first()
    assert "crew" not in {group.group_id for group in admin.list_groups()}


def test_members_of_the_new_protocol_are_described_with_their_target(broker: Target, admin: Admin) -> None:
    made(admin, NewTopic("modern", 2))
    config = {"bootstrap.servers": broker.bootstrap, "group.id": "modern", "group.protocol": "consumer"}
    consumer = Consumer(config)
    consumer.subscribe(["modern"])
    partitions = (TopicPartition("modern", 0), TopicPartition("modern", 1))
    for _ in range(200):
        consumer.poll(0.1)
        if len(consumer.assignment()) == 2:
            break
    group = admin.describe_consumer_groups(["modern"])["modern"]
    assert group.type is GroupType.CONSUMER
    assert (group.members[0].assignment, group.members[0].target_assignment) == (partitions, partitions)
    assert group.members[0].subscribed_topics == ("modern",)
    consumer.close()


def test_the_asyncio_admin_has_the_same_methods(broker: Target) -> None:
    calls = {name for name in vars(Admin) if not name.startswith("_")}
    assert calls == {name for name in vars(aio.Admin) if not name.startswith("_")}

    async def use() -> None:
        async with aio.Admin(bootstrap_servers=broker.bootstrap) as admin:
            (await admin.create_topics(["async"])).raise_first()
            described, listed = await asyncio.gather(admin.describe_topics(["async"]), admin.list_topics())
            assert described["async"].name in {listing.name for listing in listed}
            with pytest.raises(TopicAlreadyExists):
                (await admin.create_topics(["async"])).raise_first()

    asyncio.run(use())


def test_the_cluster_its_quorum_and_its_features_are_described(admin: Admin) -> None:
    cluster = admin.describe_cluster(include_authorized_operations=True)
    assert cluster.controller in cluster.nodes
    assert [node.id for node in cluster.nodes] == [1]
    assert AclOperation.ALTER in (cluster.authorized_operations or ())
    quorum = admin.describe_metadata_quorum()
    assert (quorum.leader_id, [voter.replica_id for voter in quorum.voters]) == (1, [1])
    assert quorum.voters[0].log_end_offset >= quorum.high_watermark - 1
    features = admin.describe_features()
    assert features.supported["metadata.version"].high >= features.finalized["metadata.version"].high
    assert features == admin.describe_features(node_id=1)
    refused = admin.update_features({"no.such.feature": FeatureUpdate(1)}, validate_only=True)
    assert type(refused.errors["no.such.feature"]) is InvalidUpdateVersion
    with pytest.raises(BrokerIdNotRegistered):
        admin.unregister_broker(99)


def test_a_broker_that_is_not_there_is_told_by_its_id(admin: Admin) -> None:
    results = admin.describe_log_dirs([1, 9], timeout=0.3)
    assert results[1]
    with pytest.raises(Disconnected, match="no node 9"):
        results[9]


def test_replicas_are_found_in_their_directories_and_stay_where_they_are(broker: Target, admin: Admin) -> None:
    made(admin, NewTopic("homed", 2))
    fill(broker, "homed", 1, 1)
    zero = TopicPartition("homed", 0)
    [(path, directory)] = admin.describe_log_dirs()[1].items()
    assert directory.replicas[zero].size_bytes > 0
    replica, lost = TopicPartitionReplica("homed", 0, 1), TopicPartitionReplica("homed", 1, 1)
    places = admin.describe_replica_log_dirs([replica])
    assert (places[replica].current_path, places[replica].future_path) == (path, None)
    moved = admin.alter_replica_log_dirs({replica: path, lost: "/nowhere"})
    assert moved[replica] is None
    assert type(moved.errors[lost]) is LogDirNotFound
    assert type(admin.elect_leaders(ElectionType.PREFERRED, [zero]).errors[zero]) is ElectionNotNeeded
    assert len(admin.elect_leaders(ElectionType.PREFERRED)) == 0
    one = TopicPartition("homed", 1)
    moves = admin.alter_partition_reassignments({zero: [1], one: [7]})
    assert moves[zero] is None
    assert type(moves.errors[one]) is InvalidReplicaAssignment
    assert type(admin.alter_partition_reassignments({one: None}).errors[one]) is NoReassignmentInProgress
    assert admin.list_partition_reassignments() == {}


def test_an_open_transaction_is_found_described_and_ended(broker: Target, admin: Admin) -> None:
    made(admin, "paid")
    zero = TopicPartition("paid", 0)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "till"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("paid", b"v")
    assert producer.flush(20) == 0
    described = admin.describe_transactions(["till", "nobody"])
    assert (described["till"].state, described["till"].partitions) == (TransactionState.ONGOING, {zero})
    assert type(described.errors["nobody"]) is TransactionalIdNotFound
    [listing] = admin.list_transactions(states=[TransactionState.ONGOING])
    assert (listing.transactional_id, listing.coordinator_id) == ("till", 1)
    assert admin.list_transactions(running_longer_than_ms=3_600_000) == []
    [writer] = admin.describe_producers([zero])[zero]
    assert writer.current_transaction_start_offset == 0
    assert admin.describe_producers([zero], broker_id=1)[zero] == (writer,)
    admin.abort_transaction(AbortTransaction(zero, writer.producer_id, writer.producer_epoch, -1))
    [writer] = admin.describe_producers([zero])[zero]
    assert writer.current_transaction_start_offset is None
    fenced = admin.fence_producers(["till"])["till"]
    assert fenced.producer_epoch > writer.producer_epoch
    admin.force_terminate_transaction("till")


def test_quotas_are_set_found_by_filter_and_taken_away(admin: Admin) -> None:
    anywhere, bob = QuotaEntity.of(user="alice", client_id=None), QuotaEntity.of(user="bob")
    changed = admin.alter_client_quotas({anywhere: {"producer_byte_rate": 1000}, bob: {"no_such_quota": 1}})
    assert changed[anywhere] is None
    assert type(changed.errors[bob]) is InvalidRequest
    eventually(admin.describe_client_quotas, {anywhere: {"producer_byte_rate": 1000.0}})
    assert list(admin.describe_client_quotas({"user": ANY_NAME, "client-id": None}, strict=True)) == [anywhere]
    assert admin.describe_client_quotas({"user": "alice"}, strict=True) == {}
    admin.alter_client_quotas({anywhere: {"producer_byte_rate": None}}).raise_first()
    eventually(admin.describe_client_quotas, {})


def test_scram_credentials_are_set_and_told_without_secrets(admin: Admin) -> None:
    strong = ScramUpsertion("alice", ScramMechanism.SCRAM_SHA_256, Password("hunter2"), iterations=8192)
    weak = ScramUpsertion("weak", ScramMechanism.SCRAM_SHA_512, Password("hunter2"), iterations=10)
    assert "hunter2" not in repr(strong)
    changed = admin.alter_user_scram_credentials([strong, weak])
    assert changed["alice"] is None
    assert type(changed.errors["weak"]) is UnacceptableCredential
    told = (ScramCredential(ScramMechanism.SCRAM_SHA_256, 8192),)
    eventually(lambda: admin.describe_user_scram_credentials().succeeded, {"alice": told})
    assert type(admin.describe_user_scram_credentials(["ghost"]).errors["ghost"]) is ResourceNotFound
    admin.alter_user_scram_credentials([ScramDeletion("alice", ScramMechanism.SCRAM_SHA_256)]).raise_first()
    eventually(lambda: admin.describe_user_scram_credentials().succeeded, {})


def test_client_metrics_resources_are_listed(admin: Admin) -> None:
    resource = ConfigResource.client_metrics("watch")
    admin.incremental_alter_configs({resource: {"interval.ms": "1000"}}).raise_first()
    eventually(admin.list_client_metrics_resources, ["watch"])
    admin.incremental_alter_configs({resource: {"interval.ms": None}}).raise_first()
    eventually(admin.list_client_metrics_resources, [])


def test_rules_of_access_are_created_found_and_deleted(admin: Admin) -> None:
    read = AclBinding(AclResourceType.TOPIC, "secret", "User:alice", AclOperation.READ)
    none = read._replace(principal="User:*", permission=AclPermission.DENY, pattern_type=PatternType.PREFIXED)
    admin.create_acls([read, none]).raise_first()
    eventually(lambda: set(admin.describe_acls()), {read, none})
    assert admin.describe_acls(AclFilter(principal="User:alice")) == [read]
    matching = AclFilter(resource_name="secret-thing", pattern_type=PatternType.MATCH)
    assert admin.describe_acls(matching) == [none]
    deleted = admin.delete_acls([AclFilter(principal="User:*"), AclFilter(principal="User:nobody")])
    assert [one.binding for one in deleted[AclFilter(principal="User:*")]] == [none]
    assert deleted[AclFilter(principal="User:nobody")] == ()
    eventually(lambda: admin.describe_acls(), [read])


def test_a_share_group_begins_where_it_is_told_to(broker: Target, admin: Admin) -> None:
    made(admin, NewTopic("shared", 2))
    zero = TopicPartition("shared", 0)
    if isinstance(broker, RunningNode):
        assert type(admin.describe_share_groups(["pool"]).errors["pool"]) is UnsupportedVersion
        return
    fill(broker, "shared", 1, 3)
    admin.alter_share_group_offsets("pool", {zero: 2}).raise_first()
    offset = admin.list_share_group_offsets({"pool": [zero]})["pool"][zero]
    assert offset is not None
    assert offset.start_offset == 2
    assert admin.describe_share_groups(["pool"])["pool"].state is GroupState.EMPTY
    deleted = admin.delete_share_group_offsets("pool", ["shared", "nowhere"])
    assert deleted["shared"] is None
    assert type(deleted.errors["nowhere"]) is UnknownTopicOrPartition
    admin.delete_share_groups(["pool"]).raise_first()


def test_what_needs_authentication_or_a_streams_application_is_told(broker: Target, admin: Admin) -> None:
    ours = isinstance(broker, RunningNode)
    with pytest.raises(DelegationTokenRequestNotAllowed):
        admin.create_delegation_token(renewers=["User:alice"])
    missing = admin.describe_streams_groups(["nobody"]).errors["nobody"]
    assert type(missing) is (UnsupportedVersion if ours else GroupIdNotFound)


def test_controllers_answer_without_a_broker(admin: Admin) -> None:
    [endpoint] = admin.describe_metadata_quorum().nodes[1]
    with Admin(bootstrap_controllers=f"{endpoint.host}:{endpoint.port}") as quorum:
        described = quorum.describe_cluster()
        assert described.cluster_id == admin.describe_cluster().cluster_id
        assert described.controller == (1, endpoint.host, endpoint.port, None)
        assert quorum.describe_metadata_quorum().leader_id == 1
        defaults = ConfigResource.broker()
        quorum.incremental_alter_configs({defaults: {"log.retention.ms": "77777777"}}).raise_first()
        quorum.create_topics(["by-controller"]).raise_first()
        assert quorum.list_partition_reassignments() == {}
        with pytest.raises(UnsupportedVersion, match="METADATA"):
            quorum.list_topics()
    eventually(lambda: "by-controller" in {listing.name for listing in admin.list_topics()}, True)
    eventually(lambda: admin.describe_configs([defaults])[defaults]["log.retention.ms"].value, "77777777")


def threads_of_clients() -> set[threading.Thread]:
    """Without the one that writes the lines of all clients, which ends a second after the last."""
    return {thread for thread in threading.enumerate() if thread.name != "ottla-log"}


def test_a_call_waits_for_a_broker_that_comes_back_and_leaves_no_thread_behind() -> None:
    before = threads_of_clients()
    with RunningNode() as node:
        with Admin(bootstrap_servers=node.bootstrap) as admin:
            made(admin, "stays")
            node.kill()
            with pytest.raises(KafkaError) as told:
                admin.list_topics(timeout=0.3)
            assert told.value.retriable
            with ThreadPoolExecutor(3) as threads:
                waiting = [threads.submit(admin.describe_topics, ["stays"]) for _ in range(3)]
                node.start()
                assert [one.result(30)["stays"].name for one in waiting] == ["stays"] * 3
        with pytest.raises(ClientClosed):
            admin.list_topics()
    assert threads_of_clients() <= before


def test_what_was_asked_is_counted(broker: Target) -> None:
    with Admin(bootstrap_servers=broker.bootstrap) as admin:
        assert admin.metrics()["request-total"] == 0
        admin.list_topics()
        counted = admin.metrics()
    assert (counted["request-total"], counted["response-total"]) == (1, 1)
    assert 0 < counted["request-latency-avg"] <= counted["request-latency-max"]


def test_a_failure_that_is_dropped_is_warned_about_at_the_line_that_dropped_it(admin: Admin) -> None:
    with pytest.warns(UnnoticedErrors, match="no good") as told:
        admin.create_topics(["no good"])
    assert told[0].filename == __file__
