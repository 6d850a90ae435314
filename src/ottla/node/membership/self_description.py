"""What brokers and controllers tell of themselves when they register: where they listen, and which features they serve.

The requests of the two have structs of their own for it, with the same fields; `kind` is the one to make.
"""

from collections.abc import Callable, Iterable
from typing import TypeVar

from ottla.machines.metadata.image.features import SERVED
from ottla.node.listeners import SECURITY_PROTOCOLS, Endpoint

T = TypeVar("T")


def listeners_as(kind: Callable[..., T], endpoints: Iterable[Endpoint]) -> list[T]:
    return [
        kind(
            name=endpoint.listener,
            host=endpoint.host,
            port=endpoint.port,
            security_protocol=SECURITY_PROTOCOLS.index(endpoint.protocol),
        )
        for endpoint in endpoints
    ]


def features_as(kind: Callable[..., T]) -> list[T]:
    return [
        kind(name=name, min_supported_version=supported.lowest, max_supported_version=supported.highest)
        for name, supported in SERVED.items()
    ]
