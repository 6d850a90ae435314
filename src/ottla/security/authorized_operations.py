"""What a client may do where everyone may do everything, as a bit field (KIP-430).

With an authorizer, the check before a handler (`serving.access`) puts what the client may do in its place.

A reply that was not asked for them carries `NOT_ASKED`, the least 32-bit number.
"""

from collections.abc import Iterable
from typing import Final

from ottla.wire.acls import AclOperation as Operation


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
