"""What a connection is asked, and of the settings what every connection needs."""

from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.client.promise import Promise
from ottla.wire.message import Message
from ottla.wire.request_forms import Filled

Ask = Message | Callable[[int], Message | Filled]
"""A request, or what makes one for the version that is chosen."""


class ConnectionLimits(NamedTuple):
    """Of the settings what every connection needs."""

    client_id: str | None
    setup_timeout_ms: float
    receive_buffer_bytes: int
    send_buffer_bytes: int


class Asked(NamedTuple):
    api_key: int
    request: Ask
    newest: int | None
    has_response: bool
    deadline_s: float
    outcome: Promise[Any]
