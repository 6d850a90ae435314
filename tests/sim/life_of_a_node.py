"""A life of a node with something of everything in it, and its transcript: `python life_of_a_node.py SEED` prints it.

Topics come, change and go; producers with and without transactions; groups of both protocols; settings; everything that
can be described. In between the node is killed, loses its power, and is stopped. Run again with the same seed, every
byte that was sent and every file is the same, in another process too.
"""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from ottla.records.builder import BatchBuilder
from ottla.testing.sim.simulated_node import SimulatedNode
from ottla.testing.sim.simulation import Simulation
from ottla.testing.sim.transcript import Transcript
from ottla.wire import messages as wire
from tests.sim.simulated_cluster import create_topics, fetch, node_maker, produce

NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS = 16, 14
MOST_TRIES = 1000
TOPICS = ("orders", "clicks", "payments", "returns", "stock")
FIRST_TIME_MS = 1_700_000_000_000
MINUTE_MS = 60_000


def live(seed: int) -> Transcript:
    simulation = Simulation(seed)
    make_node = node_maker(
        log_dirs="/data,/more,/most",
        metadata_log_dir="/metadata",
        log_cleaner_backoff_ms="1000",
        offsets_topic_num_partitions="5",
        transaction_state_log_num_partitions="5",
    )
    node = simulation.start(make_node)
    client = node.connect(name="admin")
    create_topics(client, *TOPICS, partitions=3)
    create_topics(client, "latest", cleanup_policy="compact", segment_bytes="1048576", min_cleanable_dirty_ratio="0.01")
    write(node)
    administer(client)
    classic_group(node, "readers")
    consumer_group(node, "watchers")
    transactions(node)
    silent_group(node, "silent")
    move(client)
    describe(client)
    node = simulation.start(make_node, node.kill())
    client = node.connect(name="admin after a kill")
    describe(client)
    transactions(node)
    compact(simulation, node)
    simulation.run_for(2 * MINUTE_MS)
    node = simulation.start(make_node, node.cut_power())
    client = node.connect(name="admin after a power cut")
    client.ask(wire.DeleteTopicsRequest(topics=[deleted(name) for name in TOPICS[:3]], timeout_ms=1000), 6)
    classic_group(node, "readers")
    describe(client)
    simulation.run_for(10 * MINUTE_MS)
    simulation.note_disk(node.stop())
    return simulation.transcript


def together(clients: list[Any], requests: list[tuple[Any, int]], most_ms: int = 60_000) -> list[Any]:
    """Each client's response to its request, all sent before any is waited for."""
    for client, (request, version) in zip(clients, requests, strict=True):
        client.send(request, version)
    simulation = clients[0]._simulation
    simulation.run_until(lambda: all(client.responses for client in clients), most_ms)
    return [client.responses.pop(0) for client in clients]


def write(node: SimulatedNode) -> None:
    writers = [node.connect(name=f"writer {number}") for number in range(4)]
    for topic in TOPICS:
        for number, writer in enumerate(writers):
            produce(writer, topic, number % 3, [b"%s %d" % (topic.encode(), one) for one in range(5)])
    for writer in writers:
        for topic in TOPICS:
            fetch(writer, topic, 1)
        writer.close()


def administer(client: Any) -> None:
    changed = [
        wire.IncrementalAlterConfigsRequest.AlterConfigsResource(
            resource_type=2,
            resource_name=topic,
            configs=[
                wire.IncrementalAlterConfigsRequest.AlterableConfig(name=name, config_operation=0, value=value)
                for name, value in (("retention.ms", "600000"), ("max.message.bytes", "100000"), ("flush.ms", "1000"))
            ],
        )
        for topic in TOPICS
    ]
    client.ask(wire.IncrementalAlterConfigsRequest(resources=changed), 1)
    counts = [wire.CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=6) for name in TOPICS[1:]]
    client.ask(wire.CreatePartitionsRequest(topics=counts, timeout_ms=1000), 3)
    quotas = wire.AlterClientQuotasRequest
    entries = [
        quotas.EntryData(
            entity=[
                quotas.EntityData(entity_type="user", entity_name=name),
                quotas.EntityData(entity_type="client-id", entity_name=f"{name}'s"),
            ],
            ops=[
                quotas.OpData(key=key, value=1000.0)
                for key in ("producer_byte_rate", "consumer_byte_rate", "request_percentage")
            ],
        )
        for name in ("anna", "bert", "carl")
    ]
    client.ask(quotas(entries=entries), 1)


def classic_group(node: SimulatedNode, group: str) -> None:
    """Three members join, share, commit and read it back; one of them leaves."""
    members = [node.connect(name=f"{group} {number}") for number in range(3)]
    found(members[0], group)
    protocols = [wire.JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=b"m") for name in ("range", "rr")]

    def join(member_id: str) -> wire.JoinGroupRequest:
        return wire.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=45_000,
            rebalance_timeout_ms=60_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=protocols,
        )

    for _ in range(MOST_TRIES):
        ids = [reply.member_id for reply in together(members, [(join(""), 9)] * 3)]
        if all(ids):
            break
    joined = together(members, [(join(member_id), 9) for member_id in ids])
    assert [reply.error_code for reply in joined] == [0, 0, 0]
    assignments = [
        wire.SyncGroupRequest.SyncGroupRequestAssignment(member_id=one, assignment=one.encode()) for one in ids
    ]
    together(
        members,
        [
            (
                wire.SyncGroupRequest(
                    group_id=group,
                    generation_id=reply.generation_id,
                    member_id=reply.member_id,
                    protocol_type="consumer",
                    protocol_name=reply.protocol_name,
                    assignments=assignments if reply.leader == reply.member_id else [],
                ),
                5,
            )
            for reply in joined
        ],
    )
    together(members, [(committed(group, reply.member_id, reply.generation_id), 8) for reply in joined])
    leaving = [wire.LeaveGroupRequest.MemberIdentity(member_id=ids[0])]
    members[0].ask(wire.LeaveGroupRequest(group_id=group, members=leaving), 5)
    groups = [wire.OffsetFetchRequest.OffsetFetchRequestGroup(group_id=group, topics=None)]
    members[1].ask(wire.OffsetFetchRequest(groups=groups), 8)


def silent_group(node: SimulatedNode, group: str) -> None:
    """Members that join and never ask for their part, and others that never come back with the id they were given."""
    members = [node.connect(name=f"{group} {number}") for number in range(6)]
    found(members[0], group)
    protocols = [wire.JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=b"m")]

    def join(member_id: str, version: int) -> tuple[wire.JoinGroupRequest, int]:
        request = wire.JoinGroupRequest(
            group_id=group,
            session_timeout_ms=30_000,
            rebalance_timeout_ms=10_000,
            member_id=member_id,
            protocol_type="consumer",
            protocols=protocols,
        )
        return request, version

    for _ in range(MOST_TRIES):
        first = together(members[:1], [join("", 3)])
        if not first[0].error_code:
            break
    together(members[3:], [join("", 9)] * 3)
    together(members[:3], [join("", 3), join("", 3), join(first[0].member_id, 3)])
    members[0]._simulation.run_for(2 * MINUTE_MS)


def move(client: Any) -> None:
    """Replicas go to other directories, several at a time."""
    of_path = wire.AlterReplicaLogDirsRequest.AlterReplicaLogDir
    of_topic = wire.AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic
    dirs = [
        of_path(path=path, topics=[of_topic(name=name, partitions=[0, 1, 2]) for name in names])
        for path, names in (("/more", TOPICS[:2]), ("/most", TOPICS[2:4]))
    ]
    client.ask(wire.AlterReplicaLogDirsRequest(dirs=dirs), 2)
    client._simulation.run_for(MINUTE_MS)


def committed(group: str, member_id: str, generation_id: int) -> wire.OffsetCommitRequest:
    return wire.OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=generation_id,
        member_id=member_id,
        topics=[
            wire.OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    wire.OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=3, committed_metadata=""
                    )
                    for index in range(3)
                ],
            )
            for topic in TOPICS
        ],
    )


def consumer_group(node: SimulatedNode, group: str) -> None:
    """Members of the new protocol (KIP-848), by names and by a pattern, until each has its part."""
    members = [node.connect(name=f"{group} {number}") for number in range(3)]
    found(members[0], group)
    ids = [f"member-{number}" for number in range(3)]
    epochs = [0, 0, 0]
    turn = 0
    for _ in range(MOST_TRIES):
        replies = together(
            members,
            [
                (
                    wire.ConsumerGroupHeartbeatRequest(
                        group_id=group,
                        member_id=ids[number],
                        member_epoch=epochs[number],
                        rebalance_timeout_ms=60_000 if turn == 0 else -1,
                        subscribed_topic_names=None if turn else ([] if number == 2 else list(TOPICS[number:])),
                        subscribed_topic_regex="[a-p].*s" if number == 2 and turn == 0 else None,
                        topic_partitions=[] if turn == 0 else None,
                    ),
                    1,
                )
                for number in range(3)
            ],
        )
        if any(reply.error_code in (NOT_COORDINATOR, COORDINATOR_LOAD_IN_PROGRESS) for reply in replies):
            continue
        assert [reply.error_code for reply in replies] == [0, 0, 0], replies
        epochs = [reply.member_epoch for reply in replies]
        turn += 1
        if turn == 6:
            break
    members[0].ask(wire.ConsumerGroupDescribeRequest(group_ids=[group]), 1)


def found(client: Any, key: str, key_type: int = 0) -> None:
    """The coordinator is asked for until it is there, as clients do."""
    for _ in range(MOST_TRIES):
        reply = client.ask(wire.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key]), 4)
        if not reply.coordinators[0].error_code:
            return
    raise AssertionError(f"no coordinator for {key}")


def asked_until(client: Any, request: Any, version: int, is_done: Callable[[Any], bool]) -> Any:
    for _ in range(MOST_TRIES):
        reply = client.ask(request, version)
        if is_done(reply):
            return reply
    raise AssertionError(f"{request!r} was not answered as it should be, last {reply!r}")


def transactions(node: SimulatedNode) -> None:
    """Three producers, whose transactions lie beside each other; one commits offsets too, one aborts."""
    producers = [node.connect(name=f"producer {number}") for number in range(3)]
    for number, producer in enumerate(producers):
        found(producer, f"txn-{number}", key_type=1)
    made = [
        asked_until(
            producer,
            wire.InitProducerIdRequest(transactional_id=f"txn-{number}", transaction_timeout_ms=60_000),
            5,
            lambda reply: not reply.error_code,
        )
        for number, producer in enumerate(producers)
    ]
    for number, producer in enumerate(producers):
        one = made[number]
        topics = [
            wire.AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name=name, partitions=[0, 1, 2])
            for name in TOPICS[3:]
        ]
        added = wire.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=f"txn-{number}",
            v3_and_below_producer_id=one.producer_id,
            v3_and_below_producer_epoch=one.producer_epoch,
            v3_and_below_topics=topics,
        )
        asked_until(producer, added, 3, lambda reply: not any(errors(reply.results_by_topic_v3_and_below)))
        producer.ask(transactional(f"txn-{number}", one), 9)
    producers[0].ask(wire.DescribeTransactionsRequest(transactional_ids=["txn-0", "txn-1", "txn-2"]), 0)
    producers[0].ask(wire.ListTransactionsRequest(), 1)
    together(
        producers,
        [
            (
                wire.EndTxnRequest(
                    transactional_id=f"txn-{number}",
                    producer_id=one.producer_id,
                    producer_epoch=one.producer_epoch,
                    committed=number != 1,
                ),
                4,
            )
            for number, one in enumerate(made)
        ],
    )
    producers[0].ask(
        wire.DescribeProducersRequest(
            topics=[
                wire.DescribeProducersRequest.TopicRequest(name=name, partition_indexes=[0, 1, 2])
                for name in TOPICS[3:]
            ]
        ),
        0,
    )


def errors(topics: Any) -> Iterator[int]:
    return (one.partition_error_code for topic in topics for one in topic.results_by_partition)


def transactional(transactional_id: str, made: Any) -> wire.ProduceRequest:
    def records() -> bytearray:
        builder = BatchBuilder(
            producer_id=made.producer_id,
            producer_epoch=made.producer_epoch,
            base_sequence=0,
            transactional=True,
        )
        builder.append(FIRST_TIME_MS, b"key", transactional_id.encode())
        return builder.build()

    return wire.ProduceRequest(
        transactional_id=transactional_id,
        acks=-1,
        timeout_ms=30_000,
        topic_data=[
            wire.ProduceRequest.TopicProduceData(
                name=name,
                partition_data=[
                    wire.ProduceRequest.PartitionProduceData(index=index, records=records()) for index in range(3)
                ],
            )
            for name in TOPICS[3:]
        ],
    )


def compact(simulation: Simulation, node: SimulatedNode) -> None:
    """Fills a compacted topic so that it is cleaned."""
    writer = node.connect(name="compacted")
    for number in range(60):
        produce(writer, "latest", 0, [b"%d" % number * 30_000], key=b"%d" % (number % 3))
    simulation.run_for(MINUTE_MS)


def deleted(name: str) -> wire.DeleteTopicsRequest.DeleteTopicState:
    return wire.DeleteTopicsRequest.DeleteTopicState(name=name)


def describe(client: Any) -> None:
    """Everything that has an order to get wrong."""
    resource = wire.DescribeConfigsRequest.DescribeConfigsResource
    client.ask(wire.MetadataRequest(topics=None), 13)
    client.ask(wire.ApiVersionsRequest(client_software_name="sim", client_software_version="1"), 4)
    client.ask(wire.DescribeClusterRequest(), 2)
    client.ask(wire.DescribeTopicPartitionsRequest(response_partition_limit=2000), 0)
    client.ask(wire.DescribeLogDirsRequest(topics=None), 4)
    client.ask(wire.ListGroupsRequest(), 5)
    client.ask(wire.DescribeGroupsRequest(groups=["readers", "watchers"]), 6)
    client.ask(wire.DescribeClientQuotasRequest(components=[], strict=False), 1)
    client.ask(
        wire.DescribeConfigsRequest(
            resources=[
                resource(resource_type=2, resource_name="orders", configuration_keys=None),
                resource(resource_type=4, resource_name="1", configuration_keys=None),
                resource(resource_type=8, resource_name="1", configuration_keys=None),
            ],
            include_synonyms=True,
        ),
        4,
    )
    client.ask(wire.DescribeQuorumRequest(topics=quorum()), 2)
    client.ask(wire.ListTransactionsRequest(), 1)
    client.ask(
        wire.ListOffsetsRequest(
            replica_id=-1,
            topics=[
                wire.ListOffsetsRequest.ListOffsetsTopic(
                    name=name,
                    partitions=[
                        wire.ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1)
                        for index in range(3)
                    ],
                )
                for name in TOPICS
            ],
        ),
        7,
    )


def quorum() -> list[wire.DescribeQuorumRequest.TopicData]:
    partition = wire.DescribeQuorumRequest.PartitionData(partition_index=0)
    return [wire.DescribeQuorumRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])]


if __name__ == "__main__":
    print("\n".join(live(int(sys.argv[1])).lines))
