"""Connecting to other nodes by TCP (`base.tcp_dialling`). Names are looked up on a thread of the loop's."""

import errno
from asyncio import Future
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ottla.base.ports import Transport, Watcher
from ottla.base.tcp_dialling import AddressInfo, TcpDialling, addresses_of, numeric_address
from ottla.runtime.tcp import TcpTransport

if TYPE_CHECKING:
    from ottla.runtime.network import LoopNetwork


class _Poller:
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


def dial(
    network: "LoopNetwork",
    host: str,
    port: int,
    *,
    receive_buffer_bytes: int,
    send_buffer_bytes: int,
    then: Callable[[Transport], None],
    failed: Callable[[OSError], None],
) -> TcpDialling:
    return TcpDialling(
        _Poller(network),
        host,
        port,
        receive_buffer_bytes=receive_buffer_bytes,
        send_buffer_bytes=send_buffer_bytes,
        then=lambda sock, peer_host: then(TcpTransport(network, sock, peer_host)),
        failed=failed,
    )
