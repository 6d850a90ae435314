"""What connecting to other nodes (`base.tcp_dialling`) needs of the loop: names are looked up on one of its threads."""

import errno
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.base.ports import Watcher
from ottla.base.tcp_dialling import AddressInfo, addresses_of, numeric_address

if TYPE_CHECKING:
    from ottla.runtime.network import LoopNetwork


class LoopPoller:
    """The network, with names."""

    def __init__(self, network: "LoopNetwork") -> None:
        self._network = network

    def watch(self, fd: int, watcher: Watcher | None, *, reading: bool, writing: bool) -> None:
        self._network.watch(fd, watcher, reading=reading, writing=writing)

    def resolve(
        self, host: str, port: int, then: Callable[[Sequence[AddressInfo]], None], failed: Callable[[OSError], None]
    ) -> None:
        loop = self._network.loop
        known = numeric_address(host, port)
        if known is not None:
            loop.call_soon(then, known)
            return

        def on_resolved(asked: "Future[Sequence[AddressInfo]]") -> None:
            problem = asked.exception()
            if problem is None:
                then(asked.result())
            else:
                failed(problem if isinstance(problem, OSError) else OSError(errno.EINVAL, str(problem)))

        asking: Future[Sequence[AddressInfo]] = loop.run_in_executor(None, addresses_of, host, port)
        asking.add_done_callback(on_resolved)
