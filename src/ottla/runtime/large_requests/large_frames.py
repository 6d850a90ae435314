"""Large frames: decoded at once if there are few entries in them, as in most, and else in steps.

A frame lies in the buffer into which all connections receive, or in one of its own. If it is not decoded when others
have their turn, it has to be in one of its own: its records are views of it.
"""

from collections.abc import Generator
from typing import TYPE_CHECKING

from ottla.base.errors import RemoteProtocolError
from ottla.base.lent import Lent, keep
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.runtime.pending_request import PendingRequest
from ottla.wire.frame import Request, decode_request_in_steps

if TYPE_CHECKING:
    from ottla.runtime.connection import Connection

_AT_ONCE_S = 0.005


def decode_large(connection: "Connection", frame: Lent | memoryview) -> Request | None:
    """None if it takes too long. Then the connection is paused, and takes the request when it is decoded."""
    server = connection.server
    steps = decode_request_in_steps(frame)
    ends_s = server.now_s() + _AT_ONCE_S
    while server.now_s() <= ends_s:
        try:
            next(steps)
        except StopIteration as end:
            return end.value  # type: ignore[no-any-return]
    if frame.obj is server.scratch.obj:
        steps = decode_request_in_steps(keep(frame))
    connection.session.client.pause()
    server.lane.add(None, _decode_and_take(connection, steps, len(frame)), connection.is_open)
    return None


def _decode_and_take(connection: "Connection", steps: Generator[None, None, Request], size: int) -> Steps:
    try:
        header, message = yield from steps
    except RemoteProtocolError as problem:
        connection.hang_up(problem)
        return
    except Exception as problem:
        connection.break_off(problem)
        return
    yield None
    connection.session.client.resume_with(lambda: connection.take(PendingRequest(connection, header, message, size)))
