"""What sticky assignors tell each other in their user data.

| assignor | data |
| --- | --- |
| sticky, version 0 | the partitions that the member was given, by topic |
| sticky, version 1 | the same, then the generation |
| cooperative-sticky | the generation; the partitions are in the subscription |

There is no version number: what is too short for version 1 is version 0, and what cannot be read says nothing.
"""

from collections.abc import Sequence
from struct import Struct, error
from typing import Final, NamedTuple

from ottla.base.ids import TopicPartition

NO_GENERATION: Final = -1
_INT32: Final = Struct(">i")
_INT16: Final = Struct(">h")


class Held(NamedTuple):
    """What a member was given, and when."""

    partitions: Sequence[TopicPartition]
    generation: int | None


def write_held(held: Held) -> bytes:
    by_topic: dict[str, list[int]] = {}
    for topic, partition in held.partitions:
        by_topic.setdefault(topic, []).append(partition)
    parts = [_INT32.pack(len(by_topic))]
    for topic, numbers in by_topic.items():
        name = topic.encode()
        parts += (_INT16.pack(len(name)), name, Struct(f">i{len(numbers)}i").pack(len(numbers), *numbers))
    parts.append(_INT32.pack(NO_GENERATION if held.generation is None else held.generation))
    return b"".join(parts)


def read_held(data: bytes) -> Held:
    try:
        partitions, position = _read_partitions(data)
    except (error, ValueError):
        return Held((), NO_GENERATION)
    if len(data) - position < _INT32.size:
        return Held(partitions, None)
    return Held(partitions, _INT32.unpack_from(data, position)[0])


def _read_partitions(data: bytes) -> tuple[list[TopicPartition], int]:
    """Raises `error` or `ValueError` for what no assignor has written."""
    (topic_count,) = _INT32.unpack_from(data, 0)
    position = _INT32.size
    partitions: list[TopicPartition] = []
    for _ in range(_checked(topic_count)):
        (size,) = _INT16.unpack_from(data, position)
        position += _INT16.size
        topic = data[position : position + _checked(size)].decode()
        position += size
        (count,) = _INT32.unpack_from(data, position)
        position += _INT32.size
        if _checked(count) * _INT32.size > len(data) - position:
            raise ValueError("more partitions than bytes")
        numbers = Struct(f">{count}i")
        partitions += (TopicPartition(topic, number) for number in numbers.unpack_from(data, position))
        position += numbers.size
    return partitions, position


def _checked(count: int) -> int:
    if count < 0:
        raise ValueError("a negative count")
    return count


def write_generation(generation: int) -> bytes:
    return _INT32.pack(generation)


def read_generation(data: bytes) -> int:
    return int(_INT32.unpack_from(data)[0]) if len(data) >= _INT32.size else NO_GENERATION
