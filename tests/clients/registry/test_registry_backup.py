"""A cluster with a schema registry is backed up and restored into another: ids stay, and old records can be read."""

from pathlib import Path

import ottla
from ottla.schemas.registry_port import Reference, SchemaToRegister
from ottla.testing import Broker, SchemaRegistry
from tests.unit.cli.backup_scenes import run, seen

ORDER = '{"type":"record","name":"Order","fields":[{"name":"id","type":"int"}%s]}'
FIRST = SchemaToRegister("AVRO", ORDER % "")
SECOND = SchemaToRegister("AVRO", ORDER % ',{"name":"city","type":"string","default":""}')
WRAPPED = SchemaToRegister(
    "AVRO",
    '{"type":"record","name":"Wrapped","fields":[{"name":"order","type":"Order"}]}',
    (Reference("Order", "orders-value", 1),),
)


def test_schemas_come_back_with_their_ids_and_records_can_be_read(tmp_path: Path) -> None:
    saved = str(tmp_path / "saved")
    with Broker() as source:
        with SchemaRegistry(source.bootstrap) as registry, ottla.SchemaRegistryClient(registry.url) as client:
            client.register("gone-value", SchemaToRegister("AVRO", '"string"'))
            ids = [client.register("orders-value", one).id for one in (FIRST, SECOND)]
            ids.append(client.register("wrapped-value", WRAPPED).id)
            client.ask("PUT", "/config/orders-value", {"compatibility": "FULL"})
            client.ask("DELETE", "/subjects/gone-value")
            with ottla.Producer(bootstrap_servers=source.bootstrap) as producer:
                for schema_id in ids:
                    assert schema_id is not None
                    producer.send("orders", b"\0" + schema_id.to_bytes(4, "big") + b"\x02\0")
        run("backup", saved, "-b", source.bootstrap, "-q")
        expected = seen(source.bootstrap, "orders")
    with Broker() as destination:
        run("restore", saved, "-b", destination.bootstrap, "-q")
        assert seen(destination.bootstrap, "orders") == expected
        with SchemaRegistry(destination.bootstrap) as registry, ottla.SchemaRegistryClient(registry.url) as client:
            assert client.subjects() == ["orders-value", "wrapped-value"], "what was deleted stays deleted"
            assert client.versions("orders-value") == [1, 2]
            for schema_id, registered in zip(ids, (FIRST, SECOND, WRAPPED), strict=True):
                assert schema_id is not None
                assert client.schema_by_id(schema_id).text == registered.text
            assert client.version("wrapped-value").references == WRAPPED.references
            assert client.ask("GET", "/config/orders-value") == {"compatibilityLevel": "FULL"}
            # It goes on where the other one was: an id is never given twice.
            assert client.register("orders-value", SECOND).id == ids[1]
            new = client.register("new-value", SchemaToRegister("AVRO", '"long"')).id
            assert new is not None
            assert new > max(one or 0 for one in ids)
