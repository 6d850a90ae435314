"""Assignments as JSON: which replicas partitions have, and in which directories of their brokers.

What is wrong with a file is reported in the words of Kafka's tool, which scripts may know.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse

if TYPE_CHECKING:
    from ottla.client.admin.log_dirs import TopicPartitionReplica

ANY: Final = "any"
"""In place of a directory: the broker chooses."""

_ABSENT: Final = object()


class Assignment(NamedTuple):
    replicas: dict[TopicPartition, tuple[int, ...]]
    directories: dict[TopicPartitionReplica, str]
    """Of those replicas only for which the file names one."""


def read_text(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeError):
        raise Terse(f"Unable to read file {path}") from None


def topics_to_move(text: str) -> list[str]:
    topics = [_field(entry, "topic", str) for entry in _entries(text, "topics")]
    if twice := sorted(topic for topic, times in Counter(topics).items() if times > 1):
        raise Terse(f"List of topics to reassign contains duplicate entries: [{', '.join(twice)}]")
    return topics


def read_assignment(text: str) -> Assignment:
    """What the file says, sense or not: a partition that is in it twice has what is said last."""
    return _assignment(list(_listed(text)))


def read_sound_assignment(text: str) -> Assignment:
    """What may be executed."""
    listed = list(_listed(text))
    if not listed:
        raise Terse("Partition reassignment list cannot be empty")
    if not all(one.replicas for one in listed):
        raise Terse("Partition replica list cannot be empty")
    partitions = Counter(one.partition for one in listed)
    if twice := [str(partition) for partition, times in partitions.items() if times > 1]:
        raise Terse(f"Partition reassignment contains duplicate topic partitions: {','.join(twice)}")
    problems = [
        f"{one.partition} contains multiple entries for {','.join(brokers)}"
        for one in listed
        if (brokers := [str(broker) for broker, times in sorted(Counter(one.replicas).items()) if times > 1])
    ]
    if problems:
        raise Terse(f"Partition replica lists may not contain duplicate entries: {'. '.join(problems)}")
    return _assignment(listed)


def assignment_json(
    replicas: Mapping[TopicPartition, tuple[int, ...]], directories: Mapping[TopicPartitionReplica, str]
) -> str:
    import json

    from ottla.client.admin.log_dirs import TopicPartitionReplica

    partitions = [
        {
            "topic": partition.topic,
            "partition": partition.partition,
            "replicas": brokers,
            "log_dirs": [directories.get(TopicPartitionReplica(*partition, broker), ANY) for broker in brokers],
        }
        for partition, brokers in sorted(replicas.items())
    ]
    return json.dumps({"version": 1, "partitions": partitions}, separators=(",", ":"), ensure_ascii=False)


class _Listed(NamedTuple):
    partition: TopicPartition
    replicas: list[int]
    directories: list[str]


def _assignment(listed: list[_Listed]) -> Assignment:
    from ottla.client.admin.log_dirs import TopicPartitionReplica

    return Assignment(
        {one.partition: tuple(one.replicas) for one in listed},
        {
            TopicPartitionReplica(*one.partition, broker): directory
            for one in listed
            for broker, directory in zip(one.replicas, one.directories, strict=True)
            if directory != ANY
        },
    )


def _listed(text: str) -> Iterator[_Listed]:
    for entry in _entries(text, "partitions"):
        partition = TopicPartition(_field(entry, "topic", str), _field(entry, "partition", int))
        replicas = _list(entry, "replicas", int)
        directories = _list(entry, "log_dirs", str) if "log_dirs" in entry else [ANY] * len(replicas)
        if len(directories) != len(replicas):
            raise Terse(
                f"Size of replicas list {replicas} is different from size of log dirs list "
                f"[{', '.join(directories)}] for partition {partition}"
            )
        yield _Listed(partition, replicas, directories)


def _entries(text: str, name: str) -> Iterator[Mapping[str, Any]]:
    """The objects in the list of that name; none if there is no such list."""
    import json

    try:
        document = json.loads(text)
    except ValueError as problem:
        raise Terse(f"The input string is not a valid JSON: {problem}") from None
    document = _object(document)
    if (version := _field(document, "version", int) if "version" in document else 1) != 1:
        raise Terse(f"Not supported version field value {version}")
    entries = document.get(name, [])
    if not isinstance(entries, list):
        raise Terse(f"Expected JSON array, received {_shown(entries)}")
    return map(_object, entries)


def _object(value: object) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        raise Terse(f"Expected JSON object, received {_shown(value)}")
    return value


def _list(entry: Mapping[str, Any], name: str, kind: type) -> list[Any]:
    value = _present(entry, name)
    if not isinstance(value, list):
        raise Terse(f"Expected `JSON array` value, received {_shown(value)}")
    return [_typed(one, kind) for one in value]


def _field(entry: Mapping[str, Any], name: str, kind: type) -> Any:
    return _typed(_present(entry, name), kind)


def _present(entry: Mapping[str, Any], name: str) -> object:
    value = entry.get(name, _ABSENT)
    if value is _ABSENT:
        raise Terse(f"No such field exists: `{name}`")
    return value


def _typed(value: object, kind: type) -> Any:
    if type(value) is not kind or (isinstance(value, int) and not -(2**31) <= value < 2**31):
        raise Terse(f"Expected `{'Integer' if kind is int else 'String'}` value, received {_shown(value)}")
    return value


def _shown(value: object) -> str:
    import json

    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
