"""Offsets as Spark's Kafka connector writes them: {"topic": {"0": 23, "1": -2}}, in options and in checkpoints.

In options, -2 stands for the beginning and -1 for the end of a partition. In a checkpoint there are only real offsets,
and beside them the ids of the topics, under a name that no topic can have: offsets mean nothing in a topic that was
deleted and made anew. A checkpoint of Spark's connector has no ids, and is read all the same.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from ottla.base.ids import TopicPartition
from ottla.spark.options import OptionError

LATEST: Final = -1
EARLIEST: Final = -2

Offsets = dict[TopicPartition, int]
TopicIds = dict[str, str]
OffsetsJson = dict[str, dict[str, Any]]
"""What Spark keeps in a checkpoint, after it was read as JSON."""


_IDS: Final = "#ids"


def to_json(offsets: Mapping[TopicPartition, int], ids: Mapping[str, str] | None = None) -> OffsetsJson:
    """Topics and partitions in order, as Spark's connector writes them: Spark compares offsets as text."""
    found: OffsetsJson = {}
    for partition in sorted(offsets):
        found.setdefault(partition.topic, {})[str(partition.partition)] = offsets[partition]
    if known := {topic: ids[topic] for topic in found if ids is not None and topic in ids}:
        found[_IDS] = known
    return found


def from_json(offsets: Mapping[str, Mapping[str, Any]]) -> Offsets:
    return {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in offsets.items()
        if topic != _IDS
        for partition, offset in partitions.items()
    }


def ids_from_json(offsets: Mapping[str, Mapping[str, Any]]) -> TopicIds:
    """The ids of the topics, as far as they were written."""
    return dict(offsets.get(_IDS, {}))


def parse_offsets(option: str, text: str, *, least: int) -> Offsets:
    """The value of an option, a number for each partition. Raises `OptionError`, which shows how it is written."""
    found: Offsets = {}
    for topic, partitions in _object(option, text).items():
        if not isinstance(partitions, dict):
            raise _malformed(option, text, f"topic {topic!r} has no partitions in braces")
        for partition, offset in partitions.items():
            if not partition.isdecimal():
                raise _malformed(option, text, f"{partition!r} of topic {topic!r} is not the number of a partition")
            if not isinstance(offset, int) or isinstance(offset, bool) or offset < least:
                raise _malformed(option, text, f"{topic}-{partition} has {offset!r}, not a number from {least} on")
            found[TopicPartition(topic, int(partition))] = offset
    return found


def parse_assignment(option: str, text: str) -> list[TopicPartition]:
    """{"topic": [0, 1]}"""
    found: list[TopicPartition] = []
    for topic, partitions in _object(option, text).items():
        if not isinstance(partitions, list) or not all(type(one) is int and one >= 0 for one in partitions):
            raise OptionError(
                f"option {option} is malformed: topic {topic!r} has no list of partitions; "
                f'it is written as {{"topic": [0, 1]}}, and is {text!r}'
            )
        found.extend(TopicPartition(topic, partition) for partition in partitions)
    if not found:
        raise OptionError(f"option {option} names no partition")
    return found


def _object(option: str, text: str) -> dict[str, Any]:
    try:
        read = json.loads(text)
    except ValueError as problem:
        raise _malformed(option, text, f"not JSON ({problem})") from None
    if not isinstance(read, dict):
        raise _malformed(option, text, "not an object of topics")
    return read


def _malformed(option: str, text: str, reason: str) -> OptionError:
    return OptionError(
        f'option {option} is malformed: {reason}; it is written as {{"topic": {{"0": 23, "1": 345}}}}, and is {text!r}'
    )
