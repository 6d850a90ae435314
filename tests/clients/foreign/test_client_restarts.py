"""A node that stops or is killed in the middle of producing: what was acknowledged is there, once, and in order.

The producers are idempotent. They go on sending while the node is away, and send again what they heard nothing about.
"""

import threading
import time
from collections.abc import Iterator
from itertools import count
from types import ModuleType
from typing import Any

import pytest

from tests.clients import confluent_client
from tests.interop.target import Target, a_target

TIMEOUT_S = 60
PAUSE_S = 0.001


@pytest.fixture
def restartable() -> Iterator[Target]:
    with a_target() as running:
        yield running


class Sending:
    """Sends ever larger numbers from a thread of its own, until told to stop."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)
        self._thread.start()

    def _send(self) -> None:
        for number in count():
            if self._stopping.is_set():
                return
            self.stream.send(number)
            time.sleep(PAUSE_S)

    def wait_for_acknowledgements(self, more: int) -> None:
        wanted = len(self.stream.acknowledged) + more
        deadline = time.monotonic() + TIMEOUT_S
        while len(self.stream.acknowledged) < wanted:
            assert time.monotonic() < deadline, f"waited in vain for acknowledgements; {self.stream.problems[:3]}"
            time.sleep(0.01)

    def finish(self) -> None:
        self._stopping.set()
        self._thread.join(TIMEOUT_S)
        self.stream.finish()


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_what_was_acknowledged_is_found_once_and_in_order(client: ModuleType, how: str, restartable: Target) -> None:
    confluent_client.Admin(restartable.bootstrap).create("numbers", 1, {})
    sending = Sending(client.Stream(restartable.bootstrap, "numbers"))
    for _ in range(2):
        sending.wait_for_acknowledgements(200)
        getattr(restartable, how)()
        restartable.start()
    sending.wait_for_acknowledgements(200)
    sending.finish()

    _, end = client.bounds(restartable.bootstrap, "numbers")
    found = [int(placed.record.value or b"") for placed in client.read(restartable.bootstrap, "numbers", end)]
    assert sending.stream.problems == []
    assert found == sorted(set(found)), "a record was doubled, or overtaken"
    assert set(sending.stream.acknowledged) <= set(found)
    assert len(sending.stream.acknowledged) >= 600
