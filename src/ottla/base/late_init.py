"""Constructors that are compiled when they are first called.

A class whose fields are only known when the program runs gets an `__init__` that was written for them and compiled: no
other is as fast to call. To compile it takes longer than all else in making a class, and most classes of a node are
never instantiated.
"""

from collections.abc import Callable
from typing import Any


def compile_init_later(cls: Any, compile_init: Callable[[], Callable[..., None]]) -> None:
    """Gives the class an `__init__` that is made by `compile_init` with the first object."""

    def __init__(self: Any, /, *values: Any, **named: Any) -> None:  # noqa: N807 - it is one
        cls.__init__ = compile_init()
        cls.__init__(self, *values, **named)

    cls.__init__ = __init__
