"""A bounded share of `rest_fuzz`: seeds that have found something, and one for everybody; more under `long`."""

import random
from collections.abc import Iterator

import pytest

from ottla.testing.node import RunningNode
from tests.unit.connect.rest.rest_fuzz import Fuzz
from tests.unit.connect.worker.worker_in_a_thread import FILE_SOURCE, WorkerInAThread, wait_for

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerInAThread]:
    with (
        RunningNode(config={"group.initial.rebalance.delay.ms": 0}) as node,
        WorkerInAThread(node.bootstrap, "fuzz") as worker,
    ):
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "it leads")
        yield worker


@pytest.mark.parametrize(
    ("seed", "rounds"), [(1, 150), *(pytest.param(seed, 3000, marks=pytest.mark.long) for seed in range(2, 8))]
)
def test_whatever_is_sent_gets_a_reply_and_the_worker_goes_on(worker: WorkerInAThread, seed: int, rounds: int) -> None:
    fuzz = Fuzz(worker.url, random.Random(seed))
    try:
        fuzz.rounds(rounds)
    finally:
        fuzz.close()
    config = {"connector.class": FILE_SOURCE, "file": "/in", "topic": "t"}
    name = f"after-{seed}"
    assert worker.ask("PUT", f"/connectors/{name}/config", config).status == 201
    wait_for(lambda: worker.state_of(name) == ("RUNNING", ["RUNNING"]), "a connector still runs")
    assert worker.ask("DELETE", f"/connectors/{name}").status == 204
