"""Waiting for what a cluster does after it has said yes: its nodes learn of a change one after the other."""

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
TIMEOUT_S = 60.0  # for a machine that is busy with other things; nobody waits for it where all is well


def eventually(observe: Callable[[], T], wanted: T) -> None:
    """Returns when `observe()` gives what is wanted, and fails with the last it gave."""
    deadline = time.monotonic() + TIMEOUT_S
    while (seen := observe()) != wanted:
        if time.monotonic() > deadline:
            raise AssertionError(f"{seen!r}, and not {wanted!r}, after {TIMEOUT_S} s")
        time.sleep(0.05)
