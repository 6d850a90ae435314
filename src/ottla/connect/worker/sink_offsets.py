"""Where a sink connector is: the offsets of its consumer group, `connect-NAME` unless the connector names another."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking
from ottla.client.admin.groups.offsets import (
    alter_consumer_group_offsets,
    delete_consumer_group_offsets,
    list_consumer_group_offsets,
)
from ottla.client.admin.groups.removal import delete_groups
from ottla.client.errors import GroupIdNotFound, KafkaError
from ottla.connect.worker.decisions import OffsetChange
from ottla.connect.worker.refusals import Refused, bad_request
from ottla.connect.worker.state import Config

_TOPIC: Final = "kafka_topic"
_PARTITION: Final = "kafka_partition"
_OFFSET: Final = "kafka_offset"
_TIMEOUT_S: Final = 20.0
_BITS: Final = {"partition": 31, "offset": 63}
_MOST_DIGITS: Final = 30


def group_of(name: str, config: Config) -> str:
    return config.get("consumer.override.group.id") or f"connect-{name}"


def read_changes(changes: Sequence[OffsetChange]) -> dict[TopicPartition, int | None]:
    """What a request says of a sink's offsets; None: forgotten. Raises `Refused`."""
    read: dict[TopicPartition, int | None] = {}
    for partition, offset in changes:
        if partition is None:
            raise bad_request("The partition for a sink connector offset cannot be null or missing")
        if partition.get(_TOPIC) is None or partition.get(_PARTITION) is None:
            raise bad_request(
                f"The partition for a sink connector offset must contain the keys '{_TOPIC}' and '{_PARTITION}'"
            )
        topic = str(partition[_TOPIC])
        where = TopicPartition(topic, _whole(partition[_PARTITION], "partition", "Partition"))
        if offset is None:
            read[where] = None
        elif _OFFSET not in offset:
            raise bad_request(f"The offset for a sink connector should either be null or contain the key '{_OFFSET}'")
        else:
            read[where] = _whole(offset[_OFFSET], "offset", "Offset")
    return read


def _whole(value: Any, what: str, capital: str) -> int:
    text = str(value)
    bits = _BITS[what]
    is_number = not isinstance(value, bool) and text.removeprefix("-").isdecimal() and len(text) < _MOST_DIGITS
    if not is_number or not -(1 << bits) <= int(text) < 1 << bits:
        raise bad_request(
            f"Failed to parse the following Kafka {what} value in the provided offsets: '{text[:100]}'. {capital} "
            "values for sink connectors need to be integers."
        )
    return int(text)


async def listed(asking: Asking, group: str) -> list[dict[str, Any]]:
    """As the REST interface shows them."""
    results = await list_consumer_group_offsets(asking, [group], timeout=_TIMEOUT_S)
    try:
        committed = results[group]
    except GroupIdNotFound:
        return []
    found = sorted((partition, one) for partition, one in committed.items() if one is not None)
    return [
        {
            "partition": {_PARTITION: partition.partition, _TOPIC: partition.topic},
            "offset": {_OFFSET: one.offset},
        }
        for partition, one in found
    ]


async def alter(asking: Asking, name: str, group: str, changes: Mapping[TopicPartition, int | None]) -> None:
    """Raises `Refused`."""
    for partition, offset in changes.items():
        if offset is not None and offset < 0:
            raise bad_request(
                f"The offset {offset} for {partition.topic}-{partition.partition} is not possible: offsets begin at 0"
            )
    try:
        forgotten = [partition for partition, offset in changes.items() if offset is None]
        if forgotten:
            (await delete_consumer_group_offsets(asking, group, forgotten, timeout=_TIMEOUT_S)).raise_first()
        moved = {partition: offset for partition, offset in changes.items() if offset is not None}
        if moved:
            (await alter_consumer_group_offsets(asking, group, moved, timeout=_TIMEOUT_S)).raise_first()
    except KafkaError as problem:
        raise Refused(500, f"Failed to alter consumer group offsets for connector {name}: {problem}") from None


async def reset(asking: Asking, name: str, group: str) -> None:
    """Raises `Refused`."""
    try:
        (await delete_groups(asking, [group], timeout=_TIMEOUT_S)).raise_first()
    except GroupIdNotFound:
        return
    except KafkaError as problem:
        raise Refused(500, f"Failed to reset consumer group offsets for connector {name}: {problem}") from None
