"""DescribeAcls 1-3: the rules of access that a filter finds (KIP-140). Creating and deleting them is the controller's.

Rules can be kept and shown only where an authorizer heeds them: without one, the answer is SECURITY_DISABLED.
"""

from typing import Any, Final

from ottla.apis.error_responses import refusal_response
from ottla.machines.metadata.decisions.alter_acls import filter_of
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import RefusedRequest
from ottla.security.acls.bindings import binding_of
from ottla.wire.errors import ErrorCode
from ottla.wire.message import Message
from ottla.wire.messages import DescribeAclsRequest, DescribeAclsResponse

_Resource = DescribeAclsResponse.DescribeAclsResource
_Acl = DescribeAclsResponse.AclDescription

_NO_AUTHORIZER: Final = "No Authorizer is configured on the broker"
_NOTHING_TO_DELETE: Final = "No Authorizer is configured."
"""Kafka's words, whatever listener is asked."""
_NUMBERS: Final = (
    "resource_type",
    "resource_type_filter",
    "resource_pattern_type",
    "pattern_type_filter",
    "operation",
    "permission_type",
)


def described_acls(image: MetadataImage, request: DescribeAclsRequest, *, has_authorizer: bool) -> DescribeAclsResponse:
    """The rules by what they are about."""
    check_known(request)
    if not has_authorizer:
        return DescribeAclsResponse(error_code=ErrorCode.SECURITY_DISABLED, error_message=_NO_AUTHORIZER)
    wanted = filter_of(request)
    found: dict[tuple[int, str, int], DescribeAclsResponse.DescribeAclsResource] = {}
    for record in image.security.acls.values():
        rule = binding_of(record)
        if wanted.matches(rule):
            resource = found.get(rule[:3])
            if resource is None:
                kind, name, pattern = rule[:3]
                resource = found[rule[:3]] = _Resource(resource_type=kind, resource_name=name, pattern_type=pattern)
            resource.acls.append(
                _Acl(
                    principal=rule.principal,
                    host=rule.host,
                    operation=rule.operation,
                    permission_type=rule.permission_type,
                )
            )
    return DescribeAclsResponse(error_message=None, resources=list(found.values()))


def check_known(request: Any) -> None:
    """Kafka hangs up on a client that says UNKNOWN itself, and not on one with a number that it does not know."""
    entries = getattr(request, "creations", None) or getattr(request, "filters", None) or (request,)
    if any(getattr(entry, number, None) == 0 for entry in entries for number in _NUMBERS):
        raise RefusedRequest("a rule of access, or a filter of rules, contains UNKNOWN elements")


def without_authorizer(request: Message, version: int) -> Message:
    """The answer to a request that would change rules, where nobody heeds them."""
    response = refusal_response(request, version, ErrorCode.SECURITY_DISABLED)
    for answers, words in (("results", _NO_AUTHORIZER), ("filter_results", _NOTHING_TO_DELETE)):
        for entry in getattr(response, answers, ()):
            entry.error_message = words
    return response
