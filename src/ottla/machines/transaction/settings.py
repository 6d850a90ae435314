"""What a cluster's configuration says to the transaction coordinator."""

from dataclasses import dataclass
from typing import Final

EPOCH_BUMPS: Final = 2
"""The `transaction.version` from which every end of a transaction bumps the producer's epoch (KIP-890)."""

FLEXIBLE_LOG: Final = 1
"""The `transaction.version` from which the log's records may have tagged fields."""


@dataclass(slots=True)
class TransactionSettings:
    """One object for all partitions of a coordinator, changed in place when the cluster's settings are."""

    transaction_version: int = EPOCH_BUMPS
    max_timeout_ms: int = 900_000
    id_expiration_ms: int = 604_800_000
    abort_interval_ms: int = 10_000
    expiration_interval_ms: int = 3_600_000

    @property
    def log_version(self) -> int:
        """The version that TransactionLogValue is written in."""
        return 1 if self.transaction_version >= FLEXIBLE_LOG else 0
