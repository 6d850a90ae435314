"""Members that join one after the other: each gets its share, and nothing else moves."""

from random import Random
from typing import Any
from unittest.mock import patch

import pytest

from ottla.machines.group.consumer import turn
from ottla.wire.errors import ErrorCode
from tests.unit.machines.group.group_bench import GROUP, Groups
from tests.unit.machines.group.group_members import Member


def targets(groups: Groups) -> dict[str, set[tuple[bytes, int]]]:
    target = groups.group().target
    return {
        member_id: {(topic_id, index) for topic_id, indexes in topics.items() for index in indexes}
        for member_id, topics in target.items()
    }


def assert_even(groups: Groups, partitions: int) -> None:
    found = targets(groups)
    assert found.keys() == groups.group().members.keys()
    sizes = [len(own) for own in found.values()]
    assert max(sizes) - min(sizes) <= 1, sizes
    assert sum(sizes) == len(set().union(*found.values())) == partitions


def moved(before: dict[str, set[Any]], after: dict[str, set[Any]]) -> int:
    return sum(len(own - after[member_id]) for member_id, own in before.items())


@pytest.fixture
def full_divisions(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for every time that a target was divided anew for everybody."""
    divided: list[int] = []
    division = turn.Turn._divided_anew

    def counted(self: turn.Turn) -> Any:
        divided.append(1)
        return division(self)

    monkeypatch.setattr(turn.Turn, "_divided_anew", counted)
    return divided


@pytest.mark.parametrize("partitions", [(1,), (7,), (40,), (3, 11), (20, 1, 19)])
def test_a_crowd_of_newcomers_is_divided_evenly_at_the_price_of_their_shares(
    partitions: tuple[int, ...], full_divisions: list[int]
) -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    names = [f"topic-{number}" for number in range(len(partitions))]
    for name, count in zip(names, partitions, strict=True):
        groups.create_topic(name, count)
    before: dict[str, set[Any]] = {}
    for number in range(50):
        Member(groups, f"member-{number}", *names).beat()
        assert_even(groups, sum(partitions))
        after = targets(groups)
        assert moved(before, after) == (len(after[f"member-{number}"]) if before else 0), "only its share moves"
        before = after
    assert len(full_divisions) == 2, "of the first, which makes the group, and of the second"


def test_what_a_leaver_had_is_divided_anew(full_divisions: list[int]) -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 10)
    members = [Member(groups, f"member-{number}", "orders") for number in range(4)]
    for member in members:
        member.beat()
    before = len(full_divisions)
    members[1].leave()
    Member(groups, "late", "orders").beat()
    assert_even(groups, 10)
    assert len(full_divisions) == before + 1


def test_a_topic_that_has_grown_is_divided_anew(full_divisions: list[int]) -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 10)
    for name in ("ann", "bob", "cat"):
        Member(groups, name, "orders").beat()
    groups.grow_topic("orders", 13)
    Member(groups, "dan", "orders").beat()
    assert_even(groups, 13)
    assert len(full_divisions) == 3


@pytest.mark.parametrize("fields", [{"server_assignor": "range"}, {"subscribed_topic_names": ["orders", "bills"]}])
def test_who_wants_something_else_has_all_of_it_divided_anew(fields: dict[str, Any], full_divisions: list[int]) -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 10)
    groups.create_topic("bills", 3)
    for name in ("ann", "bob", "cat"):
        Member(groups, name, "orders").beat()
    Member(groups, "dan", "orders").beat(**fields)
    assert len(full_divisions) == 3


def test_a_group_that_was_loaded_is_divided_anew_first(full_divisions: list[int]) -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 10)
    Member(groups, "ann", "orders").beat()
    groups.reload()
    Member(groups, "bob", "orders").beat()
    Member(groups, "cat", "orders").beat()
    assert_even(groups, 10)
    assert len(full_divisions) == 2


def test_a_share_that_could_not_be_written_is_nobodys() -> None:
    groups = Groups(consumer_assignment_interval_ms=0)
    groups.create_topic("orders", 10)
    Member(groups, "ann", "orders").beat()
    Member(groups, "bob", "orders").beat()
    groups.fails_with = ErrorCode.COORDINATOR_NOT_AVAILABLE
    Member(groups, "cat", "orders").beat()
    Member(groups, "dan", "orders").beat()
    assert_even(groups, 10)
    assert set(groups.group(GROUP).members) == {"ann", "bob", "dan"}


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_a_group_is_as_even_as_if_it_were_always_divided_anew(seed: int) -> None:
    def history(random: Random) -> tuple[list[list[int]], Groups]:
        groups = Groups(consumer_assignment_interval_ms=0)
        groups.create_topic("orders", random.randrange(1, 30))
        members: list[Member] = []
        sizes = []
        for number in range(40):
            if members and random.random() < 0.25:
                members.pop(random.randrange(len(members))).leave()
            elif random.random() < 0.1:
                groups.grow_topic("orders", len(groups.image.topics.by_name["orders"].partitions) + 1)
            else:
                members.append(Member(groups, f"member-{number}", "orders"))
            for member in members:
                member.beat()
            if members:
                sizes.append(sorted(map(len, targets(groups).values())))
        return sizes, groups

    quick, _ = history(Random(seed))
    with patch.object(turn, "with_newcomer", lambda *_: None):
        anew, _ = history(Random(seed))
    assert quick == anew
