"""Aborted and precommitted reads: what no consumer with `isolation.level=read_committed` may see."""

from collections.abc import Iterator

from ottla.testing.chaos.anomaly import Anomaly, AnomalyKind
from ottla.testing.chaos.operations import Outcome
from ottla.testing.chaos.partition_logs import History


def aborted_and_precommitted_reads(history: History) -> Iterator[Anomaly]:
    """A transaction that reads its own record, which is not committed yet, is precommitted too."""
    operations, writers = history.operations, history.writers
    for index, reader in enumerate(operations):
        for partition, offset, value in reader.polls:
            written_by = writers.get(value)
            if written_by is None:
                continue
            writer = operations[written_by]
            if writer.outcome is Outcome.FAIL:
                yield Anomaly(
                    AnomalyKind.ABORTED_READ,
                    f"{reader.process} reads {value} at {partition} {offset}, which {writer.process} aborted",
                )
            elif written_by == index or (
                writer.commit_began_us is not None and reader.ended_us < writer.commit_began_us
            ):
                yield Anomaly(
                    AnomalyKind.PRECOMMITTED_READ,
                    f"{reader.process} reads {value} at {partition} {offset} before {writer.process} commits it",
                )
