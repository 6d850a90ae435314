"""Decisions that are written and whose outcome waits for the high watermark."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.broker.coordination.gathered_batch import Outcome
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.runtime.request import ClientConnection
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.coordination.coordinator_log import CoordinatorLog

_NOBODY = ClientConnection(-1, "", "")


class Uncommitted(Operation):
    """All decisions of one batch: they are committed together."""

    __slots__ = ("_end_offset", "_log", "_waiting")

    def __init__(self, log: "CoordinatorLog", end_offset: int, waiting: Sequence[Outcome]) -> None:
        super().__init__(_NOBODY)
        self._log = log
        self._end_offset = end_offset
        self._waiting = waiting

    def is_done(self, place: Place) -> bool:
        return self._log.is_closed or self._is_committed()

    def _is_committed(self) -> bool:
        return self._log.partition.log.high_watermark >= self._end_offset

    def complete(self) -> None:
        if self._log.is_closed or self._log.partition.state is None:
            fail(self._waiting, ErrorCode.NOT_COORDINATOR)
        elif self._is_committed():
            give_out(self._waiting)
        else:
            fail(self._waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def give_out(waiting: Sequence[Outcome]) -> None:
    for outcome in waiting:
        outcome.tell()


def fail(waiting: Sequence[Outcome], error: ErrorCode) -> None:
    for outcome in waiting:
        outcome.refuse(error)
