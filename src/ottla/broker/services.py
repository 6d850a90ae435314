"""How a handler gets what it needs: it names services, and is called with them.

A handler is a function `(services…, context, request, respond)`. The parameters before the context are names of the
broker's services: `partitions`, `metadata`, `groups`, `controller`, …; see `Broker`. So its first line says all that a
request of its API can touch, and a test needs to make no more than that.
"""

from collections.abc import Callable
from functools import partial
from types import FunctionType
from typing import Any

from ottla.runtime.request import Handler

_OF_THE_REQUEST = 3  # context, request, respond


def services_of(handler: Callable[..., None]) -> tuple[str, ...]:
    """The names of the services that a handler is called with, in order."""
    assert isinstance(handler, FunctionType)
    code = handler.__code__
    return code.co_varnames[: code.co_argcount - _OF_THE_REQUEST]


def bind(handler: Callable[..., None], broker: Any) -> Handler:
    """The handler with its services, for the requests of one API."""
    return partial(handler, *(getattr(broker, name) for name in services_of(handler)))
