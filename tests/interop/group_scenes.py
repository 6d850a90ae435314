"""What members of classic groups and admins say to a coordinator, step by step; every reply is noted.

A scene is a function that is given a `Talk` with one node. What differs between any two runs (ids of members and
topics, addresses, times) is noted by stand-ins, numbered in the order in which they appear; so two nodes that behave
alike leave the same notes.
"""

from __future__ import annotations

import re
import socket
import struct
import time
from collections.abc import Callable
from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message, WireStruct
from ottla.wire.messages import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupHeartbeatRequest,
    ConsumerProtocolSubscription,
    CreateTopicsRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    ListGroupsRequest,
    MetadataRequest,
    OffsetCommitRequest,
    OffsetDeleteRequest,
    OffsetFetchRequest,
    SyncGroupRequest,
    TxnOffsetCommitRequest,
)
from ottla.wire.record_values import encode_versioned

ANSWER_WITHIN_S = 20.0
_GENERATED = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b|^[\w-]{22}$", re.ASCII)
_COORDINATOR_COMES = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)

_WITHOUT_ORDER = {"topics", "results", "groups", "members"}
"""Lists that Kafka gives in the order of its hash maps."""

Beat = ConsumerGroupHeartbeatRequest

Scene = Callable[["Talk"], None]


class StandIns:
    """Replaces what differs between any two runs; `topic_ids` are known by the names of their topics."""

    def __init__(self) -> None:
        self.topic_ids: dict[Uuid, str] = {}
        self.port = 0
        self._ids: dict[str, str] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, WireStruct):
            shown = {name: self.of(getattr(value, name)) for name in value.__slots__ if name != "unknown_tags"}
            for name in _WITHOUT_ORDER & shown.keys():
                shown[name] = sorted(shown[name], key=repr)
            if shown.get("error_message") and shown.get("error_code"):
                shown["error_message"] = "<words>"
            return {name: part for name, part in shown.items() if part not in (None, "", [], 0)}
        if isinstance(value, list | tuple):
            return [self.of(item) for item in value]
        if isinstance(value, bytes | bytearray | memoryview):
            value = bytes(value)
            return f"<id of {self.topic_ids[Uuid(value)]}>" if value in self.topic_ids else value
        if isinstance(value, str):
            return _GENERATED.sub(lambda found: self._ids.setdefault(found[0], f"<id {len(self._ids)}>"), value)
        return "<port>" if value == self.port else value


class Line:
    """One connection. A request may be sent now and its reply read later."""

    def __init__(self, address: str, client_id: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN_S)
        self._client_id = client_id
        self._asked: list[tuple[Message, int]] = []

    def send(self, request: Message, version: int) -> None:
        self._socket.sendall(encode_request(request, version, 1, self._client_id))
        self._asked.append((request, version))

    def receive(self) -> Any:
        request, version = self._asked.pop(0)
        (size,) = struct.unpack(">i", self._read(4))
        return decode_response(response_type(request._schema.api_key), self._read(size), version)[1]

    def _read(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            assert part, "the node hung up"
            data += part
        return data

    def close(self) -> None:
        self._socket.close()


class Talk:
    """With one node. `notes` are what was said, in order."""

    def __init__(self, address: str) -> None:
        self.notes: list[tuple[str, Any]] = []
        self.stand_ins = StandIns()
        self.stand_ins.port = int(address.rpartition(":")[2])
        self._address = address
        self._lines: dict[str, Line] = {}

    def line(self, client_id: str) -> Line:
        if client_id not in self._lines:
            self._lines[client_id] = Line(self._address, client_id)
        return self._lines[client_id]

    def close(self) -> None:
        for line in self._lines.values():
            line.close()

    def ask(self, request: Message, version: int, client_id: str = "client") -> Any:
        """Asks and notes the reply."""
        self.send(request, version, client_id)
        return self.receive(client_id)

    def send(self, request: Message, version: int, client_id: str) -> None:
        self.line(client_id).send(request, version)

    def receive(self, client_id: str) -> Any:
        line = self.line(client_id)
        request, version = line._asked[0]
        reply = line.receive()
        name = type(request).__name__.removesuffix("Request")
        self.notes.append((f"{client_id}: {name} {version}", self.stand_ins.of(reply)))
        return reply

    # Getting ready

    def create_topics(self, **partitions: int) -> None:
        line = self.line("setup")
        topics = [
            CreateTopicsRequest.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in partitions.items()
        ]
        line.send(CreateTopicsRequest(topics=topics, timeout_ms=10_000), 7)
        for topic in line.receive().topics:
            assert topic.error_code == ErrorCode.NONE, topic
            self.stand_ins.topic_ids[topic.topic_id] = topic.name
        self.await_leaders(*partitions)

    def await_leaders(self, *topics: str) -> None:
        asked = [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
        self._until(
            lambda: self._quietly(MetadataRequest(topics=asked), 12),
            lambda reply: all(
                topic.error_code == ErrorCode.NONE
                and topic.partitions
                and all(partition.error_code == ErrorCode.NONE for partition in topic.partitions)
                for topic in reply.topics
            ),
        )

    def find_coordinator(self, group_id: str) -> None:
        """The topic of the groups is there, and its partitions are loaded."""
        self._until(
            lambda: self._quietly(FindCoordinatorRequest(coordinator_keys=[group_id]), 4),
            lambda reply: reply.coordinators[0].error_code not in _COORDINATOR_COMES,
        )
        self._until(
            lambda: self._quietly(ListGroupsRequest(), 4),
            lambda reply: reply.error_code not in _COORDINATOR_COMES,
        )
        heartbeat = HeartbeatRequest(group_id=group_id, member_id="nobody")
        self._until(lambda: self._quietly(heartbeat, 4), lambda reply: reply.error_code == ErrorCode.UNKNOWN_MEMBER_ID)

    def _quietly(self, request: Message, version: int) -> Any:
        line = self.line("setup")
        line.send(request, version)
        return line.receive()

    @staticmethod
    def _until(ask: Callable[[], Any], is_good: Callable[[Any], bool]) -> None:
        deadline = time.monotonic() + ANSWER_WITHIN_S
        while not is_good(reply := ask()):
            assert time.monotonic() < deadline, reply
            time.sleep(0.05)


# What is said


def subscription(*topics: str) -> bytes:
    return encode_versioned(ConsumerProtocolSubscription(topics=topics, user_data=None), 1)


def join(group_id: str, member_id: str = "", **fields: Any) -> JoinGroupRequest:
    protocols = fields.pop("protocols", {"range": subscription("orders")})
    return JoinGroupRequest(
        **{
            "group_id": group_id,
            "member_id": member_id,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 60_000,
            "protocol_type": "consumer",
            "protocols": [
                JoinGroupRequest.JoinGroupRequestProtocol(name=name, metadata=metadata)
                for name, metadata in protocols.items()
            ],
            **fields,
        }
    )


def sync(group_id: str, member_id: str, generation: int, *given: tuple[str, bytes], **fields: Any) -> SyncGroupRequest:
    return SyncGroupRequest(
        **{
            "group_id": group_id,
            "member_id": member_id,
            "generation_id": generation,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "assignments": [
                SyncGroupRequest.SyncGroupRequestAssignment(member_id=to, assignment=assignment)
                for to, assignment in given
            ],
            **fields,
        }
    )


def heartbeat(group_id: str, member_id: str, generation: int, **fields: Any) -> HeartbeatRequest:
    return HeartbeatRequest(group_id=group_id, member_id=member_id, generation_id=generation, **fields)


def leave(group_id: str, *members: tuple[str, str | None]) -> LeaveGroupRequest:
    return LeaveGroupRequest(
        group_id=group_id,
        members=[
            LeaveGroupRequest.MemberIdentity(member_id=member_id, group_instance_id=instance_id)
            for member_id, instance_id in members
        ],
    )


def commit(group_id: str, *offsets: tuple[str, int, int], topic_id: Uuid | None = None, **fields: Any) -> Any:
    metadata = fields.pop("metadata", "a note")
    return OffsetCommitRequest(
        group_id=group_id,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                **({} if topic_id is None else {"topic_id": topic_id}),
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset, committed_metadata=metadata
                    )
                ],
            )
            for topic, index, offset in offsets
        ],
        **fields,
    )


def fetch(group_id: str, **topics: tuple[int, ...]) -> OffsetFetchRequest:
    """For one group; of no topics: all."""
    return OffsetFetchRequest(
        groups=[
            OffsetFetchRequest.OffsetFetchRequestGroup(
                group_id=group_id,
                topics=[
                    OffsetFetchRequest.OffsetFetchRequestTopics(name=name, partition_indexes=indexes)
                    for name, indexes in topics.items()
                ]
                or None,
            )
        ]
    )


def delete_offsets(group_id: str, **topics: tuple[int, ...]) -> OffsetDeleteRequest:
    return OffsetDeleteRequest(
        group_id=group_id,
        topics=[
            OffsetDeleteRequest.OffsetDeleteRequestTopic(
                name=name,
                partitions=[
                    OffsetDeleteRequest.OffsetDeleteRequestPartition(partition_index=index) for index in indexes
                ],
            )
            for name, indexes in topics.items()
        ],
    )


def new_member(talk: Talk, client_id: str, group_id: str, **fields: Any) -> str:
    """Asks for an id, and sends the JoinGroup that waits for the others."""
    member_id: str = talk.ask(join(group_id, **fields), 9, client_id).member_id
    talk.send(join(group_id, member_id, **fields), 9, client_id)
    return member_id


# Scenes


def one_member(talk: Talk) -> None:
    group = "alone"
    ann = new_member(talk, "ann", group)
    talk.receive("ann")
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(heartbeat(group, ann, 1), 4, "ann")
    talk.ask(commit(group, ("orders", 0, 1), member_id=ann, generation_id_or_member_epoch=1), 9, "ann")
    talk.ask(sync(group, ann, 1, (ann, b"everything")), 5, "ann")
    talk.ask(sync(group, ann, 1), 5, "ann")
    talk.ask(DescribeGroupsRequest(groups=[group], include_authorized_operations=True), 5)
    talk.ask(commit(group, ("orders", 0, 5), member_id=ann, generation_id_or_member_epoch=1), 9, "ann")
    talk.ask(commit(group, ("orders", 0, 6), member_id=ann, generation_id_or_member_epoch=0), 8, "ann")
    talk.ask(commit(group, ("orders", 0, 6), member_id="bob", generation_id_or_member_epoch=1), 8, "ann")
    talk.ask(commit(group, ("orders", 0, 6)), 8)
    talk.ask(fetch(group), 8)
    talk.ask(delete_offsets(group, orders=(0, 1), payments=(0,), nowhere=(0,)), 0)
    talk.ask(DeleteGroupsRequest(groups_names=[group, "nobody"]), 2)
    talk.ask(leave(group, (ann, None), ("nobody", None)), 5, "ann")
    talk.ask(heartbeat(group, ann, 1), 4, "ann")
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(delete_offsets(group, orders=(0, 1)), 0)
    talk.ask(fetch(group), 8)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    talk.ask(DescribeGroupsRequest(groups=[group, "never"]), 5)
    talk.ask(DescribeGroupsRequest(groups=[group]), 6)


def a_rebalance(talk: Talk) -> None:
    group = "several"
    ann = new_member(talk, "ann", group)
    talk.receive("ann")
    talk.ask(sync(group, ann, 1, (ann, b"all")), 5, "ann")
    bob = new_member(talk, "bob", group)
    while talk.line("ann2").send(heartbeat(group, ann, 1), 4) or (
        talk.line("ann2").receive().error_code != ErrorCode.REBALANCE_IN_PROGRESS
    ):
        time.sleep(0.02)
    talk.ask(sync(group, ann, 1), 5, "ann2")
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.send(join(group, ann), 9, "ann")
    talk.receive("ann"), talk.receive("bob")
    talk.ask(join(group, bob), 9, "bob")
    talk.send(sync(group, bob, 2), 5, "bob")
    talk.ask(sync(group, ann, 2, (ann, b"0"), (bob, b"1")), 5, "ann")
    talk.receive("bob")
    talk.ask(join(group, bob), 9, "bob")
    talk.ask(ListGroupsRequest(), 0)
    talk.ask(ListGroupsRequest(states_filter=["stable"], types_filter=["Classic"]), 5)
    talk.ask(ListGroupsRequest(states_filter=["Empty", "odd"]), 4)
    talk.ask(leave(group, (ann, None), (bob, None)), 5)
    talk.ask(ListGroupsRequest(states_filter=["Empty"]), 5)


def static_members(talk: Talk) -> None:
    group = "static"
    talk.send(join(group, group_instance_id="a"), 9, "ann")
    ann = talk.receive("ann").member_id
    talk.ask(sync(group, ann, 1, (ann, b"all"), group_instance_id="a"), 5, "ann")
    twin = talk.ask(join(group, group_instance_id="a"), 9, "twin").member_id
    talk.ask(heartbeat(group, ann, 1, group_instance_id="a"), 4, "ann")
    talk.ask(sync(group, twin, 1, group_instance_id="a"), 5, "twin")
    old = talk.ask(join(group, group_instance_id="a"), 8, "old").member_id
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(join(group, twin, group_instance_id="a"), 9, "twin")
    talk.ask(leave(group, (twin, "a"), ("", "b")), 5)
    talk.ask(heartbeat(group, old, 1, group_instance_id="a"), 4)
    talk.ask(leave(group, ("", "a")), 5)
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)


def refusals(talk: Talk) -> None:
    group = "refusing"
    for version in (0, 4, 6, 9):
        talk.ask(join(""), version)
        talk.ask(join(group, session_timeout_ms=1), version)
        talk.ask(join(group, "made up"), version)
        talk.ask(join(group, protocols={}), version)
    for version in (0, 4, 5):
        talk.ask(sync("", "nobody", 1), version)
        talk.ask(sync(group, "nobody", 1), version)
    talk.ask(sync(group, "nobody", 1, protocol_type=None), 5)
    for version in (0, 4):
        talk.ask(heartbeat("", "nobody", 1), version)
        talk.ask(heartbeat("nowhere", "nobody", 1), version)
    talk.ask(LeaveGroupRequest(group_id="nowhere", member_id="nobody"), 0)
    for version in (3, 5):
        talk.ask(leave("nowhere", ("nobody", None)), version)
    ann = new_member(talk, "ann", group)
    talk.receive("ann")
    talk.ask(join(group, protocol_type="connect"), 9)
    talk.ask(join(group, protocols={"sticky": b""}), 9)
    talk.ask(sync(group, ann, 7), 5)
    talk.ask(sync(group, ann, 1, protocol_name="sticky"), 5)
    talk.ask(sync(group, ann, 1, group_instance_id="a"), 5)
    talk.ask(heartbeat(group, ann, 9), 4)
    talk.ask(LeaveGroupRequest(group_id=group, member_id=ann), 2)


def offsets(talk: Talk) -> None:
    group = "offsets"
    orders = next(id for id, name in talk.stand_ins.topic_ids.items() if name == "orders")
    for version in (2, 5, 9):
        talk.ask(commit(group, ("orders", 0, version), ("nowhere", 0, 1), ("payments", 7, 1)), version)
    talk.ask(commit(group, ("", 1, 10), topic_id=orders), 10)
    talk.ask(commit(group, ("", 1, 10), topic_id=Uuid(b"no topic's id...")), 10)
    talk.ask(commit(group, ("payments", 0, 1), metadata="x" * 5000), 9)
    talk.ask(commit(group, ("payments", 0, 2), metadata=None), 9)
    talk.ask(commit("", ("payments", 0, 2)), 9)
    talk.ask(commit("other", ("payments", 0, 1), member_id="x", generation_id_or_member_epoch=4), 8)
    talk.ask(commit("other", ("payments", 0, 1), member_id="x", generation_id_or_member_epoch=4), 9)
    for version in (1, 2, 5, 7):
        topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name="orders", partition_indexes=(0, 5))]
        talk.ask(OffsetFetchRequest(group_id=group, topics=topics), version)
        talk.ask(OffsetFetchRequest(group_id="never", topics=topics), version)
    talk.ask(OffsetFetchRequest(group_id=group, topics=None), 7)
    talk.ask(fetch(group), 9)
    talk.ask(fetch(group), 10)
    several = fetch(group, orders=(0, 1), nowhere=(3,))
    several.groups += [*fetch("never").groups, *fetch("never", orders=(0,)).groups]
    talk.ask(several, 9)
    by_id = fetch(group, orders=(0, 1), nowhere=(3,))
    by_id.groups[0].topics[0].topic_id = orders  # type: ignore[index]
    by_id.groups[0].topics[1].topic_id = Uuid(b"no topic's id...")  # type: ignore[index]
    talk.ask(by_id, 10)
    talk.ask(DescribeGroupsRequest(groups=[group]), 5)
    talk.ask(delete_offsets(group, orders=(0, 9)), 0)
    talk.ask(delete_offsets("never", orders=(0,)), 0)
    talk.ask(fetch(group), 8)
    talk.ask(DeleteGroupsRequest(groups_names=[group, "", "never"]), 2)


def consumer_groups(talk: Talk) -> None:
    """KIP-848, with ids that the members choose, so that both sides have the same."""
    group = "consumers"
    orders = next(id for id, name in talk.stand_ins.topic_ids.items() if name == "orders")
    all_of_it = [Beat.TopicPartitions(topic_id=orders, partitions=(0, 1))]
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    for wrong in (
        {"member_epoch": 3},
        {"member_epoch": -1},
        {"member_epoch": -3},
        {},
        {**joining, "subscribed_topic_names": []},
        {**joining, "topic_partitions": all_of_it},
        {**joining, "rebalance_timeout_ms": -1},
        {**joining, "server_assignor": "mine"},
        {**joining, "instance_id": ""},
    ):
        talk.ask(beat(group, "ann", **wrong), 1)
    talk.ask(beat("", "ann", **joining), 1)
    talk.ask(beat(group, "ann", **joining), 0)
    talk.ask(beat(group, "ann", member_epoch=2), 0)
    talk.ask(beat(group, "ann", member_epoch=2, topic_partitions=all_of_it), 1)
    talk.ask(beat(group, "ann", member_epoch=9), 1)
    talk.ask(beat(group, "ann", member_epoch=1), 1)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group, "never", ""]), 0)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group], include_authorized_operations=True), 1)
    talk.ask(DescribeGroupsRequest(groups=[group]), 6)
    talk.ask(ListGroupsRequest(types_filter=["consumer"]), 5)
    talk.ask(commit(group, ("orders", 0, 5), member_id="ann", generation_id_or_member_epoch=2), 9)
    talk.ask(commit(group, ("orders", 0, 6), member_id="ann", generation_id_or_member_epoch=3), 9)
    talk.ask(commit(group, ("orders", 0, 6), member_id="bob", generation_id_or_member_epoch=2), 9)
    talk.ask(commit(group, ("orders", 0, 6), member_id="ann", generation_id_or_member_epoch=2), 8)
    talk.ask(delete_offsets(group, orders=(0,), payments=(0,)), 0)
    # A second member: what it is to have is given up first, and then it has it.
    talk.ask(beat(group, "bob", **joining, server_assignor="range"), 1)
    talk.ask(beat(group, "ann", member_epoch=2), 1)
    talk.ask(beat(group, "bob", member_epoch=3), 1)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    talk.ask(
        beat(group, "ann", member_epoch=2, topic_partitions=[Beat.TopicPartitions(topic_id=orders, partitions=(0,))]), 1
    )
    talk.ask(beat(group, "bob", member_epoch=3), 1)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    talk.ask(beat(group, "ann", member_epoch=-1), 1)
    talk.ask(beat(group, "bob", member_epoch=3), 1)
    talk.ask(beat(group, "bob", member_epoch=-1), 1)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)
    # Static members.
    group = "static consumers"
    talk.ask(beat(group, "ann", **joining, instance_id="a"), 1)
    talk.ask(beat(group, "twin", **joining, instance_id="a"), 1)
    talk.ask(beat(group, "ann", member_epoch=-2, instance_id="a"), 1)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    talk.ask(beat(group, "twin", **joining, instance_id="a"), 1)
    talk.ask(beat(group, "ann", member_epoch=2, instance_id="a"), 1)
    talk.ask(beat(group, "twin", member_epoch=-1, instance_id="a"), 1)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)


def a_static_consumer_that_is_away(talk: Talk) -> None:
    """Heartbeats that it sent before come late: with its last epoch, the one before that, and others."""
    group = "away"
    orders = next(id for id, name in talk.stand_ins.topic_ids.items() if name == "orders")
    first = [Beat.TopicPartitions(topic_id=orders, partitions=(0,))]
    joining = {"rebalance_timeout_ms": 60_000, "subscribed_topic_names": ["orders"], "topic_partitions": []}
    talk.ask(beat(group, "ann", **joining, instance_id="a"), 1)
    talk.ask(beat(group, "bob", **joining), 1)
    talk.ask(beat(group, "ann", member_epoch=2, topic_partitions=first, instance_id="a"), 1)
    talk.ask(beat(group, "bob", member_epoch=3), 1)
    talk.ask(beat(group, "ann", member_epoch=-2, instance_id="a"), 1)
    for epoch in (2, 3, 1, 4):
        for owned in (None, [], first):
            talk.ask(beat(group, "ann", member_epoch=epoch, topic_partitions=owned, instance_id="a"), 1)
    talk.ask(beat(group, "ann", member_epoch=2, topic_partitions=[]), 1)
    talk.ask(commit(group, ("orders", 0, 5), member_id="ann", generation_id_or_member_epoch=2), 9)
    talk.ask(commit(group, ("orders", 0, 5), member_id="ann", generation_id_or_member_epoch=-2), 9)
    talk.ask(beat(group, "ann", member_epoch=-2, instance_id="a"), 1)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=[group]), 1)
    talk.ask(beat(group, "ann", **joining, instance_id="a"), 1)
    talk.ask(beat(group, "ann", member_epoch=-1, instance_id="a"), 1)
    talk.ask(beat(group, "bob", member_epoch=-1), 1)
    talk.ask(DeleteGroupsRequest(groups_names=[group]), 2)


def the_group_without_a_name(talk: Talk) -> None:
    """It can keep offsets, and nothing else."""
    orders = next(id for id, name in talk.stand_ins.topic_ids.items() if name == "orders")
    for version in (2, 5, 8, 9):
        talk.ask(commit("", ("orders", 0, version), ("nowhere", 0, 1)), version)
        talk.ask(commit("", ("orders", 0, 1), member_id="x", generation_id_or_member_epoch=1), version)
    talk.ask(commit("", ("", 1, 10), topic_id=orders), 10)
    for version in (1, 2, 5, 7):
        topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name="orders", partition_indexes=(0, 5))]
        talk.ask(OffsetFetchRequest(group_id="", topics=topics), version)
    talk.ask(OffsetFetchRequest(group_id="", topics=None), 7)
    for version in (8, 9):
        talk.ask(fetch("", orders=(0, 1)), version)
        talk.ask(fetch(""), version)
    talk.ask(fetch(""), 10)
    talk.ask(txn_commit("", ("orders", 0, 7)), 3)
    talk.ask(txn_commit("", ("orders", 0, 7), member_id="x", generation_id=1), 3)
    for version in (0, 5, 6):
        talk.ask(DescribeGroupsRequest(groups=["", "never"]), version)
    talk.ask(ConsumerGroupDescribeRequest(group_ids=["", "never"]), 1)
    talk.ask(ListGroupsRequest(), 5)
    for version in (0, 4, 9):
        talk.ask(join("", "x"), version)
    talk.ask(sync("", "", 1), 5)
    talk.ask(heartbeat("", "", 1), 4)
    talk.ask(LeaveGroupRequest(group_id="", member_id="x"), 0)
    for version in (3, 5):
        talk.ask(leave("", ("x", None), ("", "y")), version)
    talk.ask(beat("", "x", member_epoch=1), 1)
    talk.ask(delete_offsets("", orders=(0, 9), nowhere=(0,)), 0)
    talk.ask(delete_offsets(""), 0)
    talk.ask(fetch(""), 9)
    talk.ask(DeleteGroupsRequest(groups_names=[""]), 2)
    talk.ask(fetch(""), 9)
    talk.ask(delete_offsets("", orders=(1,)), 0)


def txn_commit(group_id: str, *offsets: tuple[str, int, int], **fields: Any) -> TxnOffsetCommitRequest:
    """Of a producer that began nothing."""
    return TxnOffsetCommitRequest(
        transactional_id="nobody",
        group_id=group_id,
        producer_id=4711,
        producer_epoch=0,
        topics=[
            TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition(
                        partition_index=index, committed_offset=offset
                    )
                ],
            )
            for topic, index, offset in offsets
        ],
        **fields,
    )


def beat(group_id: str, member_id: str, **fields: Any) -> ConsumerGroupHeartbeatRequest:
    return Beat(group_id=group_id, member_id=member_id, **fields)


def coordinators(talk: Talk) -> None:
    for version in (0, 2, 3):
        talk.ask(FindCoordinatorRequest(key="a group", key_type=0), version)
    for version in (4, 6):
        talk.ask(FindCoordinatorRequest(coordinator_keys=["a group", ""], key_type=0), version)
    talk.ask(FindCoordinatorRequest(key="a group", key_type=9), 3)
    talk.ask(FindCoordinatorRequest(coordinator_keys=["a group"], key_type=9), 4)


SCENES: dict[str, Scene] = {
    scene.__name__.replace("_", " "): scene
    for scene in (
        one_member,
        a_rebalance,
        static_members,
        refusals,
        offsets,
        the_group_without_a_name,
        consumer_groups,
        a_static_consumer_that_is_away,
        coordinators,
    )
}
