"""Polls that skip or go back, sends that go back: what one client sees in one partition."""

from collections.abc import Iterator

from ottla.testing.chaos.anomaly import Anomaly, AnomalyKind
from ottla.testing.chaos.partition_logs import History


def poll_order(history: History) -> Iterator[Anomaly]:
    """A consumer that keeps a partition is given each record of it that is there, one after the other.

    Where it was assigned the partition anew, it may begin anywhere: at what its group had committed.
    """
    positions: dict[tuple[str, str], int] = {}
    for operation in history.operations:
        process = operation.process
        for partition in operation.assigned:
            positions.pop((process, partition), None)
        for partition, offset, value in operation.polls:
            key = process, partition
            last = positions.get(key)
            positions[key] = offset
            if last is None:
                continue
            if offset <= last:
                yield Anomaly(
                    AnomalyKind.NONMONOTONIC_POLL, f"{process} reads {partition} {offset} ({value}) after {last}"
                )
                continue
            expected = history.logs[partition].first_after(last)
            if expected is not None and expected < offset:
                missed = history.logs[partition].values[expected][0]
                yield Anomaly(
                    AnomalyKind.POLL_SKIP,
                    f"{process} reads {partition} {offset} after {last}, and not {missed} at {expected}",
                )


def send_order(history: History) -> Iterator[Anomaly]:
    """A producer's records are in a partition in the order in which it sent them."""
    lasts: dict[tuple[str, str], int] = {}
    for operation in history.operations:
        for partition, value, offset in operation.sends:
            if offset is None:
                continue
            key = operation.process, partition
            last = lasts.get(key, -1)
            if offset <= last:
                yield Anomaly(
                    AnomalyKind.NONMONOTONIC_SEND,
                    f"{operation.process} has {value} at {partition} {offset}, after it had {last}",
                )
            lasts[key] = offset
