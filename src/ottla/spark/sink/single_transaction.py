"""One transaction of the driver for a whole write: all of it, or nothing, and the broker sees to it.

This is how a batch is written (`df.write`), where nobody comes back after a crash to finish what was decided.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from secrets import token_hex
from typing import Final

from ottla.client.blocking.forwarding_producer import ForwardingProducer
from ottla.spark.sink.cluster_access import ClusterAccess
from ottla.spark.sink.decision import MOST_BYTES
from ottla.spark.sink.names import SinkNames
from ottla.spark.sink.row_sender import RowSender
from ottla.spark.sink.rows import Routing
from ottla.spark.sink.staging import send_staged, staged_batches
from ottla.spark.sink.task_writer import TaskResult

_NAMES: Final = SinkNames()
DRIVER_DEFAULTS: Final = {
    "batch.size": 512 << 10,
    "buffer.memory": 2 * MOST_BYTES,
    "max.request.size": MOST_BYTES,
    "transaction.timeout.ms": 600_000,
}


def send_results(
    producer: ForwardingProducer, access: ClusterAccess, routing: Routing, results: Sequence[TaskResult]
) -> None:
    """Sends what tasks left for the driver to write, within the producer's transaction."""
    sender = RowSender(producer, routing)
    for result in results:
        if result.inline is not None:
            sender.send(result.inline)
    for batch in staged_batches(access, chain.from_iterable(result.staged for result in results)):
        send_staged(producer, batch)
    sender.finish()


class SingleWriter:
    """Writes any number of batches, each in a transaction. Nothing is replayed, so any name will do for it."""

    def __init__(self, settings: Mapping[str, object], names: SinkNames = _NAMES) -> None:
        self._access = ClusterAccess(settings)
        self._producer = ForwardingProducer(
            {**DRIVER_DEFAULTS, **settings, "transactional.id": names.write_id(token_hex(8))}
        )

    def write(self, routing: Routing, results: Sequence[TaskResult]) -> None:
        """When it returns, all rows are there. A driver that is killed before has written nothing."""
        with self._producer.transaction():
            send_results(self._producer, self._access, routing, results)

    def close(self) -> None:
        self._producer.close(0)
        self._access.close()
