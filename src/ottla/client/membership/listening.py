"""Waiting for the consumer to give partitions up or take them on."""

from collections.abc import Awaitable, Iterable
from contextlib import suppress

from ottla.base.ids import TopicPartition


def in_order(partitions: Iterable[TopicPartition]) -> tuple[TopicPartition, ...]:
    return tuple(sorted(partitions))


async def done(told: Awaitable[None] | None) -> None:
    """What the application's listener raises is told to the application, by the consumer; the member goes on."""
    if told is not None:
        with suppress(Exception):
            await told
