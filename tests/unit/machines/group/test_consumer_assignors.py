"""How partitions are divided: evenly, with as little moving as possible, and by ranges."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from ottla.base.ids import Uuid
from ottla.machines.group.consumer.assignors import ASSIGNORS, Candidate, assign_range, assign_uniformly
from ottla.machines.group.consumer.member import Target

A, B, C = (Uuid(bytes([number]) * 16) for number in (1, 2, 3))


def candidate(member_id: str, *topics: Uuid, instance_id: str | None = None, target: Target | None = None) -> Candidate:
    return Candidate(member_id, instance_id, frozenset(topics), target or {})


def again(
    members: Sequence[Candidate], targets: Mapping[str, Target], *more: Candidate, without: str = ""
) -> list[Candidate]:
    """The members with what they were to have, after some came and one went."""
    kept = [m._replace(target=targets[m.member_id]) for m in members if m.member_id != without]
    return [*kept, *more]


def counts(targets: Mapping[str, Target]) -> list[int]:
    return [sum(map(len, target.values())) for target in targets.values()]


def places(target: Target) -> set[tuple[Uuid, int]]:
    return {(topic_id, index) for topic_id, partitions in target.items() for index in partitions}


# Range


def test_ranges_are_neighbours_and_the_first_have_one_more() -> None:
    targets = assign_range([candidate(name, A, B) for name in "cab"], {A: 7, B: 3})
    assert targets == {
        "a": {A: {0, 1, 2}, B: {0}},
        "b": {A: {3, 4}, B: {1}},
        "c": {A: {5, 6}, B: {2}},
    }


def test_ranges_of_static_members_are_by_their_instances() -> None:
    members = [candidate("z", A, instance_id="1"), candidate("a", A, instance_id="2"), candidate("b", A)]
    assert assign_range(members, {A: 3}) == {"z": {A: {0}}, "a": {A: {1}}, "b": {A: {2}}}


def test_ranges_are_among_those_who_read_the_topic() -> None:
    targets = assign_range([candidate("a", A), candidate("b", A, B), candidate("c", B)], {A: 4, B: 1})
    assert targets == {"a": {A: {0, 1}}, "b": {A: {2, 3}, B: {0}}, "c": {}}


# Uniform


def test_everybody_gets_as_much_as_anybody_else() -> None:
    targets = assign_uniformly([candidate(name, A, B) for name in "abc"], {A: 4, B: 3})
    assert sorted(counts(targets)) == [2, 2, 3]


def test_a_newcomer_takes_no_more_than_its_share() -> None:
    members = [candidate(name, A) for name in "ab"]
    before = assign_uniformly(members, {A: 6})
    after = assign_uniformly(again(members, before, candidate("c", A)), {A: 6})
    assert counts(after) == [2, 2, 2]
    assert all(after[name][A] < before[name][A] for name in "ab"), "the others keep two of their three"


def test_who_stays_keeps_what_it_has() -> None:
    members = [candidate(name, A) for name in "abc"]
    before = assign_uniformly(members, {A: 6})
    after = assign_uniformly(again(members, before, without="b"), {A: 6})
    assert counts(after) == [3, 3]
    assert all(after[name][A] > before[name][A] for name in "ac")


def test_subscriptions_that_differ_are_evened_out_as_far_as_they_allow() -> None:
    members = [candidate("a", A), candidate("b", A, B), candidate("c", B)]
    assert sorted(counts(assign_uniformly(members, {A: 3, B: 3}))) == [2, 2, 2]
    assert counts(assign_uniformly([candidate("a", A), candidate("b", B)], {A: 1, B: 5})) == [1, 5]


def test_nobody_gets_nothing_of_nothing() -> None:
    for assign in ASSIGNORS.values():
        assert assign([], {}) == {}
        assert assign([candidate("a", A)], {}) == {"a": {}}


subscriptions = some.lists(some.frozensets(some.sampled_from([A, B, C])), min_size=1, max_size=6)
partition_counts = some.fixed_dictionaries({A: some.integers(0, 9), B: some.integers(0, 9), C: some.integers(0, 9)})


@pytest.mark.slow
@pytest.mark.parametrize("name", ASSIGNORS)
@given(subscriptions, partition_counts, subscriptions)
@settings(max_examples=60)
def test_every_partition_that_somebody_reads_has_one_member_that_reads_it(
    name: str, first: list[frozenset[Uuid]], sizes: dict[Uuid, int], second: list[frozenset[Uuid]]
) -> None:
    targets: Mapping[str, Target] = {}
    for topics in (first, second):
        members = [
            Candidate(f"member-{number}", None, reads, targets.get(f"member-{number}", {}))
            for number, reads in enumerate(topics)
        ]
        targets = ASSIGNORS[name](members, sizes)
        owned = [place for target in targets.values() for place in places(target)]
        wanted = {(id, index) for id in frozenset().union(*topics) for index in range(sizes[id])}
        assert len(owned) == len(set(owned))
        assert set(owned) == wanted
        for member in members:
            assert set(targets[member.member_id]) <= member.topics


@given(some.integers(1, 6), some.integers(1, 6), partition_counts)
@settings(max_examples=60)
def test_with_one_subscription_no_two_members_differ_by_more_than_one(
    before: int, after: int, sizes: dict[Uuid, int]
) -> None:
    targets: Mapping[str, Target] = {}
    for number in (before, after):
        members = [Candidate(str(id), None, frozenset(sizes), targets.get(str(id), {})) for id in range(number)]
        old, targets = targets, assign_uniformly(members, sizes)
        assert max(counts(targets)) - min(counts(targets)) <= 1
    stayed = [str(id) for id in range(min(before, after))]
    kept = sum(len(places(targets[id]) & places(old[id])) for id in stayed)
    most = sum(min(len(places(targets[id])), len(places(old[id]))) for id in stayed)
    assert kept == most, "nothing moves that need not"
