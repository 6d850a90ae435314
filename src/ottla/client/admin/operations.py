"""What a principal may do with a resource, as brokers tell it: a set of bits (KIP-430)."""

from enum import IntEnum
from typing import Final


class AclOperation(IntEnum):
    """What a rule of access allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
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
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


Operations = frozenset[AclOperation]

_NOT_TOLD: Final = -(1 << 31)


def operations(bits: int) -> Operations | None:
    """None if the broker does not tell them. A bit that this version does not know is left out."""
    if bits == _NOT_TOLD:
        return None
    return frozenset(one for one in AclOperation if one > AclOperation.ANY and bits >> one & 1)
