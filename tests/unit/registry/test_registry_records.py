"""The records of `_schemas`, byte for byte: brokers compare keys as bytes, and three registries share the topic."""

from base64 import b64encode

import pytest

from ottla.registry.records import (
    CLEAR_SUBJECT,
    CONFIG,
    CONTEXT,
    DELETE_SUBJECT,
    MODE,
    NOOP,
    SCHEMA,
    Key,
    SchemaValue,
    UnreadableRecord,
    clear_subject_record,
    config_record,
    context_record,
    delete_subject_record,
    key_bytes,
    mode_record,
    noop_record,
    read_config,
    read_delete_subject,
    read_key,
    read_max_ids,
    read_mode,
    read_schema,
    schema_record,
)
from ottla.schemas.registry_port import Reference


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (Key(SCHEMA, "s", 1), b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":1}'),
        (Key(CONFIG, "s"), b'{"keytype":"CONFIG","subject":"s","magic":0}'),
        (Key(CONFIG), b'{"keytype":"CONFIG","magic":0}'),
        (Key(MODE, "s"), b'{"keytype":"MODE","subject":"s","magic":0}'),
        (Key(MODE), b'{"keytype":"MODE","magic":0}'),
        (Key(DELETE_SUBJECT, "s"), b'{"keytype":"DELETE_SUBJECT","subject":"s","magic":0}'),
        (Key(CLEAR_SUBJECT, "s"), b'{"keytype":"CLEAR_SUBJECT","subject":"s","magic":0}'),
        (Key(CLEAR_SUBJECT), b'{"keytype":"CLEAR_SUBJECT","magic":0}'),
        (Key(CONTEXT, ".c"), b'{"keytype":"CONTEXT","tenant":"default","context":".c","magic":0}'),
        (Key(NOOP), b'{"keytype":"NOOP","magic":0}'),
        (
            Key(SCHEMA, 'ä/"\\\x1f\u2028😀', 2),
            '{"keytype":"SCHEMA","subject":"ä/\\"\\\\\\u001F\u2028😀","version":2,"magic":1}'.encode(),
        ),
    ],
)
def test_keys_have_one_form_and_are_read_back(key: Key, expected: bytes) -> None:
    assert key_bytes(key) == expected
    assert read_key(expected) == key


@pytest.mark.parametrize(
    ("form", "key"),
    [
        (b'{"subject":"s","version":1,"magic":1,"keytype":"SCHEMA"}', Key(SCHEMA, "s", 1)),
        (b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":0}', Key(SCHEMA, "s", 1)),
        (b'{"keytype": "SCHEMA", "subject": "s", "version": 1, "magic": 1}', Key(SCHEMA, "s", 1)),
        (b'{"keytype":"CONFIG","subject":null,"magic":0}', Key(CONFIG)),
        (b'{"subject":null,"magic":0,"keytype":"CONFIG"}', Key(CONFIG)),
        (b'{"keytype":"MODE","subject":null,"magic":0}', Key(MODE)),
        (b'{"subject":"s","magic":0,"keytype":"DELETE_SUBJECT"}', Key(DELETE_SUBJECT, "s")),
        (b'{"magic":0,"keytype":"NOOP"}', Key(NOOP)),
        (b'{"keytype":"CONFIG","subject":"s","magic":0,"added":"later"}', Key(CONFIG, "s")),
    ],
)
def test_other_forms_are_the_same_key(form: bytes, key: Key) -> None:
    assert read_key(form) == key


@pytest.mark.parametrize(
    "key",
    [
        None,
        b"",
        b"\xff",
        b"[]",
        b"{",
        b"{}",
        b'{"keytype":"ASSOC"}',
        b'{"keytype":"SCHEMA","subject":"s","magic":1}',
        b'{"keytype":"SCHEMA","version":1,"magic":1}',
        b'{"keytype":"SCHEMA","subject":"s","version":true,"magic":1}',
        b'{"keytype":"SCHEMA","subject":"s","version":1,"magic":2}',
        b'{"keytype":"CONFIG","subject":1}',
        b'{"keytype":"CONTEXT"}',
        b"[" * 100_000,
    ],
)
def test_keys_that_are_none_are_told_apart(key: bytes | None) -> None:
    with pytest.raises(UnreadableRecord):
        read_key(key)


def test_a_schema_has_its_members_in_confluents_order_and_leaves_empty_ones_out() -> None:
    plain = SchemaValue("s", 1, 7, "AVRO", '"string"')
    assert schema_record(plain).value == (
        b'{"subject":"s","version":1,"id":7,"schemaType":"AVRO","schema":"\\"string\\"","deleted":false}'
    )
    digest = bytes(range(16))
    full = SchemaValue(
        "s",
        2,
        8,
        "JSON",
        "{}",
        (Reference("n", "r", 3),),
        {"properties": {"a": "b"}},
        {"domainRules": [{"name": "x", "kind": "CONDITION", "mode": "WRITE", "type": "CEL", "disabled": False}]},
        True,
        digest,
        {"later": [1, 2]},
    )
    record = schema_record(full)
    assert record.value == (
        b'{"subject":"s","version":2,"id":8,"md5":"' + b64encode(digest) + b'","schemaType":"JSON",'
        b'"references":[{"name":"n","subject":"r","version":3}],"metadata":{"properties":{"a":"b"}},'
        b'"ruleSet":{"domainRules":[{"name":"x","kind":"CONDITION","mode":"WRITE","type":"CEL","disabled":false}]},'
        b'"schema":"{}","deleted":true,"later":[1,2]}'
    )
    assert read_schema(read_key(record.key), record.value) == full


def test_older_values_of_schemas_are_read() -> None:
    key = Key(SCHEMA, "s", 1)
    before_types = read_schema(key, b'{"subject":"s","version":1,"id":7,"schema":"\\"int\\"","deleted":false}')
    assert (before_types.kind, before_types.references, before_types.metadata) == ("AVRO", (), None)
    of_karapace = (
        b'{"subject":"s","version":1,"id":7,"schema":"x","deleted":false,"references":[],"schemaType":"PROTOBUF"}'
    )
    assert read_schema(key, of_karapace).kind == "PROTOBUF"
    with_place = b'{"subject":"s","version":1,"id":7,"schema":"x","deleted":false,"offset":12,"ts":3}'
    assert read_schema(key, with_place).unknown is None, "where it was found is not part of it"


@pytest.mark.parametrize(
    "value",
    [
        b"null",
        b"{}",
        b'{"subject":"s","version":1,"id":"7","schema":"x"}',
        b'{"subject":"s","version":1,"id":7}',
        b'{"subject":"s","version":1,"id":7,"schema":"x","references":{"a":1}}',
        b'{"subject":"s","version":1,"id":7,"schema":"x","references":[{"name":"n"}]}',
        b'{"subject":"s","version":1,"id":7,"schema":"x","metadata":[]}',
        b'{"subject":"s","version":1,"id":7,"schema":"x","ruleSet":{"domainRules":[1]}}',
    ],
)
def test_values_that_are_no_schemas_are_told_apart(value: bytes) -> None:
    with pytest.raises(UnreadableRecord):
        read_schema(Key(SCHEMA, "s", 1), value)


def test_configs_keep_what_they_do_not_know() -> None:
    config = {
        "overrideMetadata": {"properties": {"a": "b"}},
        "compatibilityLevel": "FULL",
        "normalize": True,
        "added": "later",
    }
    assert config_record("s", config).value == (
        b'{"subject":"s","normalize":true,"compatibilityLevel":"FULL",'
        b'"overrideMetadata":{"properties":{"a":"b"}},"added":"later"}'
    )
    assert config_record(None, {"compatibilityLevel": "NONE"}) == (
        b'{"keytype":"CONFIG","magic":0}',
        b'{"compatibilityLevel":"NONE"}',
    )
    value = config_record("s", config).value
    assert value is not None
    assert read_config(value) == config


def test_the_other_records() -> None:
    assert mode_record("s", "READONLY").value == b'{"subject":"s","mode":"READONLY"}'
    assert mode_record(None, "IMPORT").value == b'{"mode":"IMPORT"}'
    assert read_mode(b'{"mode":"IMPORT"}') == "IMPORT"
    assert delete_subject_record("s", 3).value == b'{"subject":"s","version":3}'
    assert read_delete_subject(b'{"subject":"s","version":3}') == ("s", 3)
    assert clear_subject_record("s").value == b'{"subject":"s"}'
    assert clear_subject_record(None).value == b"{}"
    assert context_record(".c").value == b'{"tenant":"default","context":".c"}'
    assert noop_record() == (b'{"keytype":"NOOP","magic":0}', None)
    assert noop_record({".": 5}).value == b'{"maxIds":{".":5}}'
    assert read_max_ids(b'{"maxIds":{".":5,"x":"y"}}') == {".": 5}
    assert read_max_ids(b"no JSON") == read_max_ids(None) == {}
