"""Ways to break a node, each of which a run must find. Each is a context manager: within it, nodes are broken so."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any, Final

from ottla.broker.partitions.partition import Partition
from ottla.log import recovery
from ottla.log.producer_state import ProducerState
from ottla.testing.sim.canaries.switched import switched
from ottla.wire.errors import ErrorCode


@contextmanager
def ack_before_flush() -> Iterator[None]:
    """Acknowledges before the disk has the record, where flush.messages=1 promises it."""
    append = Partition.append

    def append_and_tell(self: Partition, *arguments: Any, **named: Any) -> Any:
        appended = append(self, *arguments, **named)
        if self.awaits_flush and self.state is not None and self.state.on_local_end(self.log.log_end_offset):
            self.log.advance_high_watermark(self.state.high_watermark)
        return appended

    with switched(Partition, "append", append_and_tell):
        yield


@contextmanager
def keep_torn_batches() -> Iterator[None]:
    """After a power cut, takes batches for whole whose checksum is wrong."""
    with switched(recovery, "checksum_matches", lambda *arguments: True):
        yield


@contextmanager
def forget_sequences() -> Iterator[None]:
    """Takes every batch of an idempotent producer for a new one."""
    with switched(ProducerState, "check", lambda self, header, origin: (ErrorCode.NONE, None)):
        yield


@contextmanager
def forget_producers_at_start() -> Iterator[None]:
    """A node that starts knows none of the producers that wrote before."""
    with switched(recovery, "rebuild_producers", lambda *arguments: ProducerState()):
        yield


CANARIES: Final[dict[str, Callable[[], AbstractContextManager[None]]]] = {
    "ack-before-flush": ack_before_flush,
    "keep-torn-batches": keep_torn_batches,
    "forget-sequences": forget_sequences,
    "forget-producers-at-start": forget_producers_at_start,
}
