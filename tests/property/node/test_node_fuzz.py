"""A node that is sent valid messages with extreme values goes on: for others, in little memory, without a fault.

A seed that found something goes into `FOUND`, which every run replays. It sends the same kinds of requests in the same
order as long as the node's replies come in the same order; ids that the node makes up, its clock, and which replies are
late are other ones. What is to be repeated to the byte is in `test_node_fuzz_simulated`.
"""

import os
import signal
from collections.abc import Iterator

import pytest

from ottla.testing.node import RunningNode
from tests.interop.sasl_node import SaslNode, a_sasl_node
from tests.property.node.fuzz_run import SETTINGS, Finding, FuzzRun

FOUND = [11, 14]


@pytest.fixture
def loaded() -> Iterator[RunningNode]:
    with RunningNode(config=SETTINGS) as node:
        yield node


@pytest.fixture
def guarded() -> Iterator[SaslNode]:
    """It asks who is there, and checks what they may do: everything, until the fuzz makes rules."""
    rules = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "of the cluster",
    }
    with a_sasl_node(SETTINGS | rules) as one:
        yield one


def fuzz(node: RunningNode, seed: int, requests: int, users: str | None = None) -> None:
    run = FuzzRun(node, seed, users)
    try:
        run.run(requests)
    finally:
        print(run.summary())
        run.close()
    assert run.answered > requests // 2, "hardly anything was answered"


@pytest.mark.parametrize("seed", [*FOUND, 1])
def test_extreme_requests(seed: int, loaded: RunningNode) -> None:
    fuzz(loaded, seed, 1500)


@pytest.mark.parametrize("seed", [1])
def test_extreme_requests_of_a_user(seed: int, guarded: SaslNode) -> None:
    fuzz(guarded.node, seed, 1500, guarded.bootstrap)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2000, 2004))
def test_many_extreme_requests_of_a_user(seed: int, guarded: SaslNode) -> None:
    fuzz(guarded.node, seed, 50_000, guarded.bootstrap)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_a_million_extreme_requests(seed: int, loaded: RunningNode) -> None:
    fuzz(loaded, seed, 50_000)


def test_a_fault_in_the_nodes_log_is_found_with_its_request(loaded: RunningNode) -> None:
    """Else the tests above would hold for ever."""
    run = FuzzRun(loaded, 2)
    with loaded.log.open("a") as log:
        log.write("ERROR Metadata version 1 of client 'fuzz-5-' could not be handled\nTraceback\n")
    with pytest.raises(Finding, match=r"seed 2, request \d+: a fault(.|\n)*could not be handled"):
        run.run(200)
    run.close()


def test_a_node_that_is_gone_is_found(loaded: RunningNode) -> None:
    run = FuzzRun(loaded, 2)
    assert loaded.pid is not None
    os.kill(loaded.pid, signal.SIGKILL)
    with pytest.raises((Finding, OSError)):
        run.run(200)
    run.close()
