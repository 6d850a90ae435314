"""A change of the ISR that a leader has asked the controller for (AlterPartition, KIP-497)."""

from typing import NamedTuple


class IsrProposal(NamedTuple):
    """It holds for one leader epoch and one partition epoch: the controller refuses it for any other."""

    isr: tuple[int, ...]
    broker_epochs: tuple[int, ...]
    """For each of them the epoch in which it has fetched, so that a broker that has restarted since, and may have lost
    what it had, is not taken for the one that was in sync (KIP-903). -1 is not checked.
    """
    leader_epoch: int
    partition_epoch: int
