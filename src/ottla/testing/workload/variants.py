"""Programs for other circumstances, made of one that was drawn: the seed stays, and most of what is sent.

A program is drawn for nodes that live and principals that may do everything. These are the same where nodes are killed
while it runs, and where encrypted lanes are of a principal that may not write everywhere.
"""

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Final

from ottla.testing.workload.plans import (
    ACKS_ALL,
    BatchPlan,
    LaneKind,
    LanePlan,
    Program,
    RequestPlan,
    TopicPlan,
)
from ottla.wire.errors import ErrorCode

FORBIDDEN: Final = TopicPlan("forbidden", 2, {})
"""The topic that encrypted lanes may not write to."""
_REFUSED_SHARE: Final = 0.3


def with_kills(program: Program) -> Program:
    """Sequences only with acks=all: without, a leader that dies may leave a gap that its successor cannot accept.

    And no producer of ours without idempotence: what it sends again may be there twice.
    """

    def changed(lane: LanePlan) -> LanePlan:
        if lane.kind is LaneKind.PLAIN:
            return lane if lane.client_codec is None else replace(lane, kind=LaneKind.IDEMPOTENT)
        return _with_requests(lane, lambda request: replace(request, acks=ACKS_ALL))

    return replace(program, lanes=tuple(changed(lane) for lane in program.lanes))


def with_rights(program: Program) -> Program:
    """Some batches of encrypted lanes go to `FORBIDDEN`, beside others that are allowed, and must be refused.

    Not those of transactions, which would have to be aborted, nor of acks=0, whose refusal ends the connection.
    """
    random = Random(f"rights {program.seed}")

    def changed_batch(batch: BatchPlan) -> BatchPlan:
        if batch.refusal or random.random() > _REFUSED_SHARE:
            return batch
        return replace(batch, topic=FORBIDDEN, partition=0, refusal=ErrorCode.TOPIC_AUTHORIZATION_FAILED)

    def changed_request(request: RequestPlan) -> RequestPlan:
        if request.acks == 0:
            return request
        first, *others = request.batches  # two batches of a request are for different partitions
        return replace(request, batches=(changed_batch(first), *others))

    def changed(lane: LanePlan) -> LanePlan:
        is_open = not lane.is_encrypted or lane.kind.is_transactional or lane.client_codec is not None
        return lane if is_open else _with_requests(lane, changed_request)

    lanes = tuple(changed(lane) for lane in program.lanes)
    return replace(program, lanes=lanes, topics=(*program.topics, FORBIDDEN))


def _with_requests(lane: LanePlan, change: Callable[[RequestPlan], RequestPlan]) -> LanePlan:
    rounds = [replace(one, requests=tuple(change(request) for request in one.requests)) for one in lane.rounds]
    return replace(lane, rounds=tuple(rounds))
