"""All that producers can send, side by side, from a seed, on real nodes; then every reader, a kill, and they again."""

from typing import Any

import pytest

from ottla.testing.workload.plans import LaneKind
from tests.integrity.integrity_run import Outcome, run_program
from tests.integrity.targets import running

BUDGET_BYTES = 6 << 20
MOST_ROUNDS = 4
KINDS = [f"batches {kind.name.lower()}" for kind in LaneKind]
READERS = ["Fetch from its leader", "a consumer", "Arrow", "files"]


def run(seed: int, nodes: int, **options: Any) -> Outcome:
    with running(nodes) as target:
        outcome = run_program(seed, target, **{"budget_bytes": BUDGET_BYTES, "most_rounds": MOST_ROUNDS, **options})
    assert not outcome.differences, f"seed {seed} on {nodes}:\n" + "\n".join(outcome.differences)
    return outcome


def test_one_node_stores_and_tells_every_record_as_it_was_sent() -> None:
    counts = run(1, 1, cleaner_within_s=120).counts
    assert all(counts[kind] for kind in KINDS)
    assert all(counts[f"read by {reader}"] for reader in READERS)
    assert counts["transactions aborted"]
    assert counts["batches refused"]
    assert counts["compacted away"]


def test_three_nodes_have_the_same_records() -> None:
    counts = run(2, 3).counts
    assert counts["read by Fetch from a follower"] > counts["read by Fetch from its leader"]


@pytest.mark.parametrize(("seed", "nodes"), [(3, 1), (4, 3)])
def test_what_is_sent_while_nodes_are_killed_is_there_once(seed: int, nodes: int) -> None:
    counts = run(seed, nodes, kills=True).counts
    assert counts["kills during the traffic"]
    assert counts["rules, quotas and settings changed"]
    assert counts["batches acknowledged"] > counts["batches open"]


@pytest.mark.long
@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("nodes", [1, 3])
@pytest.mark.parametrize("seed", range(100, 112))
def test_more_seeds(seed: int, nodes: int, kills: bool) -> None:
    run(seed, nodes, budget_bytes=24 << 20, most_rounds=12, kills=kills)
