"""python-schema-registry-client against our registry, as it is."""

from uuid import uuid4

from schema_registry.client import SchemaRegistryClient, schema

from ottla.testing import SchemaRegistry

INT = {"type": "record", "name": "R", "fields": [{"name": "a", "type": "int"}]}
WITH_B = {"type": "record", "name": "R", "fields": [*INT["fields"], {"name": "b", "type": "int", "default": 1}]}


def test_it_registers_reads_and_compares(ottla_registry: SchemaRegistry) -> None:
    client, subject = SchemaRegistryClient(url=ottla_registry.url), f"p-{uuid4().hex}"
    id = client.register(subject, schema.AvroSchema(INT))
    found = client.get_by_id(id)
    assert found is not None
    assert found.name == "R"
    assert client.check_version(subject, schema.AvroSchema(INT)).version == 1
    assert client.test_compatibility(subject, schema.AvroSchema(WITH_B))
    assert client.register(subject, schema.AvroSchema(WITH_B)) != id
    assert client.get_versions(subject) == [1, 2]
    assert client.get_schema(subject).version == 2
    assert subject in client.get_subjects()
    assert client.update_compatibility("FULL", subject)
    assert client.get_compatibility(subject) == "FULL"
    assert client.delete_version(subject, 1) == 1
    assert client.delete_subject(subject) == [2]
