"""Runs a schema registry in a process of its own until it is told to stop: the loop, and the signals.

The first SIGTERM or Ctrl-C stops in good order, a second one at once; while it starts, the first one is enough.
"""

import logging
from collections.abc import Callable

from ottla.node.descriptors import raise_descriptor_limit
from ottla.node.process_life import ProcessLife, StopSignals, no_collections
from ottla.node.real_world import real_world
from ottla.node.registry_keys import token_keys
from ottla.registry.registry import Registry
from ottla.registry.settings import RegistrySettings
from ottla.runtime.loop import NodeLoop
from ottla.runtime.procedure import wait_until
from ottla.runtime.rate_limited_log import FaultLog

_log = logging.getLogger(__name__)

_SPIN_US = 100


def run_registry(
    settings: RegistrySettings, version: str, on_ready: Callable[[Registry], None], stop_signals: StopSignals
) -> int:
    """Returns the exit status. Raises `OttlaError`, `OSError` or `TimeoutError` when the registry cannot start."""
    raise_descriptor_limit()
    loop = NodeLoop(_SPIN_US)
    try:
        return _Run(loop, settings, version, on_ready, stop_signals).run()
    finally:
        loop.close()


class _Run(ProcessLife):
    """A registry."""

    def __init__(
        self,
        loop: NodeLoop,
        settings: RegistrySettings,
        version: str,
        on_ready: Callable[[Registry], None],
        stop_signals: StopSignals,
    ) -> None:
        super().__init__(loop, stop_signals, _log)
        self._on_ready = on_ready
        self._world = real_world(loop)
        self._faults = FaultLog(_log, self._world.timers.now_s)
        self._registry = Registry(self._world, settings, version=version, make_keys=token_keys(self._world))
        loop.on_exception = self._faults.error

    def _abandon(self) -> None:
        self._registry.abandon()
        self._world.timers.close()
        self._world.network.close()
        self._world.workers.close()

    async def _live(self) -> int:
        with no_collections():
            await self._registry.start()
        self._is_up = True
        self._on_ready(self._registry)
        await wait_until(self._tell_when_stopping)
        await self._registry.stop()
        return 0
