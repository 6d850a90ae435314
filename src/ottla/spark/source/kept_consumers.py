"""The consumer of a worker's last task, kept for its next: connections, metadata and fetch sessions are still good.

A worker of Spark runs one task at a time and is used again, so in a stream of small micro-batches a task would spend
most of its time with connecting.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ottla.client.blocking.range_consumer import RangeConsumer

_kept: dict[tuple[tuple[str, str], ...], RangeConsumer] = {}
_MOST_KEPT = 2


@contextmanager
def kept_consumer(client_settings: Mapping[str, str]) -> Iterator[RangeConsumer]:
    """Nobody else has it meanwhile. After an error it is not kept: what it is in the middle of nobody knows."""
    key = tuple(sorted(client_settings.items()))
    consumer = _kept.pop(key, None)
    if consumer is None:
        consumer = RangeConsumer({**client_settings, "auto.offset.reset": "none", "enable.auto.commit": "false"})
    try:
        yield consumer
    except BaseException:
        consumer.close(timeout=1)
        raise
    _kept[key] = consumer
    while len(_kept) > _MOST_KEPT:
        _kept.pop(next(iter(_kept))).close(timeout=1)
