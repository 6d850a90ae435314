"""All checks over a history, and the table that tells of them."""

from collections.abc import Collection, Iterator, Sequence
from typing import NamedTuple

from ottla.testing.chaos.anomaly import ALLOWED_BY_KAFKA, MEANINGS, Anomaly, AnomalyKind
from ottla.testing.chaos.cycle_anomalies import cycles
from ottla.testing.chaos.offset_anomalies import duplicates, inconsistent_offsets, lost_writes
from ottla.testing.chaos.operations import Operation, Outcome
from ottla.testing.chaos.order_anomalies import poll_order, send_order
from ottla.testing.chaos.partition_logs import History
from ottla.testing.chaos.read_anomalies import aborted_and_precommitted_reads

_CHECKS = (
    lost_writes,
    inconsistent_offsets,
    duplicates,
    aborted_and_precommitted_reads,
    poll_order,
    send_order,
    cycles,
)
_MOST_EVIDENCE = 3


class Verdict(NamedTuple):
    anomalies: dict[AnomalyKind, list[Anomaly]]
    allowed: Collection[AnomalyKind]

    @property
    def is_good(self) -> bool:
        return not any(found for kind, found in self.anomalies.items() if kind not in self.allowed)

    def found(self) -> list[AnomalyKind]:
        """The kinds that there are, the allowed ones too."""
        return [kind for kind, found in self.anomalies.items() if found]


def judge(operations: Sequence[Operation], allowed: Collection[AnomalyKind] = ALLOWED_BY_KAFKA) -> Verdict:
    history = History(operations)
    anomalies: dict[AnomalyKind, list[Anomaly]] = {kind: [] for kind in AnomalyKind}
    for check in _CHECKS:
        for anomaly in check(history):
            anomalies[anomaly.kind].append(anomaly)
    return Verdict(anomalies, allowed)


def table(verdict: Verdict) -> Iterator[str]:
    """A line for each kind; below it, the first of its evidence."""
    for kind, found in verdict.anomalies.items():
        result = "ok" if not found else "allowed" if kind in verdict.allowed else "FOUND"
        yield f"{kind:22} {len(found):>7,}  {result:8} {MEANINGS[kind]}"
        if result == "FOUND":
            for anomaly in found[:_MOST_EVIDENCE]:
                yield f"    {anomaly.evidence}"


def counts(operations: Sequence[Operation]) -> str:
    """How much the history holds, so that an empty one is not taken for a good one."""
    transactions = [operation for operation in operations if operation.is_transaction]
    sent = sum(len(operation.sends) for operation in operations)
    acknowledged = sum(len(operation.sends) for operation in operations if operation.outcome is Outcome.OK)
    ends = ", ".join(f"{sum(one.outcome is outcome for one in transactions):,} {outcome}" for outcome in Outcome)
    return (
        f"{len(operations):,} operations: {acknowledged:,} of {sent:,} records acknowledged, "
        f"{sum(len(one.polls) for one in operations):,} read, {len(transactions):,} transactions ({ends})"
    )
