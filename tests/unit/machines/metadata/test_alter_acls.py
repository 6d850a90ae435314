"""Rules of access that are created and deleted, with the errors and words of Apache Kafka 4.3.1."""

from typing import Any

import pytest

from ottla.machines.metadata.decisions.create_topics import MOST_RECORDS
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.security.acls.bindings import AclBinding
from ottla.security.acls.filters import AclFilter
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import CreateAclsRequest, DeleteAclsRequest
from tests.unit.machines.metadata.controllers import one_node

A_RULE: dict[str, Any] = {
    "resource_type": 2,
    "resource_name": "orders",
    "resource_pattern_type": 3,
    "principal": "User:alice",
    "host": "*",
    "operation": 3,
    "permission_type": 3,
}
EVERYTHING: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def creating(*others: dict[str, Any]) -> CreateAclsRequest:
    return CreateAclsRequest(creations=[CreateAclsRequest.AclCreation(**A_RULE | other) for other in others])


def deleting(*others: dict[str, Any]) -> DeleteAclsRequest:
    return DeleteAclsRequest(filters=[DeleteAclsRequest.DeleteAclsFilter(**EVERYTHING | other) for other in others])


@pytest.mark.parametrize(
    ("other", "error", "message"),
    [
        ({"resource_type": 1}, ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ({"resource_type": 99}, ErrorCode.INVALID_REQUEST, "Invalid resourceType UNKNOWN"),
        ({"resource_name": ""}, ErrorCode.INVALID_REQUEST, "Invalid empty resource name"),
        (
            {"resource_type": 4},
            ErrorCode.INVALID_REQUEST,
            "The only valid name for the CLUSTER resource is kafka-cluster",
        ),
        ({"resource_pattern_type": 2}, ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ({"resource_pattern_type": 9}, ErrorCode.INVALID_REQUEST, "Invalid patternType UNKNOWN"),
        ({"operation": 1}, ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ({"operation": 99}, ErrorCode.INVALID_REQUEST, "Invalid operation UNKNOWN"),
        ({"permission_type": 1}, ErrorCode.UNKNOWN_SERVER_ERROR, None),
        ({"permission_type": 9}, ErrorCode.INVALID_REQUEST, "Invalid permissionType UNKNOWN"),
        (
            {"principal": "bob"},
            ErrorCode.INVALID_REQUEST,
            "Could not parse principal from `bob` (no colon is present separating the principal type from the "
            "principal name)",
        ),
        ({"host": "10.0.0.0/8"}, ErrorCode.NONE, None),
        ({"operation": 12}, ErrorCode.NONE, None),
    ],
)
def test_a_rule_that_means_nothing_is_refused(other: dict[str, Any], error: ErrorCode, message: str | None) -> None:
    node = one_node()
    (result,) = node.ask(creating(other)).results
    told = result.error_message or None
    assert (result.error_code, told) == (error, message)
    assert len(node.image.security.acls) == (error is ErrorCode.NONE)


def test_a_rule_is_kept_once_however_often_it_is_created() -> None:
    node = one_node()
    node.ask(creating({}, {}, {"operation": 4}))
    node.ask(creating({}))
    assert len(node.image.security.acls) == 2


def test_rules_are_in_a_snapshot() -> None:
    node = one_node()
    node.ask(creating({}, {"operation": 4}))
    again = MetadataImage()
    for record in node.image.snapshot_records():
        again.replay(record.message)
    assert again.security.acls == node.image.security.acls


def test_each_filter_is_told_what_it_matches_and_a_rule_goes_once() -> None:
    node = one_node()
    node.ask(creating({}, {"operation": 4}))
    first, second, none = node.ask(deleting({"operation": 3}, {}, {"principal_filter": "User:bob"})).filter_results
    assert [len(result.matching_acls) for result in (first, second, none)] == [1, 2, 0]
    assert not node.image.security.acls


def test_a_filter_that_means_nothing_is_refused() -> None:
    node = one_node()
    node.ask(creating({}))
    unknown, other = node.ask(deleting({"operation": 99}, {"resource_type_filter": 99})).filter_results
    assert (unknown.error_code, unknown.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown entryFilter.")
    assert (other.error_code, other.error_message) == (ErrorCode.INVALID_REQUEST, "Unknown patternFilter.")
    assert node.image.security.acls


def test_more_rules_than_go_into_one_batch_are_not_created() -> None:
    node = one_node()
    reply = node.ask(creating(*({"resource_name": f"t{number}"} for number in range(MOST_RECORDS + 1))))
    assert {result.error_code for result in reply.results} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert not node.image.security.acls


def test_many_filters_do_not_look_at_every_rule_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tool that removes a thousand rules names each of them, and all brokers wait for the controller meanwhile."""
    node, matches, looks = one_node(), AclFilter.matches, 0

    def counted(wanted: AclFilter, rule: AclBinding) -> bool:
        nonlocal looks
        looks += 1
        return matches(wanted, rule)

    node.ask(creating(*({"resource_name": f"topic-{number}"} for number in range(1000))))
    monkeypatch.setattr(AclFilter, "matches", counted)
    reply = node.ask(deleting(*({"resource_name_filter": f"topic-{number}"} for number in range(1000))))
    assert [len(result.matching_acls) for result in reply.filter_results] == [1] * 1000
    assert looks == 1000
    assert not node.image.security.acls


@pytest.mark.slow
def test_a_reply_that_would_tell_of_too_many_rules_is_refused_and_nothing_deleted() -> None:
    node = one_node()
    node.ask(creating(*({"resource_name": f"topic-{number}"} for number in range(1000))))
    reply = node.ask(deleting(*[{}] * 101))
    assert {result.error_code for result in reply.filter_results} == {ErrorCode.UNKNOWN_SERVER_ERROR}
    assert len(node.image.security.acls) == 1000
    assert {result.error_code for result in node.ask(deleting(*[{}] * 100)).filter_results} == {ErrorCode.NONE}
    assert not node.image.security.acls
