"""The rules that the options of kafka-acls stand for: resources, and what is allowed or denied with each."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ottla.cli.options.checks import UsageError
from ottla.cli.options.reading import Given, OptionError
from ottla.client.admin.access.acls import AclPermission, AclResourceType, PatternType
from ottla.client.admin.operations import AclOperation

ALL_HOSTS: Final = "*"
CLUSTER_NAME: Final = "kafka-cluster"

_O = AclOperation
_R = AclResourceType
SUPPORTED: Final = {
    _R.TOPIC: (
        _O.READ, _O.WRITE, _O.CREATE, _O.DESCRIBE, _O.DELETE, _O.ALTER, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.ALL,
    ),
    _R.GROUP: (_O.READ, _O.DESCRIBE, _O.DELETE, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.ALL),
    _R.CLUSTER: (
        _O.CREATE, _O.CLUSTER_ACTION, _O.DESCRIBE_CONFIGS, _O.ALTER_CONFIGS, _O.IDEMPOTENT_WRITE, _O.ALTER,
        _O.DESCRIBE, _O.ALL,
    ),
    _R.TRANSACTIONAL_ID: (_O.DESCRIBE, _O.WRITE, _O.TWO_PHASE_COMMIT, _O.ALL),
    _R.DELEGATION_TOKEN: (_O.DESCRIBE, _O.ALL),
    _R.USER: (_O.CREATE_TOKENS, _O.DESCRIBE_TOKENS, _O.ALL),
}  # fmt: skip
"""What can be done with a resource."""

_NAMED: Final = {
    "topic": _R.TOPIC,
    "group": _R.GROUP,
    "transactional-id": _R.TRANSACTIONAL_ID,
    "delegation-token": _R.DELEGATION_TOKEN,
    "user-principal": _R.USER,
}


class Resource(NamedTuple):
    """A resource, or with a pattern type of ANY or MATCH several."""

    type: AclResourceType
    name: str
    pattern: PatternType


class Entry(NamedTuple):
    principal: str
    host: str
    operation: AclOperation
    permission: AclPermission


Rules = dict[Resource, list[Entry]]


def pattern_of(given: Given) -> PatternType:
    name = given.text("resource-pattern-type")
    if name.upper() not in ("ANY", "MATCH", "LITERAL", "PREFIXED"):
        raise OptionError(f"Cannot parse argument '{name}' of option resource-pattern-type")
    return PatternType[name.upper()]


def resources_of(given: Given) -> list[Resource]:
    """Those that were named; the cluster has one name only."""
    pattern = pattern_of(given)
    found = [Resource(kind, name.strip(), pattern) for option, kind in _NAMED.items() for name in given.all(option)]
    if "cluster" in given:
        found.append(Resource(_R.CLUSTER, CLUSTER_NAME, PatternType.LITERAL))
    return found


def rules_to_add(given: Given) -> Rules:
    """Raises `UsageError` if they cannot be added."""
    pattern = pattern_of(given)
    if pattern in (PatternType.ANY, PatternType.MATCH):
        raise UsageError(f"A '--resource-pattern-type' value of '{pattern.name}' is not valid when adding acls.")
    rules = rules_of(given)
    if not any(rules.values()):
        raise UsageError("You must specify one of: --allow-principal, --deny-principal when trying to add ACLs.")
    return rules


def rules_of(given: Given) -> Rules:
    """Resources with the entries that the options describe: none, if they name no principal."""
    rules: Rules = {}
    if "producer" not in given and "consumer" not in given:
        resources = _at_least_one(resources_of(given))
        for resource in resources:
            rules[resource] = _entries(given, [_operation(text) for text in given.all("operation")])
    if "producer" in given:
        _add(rules, _producer_rules(given))
    if "consumer" in given:
        _add(rules, _consumer_rules(given))
    for resource, entries in rules.items():
        supported = SUPPORTED[resource.type]
        if any(entry.operation not in supported for entry in entries):
            names = ", ".join(operation.name for operation in supported)
            raise UsageError(f"ResourceType {resource.type.name} only supports operations [{names}]")
    return rules


def _at_least_one(resources: list[Resource]) -> list[Resource]:
    if not resources:
        raise UsageError(
            "You must provide at least one resource: --topic <topic> or --cluster or --group <group> or "
            "--delegation-token <Delegation Token ID>"
        )
    return resources


def _producer_rules(given: Given) -> Rules:
    rules: Rules = {}
    for resource in resources_of(given):
        if resource.type is _R.TOPIC:
            rules[resource] = _entries(given, [_O.WRITE, _O.DESCRIBE, _O.CREATE])
        elif resource.type is _R.TRANSACTIONAL_ID:
            rules[resource] = _entries(given, [_O.WRITE, _O.DESCRIBE])
    if "idempotent" in given:
        rules[Resource(_R.CLUSTER, CLUSTER_NAME, PatternType.LITERAL)] = _entries(given, [_O.IDEMPOTENT_WRITE])
    return rules


def _consumer_rules(given: Given) -> Rules:
    operations = {_R.TOPIC: [_O.READ, _O.DESCRIBE], _R.GROUP: [_O.READ]}
    return {
        resource: _entries(given, operations[resource.type])
        for resource in resources_of(given)
        if resource.type in operations
    }


def _add(rules: Rules, more: Rules) -> None:
    for resource, entries in more.items():
        known = rules.setdefault(resource, [])
        known += [entry for entry in entries if entry not in known]


def _entries(given: Given, operations: Iterable[AclOperation]) -> list[Entry]:
    found = []
    operations = list(operations)
    for kind, permission in (("allow", AclPermission.ALLOW), ("deny", AclPermission.DENY)):
        hosts = given.all(f"{kind}-host") or [ALL_HOSTS]
        for principal in given.all(f"{kind}-principal"):
            checked = principal_of(principal)
            found += [Entry(checked, host.strip(), one, permission) for host in hosts for one in operations]
    return found


def principal_of(text: str) -> str:
    text = text.strip()
    kind, colon, name = text.partition(":")
    if not kind or not colon or not name:
        raise OptionError(f"expected a string in format principalType:principalName but got {text}")
    return text


def _operation(text: str) -> AclOperation:
    """`DescribeConfigs` and `describe_configs` are the same; what is none is reported with the resource."""
    wanted = text.strip().replace("_", "").lower()
    for operation in AclOperation:
        if operation.name.replace("_", "").lower() == wanted:
            return operation
    return AclOperation.UNKNOWN
