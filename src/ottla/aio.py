"""Clients for asyncio, imported when they are first named: `from ottla.aio import Admin`."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ottla.client.aio.admin import Admin as Admin
    from ottla.client.aio.consumer import Consumer as Consumer
    from ottla.client.aio.producer import Producer as Producer
    from ottla.client.aio.schema_registry import SchemaRegistryClient as SchemaRegistryClient

_PLACES = {
    "Admin": "ottla.client.aio.admin",
    "Consumer": "ottla.client.aio.consumer",
    "Producer": "ottla.client.aio.producer",
    "SchemaRegistryClient": "ottla.client.aio.schema_registry",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    found: object = getattr(import_module(_PLACES[name]), name)
    globals()[name] = found
    return found
