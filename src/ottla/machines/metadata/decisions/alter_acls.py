"""CreateAcls and DeleteAcls: rules of access come and go (KIP-140).

That there is an authorizer to heed them is looked after by the controller's server: rules can be kept without one.
"""

from collections.abc import Iterable
from typing import Any, Final

from ottla.base.ids import Uuid
from ottla.machines.decision import Decision, VersionedRecord
from ottla.machines.metadata.controller.controller_context import ControllerContext
from ottla.machines.metadata.decisions.create_topics import MOST_RECORDS
from ottla.machines.metadata.refusal import Refusal
from ottla.security.acls.bindings import AclBinding, binding_of
from ottla.security.acls.filters import AclFilter, RuleSearch
from ottla.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResource, PatternType
from ottla.wire.errors import ErrorCode
from ottla.wire.message import like
from ottla.wire.messages import (
    AccessControlEntryRecord,
    CreateAclsRequest,
    CreateAclsResponse,
    DeleteAclsRequest,
    DeleteAclsResponse,
    RemoveAccessControlEntryRecord,
)

_OF_THE_CLUSTER: Final = Refusal(
    ErrorCode.INVALID_REQUEST, f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}"
)
_NO_NAME: Final = Refusal(ErrorCode.INVALID_REQUEST, "Invalid empty resource name")
_UNKNOWN_RESOURCE: Final = Refusal(ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
_UNKNOWN_ENTRY: Final = Refusal(ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
_FAILED: Final = Refusal(ErrorCode.UNKNOWN_SERVER_ERROR)
_MOST_LISTED: Final = 10 * MOST_RECORDS
"""Rules in one reply: each of a hundred thousand filters may match all rules there are."""
# What replies are made like: a request may have a hundred thousand entries.
_CREATED: Final = CreateAclsResponse.AclCreationResult(error_message=None)


def create_acls(context: ControllerContext, request: CreateAclsRequest) -> Decision[CreateAclsResponse]:
    """A rule that is there already, or twice in the request, is left as it is."""
    known = {binding_of(record) for record in context.image.security.acls.values()}
    reply = CreateAclsResponse()
    records: list[VersionedRecord] = []
    for creation in request.creations:
        rule = _rule(creation)
        problem = _check(rule)
        if problem is None and rule not in known:
            known.add(rule)
            records.append(VersionedRecord(_record(context.new_uuid(), rule), 0))
            if len(records) > MOST_RECORDS:
                return Decision(CreateAclsResponse(results=[_result(_FAILED) for _ in request.creations]))
        reply.results.append(_result(problem))
    return Decision(reply, records)


def delete_acls(context: ControllerContext, request: DeleteAclsRequest) -> Decision[DeleteAclsResponse]:
    """Each filter gets all rules that it matches, also those that another took away."""
    search = RuleSearch({id: binding_of(record) for id, record in context.image.security.acls.items()})
    gone: dict[Uuid, None] = {}
    listed = 0
    reply = DeleteAclsResponse()
    for asked in request.filters:
        wanted = filter_of(asked)
        problem = _check_filter(wanted)
        found = {} if problem is not None else search.find(wanted)
        gone.update(dict.fromkeys(found))
        listed += len(found)
        if len(gone) > MOST_RECORDS or listed > _MOST_LISTED:
            return Decision(DeleteAclsResponse(filter_results=[_filter_result(_FAILED) for _ in request.filters]))
        reply.filter_results.append(_filter_result(problem, found.values()))
    return Decision(reply, [VersionedRecord(RemoveAccessControlEntryRecord(id=id), 0) for id in gone])


def filter_of(asked: Any) -> AclFilter:
    """The filter of a DescribeAcls, or one of a DeleteAcls. Version 0 knows literal rules only."""
    return AclFilter(
        asked.resource_type_filter,
        asked.resource_name_filter,
        asked.pattern_type_filter,
        asked.principal_filter,
        asked.host_filter,
        asked.operation,
        asked.permission_type,
    )


def _rule(creation: CreateAclsRequest.AclCreation) -> AclBinding:
    return AclBinding(
        creation.resource_type,
        creation.resource_name,
        creation.resource_pattern_type,
        creation.principal,
        creation.host,
        creation.operation,
        creation.permission_type,
    )


def _check(rule: AclBinding) -> Refusal | None:
    """Apache Kafka has no words for a rule with a value that only filters can have."""
    if rule.resource_type == AclResource.CLUSTER and rule.resource_name != CLUSTER_NAME:
        return _OF_THE_CLUSTER
    if not rule.resource_name:
        return _NO_NAME
    for text, value, known, of_filters in (
        ("resourceType", rule.resource_type, AclResource, (AclResource.ANY,)),
        ("patternType", rule.pattern_type, PatternType, (PatternType.ANY, PatternType.MATCH)),
        ("operation", rule.operation, AclOperation, (AclOperation.ANY,)),
        ("permissionType", rule.permission_type, AclPermission, (AclPermission.ANY,)),
    ):
        if value in of_filters:
            return _FAILED
        if value == 0 or value not in frozenset(known):
            return Refusal(ErrorCode.INVALID_REQUEST, f"Invalid {text} UNKNOWN")
    if ":" not in rule.principal:
        return Refusal(
            ErrorCode.INVALID_REQUEST,
            f"Could not parse principal from `{rule.principal}` (no colon is present separating the principal type "
            "from the principal name)",
        )
    return None


def _record(id: Uuid, rule: AclBinding) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(id=id, **rule._asdict())


def _result(problem: Refusal | None) -> CreateAclsResponse.AclCreationResult:
    result = like(_CREATED)
    if problem is not None:
        result.error_code, result.error_message = problem
    return result


def _check_filter(wanted: AclFilter) -> Refusal | None:
    if wanted.resource_type not in frozenset(AclResource) or wanted.pattern_type not in frozenset(PatternType):
        return _UNKNOWN_RESOURCE
    if wanted.operation not in frozenset(AclOperation) or wanted.permission_type not in frozenset(AclPermission):
        return _UNKNOWN_ENTRY
    return None


def _filter_result(
    problem: Refusal | None, matching: Iterable[AclBinding] = ()
) -> DeleteAclsResponse.DeleteAclsFilterResult:
    error, message = problem or (ErrorCode.NONE, None)
    return DeleteAclsResponse.DeleteAclsFilterResult(
        error_code=error, error_message=message, matching_acls=[_deleted(rule) for rule in matching]
    )


def _deleted(rule: AclBinding) -> DeleteAclsResponse.DeleteAclsMatchingAcl:
    return DeleteAclsResponse.DeleteAclsMatchingAcl(error_message=None, **rule._asdict())
