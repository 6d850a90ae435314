"""The audit log: one line of JSON for each thing that a client was refused.

The logger is `ottla.audit`, and has the level INFO unless it was given another: a node that otherwise tells of warnings
alone tells of refusals too. Names come from clients: JSON writes every character that is not plain as an escape, so a
name cannot begin a line of its own, and long ones are cut. A client that is refused a million times a second fills no
disk: at most `MOST_PER_SECOND` lines are written in a second, and the next one after that says how many were left out.
"""

import json
import logging
from collections.abc import Callable
from typing import Final

from ottla.wire.acls import AclOperation, AclResource

MOST_PER_SECOND: Final = 100
LONGEST_NAME: Final = 256

_log = logging.getLogger("ottla.audit")


class Denials:
    """`now_s` is the loop's clock."""

    def __init__(self, now_s: Callable[[], float]) -> None:
        self._now_s = now_s
        self._second = -1
        self._written = 0
        self._left_out = 0
        if _log.level == logging.NOTSET:
            _log.setLevel(logging.INFO)

    def note(
        self, principal: str, host: str, operation: AclOperation, resource: AclResource, name: str, api: str
    ) -> None:
        second = int(self._now_s())
        if second != self._second:
            self._second, self._written = second, 0
        if self._written >= MOST_PER_SECOND:
            self._left_out += 1
            return
        self._written += 1
        line: dict[str, object] = {
            "event": "denied",
            "principal": principal[:LONGEST_NAME],
            "host": host,
            "operation": operation.name,
            "resource": resource.name,
            "name": name[:LONGEST_NAME],
            "api": api,
        }
        if self._left_out:
            line["left_out"], self._left_out = self._left_out, 0
        _log.info("%s", json.dumps(line))
