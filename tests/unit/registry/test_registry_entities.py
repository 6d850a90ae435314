"""Metadata, rule sets and guids: one form, whatever order they come in."""

from hashlib import md5

import pytest

from ottla.registry.entities import (
    InvalidRules,
    Malformed,
    check_rules,
    guid_text,
    merge_metadata,
    merge_rules,
    read_guid,
    read_metadata,
    read_rules,
    schema_digest,
    with_version,
    without_rules,
    without_version,
)
from ottla.schemas.registry_port import Reference

RULE = {"name": "r", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "disabled": False}


def test_the_guid_is_the_md5_of_all_that_a_schema_says() -> None:
    assert schema_digest('"string"', (), None, None) == md5(b'"string"').digest()
    references = (Reference("name", "subject", 258),)
    assert schema_digest("t", references, None, None) == md5(b"tnamesubject\x00\x00\x01\x02").digest()
    metadata = read_metadata({"tags": {"p": ["b", "a"]}, "properties": {"k": "v"}, "sensitive": ["s"]})
    assert schema_digest("t", (), metadata, None) == md5(b"t\x01pabkvs").digest()
    rules = read_rules(
        {
            "domainRules": [
                {
                    "name": "n",
                    "doc": "d",
                    "kind": "TRANSFORM",
                    "mode": "READ",
                    "type": "T",
                    "tags": ["y", "x"],
                    "params": {"q": "2", "p": "1"},
                    "expr": "e",
                    "onSuccess": "s",
                    "onFailure": "f",
                    "disabled": True,
                }
            ],
            "enableAt": "CLIENT",
        }
    )
    assert schema_digest("t", (), None, rules) == md5(b"t\x01ndTRANSFORMREADTxyp1q2esf\x01CLIENT").digest()
    assert schema_digest("t", (), {}, None) == md5(b"t\x01").digest(), "empty metadata is not the same as none"


def test_guids_are_written_as_uuids_and_read_with_or_without_dashes() -> None:
    digest = bytes(range(16))
    assert guid_text(digest) == "00010203-0405-0607-0809-0a0b0c0d0e0f"
    assert read_guid(guid_text(digest)) == read_guid(digest.hex()) == digest
    assert read_guid("nonsense") is read_guid("00") is None


def test_metadata_and_rules_have_one_form() -> None:
    given = {"properties": {"b": 1, "a": True}, "sensitive": ["y", "x", "y"], "tags": {}, "other": 1}
    read = read_metadata(given)
    assert read == {"properties": {"a": "true", "b": "1"}, "sensitive": ["x", "y"]}
    assert list(read["properties"]) == ["a", "b"]
    assert read_metadata(None) is None
    assert read_metadata({}) == {}
    assert read_rules({"domainRules": [{"name": "r", "type": "CEL", "mode": None}], "migrationRules": []}) == {
        "domainRules": [{"name": "r", "kind": "TRANSFORM", "mode": "WRITEREAD", "type": "CEL", "disabled": False}]
    }


@pytest.mark.parametrize(
    "value", [[], {"tags": ["a"]}, {"properties": ["a"]}, {"sensitive": "a"}, {"properties": {"a": {}}}]
)
def test_metadata_of_another_form_is_refused(value: object) -> None:
    with pytest.raises(Malformed):
        read_metadata(value)


@pytest.mark.parametrize(
    ("rules", "reason"),
    [
        ({"domainRules": [RULE, RULE]}, "duplicate name 'r'"),
        ({"domainRules": [{**RULE, "name": ""}]}, "Missing rule name"),
        ({"domainRules": [{**RULE, "name": "x" * 257}]}, "too long"),
        ({"domainRules": [{**RULE, "name": "1x"}]}, "Illegal initial character in rule name: 1x"),
        ({"domainRules": [{**RULE, "name": "a b"}]}, "Illegal character in rule name: a b"),
        ({"domainRules": [{**RULE, "type": None}]}, "Missing rule type"),
        ({"domainRules": [{**RULE, "mode": "UPGRADE"}]}, "Domain rules can only be"),
        ({"migrationRules": [RULE]}, "Migration rules can only be"),
        ({"encodingRules": [{**RULE, "mode": "UPDOWN"}]}, "Encoding rules can only be"),
        ({"domainRules": [{**RULE, "onFailure": "A,B"}]}, "Multiple actions"),
    ],
)
def test_rules_for_rules(rules: object, reason: str) -> None:
    with pytest.raises(InvalidRules, match=reason):
        check_rules(read_rules(rules))


def test_merging() -> None:
    one = read_metadata({"properties": {"a": "1", "b": "1"}, "sensitive": ["a"]})
    other = read_metadata({"properties": {"b": "2"}, "sensitive": ["b"]})
    assert merge_metadata(one, other) == {"properties": {"a": "1", "b": "2"}, "sensitive": ["a", "b"]}
    assert merge_metadata(None, one) == merge_metadata(one, None) == one
    first, second = read_rules({"domainRules": [RULE]}), read_rules({"domainRules": [{**RULE, "expr": "x"}]})
    assert merge_rules(first, second) == second
    assert without_rules(first, ["r"]) == {}
    assert with_version(None, 3) == {"properties": {"confluent:version": "3"}}
    assert without_version(with_version(one, 3)) == one
