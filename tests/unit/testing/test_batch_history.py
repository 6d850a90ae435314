"""The histories that tests play are what well-behaved producers would send."""

from random import Random

from ottla.records.batch import batches, checksum_matches, read_header
from ottla.records.control import parse_end_transaction_marker
from ottla.testing.clock import FixedClock
from ottla.testing.history import BatchSource


def test_a_seed_is_a_history() -> None:
    first, again, other = (BatchSource(Random(seed)) for seed in (1, 1, 2))
    one = [first.next_batch() for _ in range(50)]
    assert one == [again.next_batch() for _ in range(50)]
    assert one != [other.next_batch() for _ in range(50)]


def test_there_is_something_of_everything() -> None:
    source = BatchSource(Random(0))
    headers = [read_header(source.next_batch()) for _ in range(300)]
    assert {header.producer_id for header in headers} == {-1, 7, 8, 9}
    assert {header.is_transactional for header in headers} == {True, False}
    assert {header.compression for header in headers} == {0, 3}
    assert any(header.is_control for header in headers)
    assert any(header.producer_epoch > 0 for header in headers)


def test_batches_are_sound_and_sequences_follow_each_other() -> None:
    source = BatchSource(Random(3))
    expected: dict[tuple[int, int], int] = {}
    for _ in range(300):
        data = source.next_batch()
        [(position, header)] = batches(data)
        assert checksum_matches(data, position, header)
        if header.is_control:
            assert parse_end_transaction_marker(data) is not None
        elif header.producer_id >= 0:
            key = header.producer_id, header.producer_epoch
            assert header.base_sequence == expected.get(key, 0)
            expected[key] = header.last_sequence + 1


def test_forgotten_producers_do_not_come_back() -> None:
    source = BatchSource(Random(0))
    source.forget_producers()
    assert {read_header(source.next_batch()).producer_id for _ in range(100)} == {-1, 17, 18, 19}


def test_a_fixed_clock_moves_when_told_to() -> None:
    clock = FixedClock(1000)
    assert clock.now_ms() == 1000
    clock.advance(50)
    assert clock.now_ms() == 1050
