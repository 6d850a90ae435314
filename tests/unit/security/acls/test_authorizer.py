"""Decisions of the authorizer, as those of Apache Kafka 4.3.1 (`tests/interop` asks it the same)."""

from typing import Any

import pytest

from ottla.security.acls.authorizer import Authorizer
from ottla.wire.acls import CLUSTER_NAME, AclOperation, AclPermission, AclResource, PatternType
from ottla.wire.messages import AccessControlEntryRecord

Op = AclOperation
TOPIC, GROUP, CLUSTER = AclResource.TOPIC, AclResource.GROUP, AclResource.CLUSTER
ALICE, BOB = "User:alice", "User:bob"
HERE = "10.1.2.3"


def rule(
    name: str,
    operation: AclOperation = Op.READ,
    principal: str = ALICE,
    *,
    kind: AclResource = TOPIC,
    deny: bool = False,
    prefixed: bool = False,
    host: str = "*",
) -> AccessControlEntryRecord:
    return AccessControlEntryRecord(
        resource_type=kind,
        resource_name=name,
        pattern_type=PatternType.PREFIXED if prefixed else PatternType.LITERAL,
        principal=principal,
        host=host,
        operation=operation,
        permission_type=AclPermission.DENY if deny else AclPermission.ALLOW,
    )


def authorizer(*rules: AccessControlEntryRecord, **settings: Any) -> Authorizer:
    made = Authorizer(**settings)
    made.load(dict(enumerate(rules)))
    return made


def may(by: Authorizer, operation: AclOperation, name: str, principal: str = ALICE, host: str = HERE) -> bool:
    return by.allows(principal, host, operation, TOPIC, name)


def test_without_a_rule_nobody_may_do_anything() -> None:
    assert not may(authorizer(), Op.READ, "orders")


def test_a_literal_rule_is_about_one_name() -> None:
    by = authorizer(rule("orders"))
    assert may(by, Op.READ, "orders")
    assert not may(by, Op.READ, "orders-eu")
    assert not may(by, Op.READ, "orders", BOB)
    assert not may(by, Op.WRITE, "orders")
    assert not by.allows(ALICE, HERE, Op.READ, GROUP, "orders")


def test_a_prefixed_rule_is_about_all_names_that_begin_so() -> None:
    by = authorizer(rule("ord", prefixed=True), rule("orders-eu", Op.WRITE, prefixed=True))
    assert may(by, Op.READ, "ord")
    assert may(by, Op.READ, "orders-eu-1")
    assert may(by, Op.WRITE, "orders-eu-1")
    assert not may(by, Op.READ, "or")
    assert not may(by, Op.WRITE, "orders")


def test_a_star_is_every_name_and_every_user() -> None:
    by = authorizer(rule("*", principal="User:*"))
    assert may(by, Op.READ, "anything", BOB)
    assert not may(authorizer(rule("*", prefixed=True)), Op.READ, "anything"), "a prefix of one character"


@pytest.mark.parametrize("deny", [rule("orders", deny=True), rule("o", deny=True, prefixed=True), rule("*", deny=True)])
def test_one_rule_that_denies_is_stronger_than_all_that_allow(deny: AccessControlEntryRecord) -> None:
    by = authorizer(rule("orders"), rule("*", Op.ALL), deny)
    assert not may(by, Op.READ, "orders")
    assert may(by, Op.WRITE, "orders")


@pytest.mark.parametrize("operation", [Op.READ, Op.WRITE, Op.DELETE, Op.ALTER, Op.ALL])
def test_what_allows_more_allows_to_describe(operation: AclOperation) -> None:
    assert may(authorizer(rule("orders", operation)), Op.DESCRIBE, "orders")


def test_alter_configs_allows_to_describe_configs_and_create_allows_nothing_else() -> None:
    assert may(authorizer(rule("orders", Op.ALTER_CONFIGS)), Op.DESCRIBE_CONFIGS, "orders")
    assert not may(authorizer(rule("orders", Op.CREATE)), Op.DESCRIBE, "orders")


def test_who_is_denied_to_read_may_still_describe() -> None:
    by = authorizer(rule("orders", Op.READ, deny=True), rule("orders", Op.DESCRIBE))
    assert may(by, Op.DESCRIBE, "orders")


@pytest.mark.parametrize(
    ("host", "is_there"),
    [
        ("10.1.2.3", True),
        ("10.1.2.4", False),
        ("10.0.0.0/8", True),
        ("10.2.0.0/16", False),
        ("", False),
        ("a/b", False),
    ],
)
def test_a_rule_counts_at_its_host(host: str, is_there: bool) -> None:
    assert may(authorizer(rule("orders", host=host)), Op.READ, "orders") == is_there


def test_addresses_of_version_6_are_compared_as_addresses() -> None:
    by = authorizer(rule("orders", host="0:0:0:0:0:0:0:1"), rule("orders", host="2001:db8::/32"))
    assert may(by, Op.READ, "orders", host="::1")
    assert may(by, Op.READ, "orders", host="2001:db8::7")
    assert not may(by, Op.READ, "orders", host="::2")


def test_an_address_that_came_through_a_socket_of_version_6_is_the_same_address() -> None:
    by = authorizer(
        rule("orders"), rule("orders", host="10.1.2.3", deny=True), rule("orders", host="10.9.0.0/16", deny=True)
    )
    assert not may(by, Op.READ, "orders", host="::ffff:10.1.2.3")
    assert not may(by, Op.READ, "orders", host="::ffff:10.9.1.1")
    assert may(by, Op.READ, "orders", host="::ffff:10.1.2.4")


def test_names_without_end_are_decided_on_and_not_kept() -> None:
    by = authorizer(rule("x", prefixed=True))
    assert may(by, Op.READ, "x" * 30_000)
    assert not by._remembered


def test_super_users_may_do_everything_whatever_denies_it() -> None:
    by = authorizer(rule("*", Op.ALL, "User:*", deny=True), super_users=[BOB])
    assert may(by, Op.DELETE, "orders", BOB)
    assert by.allows_any(BOB, HERE, Op.WRITE, TOPIC)
    assert not may(by, Op.READ, "orders")


def test_everyone_is_allowed_only_where_no_rule_is_about_the_resource() -> None:
    by = authorizer(
        rule("orders", principal=BOB), rule("pay", principal=BOB, prefixed=True), allows_everyone_without_rules=True
    )
    assert may(by, Op.READ, "others")
    assert not may(by, Op.READ, "orders")
    assert not may(by, Op.READ, "payments")


def test_until_the_rules_are_known_only_super_users_may_do_anything() -> None:
    by = Authorizer(super_users=[BOB], allows_everyone_without_rules=True, is_ready=False)
    assert may(by, Op.READ, "orders", BOB)
    assert not may(by, Op.READ, "orders")
    by.load({})
    assert may(by, Op.READ, "orders")


def test_a_changed_rule_counts_at_once() -> None:
    by = authorizer(rule("orders"), rule("pay", prefixed=True))
    version = by.version
    assert may(by, Op.READ, "orders")
    assert may(by, Op.READ, "payments")
    by.change([0, 1, 2], {2: rule("others")})
    assert not may(by, Op.READ, "orders")
    assert not may(by, Op.READ, "payments")
    assert may(by, Op.READ, "others")
    assert by.version != version


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ([], False),
        ([rule("orders", Op.WRITE)], True),
        ([rule("orders", Op.ALL)], True),
        ([rule("orders", Op.READ)], False),
        ([rule("orders", Op.WRITE, BOB)], False),
        ([rule("orders", Op.WRITE, host="10.9.9.9")], False),
        ([rule("orders", Op.WRITE), rule("orders", Op.WRITE, deny=True)], False),
        ([rule("orders", Op.WRITE), rule("ord", Op.WRITE, deny=True, prefixed=True)], False),
        ([rule("ord", Op.WRITE, prefixed=True), rule("orders", Op.WRITE, deny=True)], True),
        ([rule("*", Op.WRITE), rule("orders", Op.WRITE, deny=True)], True),
        ([rule("*", Op.WRITE), rule("*", Op.WRITE, deny=True)], False),
        ([rule("orders", Op.WRITE, kind=GROUP)], False),
    ],
)
def test_whether_anything_of_a_kind_is_allowed(rules: list[AccessControlEntryRecord], expected: bool) -> None:
    assert authorizer(*rules).allows_any(ALICE, HERE, Op.WRITE, TOPIC) == expected


def test_authorized_operations_are_bits() -> None:
    by = authorizer(rule("orders", Op.READ), rule(CLUSTER_NAME, Op.ALTER_CONFIGS, kind=CLUSTER))
    assert by.authorized_operations(ALICE, HERE, TOPIC, "orders") == 1 << Op.READ | 1 << Op.DESCRIBE
    assert (
        by.authorized_operations(ALICE, HERE, CLUSTER, CLUSTER_NAME) == 1 << Op.ALTER_CONFIGS | 1 << Op.DESCRIBE_CONFIGS
    )
    assert by.authorized_operations(BOB, HERE, TOPIC, "orders") == 0


def test_a_rule_of_an_unknown_kind_allows_nothing() -> None:
    odd = rule("orders")
    odd.permission_type = 77
    unknown = rule("orders")
    unknown.pattern_type = 9
    by = authorizer(odd, unknown)
    assert not may(by, Op.READ, "orders")
    by.change([0, 1], {})
