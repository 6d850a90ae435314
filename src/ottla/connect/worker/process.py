"""Runs a worker in a process of its own until it is told to stop: the loop, and the signals.

The first SIGTERM or Ctrl-C stops in good order: connectors, then the lead, then Spark. A second one stops at once.
"""

import logging
from collections.abc import Callable, Mapping

from ottla.connect.engine_port import Engine
from ottla.connect.worker.plugins import Plugins
from ottla.connect.worker.service import WorkerService
from ottla.connect.worker.settings import WorkerSettings
from ottla.connect.worker.worker import Worker
from ottla.node.process_life import ProcessLife, StopSignals
from ottla.node.real_world import real_world
from ottla.node.registry_keys import token_keys
from ottla.runtime.loop import NodeLoop
from ottla.runtime.procedure import wait_until
from ottla.runtime.rate_limited_log import FaultLog

_log = logging.getLogger(__name__)

_SPIN_US = 0


def run_worker(
    settings: WorkerSettings,
    plugins: Plugins,
    engine: Engine,
    version: str,
    environment: Mapping[str, str],
    on_ready: Callable[[WorkerService], None],
    stop_signals: StopSignals,
    on_loaded: Callable[[Worker], None] = lambda worker: None,
) -> int:
    """Returns the exit status. Raises `OttlaError`, `OSError` or `TimeoutError` when the worker cannot start."""
    loop = NodeLoop(_SPIN_US)
    try:
        return _Run(loop, settings, plugins, engine, version, environment, on_ready, stop_signals, on_loaded).run()
    finally:
        loop.close()


class _Run(ProcessLife):
    """A worker."""

    def __init__(
        self,
        loop: NodeLoop,
        settings: WorkerSettings,
        plugins: Plugins,
        engine: Engine,
        version: str,
        environment: Mapping[str, str],
        on_ready: Callable[[WorkerService], None],
        stop_signals: StopSignals,
        on_loaded: Callable[[Worker], None],
    ) -> None:
        super().__init__(loop, stop_signals, _log)
        self._on_ready = on_ready
        self._world = real_world(loop)
        self._faults = FaultLog(_log, self._world.timers.now_s)
        loop.on_exception = self._faults.error
        self._service = WorkerService(
            self._world,
            loop.call_soon_threadsafe,
            settings,
            plugins,
            engine,
            version,
            environment,
            on_loaded,
            token_keys(self._world),
        )

    def _abandon(self) -> None:
        self._service.abandon()
        self._world.timers.close()
        self._world.network.close()
        self._world.workers.close()

    async def _live(self) -> int:
        await self._service.start()
        self._is_up = True
        self._on_ready(self._service)
        await wait_until(self._tell_when_stopping)
        await self._service.stop()
        return 0
