"""`ottla start --registry`: a registry in the node's process, up and down with it."""

import pytest

import ottla
from ottla.schemas.registry_port import SchemaToRegister
from ottla.testing.free_ports import free_port
from ottla.testing.node import NodeError, RunningNode

INT = SchemaToRegister("AVRO", '"int"')


def test_schemas_outlive_the_node() -> None:
    port = free_port()

    def connected() -> ottla.SchemaRegistryClient:
        """The broker answers first, and the registry when it has read its topic."""
        return ottla.SchemaRegistryClient(f"http://127.0.0.1:{port}", max_retries=40, retries_max_wait_ms=1_000)

    with RunningNode(options=("--registry", str(port))) as node:
        with connected() as client:
            assert client.register("s", INT).id == 1
        assert f"registry http://127.0.0.1:{port}" in node.log.read_text()
        node.stop()
        node.start()
        with connected() as client:
            assert client.subjects() == ["s"]
            assert client.register("s", SchemaToRegister("AVRO", '"long"')).id == 2
        node.kill()
        node.start()
        with connected() as client:
            assert client.versions("s") == [1, 2]


def test_a_port_that_is_none_is_told() -> None:
    node = RunningNode(options=("--registry", "many"))
    with pytest.raises(NodeError, match="--registry many: it must be a port, or HOST:PORT"):
        node.start()
    node.close()
