"""An asyncio web service that produces and consumes.

    POST /orders     with a customer's name as the body: the order is written to a topic, and answered when it is there
    GET /customers   how many orders each customer has, as the consumer has counted them so far

Producer, consumer and web server share one event loop; nothing blocks it.
"""

import asyncio
import json
from collections import Counter

from cluster import a_cluster
from ottla import NewTopic, aio


class Service:
    def __init__(self, bootstrap: str) -> None:
        self._producer = aio.Producer(bootstrap_servers=bootstrap)
        self._consumer = aio.Consumer(bootstrap_servers=bootstrap, group_id="customers", auto_offset_reset="earliest")
        self.orders: Counter[str] = Counter()

    async def count(self) -> None:
        """Runs for as long as the service does."""
        async with self._consumer:
            self._consumer.subscribe(["orders"])
            async for record in self._consumer:
                self.orders[record.value.decode()] += 1

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of HTTP, as little of it as is needed."""
        method, path, _ = (await reader.readline()).decode().split()
        size = 0
        while (line := (await reader.readline()).strip().lower()) != b"":
            if line.startswith(b"content-length:"):
                size = int(line.partition(b":")[2])
        body = await reader.readexactly(size)
        if (method, path) == ("POST", "/orders"):
            where = await self._producer.send_and_wait("orders", body)
            reply = {"partition": where.partition, "offset": where.offset}
        else:
            reply = dict(sorted(self.orders.items()))
        content = json.dumps(reply).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(content) + content)
        await writer.drain()
        writer.close()

    async def close(self) -> None:
        await self._producer.close()


async def ask(port: int, request: str, body: str = "") -> dict[str, int]:
    """A visitor."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"{request} HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
    reply = await reader.read()
    writer.close()
    answer: dict[str, int] = json.loads(reply.partition(b"\r\n\r\n")[2])
    return answer


async def serve(bootstrap: str) -> None:
    service = Service(bootstrap)
    counting = asyncio.create_task(service.count())
    server = await asyncio.start_server(service.answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    for customer in ("ada", "bob", "ada"):
        await ask(port, "POST /orders", customer)
    while sum((customers := await ask(port, "GET /customers")).values()) < 3:
        await asyncio.sleep(0.05)
    print(customers)
    server.close()
    counting.cancel()
    await asyncio.gather(counting, return_exceptions=True)
    await service.close()


def main() -> None:
    with a_cluster(NewTopic("orders", partitions=2)) as bootstrap:
        asyncio.run(serve(bootstrap))


if __name__ == "__main__":
    main()
