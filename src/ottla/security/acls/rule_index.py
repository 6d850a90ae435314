"""Rules of one kind of resource, by the names that they are about.

A decision about a name looks at the rules of that name, at those of `*`, and at those of each beginning of the name.
Beginnings are looked up by length: there are as many lookups as rules have prefixes of different lengths. Within a name
the rules are in order of principals, because one topic may have a rule for each of ten thousand.
"""

from collections.abc import Iterator

from ottla.security.acls.bindings import ANY_NAME, ANYBODY, AclBinding
from ottla.wire.acls import PatternType

_ByPrincipal = dict[str, list[AclBinding]]


class RuleIndex:
    """See the module. A rule that is added twice has to be removed twice."""

    __slots__ = ("_lengths", "_literal", "_prefixed")

    def __init__(self) -> None:
        self._literal: dict[str, _ByPrincipal] = {}
        self._prefixed: dict[str, _ByPrincipal] = {}
        self._lengths: dict[int, int] = {}
        """How many different prefixes have each length."""

    def add(self, rule: AclBinding) -> None:
        names = self._names(rule)
        if names is None:
            return
        of_name = names.get(rule.resource_name)
        if of_name is None:
            of_name = names[rule.resource_name] = {}
            self._count_prefix(rule, 1)
        of_name.setdefault(rule.principal, []).append(rule)

    def remove(self, rule: AclBinding) -> None:
        names = self._names(rule)
        if names is None:
            return
        of_name = names[rule.resource_name]
        rules = of_name[rule.principal]
        rules.remove(rule)
        if not rules:
            del of_name[rule.principal]
        if not of_name:
            del names[rule.resource_name]
            self._count_prefix(rule, -1)

    def rules_for(self, name: str, principal: str) -> tuple[bool, list[AclBinding]]:
        """Whether any rule is about the name, and those of them that speak of the principal."""
        found: list[AclBinding] = []
        is_ruled = False
        for of_name in self._about(name):
            is_ruled = True
            found += of_name.get(principal, ())
            if principal != ANYBODY:
                found += of_name.get(ANYBODY, ())
        return is_ruled, found

    def all_for(self, principal: str) -> Iterator[AclBinding]:
        """All rules that speak of the principal, whatever they are about."""
        for names in (self._literal, self._prefixed):
            for of_name in names.values():
                yield from of_name.get(principal, ())
                if principal != ANYBODY:
                    yield from of_name.get(ANYBODY, ())

    def _about(self, name: str) -> Iterator[_ByPrincipal]:
        if (of_name := self._literal.get(name)) is not None:
            yield of_name
        if name != ANY_NAME and (of_name := self._literal.get(ANY_NAME)) is not None:
            yield of_name
        most = len(name)
        for length in self._lengths:
            if length <= most and (of_name := self._prefixed.get(name[:length])) is not None:
                yield of_name

    def _names(self, rule: AclBinding) -> dict[str, _ByPrincipal] | None:
        if rule.pattern_type == PatternType.LITERAL:
            return self._literal
        return self._prefixed if rule.pattern_type == PatternType.PREFIXED else None

    def _count_prefix(self, rule: AclBinding, change: int) -> None:
        if rule.pattern_type != PatternType.PREFIXED:
            return
        length = len(rule.resource_name)
        count = self._lengths.get(length, 0) + change
        if count:
            self._lengths[length] = count
        else:
            del self._lengths[length]
