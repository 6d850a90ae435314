"""Replaces an attribute of a class or module of the product, within a block."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def switched(owner: Any, name: str, replacement: Any) -> Iterator[None]:
    original = vars(owner)[name]
    setattr(owner, name, replacement)
    try:
        yield
    finally:
        setattr(owner, name, original)
