"""What a client may do, as a bit field (KIP-430). There is no authorizer yet, so everyone may do everything.

A reply that was not asked for them carries `NOT_ASKED`, the least 32-bit number.
"""

from collections.abc import Iterable
from enum import IntEnum
from typing import Final


class Operation(IntEnum):
    """The operations that rules speak of, with the numbers of the protocol."""

    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12


def _bits(operations: Iterable[Operation]) -> int:
    return sum(1 << operation for operation in operations)


NOT_ASKED: Final = -(1 << 31)

ALL_ON_TOPIC: Final = _bits(
    (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    )
)

ALL_ON_CLUSTER: Final = _bits(
    (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    )
)

ALL_ON_GROUP: Final = _bits(
    (Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)
)
