"""Which rules of access an administrator asks for, to see or to delete them (KIP-140, KIP-290)."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Generic, NamedTuple, TypeVar

from ottla.security.acls.bindings import ANY_NAME, AclBinding
from ottla.wire.acls import AclOperation, AclPermission, AclResource, PatternType

KeyT = TypeVar("KeyT")


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


class RuleSearch(Generic[KeyT]):
    """Finds what many filters match among many rules: a tool that removes a thousand rules names each of them.

    A filter with a name, a principal or a host looks only at rules that have it. Filters without are few, as they can
    differ in nothing but numbers of the protocol, and each is looked for once.
    """

    def __init__(self, rules: Mapping[KeyT, AclBinding]) -> None:
        self._rules = rules
        self._by_name: dict[str, list[KeyT]] = defaultdict(list)
        self._by_principal: dict[str, list[KeyT]] = defaultdict(list)
        self._by_host: dict[str, list[KeyT]] = defaultdict(list)
        for key, rule in rules.items():
            self._by_name[rule.resource_name].append(key)
            self._by_principal[rule.principal].append(key)
            self._by_host[rule.host].append(key)
        self._name_lengths = sorted({len(name) for name in self._by_name})
        self._found: dict[AclFilter, dict[KeyT, AclBinding]] = {}

    def find(self, wanted: AclFilter) -> Mapping[KeyT, AclBinding]:
        found = self._found.get(wanted)
        if found is None:
            rules = self._rules
            found = {key: rules[key] for key in self._candidates(wanted) if wanted.matches(rules[key])}
            self._found[wanted] = found
        return found

    def _candidates(self, wanted: AclFilter) -> Iterable[KeyT]:
        """The fewest that can be had without a look at each rule."""
        groups: list[list[KeyT]] = []
        if wanted.resource_name is not None:
            groups.append([key for name in self._names(wanted) for key in self._by_name.get(name, ())])
        if wanted.principal is not None:
            groups.append(self._by_principal.get(wanted.principal, []))
        if wanted.host is not None:
            groups.append(self._by_host.get(wanted.host, []))
        if not groups:
            return self._rules
        fewest: list[KeyT] = min(groups, key=len)
        return fewest

    def _names(self, wanted: AclFilter) -> Iterable[str]:
        """Names of rules that a filter with a name can match."""
        name = wanted.resource_name
        assert name is not None
        if wanted.pattern_type != PatternType.MATCH:
            return (name,)
        prefixes = (name[:length] for length in self._name_lengths if length <= len(name))
        return dict.fromkeys([ANY_NAME, *prefixes])
