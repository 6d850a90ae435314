"""A rule of access: whether a principal may do something with the resources of a pattern, from some host."""

from typing import Any, Final, NamedTuple

ANY_NAME: Final = "*"
ANY_HOST: Final = "*"
ANYBODY: Final = "User:*"


class AclBinding(NamedTuple):
    """A rule, with the numbers of `wire.acls`: whatever the log has is kept, also what this version does not know.

    `principal` is as `User:alice`; `User:*` is everybody. `host` is an address, a range of addresses, or `*`.
    """

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int


def binding_of(entry: Any) -> AclBinding:
    """The rule in an AccessControlEntryRecord."""
    return AclBinding(
        entry.resource_type,
        entry.resource_name,
        entry.pattern_type,
        entry.principal,
        entry.host,
        entry.operation,
        entry.permission_type,
    )
