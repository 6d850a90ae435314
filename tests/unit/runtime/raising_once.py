"""A handler that raises the first time it is called, and how time goes on after that."""

from collections.abc import Callable
from typing import Any

import pytest


class Fault(Exception):
    """A bug in a handler, that is: nobody expects it."""


def raise_once(monkeypatch: pytest.MonkeyPatch, owner: type, method: str) -> list[Any]:
    """Has the method raise at its first call. The list that is returned has an entry for each call."""
    calls: list[Any] = []
    real = getattr(owner, method)

    def patched(*arguments: Any, **fields: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 1:
            raise Fault(f"{owner.__name__}.{method}")
        return real(*arguments, **fields)

    monkeypatch.setattr(owner, method, patched)
    return calls


def faults_in(resume: Callable[[], None]) -> int:
    """Lets time go on, also after each `Fault` that reaches the loop; returns how many did."""
    count = 0
    while True:
        try:
            resume()
        except Fault:
            count += 1
        else:
            return count
