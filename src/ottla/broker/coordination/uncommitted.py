"""Decisions that are written and whose outcome waits for the high watermark."""

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ottla.broker.coordination.gathered_batch import Waiting
from ottla.broker.partitions.purgatory import Operation, Place
from ottla.runtime.attribution import Attributed, work_for
from ottla.runtime.request import ClientConnection
from ottla.wire.errors import ErrorCode

if TYPE_CHECKING:
    from ottla.broker.coordination.coordinator_log import CoordinatorLog

_log = logging.getLogger(__name__)
_NOBODY = ClientConnection(-1, "", "")


class Uncommitted(Operation):
    """All decisions of one batch: they are committed together."""

    __slots__ = ("_end_offset", "_log", "_waiting")

    def __init__(self, log: "CoordinatorLog", end_offset: int, waiting: Sequence[Waiting]) -> None:
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


def give_out(waiting: Sequence[Waiting]) -> None:
    """Tells everybody what was decided. A client that cannot be told keeps no other from being told."""
    for one in waiting:
        _tell(one, one.request, one.then, one.reply)
        for waiter, answer in one.answers:
            _tell(one, None, waiter.failed if isinstance(answer, ErrorCode) else waiter.then, answer)


def fail(waiting: Sequence[Waiting], error: ErrorCode) -> None:
    for one in waiting:
        _tell(one, one.request, one.failed, error)
        for waiter, _ in one.answers:
            _tell(one, None, waiter.failed, error)


def _tell(decision: Waiting, request: Attributed | None, callback: Callable[[Any], None], outcome: object) -> None:
    """What goes wrong is the request's that is told; a waiter has its own request."""
    try:
        work_for(request, callback, outcome)
    except Exception:
        _log.exception("the outcome of a decision about %s could not be told", decision.subject)
