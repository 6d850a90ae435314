"""A schema registry in the process of a node. It is a client of the node's own broker, as one beside it would be.

It has a world of its own on the node's loop, so that it comes and goes by itself: it starts when the node is up, and is
stopped before the node is.
"""

from collections.abc import Mapping

from ottla import __version__
from ottla.node.node import Node
from ottla.node.real_world import real_world
from ottla.node.registry_keys import token_keys
from ottla.registry.registry import Registry
from ottla.registry.settings import read_registry_settings
from ottla.runtime.loop import NodeLoop


class RegistryInside:
    """`start` and `stop` are run as a `Procedure`."""

    def __init__(self, loop: NodeLoop, properties: Mapping[str, str]) -> None:
        self._properties = dict(properties)
        self._world = real_world(loop)
        self._registry: Registry | None = None

    async def start(self, node: Node) -> None:
        """Raises `OttlaError`, `OSError` or `TimeoutError` when it cannot."""
        self._properties.setdefault("kafkastore.bootstrap.servers", node.summary()["address"])
        settings = read_registry_settings(self._properties)
        registry = self._registry = Registry(
            self._world, settings, version=__version__, make_keys=token_keys(self._world)
        )
        await registry.start()
        node.registry_address = registry.summary()["address"]

    async def stop(self) -> None:
        if self._registry is not None:
            await self._registry.stop()

    def abandon(self) -> None:
        if self._registry is not None:
            self._registry.abandon()
        self._world.timers.close()
        self._world.network.close()
        self._world.workers.close()
