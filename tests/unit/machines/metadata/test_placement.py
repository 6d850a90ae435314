"""Where replicas go: even, apart, and on brokers that work."""

import random
from collections import Counter

import pytest

from ottla.machines.metadata.controller.replica_placement import UsableBroker, place
from ottla.machines.metadata.refusal import Refusal


def placed(count: int, factor: int, *brokers: UsableBroker, seed: int = 1) -> list[tuple[int, ...]]:
    made = place(count, factor, brokers, random.Random(seed))
    assert not isinstance(made, Refusal)
    return made


def plain(*ids: int, rack: str | None = None, fenced: bool = False) -> list[UsableBroker]:
    return [UsableBroker(id, rack, fenced) for id in ids]


@pytest.mark.parametrize("seed", range(20))
def test_leaders_and_replicas_are_spread_evenly(seed: int) -> None:
    made = placed(12, 3, *plain(1, 2, 3, 4), seed=seed)
    assert set(Counter(replicas[0] for replicas in made).values()) == {3}
    assert set(Counter(broker for replicas in made for broker in replicas).values()) == {9}
    assert all(len(set(replicas)) == 3 for replicas in made)


@pytest.mark.parametrize("seed", range(20))
def test_replicas_are_in_different_racks(seed: int) -> None:
    racks = {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"}
    made = placed(10, 3, *(UsableBroker(id, rack, False) for id, rack in racks.items()), seed=seed)
    assert all({racks[broker] for broker in replicas} == {"a", "b", "c"} for replicas in made)
    assert all(len(set(replicas)) == 3 for replicas in placed(10, 3, *plain(1, 2, rack="a"), *plain(3, rack="b")))


@pytest.mark.parametrize("seed", range(20))
def test_a_fenced_broker_follows_where_there_is_no_other_and_never_leads(seed: int) -> None:
    made = placed(6, 3, *plain(1, 2), *plain(3, fenced=True), seed=seed)
    assert all(replicas[0] in (1, 2) and replicas[-1] == 3 for replicas in made)
    assert all(3 not in replicas for replicas in placed(6, 2, *plain(1, 2), *plain(3, fenced=True), seed=seed))


def test_chance_decides_where_it_starts() -> None:
    starts = {placed(1, 1, *plain(*range(10)), seed=seed)[0][0] for seed in range(100)}
    assert len(starts) > 5


def test_one_broker_takes_all() -> None:
    assert placed(3, 1, *plain(7)) == [(7,)] * 3


@pytest.mark.parametrize(
    ("factor", "brokers", "problem"),
    [
        (2, plain(1), "cannot be reached because only 1 broker"),
        (1, plain(1, fenced=True), "All brokers are currently fenced"),
        (1, [], "All brokers are currently fenced"),
        (0, plain(1), "the replication factor must be positive"),
    ],
)
def test_what_cannot_be_placed_is_refused(factor: int, brokers: list[UsableBroker], problem: str) -> None:
    refused = place(1, factor, brokers, random.Random(1))
    assert isinstance(refused, Refusal)
    assert problem in str(refused.message)
