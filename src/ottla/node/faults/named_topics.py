"""Which topics a request names, for faults that are about one topic."""

from collections.abc import Callable, Iterator
from typing import Any

from ottla.apis.description import NamedTopics
from ottla.apis.table import APIS
from ottla.base.ids import ZERO_UUID, Uuid
from ottla.wire.message import Message, WireStruct

NameOf = Callable[[Uuid], str | None]
"""A topic's name by its id, as newer versions have it."""


def named_topics(api_key: int) -> NamedTopics | None:
    """Where requests of an API name topics; None if they name none."""
    row = APIS.get(api_key)
    return row.topics if row is not None else None


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
    topics = named_topics(request._schema.api_key)
    assert topics is not None, "a fault about a topic is about an API that names some"
    for owner in (request, *(getattr(request, topics.inside) if topics.inside else ())):
        for field in owner._struct.fields:
            if field.attribute in topics.lists and version in field.versions:
                yield owner, field.attribute


def names(request: Message, version: int, topic: str, name_of: NameOf) -> bool:
    """Whether the request is about the topic, among others or with all."""
    for owner, attribute in topic_lists(request, version):
        entries = getattr(owner, attribute)
        if entries is None or any(topic_of(entry, name_of) == topic for entry in entries):
            return True
    return False
