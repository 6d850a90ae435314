"""What rules of access speak of, with the numbers of the protocol: operations, resources, patterns of names."""

from enum import IntEnum
from typing import Final


class AclOperation(IntEnum):
    """What a rule of access allows or denies. `ANY` is for filters, `ALL` for rules."""

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


class AclResource(IntEnum):
    """What a rule of access is about. `ANY` is for filters."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(IntEnum):
    """How a rule's name of a resource is meant (KIP-290). ANY and MATCH are for filters alone."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    """Every pattern that covers the resource of this name: its own, prefixes of it, and `*`."""
    LITERAL = 3
    PREFIXED = 4


class AclPermission(IntEnum):
    """Whether a rule allows or denies. `ANY` is for filters."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


CLUSTER_NAME: Final = "kafka-cluster"
"""The only name that a resource of the type CLUSTER has."""
