"""What a cluster's configuration says to the transaction coordinator."""

from typing import Final

EPOCH_BUMPS: Final = 2
"""The `transaction.version` from which every end of a transaction bumps the producer's epoch (KIP-890)."""

FLEXIBLE_LOG: Final = 1
"""The `transaction.version` from which the log's records may have tagged fields."""


class TransactionSettings:
    """One object for all partitions of a coordinator, changed in place when the cluster's settings are."""

    def __init__(self) -> None:
        self.transaction_version = EPOCH_BUMPS
        self.max_timeout_ms = 900_000
        self.id_expiration_ms = 604_800_000
        self.abort_interval_ms = 10_000
        self.expiration_interval_ms = 3_600_000

    @property
    def log_version(self) -> int:
        """The version that TransactionLogValue is written in."""
        return 1 if self.transaction_version >= FLEXIBLE_LOG else 0
