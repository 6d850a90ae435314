"""The schema facts, and what is made of them."""

import pytest

from ottla.wire import facts, layout, schema


@pytest.mark.parametrize(
    ("file", "count"),
    [
        ("messages", 198),
        ("metadata-records", 26),
        ("group-records", 44),
        ("transaction-records", 2),
        ("share-records", 4),
        ("raft-state", 1),
    ],
)
def test_every_message_of_apache_kafka_4_3_is_known(file: str, count: int) -> None:
    assert len(schema.message_names(file)) == count
    assert len({schema.message_schema(name).name for name in schema.message_names(file)}) == count


def test_names_are_unique_over_all_facts() -> None:
    names = schema.message_names()
    assert len(names) == len(set(names)) == 275


def test_versions_are_ranges() -> None:
    produce = schema.message_schema("ProduceRequest")
    assert produce.versions == range(3, 14)
    assert 9 in produce.flexible
    assert 8 not in produce.flexible
    assert list(schema.message_schema("StopReplicaRequest").versions) == []


def test_a_field_knows_where_it_exists() -> None:
    topics = schema.message_schema("ProduceRequest").structs["TopicProduceData"]
    name = next(field for field in topics.fields if field.name == "Name")
    assert name.mandatory_in(12)
    assert not name.mandatory_in(13)
    assert name.ignorable


def test_a_field_with_tagged_versions_alone_exists_in_those() -> None:
    fields = schema.message_schema("TransactionLogValue").root.fields
    previous = next(field for field in fields if field.attribute == "previous_producer_id")
    assert previous.tagged_in(1)
    assert not previous.mandatory_in(0)
    assert previous.default == -1


def test_defaults_are_values() -> None:
    fields = {field.attribute: field.default for field in schema.message_schema("FetchRequest").root.fields}
    assert fields["max_bytes"] == 0x7FFFFFFF
    assert fields["cluster_id"] is None
    assert fields["session_epoch"] == -1


def test_a_bare_null_in_the_facts_is_not_a_default_of_null() -> None:
    """Kafka reads it as no default, so null is written out: `test_wire_kafka_records` has the bytes."""
    fields = schema.message_schema("ConsumerGroupMemberMetadataValue").root.fields
    assert not next(field for field in fields if field.attribute == "classic_member_metadata").defaults_to_null


def test_a_common_struct_is_one_struct() -> None:
    quorum = schema.message_schema("DescribeQuorumResponse")
    fields = quorum.structs["PartitionData"].fields
    voters, observers = (
        next(field for field in fields if field.name == name) for name in ("CurrentVoters", "Observers")
    )
    assert voters.struct is observers.struct is quorum.structs["ReplicaState"]


def test_no_element_of_an_array_takes_no_bytes() -> None:
    """A count of such elements could not be held against the bytes left, and would need a limit of its own."""
    for name in schema.message_names():
        message = schema.message_schema(name)
        for version in message.versions:
            for struct in message.structs.values():
                used = any(field.versions and version in field.versions for field in struct.fields)
                assert not used or layout.least_size(message, struct, version) > 0


def test_every_fact_file_is_there() -> None:
    assert len(facts.load("apis")["apis"]) == 93
    assert len(facts.load("errors")["errors"]) == 135


@pytest.mark.parametrize("file", schema.MESSAGE_FACTS)
def test_messages_are_found_by_the_beginnings_of_their_lines(file: str) -> None:
    whole = facts.load(file)
    found = facts.load_messages(file)
    assert [fact.parse() for fact in found] == whole
    assert [(fact.name, fact.type, fact.api_key) for fact in found] == [
        (fact["name"], fact["type"], fact.get("apiKey", -1)) for fact in whole
    ]
