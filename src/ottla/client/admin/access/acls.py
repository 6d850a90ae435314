"""Rules of access: describe, create, delete."""

from collections.abc import Iterable
from enum import IntEnum
from typing import Any, NamedTuple

from ottla.client.admin.asking import Asking, is_throttled
from ottla.client.admin.known_values import numbered
from ottla.client.admin.operations import AclOperation
from ottla.client.admin.results import Outcome, Results, failure
from ottla.client.errors import KafkaError, error_for
from ottla.wire import messages
from ottla.wire.acls import AclPermission as AclPermission
from ottla.wire.acls import PatternType as PatternType


class AclResourceType(IntEnum):
    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class AclBinding(NamedTuple):
    """A rule: whether a principal may do something with a resource, from some host."""

    resource_type: AclResourceType
    resource_name: str
    principal: str
    """As `User:alice`; `User:*` is everybody."""
    operation: AclOperation
    permission: AclPermission = AclPermission.ALLOW
    pattern_type: PatternType = PatternType.LITERAL
    host: str = "*"


class AclFilter(NamedTuple):
    """Matches rules; what is not given matches anything."""

    resource_type: AclResourceType = AclResourceType.ANY
    resource_name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission: AclPermission = AclPermission.ANY
    pattern_type: PatternType = PatternType.ANY
    host: str | None = None


class DeletedAcl(NamedTuple):
    binding: AclBinding
    error: KafkaError | None
    """Why this one could not be deleted, though the filter matches it."""


async def describe_acls(
    asking: Asking, filter: AclFilter | None = None, *, timeout: float | None = None
) -> list[AclBinding]:
    """The rules that match; all of them without a filter."""
    wanted = filter or AclFilter()
    request = messages.DescribeAclsRequest(
        resource_type_filter=wanted.resource_type,
        resource_name_filter=wanted.resource_name,
        pattern_type_filter=wanted.pattern_type,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    response = await asking.any(request, asking.deadline(timeout))
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    return [_binding(resource, one) for resource in response.resources for one in resource.acls]


async def create_acls(
    asking: Asking, bindings: Iterable[AclBinding], *, timeout: float | None = None
) -> Results[AclBinding, None]:
    """Adds rules. One that is there already is left as it is."""
    deadline = asking.deadline(timeout)

    async def attempt(left: list[AclBinding]) -> dict[AclBinding, Outcome[None]]:
        creation = messages.CreateAclsRequest.AclCreation
        request = messages.CreateAclsRequest(
            creations=[
                creation(
                    resource_type=one.resource_type,
                    resource_name=one.resource_name,
                    resource_pattern_type=one.pattern_type,
                    principal=one.principal,
                    host=one.host,
                    operation=one.operation,
                    permission_type=one.permission,
                )
                for one in left
            ]
        )
        response = await asking.controller(request, deadline)
        # The answers are in the order of the rules, and name none of them.
        return {binding: failure(answer) for binding, answer in zip(left, response.results, strict=False)}

    return await asking.each("create_acls", bindings, attempt, deadline, may_pass=is_throttled)


async def delete_acls(
    asking: Asking, filters: Iterable[AclFilter], *, timeout: float | None = None
) -> Results[AclFilter, tuple[DeletedAcl, ...]]:
    """Takes away all rules that match, and tells for each filter which they were."""
    deadline = asking.deadline(timeout)

    async def attempt(left: list[AclFilter]) -> dict[AclFilter, Outcome[tuple[DeletedAcl, ...]]]:
        matching = messages.DeleteAclsRequest.DeleteAclsFilter
        request = messages.DeleteAclsRequest(
            filters=[
                matching(
                    resource_type_filter=one.resource_type,
                    resource_name_filter=one.resource_name,
                    pattern_type_filter=one.pattern_type,
                    principal_filter=one.principal,
                    host_filter=one.host,
                    operation=one.operation,
                    permission_type=one.permission,
                )
                for one in left
            ]
        )
        response = await asking.controller(request, deadline)
        return {one: _deleted(answer) for one, answer in zip(left, response.filter_results, strict=False)}

    return await asking.each("delete_acls", filters, attempt, deadline, may_pass=is_throttled)


def _deleted(answer: Any) -> Outcome[tuple[DeletedAcl, ...]]:
    if answer.error_code:
        return error_for(answer.error_code, answer.error_message)
    return tuple(DeletedAcl(_binding(one, one), failure(one)) for one in answer.matching_acls)


def _binding(resource: Any, rule: Any) -> AclBinding:
    return AclBinding(
        numbered(AclResourceType, resource.resource_type, AclResourceType.UNKNOWN),
        resource.resource_name,
        rule.principal,
        numbered(AclOperation, rule.operation, AclOperation.UNKNOWN),
        numbered(AclPermission, rule.permission_type, AclPermission.UNKNOWN),
        numbered(PatternType, resource.pattern_type, PatternType.UNKNOWN),
        rule.host,
    )
