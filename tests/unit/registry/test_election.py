"""Who leads: Confluent's rules and JSON, in groups of all kinds of registries."""

import json

import pytest

from ottla.registry.election import (
    DUPLICATE_URLS,
    Assignment,
    Identity,
    MalformedMember,
    assignment_bytes,
    elect,
    identity_bytes,
    read_assignment,
    read_identity,
)

A, B, C = (Identity(host, 8081) for host in "abc")


def test_the_smallest_url_of_those_that_may_leads() -> None:
    assert elect([("2", B), ("1", C), ("3", A)]) == Assignment("3", A)
    assert elect([("2", B), ("3", A._replace(eligible=False))]) == Assignment("2", B)
    assert elect([("3", A._replace(eligible=False))]) == Assignment(None, None)
    assert elect([("1", A._replace(scheme="https")), ("2", C)]).leader_id == "2", "the whole URL counts"
    assert elect([("1", A._replace(port=9)), ("2", A._replace(port=10))]).leader_id == "2", "as text"


def test_a_leader_stays_leader() -> None:
    assert elect([("1", A), ("2", B._replace(leads=True))]).leader_id == "2"
    assert elect([("1", A), ("2", B._replace(leads=True, eligible=False))]).leader_id == "1"
    assert elect([("1", A), ("2", B._replace(leads=True)), ("3", C._replace(leads=True))]).leader_id == "1"


def test_two_at_one_url_cannot_be_told_apart() -> None:
    assert elect([("1", A), ("2", A)]) == Assignment(None, None, DUPLICATE_URLS)


def test_identities_and_assignments_are_in_confluents_json() -> None:
    assert json.loads(identity_bytes(A)) == {
        "host": "a",
        "port": 8081,
        "master_eligibility": True,
        "scheme": "http",
        "version": 1,
        "leader": False,
    }
    assert read_identity(identity_bytes(B._replace(leads=True))) == B._replace(leads=True)
    of_karapace = (
        b'{"version":2,"karapace_version":"5","host":"k","port":1,"scheme":"https","master_eligibility":false}'
    )
    assert read_identity(of_karapace) == Identity("k", 1, "https", eligible=False)
    old = b'{"version":1,"host":"o","port":1,"master_eligibility":true}'
    assert read_identity(old).url == "http://o:1"
    for assignment in (Assignment("id", A), Assignment(None, None), Assignment(None, None, DUPLICATE_URLS)):
        assert read_assignment(assignment_bytes(assignment)) == assignment
    told = json.loads(assignment_bytes(Assignment("id", A)))
    assert (told["master"], told["master_identity"]["host"], told["error"], told["version"]) == ("id", "a", 0, 1)
    assert Identity("::1", 1).url == "http://[::1]:1"


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b'{"host":"a"}', b'{"host":1,"port":2}'])
def test_members_that_say_something_else(data: bytes) -> None:
    with pytest.raises(MalformedMember):
        read_identity(data)
