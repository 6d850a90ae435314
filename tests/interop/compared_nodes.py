"""Asks two nodes the same, and tells where their replies differ.

    pair = Pair(Side(kafka_addresses), Side(our_addresses))
    differences = pair.differences([*ask(MetadataRequest(topics=None), 0, 13)])

Theory of operation: requests are written once, for both sides. Where a side has a value of its own, a stand-in is
written instead: `topic_id("orders")`, or `SESSION` for the fetch session that the side opened last. It becomes the
side's own value when it is sent, and what comes back becomes the stand-in again; likewise a side's addresses, paths and
cluster id in any text. So these values are compared too, and a reply with another topic's id is a difference.

Apache Kafka's broker hears of a change a moment after the controller has answered it. Requests that only read are
therefore asked again for a while, until the replies agree.
"""

from __future__ import annotations

import socket
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

from ottla.base.ids import Uuid
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message, WireStruct
from ottla.wire.messages import CreateTopicsResponse, InitProducerIdResponse, ListOffsetsRequest, MetadataRequest

AGREE_WITHIN_S = 10.0
ANSWER_WITHIN_S = 15.0
SHOWN_CHARACTERS = 400
SESSION = 7_777_777
HUNG_UP = "the connection was closed"
SILENCE = "nothing was answered in time"
NO_ANSWER = "nothing was answered, as asked"

_TOPIC_ID = b"\0id\0"


def topic_id(name: str) -> Uuid:
    """Stands for the id that a side gave a topic."""
    assert len(name) <= 12, "a stand-in has sixteen bytes"
    return Uuid(_TOPIC_ID + name.encode().ljust(12, b"\0"))


@dataclass(frozen=True)
class Ask:
    """A request in one version. `to_controller` sends it to the controllers' listener."""

    request: Message
    version: int
    to_controller: bool = False

    @property
    def only_reads(self) -> bool:
        name = type(self.request).__name__
        return name.startswith(("Describe", "Metadata", "List", "ApiVersions"))

    @property
    def has_reply(self) -> bool:
        return getattr(self.request, "acks", None) != 0


@dataclass(frozen=True)
class Settle:
    """Waits until topics that were created can be written to."""

    topics: tuple[str, ...]


Step = Ask | Settle


def ask(request: Message, *versions: int) -> list[Ask]:
    return [Ask(request, version) for version in versions]


class Connection:
    """To one listener, one request at a time."""

    def __init__(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        self._socket = socket.create_connection((host, int(port)), timeout=ANSWER_WITHIN_S)

    def send(self, request: Message, version: int) -> Any:
        self._socket.sendall(encode_request(request, version, 1, "client"))
        try:
            (size,) = struct.unpack(">i", self._receive(4))
            frame = self._receive(size)
        except ConnectionError:
            return HUNG_UP
        except TimeoutError:
            return SILENCE
        return decode_response(response_type(request._schema.api_key), frame, version)[1]

    def send_only(self, request: Message, version: int) -> None:
        self._socket.sendall(encode_request(request, version, 1, "client"))

    def _receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            part = self._socket.recv(size - len(data))
            if not part:
                raise ConnectionError(HUNG_UP)
            data += part
        return data

    def close(self) -> None:
        self._socket.close()


@dataclass
class Side:
    """One of the two nodes. `own` are texts that only this side has, and what to call them."""

    broker: str
    controller: str
    own: dict[str, str] = field(default_factory=dict)
    topic_ids: dict[str, Uuid] = field(default_factory=dict)
    session_id: int = 0
    _connections: dict[bool, Connection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.own |= {self.broker: "<broker>", self.controller: "<controller>"}
        self._ports = {int(address.rpartition(":")[2]): name for address, name in self.own.items() if ":" in address}

    def send(self, asked: Ask) -> Any:
        """The reply, or what there was instead of one."""
        connection = self._connections.get(asked.to_controller)
        if connection is None:
            connection = Connection(self.controller if asked.to_controller else self.broker)
            self._connections[asked.to_controller] = connection
        request = self._with_own_values(asked.request)
        if not asked.has_reply:
            connection.send_only(request, asked.version)
            return NO_ANSWER
        reply = connection.send(request, asked.version)
        deadline = time.monotonic() + AGREE_WITHIN_S
        while _is_to_be_asked_again(reply) and time.monotonic() < deadline:
            time.sleep(0.05)
            reply = connection.send(request, asked.version)
        if reply in (HUNG_UP, SILENCE):
            self._connections.pop(asked.to_controller).close()
        else:
            self._note_own_values(reply)
        return reply

    def _note_own_values(self, reply: Message) -> None:
        self.session_id = getattr(reply, "session_id", 0) or self.session_id
        if isinstance(reply, CreateTopicsResponse):
            self.topic_ids |= {topic.name: topic.topic_id for topic in reply.topics if not topic.error_code}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.close()

    def settle(self, topics: Iterable[str]) -> None:
        deadline = time.monotonic() + AGREE_WITHIN_S
        for name in topics:
            while not self._is_ready(name):
                assert time.monotonic() < deadline, f"{name} is not ready after {AGREE_WITHIN_S} s"
                time.sleep(0.02)

    def _is_ready(self, name: str) -> bool:
        asked = MetadataRequest.MetadataRequestTopic(name=name)
        (topic,) = self.send(Ask(MetadataRequest(topics=[asked]), 12)).topics
        if topic.error_code or not topic.partitions:
            return False
        self.topic_ids[name] = topic.topic_id
        ends = [
            ListOffsetsRequest.ListOffsetsPartition(partition_index=partition.partition_index, timestamp=-1)
            for partition in topic.partitions
        ]
        topics = [ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=ends)]
        reply = self.send(Ask(ListOffsetsRequest(replica_id=-1, topics=topics), 9))
        return not any(partition.error_code for partition in reply.topics[0].partitions)

    def _with_own_values(self, request: Message) -> Message:
        request = deepcopy(request)
        for part in _structs(request):
            for name in part.__slots__:
                value = getattr(part, name)
                if isinstance(value, bytes) and value.startswith(_TOPIC_ID):
                    setattr(part, name, self.topic_ids[value[4:].rstrip(b"\0").decode()])
                elif name == "session_id" and value == SESSION:
                    part.session_id = self.session_id  # type: ignore[attr-defined]
        return request

    def stand_in(self, value: Any) -> Any:
        """A value of this side as both write it."""
        if isinstance(value, bytes) and len(value) == 16:
            return next((f"<id of {name}>" for name, found in self.topic_ids.items() if found == value), value)
        if isinstance(value, int):
            return self._ports.get(value, value)
        if isinstance(value, str):
            for text, name in self.own.items():
                value = value.replace(text, name)
        return value


def _is_to_be_asked_again(reply: Any) -> bool:
    """Kafka's broker answers so while it waits for producer ids from its controller."""
    return isinstance(reply, InitProducerIdResponse) and reply.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS


def _structs(part: Any) -> Iterator[WireStruct]:
    if isinstance(part, WireStruct):
        yield part
        for name in part.__slots__:
            yield from _structs(getattr(part, name))
    elif isinstance(part, list | tuple):
        for item in part:
            yield from _structs(item)


Rule = Callable[[Any], Any]


@dataclass
class Pair:
    """`rules` says by struct and field what becomes of a value before it is compared."""

    kafka: Side
    ours: Side
    rules: Mapping[str, Rule]

    def differences(self, steps: Iterable[Step]) -> list[str]:
        found: list[str] = []
        for step in steps:
            if isinstance(step, Settle):
                self.kafka.settle(step.topics)
                self.ours.settle(step.topics)
            else:
                found += self._compare(step)
        return found

    def _compare(self, asked: Ask) -> list[str]:
        deadline = time.monotonic() + AGREE_WITHIN_S
        while True:
            kafkas, ours = (self._comparable(side.send(asked), side) for side in (self.kafka, self.ours))
            if kafkas == ours:
                return []
            if not asked.only_reads or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        lines = [f"    {path}: Kafka {theirs!r}, we {mine!r}" for path, theirs, mine in _differ(kafkas, ours, "")]
        return [f"version {asked.version} of {asked.request!r}"[:SHOWN_CHARACTERS], *lines]

    def _comparable(self, value: Any, side: Side) -> Any:
        if isinstance(value, WireStruct):
            struct_name = type(value).__qualname__
            return {name: self._field(f"{struct_name}.{name}", getattr(value, name), side) for name in value.__slots__}
        if isinstance(value, list | tuple):
            return [self._comparable(item, side) for item in value]
        return side.stand_in(bytes(value) if isinstance(value, memoryview | bytearray) else value)

    def _field(self, path: str, value: Any, side: Side) -> Any:
        rule = self.rules.get(path) or self.rules.get(path.rpartition(".")[2])
        compared = self._comparable(value, side)
        return rule(compared) if rule is not None else compared


def _differ(kafkas: Any, ours: Any, path: str) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(kafkas, dict) and isinstance(ours, dict):
        for name in kafkas.keys() | ours.keys():
            yield from _differ(kafkas.get(name), ours.get(name), f"{path}.{name}")
    elif isinstance(kafkas, list) and isinstance(ours, list) and len(kafkas) == len(ours):
        for place, (theirs, mine) in enumerate(zip(kafkas, ours, strict=True)):
            yield from _differ(theirs, mine, f"{path}[{place}]")
    elif kafkas != ours:
        yield path, kafkas, ours
