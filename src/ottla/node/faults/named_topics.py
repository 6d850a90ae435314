"""Which topics a request names, for faults that are about one topic."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.apis import ApiKey
from ottla.wire.message import Message, WireStruct

NameOf = Callable[[Uuid], str | None]
"""A topic's name by its id, as newer versions have it."""

_TOPICS: Final = ("topics",)

LISTS: Final[dict[int, tuple[str, ...]]] = {
    ApiKey.PRODUCE: ("topic_data",),
    ApiKey.FETCH: _TOPICS,
    ApiKey.LIST_OFFSETS: _TOPICS,
    ApiKey.METADATA: _TOPICS,
    ApiKey.OFFSET_COMMIT: _TOPICS,
    ApiKey.OFFSET_FETCH: _TOPICS,
    ApiKey.OFFSET_DELETE: _TOPICS,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: _TOPICS,
    ApiKey.DELETE_RECORDS: _TOPICS,
    ApiKey.ADD_PARTITIONS_TO_TXN: ("v3_and_below_topics", "topics"),
    ApiKey.TXN_OFFSET_COMMIT: _TOPICS,
    ApiKey.CREATE_TOPICS: _TOPICS,
    ApiKey.DELETE_TOPICS: ("topics", "topic_names"),
    ApiKey.CREATE_PARTITIONS: _TOPICS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: _TOPICS,
}
"""The lists of topics in the requests of each API that has some. Null stands for every topic."""

_INNER: Final = {ApiKey.OFFSET_FETCH: "groups", ApiKey.ADD_PARTITIONS_TO_TXN: "transactions"}
"""Where requests about several groups or transactions have a list in each."""


def topic_of(entry: Any, name_of: NameOf) -> str | None:
    """The topic that an entry of a request or a reply is about; None if it is about none, or an unknown one."""
    if isinstance(entry, str):
        return entry
    for attribute in ("name", "topic", "topic_name"):
        name = getattr(entry, attribute, None)
        if isinstance(name, str) and name:
            return name
    topic_id = getattr(entry, "topic_id", ZERO_UUID)
    return None if topic_id == ZERO_UUID else name_of(topic_id)


def topic_lists(request: Message, version: int) -> Iterator[tuple[WireStruct, str]]:
    """The structs of the request that have a list of topics in this version, and the list's name."""
    api_key = request._schema.api_key
    inner = _INNER.get(api_key)  # type: ignore[call-overload]
    for owner in (request, *(getattr(request, inner) if inner else ())):
        for field in owner._struct.fields:
            if field.attribute in LISTS[api_key] and version in field.versions:
                yield owner, field.attribute


def names(request: Message, version: int, topic: str, name_of: NameOf) -> bool:
    """Whether the request is about the topic, among others or with all."""
    for owner, attribute in topic_lists(request, version):
        entries = getattr(owner, attribute)
        if entries is None or any(topic_of(entry, name_of) == topic for entry in entries):
            return True
    return False
