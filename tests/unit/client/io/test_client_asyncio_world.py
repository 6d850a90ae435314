"""The ports of asyncio clients: what is awaited ends with the client, and what nobody awaits is not kept."""

import asyncio

import pytest

from ottla.client.errors import ClientClosed
from ottla.client.io.asyncio_world import AsyncioWorld
from ottla.client.promise import Promise


def test_a_task_that_waits_is_told_when_the_client_is_closed() -> None:
    async def scene() -> None:
        world = AsyncioWorld()

        async def wait() -> None:
            await world.future(world.world.sleep(3_600_000))

        waiting = asyncio.create_task(wait())
        await asyncio.sleep(0)
        world.close()
        with pytest.raises(ClientClosed):
            await asyncio.wait_for(waiting, 5)

    asyncio.run(scene())


def test_a_promise_that_lasts_does_not_collect_the_tasks_that_gave_up_on_it() -> None:
    async def scene() -> None:
        world = AsyncioWorld()
        lasting: Promise[None] = Promise()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(world.future(lasting), 0.001)
        await asyncio.sleep(0)
        assert not lasting._callbacks
        world.close()

    asyncio.run(scene())


@pytest.mark.parametrize("host", ["nobody..example", "x" * 70 + ".example"])
def test_what_can_be_nobodys_name_is_a_name_that_is_not_known(host: str) -> None:
    async def scene() -> None:
        world = AsyncioWorld()
        outcome: Promise[None] = Promise()
        world.world.dialer.dial(
            host,
            9092,
            receive_buffer_bytes=-1,
            send_buffer_bytes=-1,
            then=lambda transport: outcome.resolve(None),
            failed=outcome.reject,
        )
        with pytest.raises(OSError, match="is not known"):
            await asyncio.wait_for(world.future(outcome), 20)
        world.close()

    asyncio.run(scene())
