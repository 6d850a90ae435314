"""Which rules of access an administrator asks for, to see or to delete them (KIP-140, KIP-290)."""

from typing import NamedTuple

from ottla.security.acls.bindings import ANY_NAME, AclBinding
from ottla.wire.acls import AclOperation, AclPermission, AclResource, PatternType


class AclFilter(NamedTuple):
    """None, and ANY, match everything. A name with the pattern type MATCH finds every rule that covers the resource of
    that name; with any other pattern type it finds the rules in which exactly that name stands.
    """

    resource_type: int
    resource_name: str | None
    pattern_type: int
    principal: str | None
    host: str | None
    operation: int
    permission_type: int

    def matches(self, rule: AclBinding) -> bool:
        return (
            self.resource_type in (AclResource.ANY, rule.resource_type)
            and self._matches_name(rule)
            and self.principal in (None, rule.principal)
            and self.host in (None, rule.host)
            and self.operation in (AclOperation.ANY, rule.operation)
            and self.permission_type in (AclPermission.ANY, rule.permission_type)
        )

    def _matches_name(self, rule: AclBinding) -> bool:
        wanted = self.pattern_type
        if wanted not in (PatternType.ANY, PatternType.MATCH, rule.pattern_type):
            return False
        name = self.resource_name
        if name is None or name == rule.resource_name:
            return True
        if wanted != PatternType.MATCH:
            return False
        if rule.pattern_type == PatternType.PREFIXED:
            return name.startswith(rule.resource_name)
        return rule.resource_name == ANY_NAME
