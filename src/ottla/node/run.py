"""Runs a node until it is told to stop: the loop, the signals, and what happens when something breaks.

The first SIGTERM or Ctrl-C stops in good order; a second one at once. While the node waits for its quorum, which may
take for ever, the first one is enough: it has opened no partition yet. An exception that nobody expected costs what it
is about: a request, a partition, a group. One that comes as far as the loop belongs to none of them: it is logged and
counted, and the node goes on. What does stop a node is in docs/decisions/0007-faults.md.
"""

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from ottla.base.ports import Timers
from ottla.node.config import NodeConfig
from ottla.node.descriptors import raise_descriptor_limit
from ottla.node.node import Node
from ottla.node.real_world import real_world
from ottla.node.signals import signals_told
from ottla.runtime.procedure import Procedure
from ottla.runtime.selector import EagerSelector

if TYPE_CHECKING:
    from ottla.node.faults.node_faults import NodeFaults

_log = logging.getLogger(__name__)

STOPPED_AT_ONCE = 130
BROKEN = 70
_RESTARTED = -1
_YOUNG_OBJECTS = 10_000


class FaultsPort(NamedTuple):
    """Where faults may be asked for, and the token that it takes: see `ottla.node.faults`."""

    port: int
    token: str


def run_node(
    config: NodeConfig,
    *,
    may_format: bool,
    metrics_port: int | None,
    on_ready: Callable[[Node], None],
    faults: FaultsPort | None = None,
) -> int:
    """Returns the exit status. Raises `OttlaError` or `OSError` when the node cannot start."""
    raise_descriptor_limit()
    loop = asyncio.SelectorEventLoop(EagerSelector(config.values.integer("ottla.spin.max.us")))
    try:
        if faults is None:
            return loop.run_until_complete(_run(loop, config, may_format, metrics_port, on_ready))
        return _run_with_faults(loop, config, may_format, metrics_port, on_ready, faults)
    finally:
        loop.close()


def _run_with_faults(
    loop: asyncio.AbstractEventLoop,
    config: NodeConfig,
    may_format: bool,
    metrics_port: int | None,
    on_ready: Callable[[Node], None],
    port: FaultsPort,
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
            status = loop.run_until_complete(_run(loop, config, may_format, metrics_port, on_ready_at, faults))
            if status != _RESTARTED:
                return status
            faults.on_down()
            # The node that is gone was put beyond the collector's reach when it had started.
            gc.unfreeze()
            gc.collect()
    finally:
        faults.close()


async def _driven(procedure: Coroutine[Any, Any, None], timers: Timers) -> None:
    """Runs what a node does without knowing of the loop, and waits for its end."""
    done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    under_way = Procedure(procedure, timers, done.set_result, done.set_exception)
    try:
        await done
    finally:
        under_way.cancel()


async def _start(node: Node, timers: Timers, metrics_port: int | None, faults: "NodeFaults | None") -> None:
    await _driven(node.start(), timers)
    if faults is not None:
        await faults.listen()
        node.faults_address = faults.address
    if metrics_port is not None:
        from ottla.runtime.exposition import serve_metrics

        server, port = await serve_metrics("127.0.0.1", metrics_port, node.metrics_page)
        node.also_close.append(server.close)
        node.metrics_address = f"http://127.0.0.1:{port}/metrics"


async def _first(doing: Coroutine[Any, Any, Any], ended: "asyncio.Future[int]") -> bool:
    """Whether it was done before the end came; if not, it is given up. What it raises is raised."""
    task = asyncio.get_running_loop().create_task(doing)
    waiting: set[asyncio.Future[Any]] = {task, ended}
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        task.result()
        return True
    task.cancel()
    await asyncio.wait({task})
    return False


@contextmanager
def _no_collections() -> Iterator[None]:
    """Looks for no garbage meanwhile, and later not among what is there by then: with many partitions that is a lot."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        # What the requests of a turn are made of goes with their replies: to look through it before finds nothing.
        gc.set_threshold(_YOUNG_OBJECTS, 10, 10)
        gc.enable()


async def _run(
    loop: asyncio.AbstractEventLoop,
    config: NodeConfig,
    may_format: bool,
    metrics_port: int | None,
    on_ready: Callable[[Node], None],
    faults: "NodeFaults | None" = None,
) -> int:
    ended: asyncio.Future[int] = loop.create_future()
    stopping = asyncio.Event()

    def end(status: int) -> None:
        if not ended.done():
            ended.set_result(status)

    def on_signal() -> None:
        if stopping.is_set():
            end(STOPPED_AT_ONCE)
        elif not is_up and node.broker is None:
            end(0)
        stopping.set()

    is_up = is_restarting = False

    def on_restart(clean: bool) -> None:
        nonlocal is_restarting
        is_restarting = True
        if clean:
            stopping.set()
        else:
            end(_RESTARTED)

    def on_exception(_: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """While the node starts or stops, somebody may be waiting for what has broken: then it ends."""
        node.on_fault(context["message"], context.get("exception"))
        if not is_up or stopping.is_set():
            end(BROKEN)

    world = real_world(loop) if faults is None else faults.world
    around = None if faults is None else faults.around
    node = Node(world, config, may_format=may_format, failed=lambda: end(BROKEN), around=around)
    loop.set_exception_handler(on_exception)
    with signals_told(loop, {signal.SIGTERM, signal.SIGINT}, on_signal):
        try:
            if faults is not None:
                faults.on_restart = on_restart
                await faults.stay_down(stopping)
            with _no_collections():
                is_started = await _first(_start(node, world.timers, metrics_port, faults), ended)
            if is_started:
                is_up = True
                on_ready(node)
                if faults is not None:
                    faults.on_up()
                if await _first(stopping.wait(), ended) and await _first(_driven(node.stop(), world.timers), ended):
                    end(_RESTARTED if is_restarting else 0)
            return ended.result()
        finally:
            node.abandon()
