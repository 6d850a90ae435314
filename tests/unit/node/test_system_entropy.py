"""The system's chance: in range, all of the range, and nothing lost by shuffling."""

import pytest

from ottla.node.real_world import SystemEntropy

DRAWN = 2000
"""So many that a number of ten stays out once in 10 ** 90 times."""


@pytest.mark.parametrize("stop", [1, 2, 10])
def test_all_numbers_below_the_end_are_drawn_and_no_other(stop: int) -> None:
    chance = SystemEntropy()
    assert {chance.randrange(stop) for _ in range(DRAWN)} == set(range(stop))


def test_numbers_may_be_larger_than_a_word() -> None:
    assert any(SystemEntropy().randrange(1 << 200) >> 150 for _ in range(DRAWN))


def test_what_is_shuffled_is_all_there_in_another_order() -> None:
    chance = SystemEntropy()
    items = list(range(100))
    chance.shuffle(items)
    assert sorted(items) == list(range(100))
    assert items != list(range(100))


def test_bytes_are_as_many_as_were_asked_for() -> None:
    chance = SystemEntropy()
    assert (len(chance.randbytes(0)), len(chance.randbytes(16))) == (0, 16)
    assert chance.randbytes(16) != chance.randbytes(16)
