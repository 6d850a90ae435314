"""Our assignors beside Java's: the same groups, the same divisions, through the bytes that members exchange."""

from random import Random

import pytest

from ottla.client.membership.assignors.by_name import ASSIGNORS
from ottla.client.membership.assignors.sticky_data import read_held
from tests.interop.groups.random_groups import decided_by_kafka, decided_by_us, random_group, read_decided

pytestmark = pytest.mark.interop

GROUPS = 1_000
SEED = 20261115
SENT_GENERATION = 7  # what `Assignors.java` tells a member's assignor


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_thousand_random_groups_are_divided_as_java_divides_them(assignor: str) -> None:
    random = Random(f"{SEED} {assignor}")
    groups = [random_group(random, assignor) for _ in range(GROUPS)]
    undecided = 0
    for number, (group, rounds) in enumerate(zip(groups, decided_by_kafka(groups), strict=True)):
        for ours, javas in zip(decided_by_us(group), rounds, strict=True):
            if javas is None:
                undecided += 1
            else:
                assert ours == read_decided(javas), f"group {number} of seed {SEED}"
    assert undecided < GROUPS / 100


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_what_an_assignor_tells_the_leader_is_what_javas_tells(assignor: str) -> None:
    random = Random(f"{SEED} {assignor} user data")
    groups = [random_group(random, assignor) for _ in range(20)]
    for rounds in decided_by_kafka(groups):
        for played in filter(None, rounds):
            for member_id, partitions in read_decided(played).items():
                told = played[member_id][1]
                own = ASSIGNORS[assignor]()
                own.on_assigned(partitions, SENT_GENERATION)
                mine = own.user_data()
                if assignor == "sticky":  # whose topics come in the order of a hash map
                    assert mine is not None
                    assert told is not None
                    ours, javas = read_held(mine), read_held(bytes.fromhex(told))
                    assert (sorted(ours.partitions), ours.generation) == (sorted(javas.partitions), javas.generation)
                else:
                    assert (None if mine is None else mine.hex()) == told
