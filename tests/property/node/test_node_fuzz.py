"""A node that is sent valid messages with extreme values goes on: for others, in little memory, without a fault.

A seed that found something goes into `FOUND`, which every run replays.
"""

from collections.abc import Iterator

import pytest
from fuzz_run import SETTINGS, FuzzRun

from ottla.testing.node import RunningNode

FOUND = [11, 14]


@pytest.fixture
def loaded() -> Iterator[RunningNode]:
    with RunningNode(config=SETTINGS) as node:
        yield node


def fuzz(node: RunningNode, seed: int, requests: int) -> None:
    run = FuzzRun(node, seed)
    try:
        run.run(requests)
    finally:
        print(run.summary())
        run.close()
    assert run.answered > requests // 2, "hardly anything was answered"


@pytest.mark.parametrize("seed", [*FOUND, 1])
def test_extreme_requests(seed: int, loaded: RunningNode) -> None:
    fuzz(loaded, seed, 1500)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_a_million_extreme_requests(seed: int, loaded: RunningNode) -> None:
    fuzz(loaded, seed, 50_000)
