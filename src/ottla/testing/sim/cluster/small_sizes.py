"""Sizes that are small enough for a run: segments, indexes, moves and snapshots come to their limits within a minute.

Most are settings. Some are constants of the product, which no operator has a reason to change: `Sizes.in_force` puts
others in their place within a block. A seed draws each on its own, the product's own size among them, so that runs have
them in many combinations.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from random import Random
from typing import Final, NamedTuple
from unittest.mock import patch

_SETTINGS: Final[Mapping[str, tuple[int | None, ...]]] = {
    # A full index ends its segment. With fewer entries followers cannot keep up: a fetch reads from one segment.
    "log.index.size.max.bytes": (None, 120, 400),
    "log.index.interval.bytes": (None, 0, 200),
    "log.roll.ms": (None, 3_000),
    "log.segment.delete.delay.ms": (None, 500),
    "log.flush.offset.checkpoint.interval.ms": (50, 1_000, 60_000),
    "log.flush.start.offset.checkpoint.interval.ms": (50, 60_000),
    "replica.high.watermark.checkpoint.interval.ms": (100, 5_000),
    "replica.lag.time.max.ms": (None, 5_000),
    "replica.fetch.max.bytes": (None, 4_000),  # With less, followers cannot keep up.
    "replica.fetch.response.max.bytes": (None, 40_000),
    "log.cleaner.backoff.ms": (None, 500),
    "log.cleaner.min.cleanable.ratio": (None, 0),
    "metadata.log.segment.ms": (None, 2_000),
    "controller.quorum.fetch.max.bytes": (None, 1_000),
    "controller.quorum.fetch.snapshot.max.bytes": (None, 500),
}
_CONSTANTS: Final[Mapping[tuple[str, ...], tuple[int | None, ...]]] = {
    # The last part of a move, which the loop copies; and the least of the others.
    (
        "ottla.broker.partitions.moves.replica_copy.LAST_PART_BYTES",
        "ottla.broker.partitions.moves.replica_move.LAST_PART_BYTES",
    ): (None, 1, 1_000),
    ("ottla.broker.partitions.moves.replica_copy._LEAST_PART_BYTES",): (None, 500),
    ("ottla.broker.partitions.moves.replica_copy._SYNC_EVERY_BYTES",): (None, 3_000),
    ("ottla.broker.coordination.loading._SLICE_BYTES",): (None, 300),
    ("ottla.runtime.metadata.storage.snapshots._BATCH_BYTES",): (None, 300),
    ("ottla.runtime.metadata.storage.store._READ_BYTES",): (None, 1_000),
    ("ottla.runtime.server._SCRATCH_BYTES",): (None, 300, 5_000),
    ("ottla.runtime.peers.node_connections._SCRATCH_BYTES",): (None, 300, 5_000),
}


class Sizes(NamedTuple):
    """`settings` are of every node; `constants` are of the product, by their full names."""

    settings: Mapping[str, str] = {}
    constants: Mapping[str, int] = {}

    @contextmanager
    def in_force(self) -> Iterator[None]:
        """Within the block the product has these constants."""
        with ExitStack() as stack:
            for name, size in self.constants.items():
                module, _, constant = name.rpartition(".")
                stack.enter_context(patch.object(import_module(module), constant, size))
            yield


def draw_sizes(chance: Random) -> Sizes:
    settings = {name: chance.choice(sizes) for name, sizes in _SETTINGS.items()}
    constants: dict[str, int] = {}
    for names, sizes in _CONSTANTS.items():
        size = chance.choice(sizes)
        if size is not None:
            constants |= dict.fromkeys(names, size)
    return Sizes({name: str(size) for name, size in settings.items() if size is not None}, constants)
