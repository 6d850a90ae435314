"""Requests of brokers carry the epoch of their registration: one of an earlier life is not listened to."""

from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.refusal import Refusal
from ottla.wire.errors import ErrorCode


def check_broker_epoch(context: ControllerContext, broker_id: int, epoch: int) -> Refusal | None:
    broker = context.image.brokers.by_id.get(broker_id)
    if broker is None:
        problem = f"No broker registration found for broker id {broker_id}"
    elif broker.epoch != epoch:
        problem = f"Expected broker epoch {broker.epoch}, but got broker epoch {epoch}"
    else:
        return None
    return Refusal(ErrorCode.STALE_BROKER_EPOCH, problem)
