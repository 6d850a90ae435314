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


def test_waits_with_different_limits_end_in_their_order() -> None:
    async def scene() -> None:
        world = AsyncioWorld()
        lasting: Promise[None] = Promise()
        ended: list[float] = []

        async def wait(timeout_s: float) -> None:
            await world.settled(lasting, timeout_s)
            ended.append(timeout_s)

        waits = [asyncio.create_task(wait(timeout_s)) for timeout_s in (0.3, 0.01, 3600.0, 0.15)]
        await asyncio.wait_for(waits[0], 30)
        assert ended == [0.01, 0.15, 0.3]
        lasting.resolve(None)
        await asyncio.wait_for(waits[2], 30)
        assert ended[-1] == 3600.0
        world.close()

    asyncio.run(scene())


def test_a_wait_that_was_cancelled_is_not_kept_and_one_of_a_closed_client_ends() -> None:
    async def scene() -> None:
        world = AsyncioWorld()
        lasting: Promise[None] = Promise()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(world.settled(lasting, 3600), 0.001)
        assert not lasting._callbacks
        waiting = asyncio.create_task(world.settled(lasting, 3600))
        await asyncio.sleep(0)
        world.close()
        await asyncio.wait_for(waiting, 30)

    asyncio.run(scene())


def test_after_a_short_wait_the_loop_comes_round_again_instead_of_sleeping() -> None:
    async def scene() -> None:
        world = AsyncioWorld()
        world._moment_s = 30.0
        for sleeps in (True, False):
            promise: Promise[None] = Promise()
            waiting = asyncio.create_task(world.settled(promise, 20))
            for _ in range(100):
                await asyncio.sleep(0)
            assert bool(world._waiting) is sleeps
            promise.resolve(None)
            await asyncio.wait_for(waiting, 30)
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
