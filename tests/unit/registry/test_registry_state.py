"""What the topic says: whatever the form and the order of its records, and whatever is among them."""

import json

from ottla.registry.decisions import DeleteSubject, DeleteVersion, SetConfig
from ottla.registry.entities import guid_text
from ottla.registry.records import (
    CONFIG,
    SCHEMA,
    Key,
    Record,
    SchemaValue,
    clear_subject_record,
    config_record,
    context_record,
    delete_subject_record,
    key_bytes,
    mode_record,
    noop_record,
    schema_record,
)
from ottla.registry.same_texts import says_the_same
from ottla.registry.state import LATEST, State, Which
from ottla.schemas.registry_port import Reference


def schema(subject: str, version: int, id: int, text: str = "", **more: object) -> Record:
    return schema_record(SchemaValue(subject, version, id, "AVRO", text or f'"{id}"', **more))  # type: ignore[arg-type]


def replayed(*records: Record | tuple[bytes | None, bytes | None], into: State | None = None) -> State:
    state = State() if into is None else into
    for place, (key, value) in enumerate(records):
        state.replay(key, value, place)
    return state


def tombstone(subject: str, version: int) -> Record:
    return Record(key_bytes(Key(SCHEMA, subject, version)), None)


def test_versions_ids_and_guids() -> None:
    state = replayed(schema("a", 1, 1), schema("a", 2, 2), schema("b", 1, 1))
    assert [one.number for one in state.versions("a")] == [1, 2]
    latest = state.version("a", LATEST)
    assert latest is not None
    assert (latest.number, latest.timestamp_ms) == (2, 1)
    assert [(one.subject, one.number) for one in state.users(".", 1)] == [("a", 1), ("b", 1)]
    assert state.ids_of_digest(latest.digest) == [(".", 2)]
    assert latest.guid == guid_text(latest.digest)
    assert state.max_id(".") == 2
    assert state.subjects() == ["a", "b"]
    assert state.counts() == (2, 3)


def test_a_soft_delete_rewrites_a_record_or_goes_up_to_a_version() -> None:
    state = replayed(schema("a", 1, 1), schema("a", 2, 2), schema("a", 3, 3), delete_subject_record("a", 2))
    assert [one.number for one in state.versions("a")] == [3]
    state = replayed(schema("a", 3, 3, deleted=True), into=state)
    assert state.versions("a") == []
    assert state.version("a", LATEST) is None
    assert [one.number for one in state.versions("a", Which.DELETED)] == [1, 2, 3]
    assert (state.subjects(), state.subjects(which=Which.DELETED)) == ([], ["a"])
    assert state.by_id(1) is not None, "data that was written with it is still to be read"


def test_a_tombstone_takes_a_version_for_good() -> None:
    state = replayed(schema("a", 1, 1), schema("b", 1, 1), tombstone("a", 1))
    assert state.subjects(which=Which.ALL) == ["b"]
    assert [one.subject for one in state.users(".", 1)] == ["b"]
    state = replayed(tombstone("b", 1), tombstone("b", 1), into=state)
    assert state.by_id(1) is None
    assert state.names() == []
    assert state.max_id(".") == 1, "an id is not given out twice"
    assert state.max_ids_to_keep() == {".": 1}
    assert replayed(noop_record({".": 9})).max_id(".") == 9, "nor after the records are gone"


def test_clearing_takes_what_is_soft_deleted() -> None:
    records = (schema("a", 1, 1, deleted=True), schema("a", 2, 2), schema(":.c:a", 1, 1, deleted=True))
    assert [one.number for one in replayed(*records, clear_subject_record("a")).versions("a", Which.ALL)] == [2]
    everything = replayed(*records, clear_subject_record(None))
    assert everything.subjects(which=Which.ALL) == ["a"]
    one_context = replayed(*records, clear_subject_record(":.c:"))
    assert one_context.counts() == (1, 2)


def test_contexts_count_their_own_ids() -> None:
    state = replayed(context_record(".c"), schema(":.c:a", 1, 1, '"x"'), schema("a", 1, 1, '"y"'), schema("a", 2, 2))
    assert state.contexts() == [".", ".c"]
    assert (state.max_id("."), state.max_id(".c")) == (2, 1)
    by_id, in_context = state.by_id(1), state.by_id(1, ":.c:")
    assert by_id is not None
    assert in_context is not None
    assert (by_id.text, in_context.text) == ('"y"', '"x"')
    found = state.by_id(1, "a")
    assert found is not None
    assert found.text == '"y"'
    assert state.subjects("a") == ["a"]
    assert state.subjects(":.c:") == [":.c:a"]
    assert state.subjects(":*:a") == [":.c:a", "a"]
    assert state.version_anywhere("a", 1) == state.version("a", 1)
    only = replayed(context_record(".c"), schema(":.c:b", 1, 5))
    assert only.version_anywhere("b", 1) == only.version(":.c:b", 1)
    assert only.by_id(5, "b") == only.version(":.c:b", 1)


def test_an_id_stays_that_of_its_first_schema() -> None:
    state = replayed(schema("a", 1, 1, '"x"'), schema("b", 1, 1, '"y"'))
    assert state.subjects() == ["a"]
    assert state.duplicate_ids == 1
    assert replayed(schema("b", 1, 1, '"x"'), into=state).subjects() == ["a", "b"]


def test_a_schema_in_another_form_keeps_its_id() -> None:
    """Karapace sorts the members of what it writes: a schema that Confluent's registry or ours wrote before."""
    ours = '{"type":"record","name":"O","fields":[{"name":"id","type":"long"}]}'
    of_karapace = '{"fields":[{"name":"id","type":"long"}],"name":"O","type":"record"}'
    state = replayed(schema("a", 1, 1, ours), schema("b", 1, 1, of_karapace))
    assert state.subjects() == ["a", "b"]
    assert [one.text for one in state.users(".", 1)] == [ours, of_karapace], "each as it was written"
    proto = SchemaValue("p", 1, 2, "PROTOBUF", 'syntax = "proto3";\n\nmessage A {\n  string b = 1;\n}\n')
    again = proto._replace(subject="q", text='syntax="proto3"; message A { string b = 1; }')
    assert replayed(schema_record(proto), schema_record(again)).subjects() == ["p", "q"]
    other = again._replace(text='syntax="proto3"; message A { string c = 1; }')
    for odd in (other, again._replace(text="no Protobuf"), again._replace(text="AAAA"), again._replace(text="{" * 999)):
        assert replayed(schema_record(proto), schema_record(odd)).duplicate_ids == 1
    for odd_text in ("", "[" * 100_000, "\ud800"):
        assert replayed(schema("a", 1, 1, ours), schema("b", 1, 1, odd_text or " ")).duplicate_ids == 1


def test_a_version_that_is_written_again_in_another_form_is_soft_deleted() -> None:
    state = replayed(
        schema("a", 1, 1, '{"type":"map","values":"int"}'), schema("b", 1, 1, '{"type":"map","values":"int"}')
    )
    deleted = schema("b", 1, 1, '{"values":"int","type":"map"}', deleted=True)
    assert replayed(deleted, into=state).subjects() == ["a"]
    assert state.duplicate_ids == 0
    gone = schema("a", 1, 1, "formatted anew", deleted=True)
    assert replayed(gone, into=state).subjects() == []
    assert [one.text for one in state.versions("a", Which.ALL)] == ['{"type":"map","values":"int"}']


def test_karapace_deletes_with_empty_values() -> None:
    state = replayed(schema("a", 1, 1, deleted=True), config_record("a", {"compatibilityLevel": "FULL"}))
    state = replayed((key_bytes(Key(SCHEMA, "a", 1)), b""), (key_bytes(Key(CONFIG, "a")), b""), into=state)
    assert state.unreadable == 0
    assert state.subjects(which=Which.ALL) == []
    assert state.own_config("a") is None
    old_form = b'{"subject":"b","version":1,"magic":1,"keytype":"SCHEMA"}'
    state = replayed((old_form, schema("b", 1, 2).value), (old_form, b""), into=state)
    assert state.forms == {}, "nothing is left that would have to be deleted in this form"


def test_what_cannot_be_read_is_counted_and_changes_nothing() -> None:
    odd = [
        (None, b"{}"),
        (b"\xff", b"{}"),
        (b'{"keytype":"NEW_IN_9"}', b"{}"),
        (key_bytes(Key(SCHEMA, "a", 2)), b"not JSON"),
        (b'{"keytype":"MODE","magic":0}', b"[]"),
    ]
    state = replayed(schema("a", 1, 1), *odd, schema("a", 3, 3, "this is no Avro"))
    assert state.unreadable == len(odd)
    assert [one.text for one in state.versions("a")] == ['"1"', "this is no Avro"]


def test_of_several_forms_of_a_key_the_latest_counts() -> None:
    of_karapace = b'{"subject":"a","version":1,"magic":1,"keytype":"SCHEMA"}'
    value = schema("a", 1, 1).value
    state = replayed((of_karapace, value), schema("a", 1, 1, deleted=True))
    assert state.versions("a") == []
    assert replayed((of_karapace, value), into=state).versions("a") != []
    with_null = b'{"keytype":"CONFIG","subject":null,"magic":0}'
    state = replayed(config_record(None, {"compatibilityLevel": "FULL"}), (with_null, b'{"compatibilityLevel":"NONE"}'))
    assert state.config(None) == {"compatibilityLevel": "NONE"}


def test_an_update_or_tombstone_reaches_each_form_of_a_key() -> None:
    of_karapace = b'{"subject":"a","version":1,"magic":1,"keytype":"SCHEMA"}'
    ours = key_bytes(Key(SCHEMA, "a", 1))
    state = replayed((of_karapace, schema("a", 1, 1).value))
    deleted = DeleteVersion("a", 1).decide(state, None).records
    assert [record.key for record in deleted] == [of_karapace, ours]
    assert all(record.value is not None and json.loads(record.value)["deleted"] for record in deleted)
    gone = DeleteVersion("a", 1, permanent=True).decide(replayed(*deleted, into=state), None).records
    assert [record for record in gone if record.value is None] == [Record(of_karapace, None), Record(ours, None)]
    state = replayed(*gone, into=state)
    assert state.forms == {}, "all forms are gone"
    with_null = b'{"keytype":"CONFIG","subject":null,"magic":0}'
    state = replayed((with_null, b'{"compatibilityLevel":"NONE"}'))
    changed = SetConfig(None, {"compatibilityLevel": "FULL"}).decide(state, None).records
    assert [record.key for record in changed] == [with_null, b'{"keytype":"CONFIG","magic":0}']


def test_members_that_are_not_known_survive_a_rewrite() -> None:
    value = schema("a", 1, 1).value
    assert value is not None
    with_more = value[:-1] + b',"added":{"later":1}}'
    state = replayed((key_bytes(Key(SCHEMA, "a", 1)), with_more))
    (deleted,) = DeleteVersion("a", 1).decide(state, None).records
    assert deleted.value is not None
    assert json.loads(deleted.value)["added"] == {"later": 1}


def test_a_deleted_subject_keeps_its_highest_id_from_being_given_out_again() -> None:
    state = replayed(schema("a", 1, 1), schema("a", 2, 2), delete_subject_record("a", 2))
    records = DeleteSubject("a", permanent=True).decide(state, None).records
    assert records[0] == noop_record({".": 2}), "before the last of them is gone"
    assert [record.key for record in records[1:]] == [key_bytes(Key(SCHEMA, "a", n)) for n in (2, 1)]


def test_settings_count_for_what_is_below_them() -> None:
    state = replayed(
        config_record(None, {"compatibilityLevel": "FULL"}),
        config_record(":.c:", {"compatibilityLevel": "NONE"}),
        config_record("a", {"alias": "b"}),
        config_record(":.__GLOBAL:", {"compatibilityLevel": "FORWARD"}),
        mode_record(":.c:", "READONLY"),
    )
    assert state.config_in_scope("x")["compatibilityLevel"] == "FULL"
    assert state.config_in_scope(":.c:x")["compatibilityLevel"] == "NONE"
    assert state.config_in_scope(":.d:x")["compatibilityLevel"] == "FORWARD"
    assert state.config_in_scope("a") == {"alias": "b", "compatibilityLevel": "BACKWARD"}, "a config is taken whole"
    assert (state.config("x"), state.own_config("a")) == (None, {"alias": "b"})
    assert (state.mode_in_scope(":.c:x"), state.mode_in_scope("x"), state.mode("x")) == ("READONLY", "READWRITE", None)
    assert (state.alias("a"), state.alias("x"), state.aliases()) == ("b", "x", {"b": ["a"]})


def test_references_hold_on_to_what_they_refer_to() -> None:
    to_base = (Reference("Base", "base", 1),)
    state = replayed(schema("base", 1, 1), schema("user", 1, 2, references=to_base))
    assert state.referrers("base", 1) == [(".", 2)]
    assert state.resolve("user", to_base) == (to_base, {"Base": '"1"'})
    assert state.resolve("user", [Reference("Base", "base", LATEST)])[0] == to_base
    state = replayed(delete_subject_record("user", 1), into=state)
    assert (state.referrers("base", 1), state.referrers("base", 1, deleted=True)) == ([], [(".", 2)])
    state = replayed(tombstone("user", 1), into=state)
    assert state.referrers("base", 1, deleted=True) == []
    in_context = replayed(schema(":.c:base", 1, 1), schema(":.c:user", 1, 2, references=to_base))
    assert in_context.referrers(":.c:base", 1) == [(".c", 2)], "a reference is one in the context of its schema"


def test_copies_do_not_see_each_others_changes() -> None:
    one = replayed(schema("a", 1, 1), schema("b", 1, 1), schema("c", 1, 1))
    other = one.copy()
    replayed(schema("a", 2, 2), tombstone("b", 1), schema("d", 1, 1), config_record("a", {}), into=other)
    assert (one.subjects(), other.subjects()) == (["a", "b", "c"], ["a", "c", "d"])
    assert (len(one.versions("a")), len(other.versions("a"))) == (1, 2)
    assert [user.subject for user in one.users(".", 1)] == ["a", "b", "c"]
    assert [user.subject for user in other.users(".", 1)] == ["a", "c", "d"]
    assert (one.max_id("."), other.max_id(".")) == (1, 2)
    replayed(schema("a", 2, 7), into=one)
    version = other.version("a", 2)
    assert version is not None
    assert version.id == 2


def test_revisions_tell_what_has_changed() -> None:
    state = replayed(schema("a", 1, 1))
    before = state.revision("a"), state.settings_revision
    replayed(schema("b", 1, 2), into=state)
    assert (state.revision("a"), state.settings_revision) == before
    replayed(delete_subject_record("a", 1), config_record(None, {}), into=state)
    assert (state.revision("a"), state.settings_revision) != before


def test_a_record_that_two_states_replay_is_held_once_and_changed_for_each() -> None:
    served = replayed(schema("a", 1, 1))
    ahead = served.copy()
    for record in (schema("a", 2, 2), schema("b", 1, 3)):
        ahead.replay(*record, 7)
        served.replay(*record, 7, ahead)
    for subject, number in (("a", 2), ("b", 1)):
        assert served.version(subject, number) is ahead.version(subject, number)
    ahead.replay(*schema("b", 1, 3, deleted=True), 8)
    ahead.replay(*schema("b", 2, 4), 8)
    assert [one.number for one in served.versions("b")] == [1], "what is ahead is not served"
    served.replay(*tombstone("b", 1), 9)
    assert [one.number for one in ahead.versions("b", Which.ALL)] == [1, 2]
    again = replayed(schema("c", 1, 5), into=served.copy())
    served.replay(*schema("c", 1, 5), 6, again)
    assert served.version("c", 1) != again.version("c", 1), "another timestamp: another version"


def test_another_order_of_members_is_the_same_schema_and_another_value_is_not() -> None:
    assert says_the_same("JSON", '{"type":"object","const":1}', '{"const": 1, "type": "object"}')
    for other in ('{"const":true}', '{"const":1.0}', '{"const":"1"}', '{"const":1,"type":"object"}', "{"):
        assert not says_the_same("JSON", '{"const":1}', other), other
