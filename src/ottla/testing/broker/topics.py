"""Topics for tests, made and deleted with one request each: no client has to be there, or to be imported.

The versions are ones that every Kafka broker since 2.4 serves, because the broker may be somebody else's.
"""

import re
import socket
from collections.abc import Mapping
from typing import Any, Final

from ottla.base.errors import OttlaError
from ottla.wire.errors import ErrorCode
from ottla.wire.frame import decode_response, encode_request, response_type
from ottla.wire.message import Message
from ottla.wire.messages import CreateTopicsRequest, DeleteTopicsRequest

_CREATE_VERSION: Final = 5
_DELETE_VERSION: Final = 4
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
    """Raises `TopicRefused` when the broker says no, `OSError` when it does not answer."""
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
