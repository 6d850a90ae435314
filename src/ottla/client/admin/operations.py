"""What a principal may do with a resource, as brokers tell it: a set of bits (KIP-430)."""

from typing import Final

from ottla.wire.acls import AclOperation as AclOperation

Operations = frozenset[AclOperation]

_NOT_GIVEN: Final = -(1 << 31)


def operations(bits: int) -> Operations | None:
    """None if the broker does not tell them. A bit that this version does not know is left out."""
    if bits == _NOT_GIVEN:
        return None
    return frozenset(one for one in AclOperation if one > AclOperation.ANY and bits >> one & 1)
