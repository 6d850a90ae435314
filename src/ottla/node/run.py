"""Runs a node until it is told to stop: the loop, the signals, and what happens when something breaks.

The first SIGTERM, SIGHUP or Ctrl-C stops in good order; a second one at once. While the node waits for its quorum,
which may take for ever, the first one is enough: it has opened no partition yet. An exception that nobody expected
costs what it is about: a request, a partition, a group. One that comes as far as the loop belongs to none of them: it
is logged and counted, and the node continues. What does stop a node is in docs/decisions/0007-faults.md.
"""

import gc
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from ottla.node.config import NodeConfig
from ottla.node.descriptors import raise_descriptor_limit
from ottla.node.node import Node
from ottla.node.process_life import ProcessLife, StopSignals, no_collections
from ottla.node.real_world import real_world
from ottla.runtime.loop import NodeLoop
from ottla.runtime.procedure import wait_until

if TYPE_CHECKING:
    from ottla.node.faults.node_faults import NodeFaults
    from ottla.node.registry_inside import RegistryInside

_log = logging.getLogger(__name__)

BROKEN = 70
_RESTARTED = -1


class FaultsPort(NamedTuple):
    """Where faults may be asked for, and the token that it takes: see `ottla.node.faults`."""

    port: int
    token: str


def run_node(
    config: NodeConfig,
    *,
    may_format: bool,
    on_ready: Callable[[Node], None],
    stop_signals: StopSignals,
    faults: FaultsPort | None = None,
    on_opened: Callable[[int, int], None] | None = None,
    registry: Mapping[str, str] | None = None,
) -> int:
    """Returns the exit status. Raises `OttlaError` or `OSError` when the node cannot start.

    `on_opened` is called by other threads, with how many of how many logs are open. `registry` are the settings of a
    schema registry that is to run beside the node, in its process.
    """
    raise_descriptor_limit()
    loop = NodeLoop(config.values.integer("ottla.spin.max.us"))
    try:
        if faults is None:
            return _Run(
                loop,
                config,
                may_format,
                on_ready,
                stop_signals,
                registry=registry,
                on_opened=on_opened,
            ).run()
        return _run_with_faults(loop, config, may_format, on_ready, stop_signals, faults, registry)
    finally:
        loop.close()


def _run_with_faults(
    loop: NodeLoop,
    config: NodeConfig,
    may_format: bool,
    on_ready: Callable[[Node], None],
    stop_signals: StopSignals,
    port: FaultsPort,
    registry: Mapping[str, str] | None,
) -> int:
    """A node that tests may restart: then another is run, at the same addresses."""
    from ottla.node.faults.node_faults import NodeFaults

    faults = NodeFaults(loop, *port)

    def on_ready_at(node: Node) -> None:
        nonlocal config
        config = node.bound_config()
        on_ready(node)

    try:
        while True:
            run = _Run(loop, config, may_format, on_ready_at, stop_signals, faults, registry)
            status = run.run()
            if status != _RESTARTED:
                return status
            faults.on_down()
            # The node that is gone was put beyond the collector's reach when it had started.
            gc.unfreeze()
            gc.collect()
    finally:
        faults.close()


class _Run(ProcessLife):
    """A node."""

    def __init__(
        self,
        loop: NodeLoop,
        config: NodeConfig,
        may_format: bool,
        on_ready: Callable[[Node], None],
        stop_signals: StopSignals,
        faults: "NodeFaults | None" = None,
        registry: Mapping[str, str] | None = None,
        on_opened: Callable[[int, int], None] | None = None,
    ) -> None:
        super().__init__(loop, stop_signals, _log)
        self._node_id = config.node_id
        self._on_ready = on_ready
        self._faults = faults
        self._world = real_world(loop) if faults is None else faults.world
        around = None if faults is None else faults.around
        self._node = Node(
            self._world,
            config,
            may_format=may_format,
            failed=lambda: self._end(BROKEN),
            around=around,
            on_opened=on_opened,
        )
        self._node.loop_times = loop
        self._registry: RegistryInside | None = None
        if registry is not None:
            from ottla.node import registry_inside

            self._registry = registry_inside.RegistryInside(loop, registry)
        self._is_restarting = False
        loop.on_exception = self._on_exception

    def _abandon(self) -> None:
        if self._registry is not None:
            self._registry.abandon()
        self._node.abandon()

    def _can_be_left(self) -> bool:
        """It waits for its quorum, and has opened no partition."""
        return self._node.broker is None

    async def _live(self) -> int:
        if self._faults is not None:
            self._faults.on_restart = self._on_restart
            await self._faults.stay_down(self._tell_when_stopping)
        began_s = self._loop.time()
        with no_collections():
            await self._start()
        self._is_up = True
        _log.info(
            "Kafka Server started: node %s at %s, after %.2f s",
            self._node_id,
            self._node.summary()["address"],
            self._loop.time() - began_s,
        )
        self._on_ready(self._node)
        if self._faults is not None:
            self._faults.on_up()
        await wait_until(self._tell_when_stopping)
        began_s = self._loop.time()
        if self._registry is not None:
            await self._registry.stop()  # It needs the broker.
        await self._node.stop()
        _log.info("node %s has stopped, after %.2f s", self._node_id, self._loop.time() - began_s)
        return _RESTARTED if self._is_restarting else 0

    async def _start(self) -> None:
        node = self._node
        await node.start()
        if self._faults is not None:
            self._faults.listen()
            node.faults_address = self._faults.address
        if self._registry is not None:
            await self._registry.start(node)

    def _on_restart(self, clean: bool) -> None:
        self._is_restarting = True
        if clean:
            self._stop()
        else:
            self._end(_RESTARTED)

    def _on_exception(self, what: str, problem: BaseException | None) -> None:
        """While the node starts or stops, somebody may be waiting for what has failed: then it ends."""
        self._node.on_fault(what, problem)
        if not self._is_up or self._is_stopping:
            self._end(BROKEN)
