"""Who changed what: settings, quotas, users, rules and features, a line each in the log of the controller that decided.

Values of passwords, and of settings that no table knows, are not shown. A client may change as much as it likes: the
lines are bounded in rate, and say how many were left out.
"""

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, TypeAlias

from ottla.config.values import Type
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.runtime.channels import Caller, Then
from ottla.runtime.rate_limited_log import RateLimitedLog
from ottla.serving.node_settings import broker_row
from ottla.wire.acls import AclOperation, AclResource, PatternType

_log = logging.getLogger(__name__)

_LONGEST: Final = 200
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_VERBS: Final = {
    _SET: "set {0}={1}",
    _DELETE: "removed {0}",
    _APPEND: "added {1} to {0}",
    _SUBTRACT: "took {1} off {0}",
}
_ALLOW: Final = 3

Lines: TypeAlias = Callable[[Any, Any], Iterator[str]]
"""What a request has changed, and with which reply. The rows of APIs name such functions."""


def telling(lines: Lines, log: RateLimitedLog, request: Any, caller: Caller, then: Then) -> Then:
    """`then`, with the change logged before it."""
    who = f"{caller.principal} ({caller.host})" if caller.host else caller.principal

    def tell(reply: Any) -> None:
        if not getattr(request, "validate_only", False):
            for line in lines(request, reply):
                log.info("%s %s", who, line)
        then(reply)

    return tell


def rate_limited_log(now_s: Callable[[], float]) -> RateLimitedLog:
    return RateLimitedLog(_log, now_s)


def configs(request: Any, reply: Any) -> Iterator[str]:
    refused = {(one.resource_type, one.resource_name) for one in reply.responses if one.error_code}
    for resource in request.resources:
        if (resource.resource_type, resource.resource_name) in refused:
            continue
        about = _resource(resource.resource_type, resource.resource_name)
        for one in resource.configs:
            operation = getattr(one, "config_operation", _SET)
            value = _shown(resource.resource_type, one.name, one.value)
            yield f"{_VERBS.get(operation, 'changed {0}').format(one.name, value)} of {about}"


def _resource(kind: int, name: str) -> str:
    try:
        word = ResourceType(kind).name.lower().replace("_", " ")
    except ValueError:
        word = f"resource type {kind}"
    return f"all {word}s" if kind == ResourceType.BROKER and not name else f"{word} {name}"


def _shown(kind: int, name: str, value: str | None) -> str:
    if kind == ResourceType.BROKER_LOGGER:
        return str(value)
    if kind == ResourceType.BROKER:
        row = broker_row(name)
        if row is None or row.type is Type.PASSWORD:
            return "[hidden]"
    return str(value)[:_LONGEST]


def quotas(request: Any, reply: Any) -> Iterator[str]:
    for entry, outcome in zip(request.entries, reply.entries, strict=False):
        if not outcome.error_code:
            entity = ", ".join(f"{one.entity_type} {one.entity_name or 'default'}" for one in entry.entity)
            for op in entry.ops:
                yield f"removed {op.key} of {entity}" if op.remove else f"set {op.key}={op.value:g} of {entity}"


def users(request: Any, reply: Any) -> Iterator[str]:
    refused = {one.user for one in reply.results if one.error_code}
    for verb, changes in (("removed", request.deletions), ("set", request.upsertions)):
        for one in changes:
            if one.name not in refused:
                yield f"{verb} the SCRAM credential of user {one.name}"


def features(request: Any, reply: Any) -> Iterator[str]:
    if not reply.error_code:
        for one in request.feature_updates:
            yield f"set feature {one.feature} to level {one.max_version_level}"


def created_rules(request: Any, reply: Any) -> Iterator[str]:
    for rule, outcome in zip(request.creations, reply.results, strict=False):
        if not outcome.error_code:
            yield f"added the rule {_rule(rule)}"


def deleted_rules(request: Any, reply: Any) -> Iterator[str]:
    for outcome in reply.filter_results:
        for rule in outcome.matching_acls:
            if not rule.error_code:
                yield f"removed the rule {_rule(rule)}"


def _rule(rule: Any) -> str:
    allows = "allow" if rule.permission_type == _ALLOW else "deny"
    operation, resource = AclOperation(rule.operation).name, AclResource(rule.resource_type).name
    pattern = rule.resource_pattern_type if hasattr(rule, "resource_pattern_type") else rule.pattern_type
    prefixed = "names beginning with " if pattern == PatternType.PREFIXED else ""
    return f"{allows} {rule.principal} {operation} on {resource} {prefixed}{rule.resource_name} from {rule.host}"
