"""Topics for tests, made and deleted with one request each: no client has to be there, or to be imported.

The versions are ones that every Kafka broker since 2.4 serves, because the broker may be somebody else's.
"""

import re
import socket
import time
from collections.abc import Mapping
from typing import Any, Final

from ottla.base.errors import OttlaError
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message
from ottla.wire.messages import CreateTopicsRequest, DeleteTopicsRequest, ListOffsetsRequest

_CREATE_VERSION: Final = 5
_DELETE_VERSION: Final = 4
_LIST_OFFSETS_VERSION: Final = 5
_LATEST: Final = -1
# A partition that another broker leads answers NOT_LEADER_OR_FOLLOWER: there is nothing here to wait for.
_NOT_YET: Final = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.LEADER_NOT_AVAILABLE)
_USABLE_WITHIN_S: Final = 10.0
_POLL_S: Final = 0.005
_TIMEOUT_MS: Final = 30_000
_SOCKET_TIMEOUT_S: Final = 40.0
_LONGEST_NAME: Final = 249
_LARGEST_REPLY: Final = 1 << 20
_OF_THE_BROKERS_CHOICE: Final = -1

Address = tuple[str, int]


class TopicRefused(OttlaError):
    """The broker did not make or delete a topic; the message says why."""


def create_topic(
    address: Address, name: str, *, partitions: int = 1, settings: Mapping[str, object] | None = None
) -> None:
    """Comes back when the topic can be used. Raises `TopicRefused`, or `OSError` when the broker does not answer."""
    configs = [
        CreateTopicsRequest.CreatableTopicConfig(name=key, value=str(value)) for key, value in (settings or {}).items()
    ]
    topic = CreateTopicsRequest.CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=_OF_THE_BROKERS_CHOICE, configs=configs
    )
    reply = ask(address, CreateTopicsRequest(topics=[topic], timeout_ms=_TIMEOUT_MS), _CREATE_VERSION)
    (made,) = reply.topics
    if made.error_code:
        raise TopicRefused(f"topic {name} was not made: {ErrorCode(made.error_code).name}, {made.error_message}")
    wait_for_partitions(address, name, max(made.num_partitions, partitions))


def wait_for_partitions(address: Address, name: str, count: int) -> None:
    """A broker tells of a topic before it has made its logs, on a disk that the next line of a test may fill."""
    partitions = [
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=_LATEST) for index in range(count)
    ]
    asked = ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name=name, partitions=partitions)])
    deadline_s = time.monotonic() + _USABLE_WITHIN_S
    while time.monotonic() < deadline_s:
        (topic,) = ask(address, asked, _LIST_OFFSETS_VERSION).topics
        if not any(partition.error_code in _NOT_YET for partition in topic.partitions):
            return
        time.sleep(_POLL_S)


def delete_topic(address: Address, name: str) -> None:
    """One that is gone already counts as deleted."""
    reply = ask(address, DeleteTopicsRequest(topic_names=[name], timeout_ms=_TIMEOUT_MS), _DELETE_VERSION)
    (gone,) = reply.responses
    if gone.error_code not in (ErrorCode.NONE, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION):
        raise TopicRefused(f"topic {name} was not deleted: {ErrorCode(gone.error_code).name}")


def topic_name_for(test: str, unique: str) -> str:
    """A name that Kafka allows, in which a person finds the test again: `test_x[a b]` gives `test_x-a-b-<unique>`."""
    words = re.sub(r"[^A-Za-z0-9._-]+", "-", test).strip("-.") or "topic"
    return f"{words[: _LONGEST_NAME - len(unique) - 1]}-{unique}"


def ask(address: Address, request: Message, version: int) -> Any:
    """One request over a connection of its own, and the reply to it."""
    with socket.create_connection(address, _SOCKET_TIMEOUT_S) as connection:
        connection.sendall(encode_request(request, version, 1, "ottla-testing"))
        size = int.from_bytes(_receive(connection, 4))
        if size > _LARGEST_REPLY:
            raise OSError(f"{address[0]}:{address[1]} answers with {size} bytes: is it a Kafka broker?")
        frame = _receive(connection, size)
    return decode_response(response_type(request._schema.api_key), frame, version)[1]


def _receive(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise ConnectionResetError("the broker hung up before it had answered")
        data += more
    return data
