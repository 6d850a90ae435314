"""Proposals of `ottla balance`: what must hold of every one, and examples of what they are for."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.base.ids import TopicPartition
from ottla.cli.balance.proposing import BrokerPlace, CannotPropose, PartitionLoad, Proposal, propose


def at(number: int, topic: str = "t") -> TopicPartition:
    return TopicPartition(topic, number)


def places(*racks: str | None) -> list[BrokerPlace]:
    return [BrokerPlace(number, rack) for number, rack in enumerate(racks, 1)]


def uneven(proposal: Proposal, what: str) -> float:
    """How far the fullest broker is from the mean."""
    found = [getattr(share, what) for share in proposal.after.values()]
    return float(max(found) / (sum(found) / len(found)) - 1) if sum(found) else 0.0


@st.composite
def clusters(draw: st.DrawFn) -> tuple[list[BrokerPlace], list[PartitionLoad]]:
    count = draw(st.integers(1, 6))
    racks = draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=count, max_size=count))
    ids = list(range(1, count + 1))
    size = st.integers(0, 10**9)
    brokers = [
        BrokerPlace(
            broker,
            rack,
            *((free, 2 * 10**10) if (free := draw(st.none() | st.integers(0, 10**10))) is not None else (None, None)),
        )
        for broker, rack in zip(ids, racks, strict=True)
    ]
    partitions = [
        PartitionLoad(
            at(number),
            tuple(draw(st.permutations(ids)))[: draw(st.integers(1, count))],
            draw(size),
            float(draw(st.integers(0, 10**6))),
        )
        for number in range(draw(st.integers(0, 12)))
    ]
    return brokers, partitions


@pytest.mark.slow
@settings(max_examples=300)
@given(clusters(), st.data())
def test_no_proposal_makes_anything_worse(
    cluster: tuple[list[BrokerPlace], list[PartitionLoad]], data: st.DataObject
) -> None:
    brokers, partitions = cluster
    emptied = data.draw(st.sets(st.sampled_from([one.id for one in brokers]), max_size=len(brokers) - 1))
    try:
        proposal = propose(brokers, partitions, emptied=emptied)
    except CannotPropose:
        assert emptied
        return
    rack_of = {one.id: one.rack for one in brokers}
    loads = {one.at: one for one in partitions}
    assert len({move.at for move in proposal.moves}) == len(proposal.moves)
    for move in proposal.moves:
        assert move.before == loads[move.at].replicas
        assert len(move.after) == len(set(move.after)) == len(move.before)
        assert not set(move.after) & emptied
        if not emptied:
            racks = len({rack_of[one] for one in move.before}), len({rack_of[one] for one in move.after})
            assert racks[1] >= racks[0]
    for one in partitions:
        if set(one.replicas) & emptied:
            assert one.at in {move.at for move in proposal.moves}
    # What comes to a broker fits on its disks, with a tenth left free.
    for place in brokers:
        coming = sum(loads[move.at].size_bytes for move in proposal.moves if place.id in move.adding)
        if place.free_bytes is not None and coming:
            assert coming <= place.free_bytes - 0.1 * (place.total_bytes or 0)
    again = propose(brokers, partitions, emptied=emptied)
    assert again.moves == proposal.moves, "the same load gives the same plan"


@settings(max_examples=100)
@given(clusters())
def test_a_proposal_that_was_carried_out_is_followed_by_little(
    cluster: tuple[list[BrokerPlace], list[PartitionLoad]],
) -> None:
    brokers, partitions = cluster
    brokers = [one._replace(free_bytes=None, total_bytes=None) for one in brokers]
    first = propose(brokers, partitions)
    after = {move.at: move.after for move in first.moves}
    carried_out = [one._replace(replicas=after.get(one.at, one.replicas)) for one in partitions]
    # Who leads was changed last, so a replica may find a better place by that. It must come to an end.
    for _ in range(5):
        proposal = propose(brokers, carried_out)
        if not proposal.copied_bytes:
            return
        after = {move.at: move.after for move in proposal.moves}
        carried_out = [one._replace(replicas=after.get(one.at, one.replicas)) for one in carried_out]
    pytest.fail("it goes round in circles")


def test_a_new_broker_gets_its_share() -> None:
    old = [PartitionLoad(at(number), ((number % 3) + 1, (number + 1) % 3 + 1), 10**9, 10**5) for number in range(24)]
    proposal = propose(places(None, None, None, None), old)
    assert uneven(proposal, "disk") <= 0.1
    assert uneven(proposal, "traffic") <= 0.1
    assert {share.leaders for share in proposal.after.values()} == {6}
    assert sum(len(move.adding) for move in proposal.moves) <= 12, "and no more is moved than has to be"


def test_a_large_partition_does_not_hide_the_traffic() -> None:
    """One has the bytes and another the traffic: both count."""
    partitions = [
        PartitionLoad(at(0), (1,), 100, 0),
        PartitionLoad(at(1), (1,), 0, 1000),
        PartitionLoad(at(2), (1,), 100, 0),
        PartitionLoad(at(3), (1,), 0, 1000),
    ]
    proposal = propose(places(None, None), partitions)
    assert (uneven(proposal, "disk"), uneven(proposal, "traffic"), uneven(proposal, "leaders")) == (0, 0, 0)


def test_partitions_are_spread_over_racks() -> None:
    partitions = [PartitionLoad(at(number), (1, 2), 1000) for number in range(4)]
    proposal = propose(places("a", "a", "b"), partitions)
    rack_of = {1: "a", 2: "a", 3: "b"}
    after = {move.at: move.after for move in proposal.moves}
    assert all({rack_of[one] for one in after[load.at]} == {"a", "b"} for load in partitions)


def test_racks_are_kept_where_evenness_would_take_them() -> None:
    """Broker 3 is full, and is the only one of its rack."""
    partitions = [PartitionLoad(at(number), (number % 2 + 1, 3), 1000) for number in range(6)]
    proposal = propose(places("a", "a", "b"), partitions)
    assert all(3 in move.after for move in proposal.moves)


def test_leaders_alone_cost_no_bytes() -> None:
    partitions = [PartitionLoad(at(number), (1, 2, 3), 1000, 10) for number in range(9)]
    proposal = propose(places(None, None, None), partitions)
    assert proposal.copied_bytes == 0
    assert {share.leaders for share in proposal.after.values()} == {3}
    assert not propose(places(None, None, None), partitions, goals=("disk",)).moves


def test_an_even_cluster_is_left_alone() -> None:
    partitions = [PartitionLoad(at(number), ((number % 3) + 1, (number + 1) % 3 + 1), 1000, 10) for number in range(9)]
    assert propose(places(None, None, None), partitions).moves == []


def test_an_emptied_broker_gives_to_those_with_room() -> None:
    brokers = [BrokerPlace(1), BrokerPlace(2, None, 500, 1000), BrokerPlace(3, None, 10**6, 2 * 10**6)]
    partitions = [PartitionLoad(at(number), (1,), 300) for number in range(4)]
    proposal = propose(brokers, partitions, emptied={1}, only_emptied=True)
    assert [share.replicas for share in proposal.after.values()] == [0, 1, 3]


def test_what_cannot_be_is_named() -> None:
    with pytest.raises(CannotPropose, match="t-0 has a replica on broker 2, and there is no broker without one"):
        propose(places(None, None), [PartitionLoad(at(0), (1, 2), 1)], emptied={2})
    full = [BrokerPlace(1), BrokerPlace(2, None, 10, 100)]
    with pytest.raises(CannotPropose, match="t-0 has a replica on broker 1, and the others are full"):
        propose(full, [PartitionLoad(at(0), (1,), 50)], emptied={1})
    with pytest.raises(CannotPropose, match="no broker is left"):
        propose(places(None), [], emptied={1})
    one_rack_left = propose(
        [BrokerPlace(1, "a"), BrokerPlace(2, "a"), BrokerPlace(3, "b", 1, 1000)], [PartitionLoad(at(0), (1, 2), 500)]
    )
    assert one_rack_left.unmet == ["t-0 stays in 1 of 2 racks"]


def test_no_more_is_moved_than_is_allowed() -> None:
    partitions = [
        PartitionLoad(at(number), tuple((number + one) % 9 + 1 for one in range(3)), 1000 + number % 7, 10)
        for number in range(1000)
    ]
    proposal = propose([BrokerPlace(number) for number in range(1, 11)], partitions, most_moves=20)
    assert sum(len(move.adding) for move in proposal.moves) == 20
    assert proposal.after[10].replicas == 20
