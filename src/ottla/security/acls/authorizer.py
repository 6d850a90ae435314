"""Who may do what: the decisions of Apache Kafka's `StandardAuthorizer`.

Theory of operation. A super user may do everything. Else the rules count that are about the resource and speak of the
principal, the host and the operation: one that denies is enough to deny, before any that allows. Where no rule counts,
the answer is no; unless no rule is about the resource at all, for anybody, and `allow.everyone.if.no.acl.found` is set.

Being allowed to READ, WRITE, DELETE or ALTER allows DESCRIBE too, and ALTER_CONFIGS allows DESCRIBE_CONFIGS. To
be denied something says nothing about anything else.

Decisions are remembered until a rule changes: a client asks the same thing with each request. `version` tells
others who remember the answers.

Until the rules are known (`is_ready`), only super users may do something: an answer could be wrong.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

from ottla.security.acls.bindings import ANY_NAME, AclBinding, binding_of
from ottla.security.acls.hosts import covers
from ottla.security.acls.rule_index import RuleIndex
from ottla.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResource, PatternType

_MOST_REMEMBERED: Final = 50_000
_LONGEST_REMEMBERED: Final = 255  # Names come from clients, who are not to fill the memory with them.
_A_NAME_WITHOUT_RULES: Final = "hardcode"  # Apache Kafka's, so that a rule of this name counts as it does there.

_O = AclOperation
_IMPLIED_BY: Final[dict[int, frozenset[int]]] = {
    _O.DESCRIBE: frozenset({_O.DESCRIBE, _O.READ, _O.WRITE, _O.DELETE, _O.ALTER}),
    _O.DESCRIBE_CONFIGS: frozenset({_O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS}),
}

OPERATIONS: Final[dict[AclResource, tuple[AclOperation, ...]]] = {
    AclResource.TOPIC: (
        _O.READ, _O.WRITE, _O.CREATE, _O.DESCRIBE, _O.DELETE, _O.ALTER, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS,
    ),
    AclResource.GROUP: (_O.READ, _O.DESCRIBE, _O.DELETE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS),
    AclResource.CLUSTER: (
        _O.CREATE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.IDEMPOTENT_WRITE, _O.ALTER,
        _O.DESCRIBE,
    ),
    AclResource.TRANSACTIONAL_ID: (_O.DESCRIBE, _O.WRITE, _O.TWO_PHASE_COMMIT),
    AclResource.DELEGATION_TOKEN: (_O.DESCRIBE,),
    AclResource.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS),
}  # fmt: skip
"""What can be done with a resource of each kind."""


class Authorizer:
    """See the module. `rules` are the AccessControlEntryRecords of the metadata, by their ids."""

    def __init__(
        self, *, super_users: Collection[str] = (), allows_everyone_without_rules: bool = False, is_ready: bool = True
    ) -> None:
        self.version = 0
        """Another after each change of the rules."""
        self.is_ready = is_ready
        self._super_users = frozenset(super_users)
        self._allows_everyone = allows_everyone_without_rules
        self._by_id: dict[Any, AclBinding] = {}
        self._indexes: dict[int, RuleIndex] = {}
        self._remembered: dict[tuple[str, str, int, int, str], bool] = {}

    # The rules

    def load(self, rules: Mapping[Any, Any]) -> None:
        """These are all rules there are. Decisions can be made from here on."""
        self._by_id.clear()
        self._indexes.clear()
        self.change(rules, rules)
        self.is_ready = True

    def change(self, changed: Iterable[Any], rules: Mapping[Any, Any]) -> None:
        """The rules with these ids are new, other ones, or gone."""
        for id in changed:
            if (before := self._by_id.pop(id, None)) is not None:
                self._indexes[before.resource_type].remove(before)
            if (record := rules.get(id)) is not None:
                rule = self._by_id[id] = binding_of(record)
                index = self._indexes.get(rule.resource_type)
                if index is None:
                    index = self._indexes[rule.resource_type] = RuleIndex()
                index.add(rule)
        self._remembered.clear()
        self.version += 1

    # Decisions

    def allows(self, principal: str, host: str, operation: AclOperation, resource: AclResource, name: str) -> bool:
        asked = principal, host, operation, resource, name
        allowed = self._remembered.get(asked)
        if allowed is None:
            allowed = self.decide(*asked)
            if self.is_ready and len(name) <= _LONGEST_REMEMBERED:
                if len(self._remembered) >= _MOST_REMEMBERED:
                    self._remembered.clear()
                self._remembered[asked] = allowed
        return allowed

    def allows_on_cluster(self, principal: str, host: str, operation: AclOperation) -> bool:
        return self.allows(principal, host, operation, AclResource.CLUSTER, CLUSTER_NAME)

    def allows_any(self, principal: str, host: str, operation: AclOperation, resource: AclResource) -> bool:
        """Whether there is any resource of this kind with which the operation is allowed (KIP-679).

        As Kafka has it, operations that follow from others do not count here.
        """
        if self.allows(principal, host, operation, resource, _A_NAME_WITHOUT_RULES):
            return True
        index = self._indexes.get(resource)
        if index is None or not self.is_ready:
            return False
        counting = [
            rule
            for rule in index.all_for(principal)
            if rule.operation in (operation, AclOperation.ALL) and covers(rule.host, host)
        ]
        denied = {_pattern(rule) for rule in counting if rule.permission_type == AclPermission.DENY}
        if (PatternType.LITERAL, ANY_NAME) in denied:
            return False
        allowed = (_pattern(rule) for rule in counting if rule.permission_type == AclPermission.ALLOW)
        return any(not _is_denied(pattern, denied) for pattern in allowed)

    def authorized_operations(self, principal: str, host: str, resource: AclResource, name: str) -> int:
        """What is allowed, as a bit field (KIP-430)."""
        return sum(
            1 << operation
            for operation in OPERATIONS[resource]
            if self.allows(principal, host, operation, resource, name)
        )

    def decide(self, principal: str, host: str, operation: int, resource: int, name: str) -> bool:
        """What `allows` answers, by the rules alone: nothing is remembered."""
        if principal in self._super_users:
            return True
        if not self.is_ready:
            return False
        index = self._indexes.get(resource)
        is_ruled, rules = index.rules_for(name, principal) if index is not None else (False, [])
        if not is_ruled:
            return self._allows_everyone
        implied_by = _IMPLIED_BY.get(operation)
        is_allowed = False
        for rule in rules:
            if rule.permission_type == AclPermission.DENY:
                if rule.operation in (operation, AclOperation.ALL) and covers(rule.host, host):
                    return False
            elif rule.permission_type == AclPermission.ALLOW and not is_allowed:
                applies = rule.operation in (operation, AclOperation.ALL)
                applies = applies or (implied_by is not None and rule.operation in implied_by)
                is_allowed = applies and covers(rule.host, host)
        return is_allowed


def _pattern(rule: AclBinding) -> tuple[int, str]:
    return rule.pattern_type, rule.resource_name


def _is_denied(allowed: tuple[int, str], denied: set[tuple[int, str]]) -> bool:
    """Whether a rule that denies covers all that a rule of this pattern allows."""
    if allowed == (PatternType.LITERAL, ANY_NAME):
        return False
    name = allowed[1]
    return allowed in denied or any((PatternType.PREFIXED, name[:end]) in denied for end in range(1, len(name) + 1))
