"""The network among the nodes of a cluster: a proxy in front of each node, which knows who calls and may hold it up.

Theory of operation: nodes are told the proxy's address of each other. A proxy that accepts a connection looks up whose
it is: the kernel lists the connection's other end with its inode, and the inode is among the files of one node's
process (Linux; this works for any program, and needs no rights). A link is a direction from one node to another; what
goes over a link that is cut waits, as it would in a network that drops packets, and goes on when the link is mended.
Clients connect to nodes directly, so a node that is cut off from the others still serves them.
"""

import asyncio
import contextlib
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from threading import Thread

_CHUNK_BYTES = 1 << 16
_ESTABLISHED = "01"
_BUSY_S = 120.0
"""How long the loop of the links may be behind: the machine is shared by nodes, programs and whatever else runs."""


class NodeLinks:
    """`process_ids` tells which process is which node's, now."""

    def __init__(self, process_ids: Callable[[], Mapping[int, int]]) -> None:
        self._process_ids = process_ids
        self._cut: set[tuple[int, int]] = set()
        self._delay_s = 0.0
        self._loop = asyncio.new_event_loop()
        self._changed = asyncio.Condition()
        self._thread = Thread(target=self._loop.run_forever, name="links", daemon=True)
        self._thread.start()

    def serve(self, node_id: int, port: int, behind_port: int) -> None:
        """Connections to `port` go on to the node's own `behind_port`."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await self._connect(node_id, behind_port, port, reader, writer)
            writer.close()

        self._run(asyncio.start_server(accept, "127.0.0.1", port))

    def cut(self, links: Iterable[tuple[int, int]]) -> None:
        self._cut.update(links)

    def slow_down(self, delay_s: float) -> None:
        """All links: each piece of what goes over one takes so long."""
        self._delay_s = delay_s

    def mend(self) -> None:
        async def tell() -> None:
            async with self._changed:
                self._cut.clear()
                self._delay_s = 0.0
                self._changed.notify_all()

        self._run(tell())

    def close(self) -> None:
        async def end_connections() -> None:
            connections = asyncio.all_tasks() - {asyncio.current_task()}
            for connection in connections:
                connection.cancel()
            await asyncio.gather(*connections, return_exceptions=True)

        self._run(end_connections())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _run(self, coroutine: object) -> None:
        asyncio.run_coroutine_threadsafe(coroutine, self._loop).result(_BUSY_S)  # type: ignore[arg-type]

    async def _connect(
        self, node_id: int, behind_port: int, port: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        caller = _node_of(writer.get_extra_info("peername")[1], port, self._process_ids())
        if caller is None:
            return  # it has ended already
        await self._passes((caller, node_id))
        node_reader, node_writer = await asyncio.open_connection("127.0.0.1", behind_port)
        pumps = [
            asyncio.ensure_future(self._pump((caller, node_id), reader, node_writer)),
            asyncio.ensure_future(self._pump((node_id, caller), node_reader, writer)),
        ]
        try:
            await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for pump in pumps:
                pump.cancel()
            node_writer.close()

    async def _pump(self, link: tuple[int, int], reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(_CHUNK_BYTES):
                await self._passes(link)
                if self._delay_s:
                    await asyncio.sleep(self._delay_s)
                writer.write(data)
                await writer.drain()

    async def _passes(self, link: tuple[int, int]) -> None:
        if link in self._cut:
            async with self._changed:
                await self._changed.wait_for(lambda: link not in self._cut)


def _node_of(from_port: int, to_port: int, process_ids: Mapping[int, int]) -> int | None:
    """The node that has the end of this connection which called."""
    wanted = f"socket:[{_inode(from_port, to_port)}]"
    for node_id, process_id in process_ids.items():
        files = f"/proc/{process_id}/fd"
        with contextlib.suppress(OSError):
            for name in os.listdir(files):
                with contextlib.suppress(OSError):
                    if os.readlink(f"{files}/{name}") == wanted:
                        return node_id
    return None


def _inode(from_port: int, to_port: int) -> str | None:
    """Java's sockets are in the second table even where their addresses are IPv4's."""
    ends = f":{from_port:04X}", f":{to_port:04X}"
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        for line in Path(table).read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1].endswith(ends[0]) and fields[2].endswith(ends[1]) and fields[3] == _ESTABLISHED:
                return fields[9]
    return None
