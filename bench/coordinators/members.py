"""Members of groups as scripts, many of them driven by one thread: requests are sent as fast as answers come.

A script is a generator. It yields a request and is sent the answer to it; it yields a number and is gone on with after
so many seconds. `run_members` gives each a connection of its own, because a JoinGroup holds up what comes after it.
"""

import heapq
import selectors
import struct
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

from wire_client import WireClient

from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message
from ottla.wire.messages import (
    ConsumerGroupHeartbeatRequest,
    HeartbeatRequest,
    JoinGroupRequest,
    LeaveGroupRequest,
    SyncGroupRequest,
)

VERSIONS = {JoinGroupRequest: 9, SyncGroupRequest: 5, HeartbeatRequest: 4, ConsumerGroupHeartbeatRequest: 1}
TIMEOUT_S = 60.0
SESSION_MS = 30_000

Step = Message | float
Script = Generator[Step, Any, None]


@dataclass(slots=True)
class Member:
    """What the group knows of a member: an epoch (or generation) that it has settled in, None while it has not."""

    group: str
    id: str
    epoch: int | None = None
    partitions: list[int] = field(default_factory=list)


def classic_script(member: Member, subscription: bytes, pause_s: float) -> Script:
    """Joins, syncs and keeps its session; joins again whenever the group says so."""
    protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="range", metadata=subscription)
    while True:
        joined = yield JoinGroupRequest(
            group_id=member.group,
            session_timeout_ms=SESSION_MS,
            rebalance_timeout_ms=SESSION_MS,
            member_id=member.id,
            protocol_type="consumer",
            protocols=[protocol],
        )
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            member.id = joined.member_id
            continue
        expect(joined.error_code)
        given = [
            SyncGroupRequest.SyncGroupRequestAssignment(member_id=each.member_id, assignment=bytes(20))
            for each in joined.members
        ]
        synced = yield SyncGroupRequest(
            group_id=member.group,
            generation_id=joined.generation_id,
            member_id=member.id,
            protocol_type="consumer",
            protocol_name="range",
            assignments=given,
        )
        error = synced.error_code
        while error != ErrorCode.REBALANCE_IN_PROGRESS:
            expect(error)
            member.epoch = joined.generation_id
            yield pause_s
            alive = yield HeartbeatRequest(
                group_id=member.group, generation_id=joined.generation_id, member_id=member.id
            )
            error = alive.error_code
        member.epoch = None


def consumer_script(member: Member, topic: str, pause_s: float) -> Script:
    """Heartbeats, and takes and gives back what it is told to at once (KIP-848)."""
    beat = ConsumerGroupHeartbeatRequest(
        group_id=member.group,
        member_id=member.id,
        member_epoch=0,
        rebalance_timeout_ms=SESSION_MS,
        subscribed_topic_names=[topic],
        topic_partitions=[],
    )
    while True:
        told = yield beat
        expect(told.error_code)
        member.epoch = told.member_epoch
        beat = ConsumerGroupHeartbeatRequest(
            group_id=member.group, member_id=member.id, member_epoch=told.member_epoch, rebalance_timeout_ms=-1
        )
        if told.assignment is None:
            yield pause_s
            continue
        owned = told.assignment.topic_partitions
        member.partitions = [partition for each in owned for partition in each.partitions]
        beat.topic_partitions = [
            ConsumerGroupHeartbeatRequest.TopicPartitions(topic_id=each.topic_id, partitions=each.partitions)
            for each in owned
        ]


def run_members(clients: list[WireClient], scripts: list[Script], done: Callable[[], bool]) -> float:
    """Seconds until `done`, which is asked after every answer that could have changed it."""
    started = time.perf_counter()
    with selectors.DefaultSelector() as selector:
        running = [_Running(client, script) for client, script in zip(clients, scripts, strict=True)]
        for each in running:
            selector.register(each.client.socket, selectors.EVENT_READ, each)
        resting: list[tuple[float, int, _Running]] = []

        def resume(each: _Running, step: Step) -> None:
            if isinstance(step, float):
                heapq.heappush(resting, (time.perf_counter() + step, id(each), each))
            else:
                each.ask(step)

        for each in running:
            resume(each, next(each.script))
        while not done():
            now = time.perf_counter()
            if now - started > TIMEOUT_S:
                raise RuntimeError(f"{len(running)} members have not settled in {TIMEOUT_S:.0f} s")
            wait_s = max(resting[0][0] - now, 0.0) if resting else 1.0
            for key, _ in selector.select(wait_s):
                for answer in key.data.answers():
                    resume(key.data, key.data.script.send(answer))
            while resting and resting[0][0] <= time.perf_counter():
                each = heapq.heappop(resting)[2]
                resume(each, next(each.script))
        return time.perf_counter() - started


class _Running:
    def __init__(self, client: WireClient, script: Script) -> None:
        self.client = client
        self.script = script
        self._asked: Message | None = None
        self._received = bytearray()

    def ask(self, request: Message) -> None:
        self._asked = request
        self.client.socket.sendall(encode_request(request, VERSIONS[type(request)], 1, "bench"))

    def answers(self) -> Iterator[Any]:
        """The answer to what was asked, once all of it is there."""
        some = self.client.socket.recv(1 << 20)
        if not some:
            raise ConnectionError("the node hung up")
        self._received += some
        if len(self._received) < 4 or len(self._received) < 4 + struct.unpack_from(">i", self._received)[0]:
            return
        frame, self._received = bytes(self._received[4:]), bytearray()
        assert self._asked is not None
        version = VERSIONS[type(self._asked)]
        yield decode_response(response_type(self._asked._schema.api_key), frame, version)[1]


def leave_classic(client: WireClient, members: list[Member]) -> None:
    leaving = [LeaveGroupRequest.MemberIdentity(member_id=member.id) for member in members]
    expect(client.ask(LeaveGroupRequest(group_id=members[0].group, members=leaving), 5).error_code)


def leave_consumer(client: WireClient, members: list[Member]) -> None:
    for member in members:
        leaving = ConsumerGroupHeartbeatRequest(group_id=member.group, member_id=member.id, member_epoch=-1)
        client.ask(leaving, 1)


def expect(error: int) -> None:
    if error:
        raise RuntimeError(f"a member is told {ErrorCode(error).name}")
