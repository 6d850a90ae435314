"""Converters through a schema registry that runs: over HTTP, by the options of a configuration."""

from collections.abc import Mapping
from contextlib import closing
from typing import Any
from uuid import uuid4

import pytest

from ottla.connect.converters.by_name import make_converter
from ottla.connect.data import schema as schemas
from ottla.connect.data.rows import column_of, rows_of
from ottla.connect.data.schema import Schema, Type, struct
from ottla.connect.schema_registry import registry_client
from ottla.errors import RegistryError
from ottla.testing import SchemaRegistry

ORDER = struct([("id", Schema(Type.INT64)), ("price", schemas.decimal(2, optional=True))], name="shop.Order")
MORE = struct([("id", Schema(Type.INT64)), ("note", Schema(Type.STRING))], name="shop.Order")


@pytest.mark.parametrize("name", ["AvroConverter", "ProtobufConverter", "JsonSchemaConverter"])
def test_records_go_through_a_registry_that_runs(ottla_registry: SchemaRegistry, name: str) -> None:
    if name == "ProtobufConverter":
        pytest.importorskip("google.protobuf")
    topic = f"orders-{uuid4().hex}"
    options: dict[str, str | None] = {"schema.registry.url": ottla_registry.url}
    clients: list[Any] = []

    def kept(given: Mapping[str, str | None]) -> Any:
        clients.append(registry_client(given))
        return clients[-1]

    writer = make_converter(name, options, registry=kept)
    reader = make_converter(name, options, registry=kept)
    with closing(clients[0]) as client, closing(clients[1]):
        rows = [{"id": 1, "price": None}, {"id": 2, "price": None}]
        content = writer.to_bytes(topic, column_of(ORDER, rows))
        (part,) = reader.from_bytes(topic, content)
        assert rows_of(part.column) == rows  # type: ignore[arg-type]
        assert part.column.schema is not None
        assert part.column.schema.version == 1
        assert client.versions(f"{topic}-value") == [1]
        if name == "AvroConverter":  # a new field without a default: the registry refuses it, and says so
            with pytest.raises(RegistryError, match="incompatible"):
                writer.to_bytes(topic, column_of(MORE, [{"id": 1, "note": "a"}]))
