"""The control port of a node with faults (`ottla start --faults`), asked from a test."""

import json
import time
from http.client import HTTPConnection
from typing import Any, Final

from ottla.base.errors import OttlaError

_TIMEOUT_S: Final = 120.0
_OPENS_WITHIN_S: Final = 10.0
_POLL_S: Final = 0.005


class FaultRefused(OttlaError):
    """The node did not do what a test asked for; the message says why."""


class FaultControl:
    """`ask` sends one command, and comes back when the node has carried it out."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}

    def ask(self, command: str, **parameters: object) -> Any:
        """Raises `FaultRefused` when the node says no, `OSError` when it does not answer."""
        deadline_s = time.monotonic() + _OPENS_WITHIN_S
        while True:
            try:
                return self._ask(command, json.dumps(parameters))
            except ConnectionRefusedError:  # A node opens this port a moment after those for clients.
                if time.monotonic() > deadline_s:
                    raise
                time.sleep(_POLL_S)

    def _ask(self, command: str, body: str) -> Any:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=_TIMEOUT_S)
        try:
            connection.request("POST", f"/{command}", body, self._headers)
            reply = connection.getresponse()
            content = json.loads(reply.read())
        finally:
            connection.close()
        if reply.status != 200:
            raise FaultRefused(f"{command}: {content['error']}")
        return content
