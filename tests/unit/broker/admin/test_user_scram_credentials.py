"""SCRAM credentials are kept and shown, held to what Apache Kafka 4.3.1 answered to the same requests."""

import hashlib

import pytest

from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AlterUserScramCredentialsRequest as Alter
from ottla.wire.messages import DescribeConfigsRequest as DescribeConfigs
from ottla.wire.messages import DescribeUserScramCredentialsRequest as Describe
from tests.unit.broker.admin_node import AdminNode

SHA_256, SHA_512, NO_MECHANISM = 1, 2, 9


def upsert(name, mechanism=SHA_256, iterations=4096):
    return Alter.ScramCredentialUpsertion(
        name=name, mechanism=mechanism, iterations=iterations, salt=b"salt", salted_password=b"salted"
    )


def delete(name, mechanism=SHA_256):
    return Alter.ScramCredentialDeletion(name=name, mechanism=mechanism)


def alter(node, *changes):
    reply = node.send(
        Alter(
            deletions=[change for change in changes if isinstance(change, Alter.ScramCredentialDeletion)],
            upsertions=[change for change in changes if isinstance(change, Alter.ScramCredentialUpsertion)],
        ),
        0,
    )
    return {result.user: ErrorCode(result.error_code) for result in reply.results}


def describe(node, *names):
    users = [Describe.UserName(name=name) for name in names] if names else None
    reply = node.send(Describe(users=users), 0)
    return {
        result.user: [(info.mechanism, info.iterations) for info in result.credential_infos]
        or ErrorCode(result.error_code)
        for result in reply.results
    }


def node_with_users():
    node = AdminNode()
    alter(node, upsert("alice"), upsert("bob", SHA_512, 8192))
    alter(node, upsert("alice", SHA_512))
    return node


def test_all_users_are_shown_to_who_names_none():
    assert describe(AdminNode()) == {}
    assert describe(node_with_users()) == {"alice": [(SHA_256, 4096), (SHA_512, 4096)], "bob": [(SHA_512, 8192)]}


def test_users_are_shown_by_name_once():
    assert describe(node_with_users(), "bob", "alice", "alice", "nobody") == {
        "bob": [(SHA_512, 8192)],
        "alice": ErrorCode.DUPLICATE_RESOURCE,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
    }


def test_a_credential_is_removed_by_its_mechanism():
    node = node_with_users()
    assert alter(node, delete("alice", SHA_512), delete("bob", SHA_512)) == dict.fromkeys(("alice", "bob"), 0)
    assert describe(node) == {"alice": [(SHA_256, 4096)]}


def test_only_what_is_derived_from_the_password_is_kept():
    (kept,) = (of for of in node_with_users().image.security.scram_credentials.values() if of.name == "bob")
    assert b"salted" not in (kept.stored_key, kept.server_key)
    assert (len(kept.stored_key), kept.salt) == (hashlib.sha512().digest_size, b"salt")


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ([upsert("carol", iterations=4095)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert("carol", iterations=16385)], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert("carol", NO_MECHANISM)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([upsert("")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
        ([upsert("carol"), upsert("carol", SHA_512)], ErrorCode.DUPLICATE_RESOURCE),
        ([upsert("carol", NO_MECHANISM), upsert("carol")], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([delete("alice"), upsert("alice")], ErrorCode.DUPLICATE_RESOURCE),
        ([delete("bob", SHA_256)], ErrorCode.RESOURCE_NOT_FOUND),
        ([delete("bob", NO_MECHANISM)], ErrorCode.UNSUPPORTED_SASL_MECHANISM),
        ([delete("")], ErrorCode.UNACCEPTABLE_CREDENTIAL),
    ],
)
def test_what_is_refused_changes_nothing(changes, error):
    node = node_with_users()
    before = describe(node)
    assert list(alter(node, *changes).values()) == [error]
    assert describe(node) == before


def test_the_secret_behind_salts_of_nobody_comes_with_the_first_user_and_is_shown_to_nobody():
    node = AdminNode()
    assert cluster_settings(node) == {}
    alter(node, upsert("alice"))
    (secret,) = cluster_secrets(node)
    assert len(secret) == 44
    assert cluster_settings(node) == {"ottla.scram.salt.secret": (None, True)}
    alter(node, delete("alice"))
    alter(node, upsert("bob"))
    assert cluster_secrets(node) == [secret]


def cluster_secrets(node):
    return [value for key, value in node.image.configs.of_cluster().items() if key == "ottla.scram.salt.secret"]


def cluster_settings(node):
    wanted = DescribeConfigs.DescribeConfigsResource(resource_type=4, resource_name="", configuration_keys=None)
    (result,) = node.send(DescribeConfigs(resources=[wanted]), 4).results
    return {one.name: (one.value, one.is_sensitive) for one in result.configs if one.name.startswith("ottla.")}
