"""Client quotas, held to what Apache Kafka 4.3.1 answered to the same requests."""

import pytest

from ottla.machines.metadata.image.quotas_image import quota_record
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterClientQuotasRequest as Alter
from ottla.wire.messages import AlterClientQuotasResponse
from ottla.wire.messages import DescribeClientQuotasRequest as Describe
from tests.unit.broker.admin_node import AdminNode
from tests.unit.broker.brokers import TestNode

EXACTLY, DEFAULT, ANY = 0, 1, 2

USER = (("user", "u"),)
DEFAULT_USER = (("user", None),)
USER_AND_CLIENT = (("client-id", "c"), ("user", "u"))
ADDRESS = (("ip", "127.0.0.1"),)


def node_with_quotas():
    node = TestNode()
    node.commit(
        quota_record(frozenset(USER), "producer_byte_rate", 1000.0),
        quota_record(frozenset(DEFAULT_USER), "consumer_byte_rate", 5.0),
        quota_record(frozenset(USER_AND_CLIENT), "request_percentage", 50.0),
        quota_record(frozenset(ADDRESS), "connection_creation_rate", 7.0),
    )
    return node


def describe(*components, strict=False, version=1):
    parts = [Describe.ComponentData(entity_type=of, match_type=how, match=name) for of, how, name in components]
    return node_with_quotas().send(Describe(components=parts, strict=strict), version)


def entities(reply):
    assert reply.error_code == ErrorCode.NONE
    return [tuple((part.entity_type, part.entity_name) for part in entry.entity) for entry in reply.entries]


@pytest.mark.parametrize("version", range(2))
def test_no_filter_shows_all_quotas(version):
    reply = describe(version=version)
    assert entities(reply) == [USER, DEFAULT_USER, USER_AND_CLIENT, ADDRESS]
    (value,) = reply.entries[0].values
    assert (value.key, value.value) == ("producer_byte_rate", 1000.0)


@pytest.mark.parametrize(
    ("components", "strict", "expected"),
    [
        ([], True, []),
        ([("user", EXACTLY, "u")], False, [USER, USER_AND_CLIENT]),
        ([("user", EXACTLY, "u")], True, [USER]),
        ([("user", DEFAULT, None)], False, [DEFAULT_USER]),
        ([("user", ANY, None)], False, [USER, DEFAULT_USER, USER_AND_CLIENT]),
        ([("user", ANY, None)], True, [USER, DEFAULT_USER]),
        ([("user", EXACTLY, "u"), ("client-id", ANY, None)], False, [USER_AND_CLIENT]),
        ([("user", EXACTLY, "nobody")], False, []),
        ([("ip", ANY, None)], False, [ADDRESS]),
    ],
)
def test_a_filter_matches_by_parts_and_a_strict_one_by_all_parts(components, strict, expected):
    assert entities(describe(*components, strict=strict)) == expected


@pytest.mark.parametrize(
    ("components", "error"),
    [
        ([("zz", EXACTLY, "u")], ErrorCode.UNSUPPORTED_VERSION),
        ([("", EXACTLY, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", 5, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", -1, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACTLY, None)], ErrorCode.INVALID_REQUEST),
        ([("user", DEFAULT, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "u")], ErrorCode.INVALID_REQUEST),
        ([("user", EXACTLY, "u"), ("user", EXACTLY, "v")], ErrorCode.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_a_filter_that_makes_no_sense_is_refused(components, error):
    reply = describe(*components)
    assert (reply.error_code, reply.entries) == (error, None)
    assert reply.error_message


def test_changes_are_the_controllers():
    node = TestNode()
    request = Alter(entries=[Alter.EntryData(entity=[Alter.EntityData(entity_type="user", entity_name="u")])])
    node.controller.replies += [AlterClientQuotasResponse(), ErrorCode.NOT_CONTROLLER]
    assert node.send(request, 1).entries == []
    (entry,) = node.send(request, 1).entries
    assert (entry.error_code, entry.entity[0].entity_name) == (ErrorCode.NOT_CONTROLLER, "u")


def connection_rate(*addresses):
    return Alter(
        entries=[
            Alter.EntryData(
                entity=[Alter.EntityData(entity_type="ip", entity_name=address)],
                ops=[Alter.OpData(key="connection_creation_rate", value=5.0)],
            )
            for address in addresses
        ]
    )


def test_an_address_may_be_a_name_that_resolves():
    node = AdminNode()
    reply = node.send(connection_rate("somewhere", "nowhere", "10.0.0.1", "::1", None), 1)
    errors = {entry.entity[0].entity_name: entry.error_code for entry in reply.entries}
    assert errors.pop("nowhere") == ErrorCode.INVALID_REQUEST
    assert set(errors.values()) == {ErrorCode.NONE}
    assert len(errors) == 4


def test_names_are_resolved_apart_from_the_loop():
    node = AdminNode()
    node.workers.hold()
    assert not node.ask(connection_rate("localhost"), 1).is_here
    assert node.ask(connection_rate("127.0.0.1"), 1).is_here


def test_of_an_entity_named_twice_the_first_counts_and_a_refusal_is_answered():
    node = AdminNode()
    request = connection_rate("10.0.0.1", "10.0.0.1")
    request.entries[1].ops[0].value = 9.0
    (entry,) = node.send(request, 1).entries
    assert entry.error_code == ErrorCode.INVALID_REQUEST
    assert node.image.quotas.by_entity == {frozenset({("ip", "10.0.0.1")}): {"connection_creation_rate": 5.0}}
