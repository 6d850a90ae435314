"""Inconsistent offsets, duplicates, lost writes: what is wrong with the logs themselves."""

from collections.abc import Iterator

from ottla.testing.chaos.anomaly import Anomaly, AnomalyKind
from ottla.testing.chaos.operations import Outcome
from ottla.testing.chaos.partition_logs import History


def inconsistent_offsets(history: History) -> Iterator[Anomaly]:
    """An offset is given to one record, for ever."""
    for log in history.logs.values():
        for offset, values in log.values.items():
            if len(values) > 1:
                yield Anomaly(
                    AnomalyKind.INCONSISTENT_OFFSETS, f"{log.name} at {offset}: {', '.join(map(str, values))}"
                )


def duplicates(history: History) -> Iterator[Anomaly]:
    """An idempotent producer's record is there once."""
    first_places: dict[int, tuple[str, int]] = {}
    for log in history.logs.values():
        for offset in log.offsets:
            for value in log.values[offset]:
                first = first_places.setdefault(value, (log.name, offset))
                if first != (log.name, offset):
                    yield Anomaly(
                        AnomalyKind.DUPLICATE, f"{value} is at {first[0]} {first[1]} and at {log.name} {offset}"
                    )


def lost_writes(history: History) -> Iterator[Anomaly]:
    """An acknowledged record is among those that a partition holds in the end, whoever has read it before.

    Where nobody looked in the end, somebody has read it, once anybody has read beyond it.
    """
    for operation in history.operations:
        if operation.outcome is not Outcome.OK:
            continue
        for partition, value, offset in operation.sends:
            log = history.logs[partition]
            if log.last_values is not None:
                is_lost = value not in log.last_values
            else:
                is_lost = offset is not None and offset < log.highest_read and value not in history.read_values
            if is_lost:
                yield Anomaly(
                    AnomalyKind.LOST_WRITE,
                    f"{operation.process} was told that {value} is at {partition} {offset}, and it is not",
                )
