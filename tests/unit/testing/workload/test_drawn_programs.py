"""Programs of the workload: the same for a seed, and with everything in a few of them."""

import pytest

from ottla.records.batch import read_header
from ottla.records.header import Compression
from ottla.testing.workload.drawing import MAX_MESSAGE_BYTES, draw_program
from ottla.testing.workload.plans import LaneKind, Program
from ottla.wire.errors import ErrorCode

START_MS = 1_700_000_000_000


def draw(seed: int) -> Program:
    return draw_program(seed, START_MS)


@pytest.mark.slow
def test_a_seed_gives_one_program() -> None:
    first, second = draw(5), draw(5)
    assert [(lane.name, lane.kind, lane.is_encrypted) for lane in first.lanes] == [
        (lane.name, lane.kind, lane.is_encrypted) for lane in second.lanes
    ]
    for one, other in zip(first.lanes, second.lanes, strict=True):
        assert [batch.build() for batch in one.batches] == [batch.build() for batch in other.batches]


@pytest.mark.slow
def test_a_few_programs_have_everything_in_them() -> None:
    programs = [draw(seed) for seed in range(6)]
    lanes = [lane for program in programs for lane in program.lanes]
    raw = [lane for lane in lanes if lane.client_codec is None]
    requests = [request for lane in raw for a_round in lane.rounds for request in a_round.requests]
    batches = [batch for lane in lanes for batch in lane.batches]
    for kind in LaneKind:
        codecs = {batch.codec for lane in raw if lane.kind is kind for batch in lane.batches}
        assert codecs == set(Compression), kind
        assert {
            len(one.batches) > 1 for lane in raw if lane.kind is kind for a in lane.rounds for one in a.requests
        } == {
            True,
            False,
        }
    assert {request.version for request in requests} == set(range(3, 14))
    assert {request.acks for request in requests} == {-1, 0, 1}
    assert {request.is_repeated for request in requests} == {True, False}
    assert {lane.is_encrypted for lane in raw} == {True, False}
    assert {a_round.commits for lane in lanes if lane.kind.is_transactional for a_round in lane.rounds} == {True, False}
    assert {batch.refusal for batch in batches} >= {
        ErrorCode.NONE,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.INVALID_RECORD,
        ErrorCode.CORRUPT_MESSAGE,
    }
    sizes = [sum(len(record.value or b"") for record in batch.records) for batch in batches]
    assert min(sizes) < 15
    assert max(sizes) > 2 << 20


@pytest.mark.slow
def test_some_batches_expand_a_thousandfold_and_none_is_too_large() -> None:
    most = 0.0
    for batch in (batch for lane in draw(1).lanes for batch in lane.batches):
        size = read_header(batch.build()).size
        assert size < MAX_MESSAGE_BYTES
        most = max(most, sum(len(record.value or b"") for record in batch.records) / size)
    assert most > 900
