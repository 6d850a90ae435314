"""What stops a node, and what does not: see docs/decisions/0007-faults.md."""

import errno
from types import SimpleNamespace
from typing import Any

import pytest

from ottla.apis.table import served_by_brokers
from ottla.broker.dispatch import served_versions
from ottla.node.broker_server import BrokerServer
from ottla.wire.apis import ApiKey
from ottla.wire.frame import decode_response, encode_request, request_type, response_type
from ottla.wire.message import Message, WireStruct
from ottla.wire.messages import ApiVersionsRequest, CreateTopicsRequest
from tests.unit.node.whole_nodes import COMBINED, PORT, WholeNode

EIO = OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize(
    ("failed", "left", "is_the_end"),
    [("/metadata", ["/data"], True), ("/data", [], True), ("/data", ["/metadata", "/more"], False)],
    ids=["the metadata's", "the last", "one of several"],
)
def test_a_node_stops_without_the_directory_of_its_metadata_and_without_any(failed, left, is_the_end):
    events: list[str] = []
    server = SimpleNamespace(
        _logs=SimpleNamespace(online=left),
        _config=SimpleNamespace(metadata_log_dir="/metadata"),
        _failed=lambda _problem: events.append("stopped"),
        _membership=SimpleNamespace(on_directory_failed=events.append),
    )
    BrokerServer._on_directory_failed(server, failed, EIO)  # type: ignore[arg-type]
    assert events == (["stopped"] if is_the_end else [failed])


class Bug(Exception):
    """What nobody expected."""


def breaks(*_: object) -> None:
    raise Bug


def filled(struct: type[WireStruct], owner: type[Message], version: int) -> Any:
    """A struct that has one entry in every list."""
    made = struct()
    for field in struct._struct.fields:
        if version in field.versions and field.is_array:
            if field.struct is not None:
                entry = filled(getattr(owner, field.type), owner, version)
            else:
                entry = "x" if field.type == "string" else 7
            setattr(made, field.attribute, [entry])
    return made


@pytest.mark.parametrize("key", served_by_brokers(), ids=lambda key: key.name)
def test_a_handler_that_breaks_costs_its_request_in_every_version_of_every_api(key: ApiKey) -> None:
    whole = WholeNode(COMBINED)
    server = whole.node._server
    works, bystander = server.handle, whole.connect(PORT)
    for version in served_versions(key):
        request = filled(request_type(key), request_type(key), version)
        if key is ApiKey.PRODUCE:
            request.acks = -1
        server.handle = breaks
        client = whole.connect(PORT)
        client.send(encode_request(request, version, 7, "the test"))
        whole.network.run()
        received = client.receive()
        if received:
            _, reply = decode_response(response_type(key), received[4:], version)
            assert "error_code=-1" in repr(reply)
        else:
            assert client.is_closed, f"version {version} waits for ever"
            assert key is ApiKey.DESCRIBE_LOG_DIRS, f"version {version} has a place for an error"
        server.handle = works
        bystander.send(encode_request(ApiVersionsRequest(), 0, 1, None))
        whole.network.run()
        assert bystander.receive(), "the other client is answered as ever"
    assert not whole.ended
    whole.stop()


def test_a_metadata_log_that_cannot_be_written_stops_the_whole_node() -> None:
    whole = WholeNode(COMBINED)
    whole.disk.fail_from(whole.disk.calls + 1, errno.EIO)
    topics = [CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)]
    whole.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7, PORT)
    assert whole.ended


def test_metadata_that_a_part_of_the_node_cannot_take_up_cost_that_part_alone() -> None:
    whole = WholeNode(COMBINED)
    whole.node._metadata.listen(breaks)
    topics = [CreateTopicsRequest.CreatableTopic(name="orders", num_partitions=1, replication_factor=1)]
    reply = whole.ask(CreateTopicsRequest(topics=topics, timeout_ms=1000), 7, PORT)
    assert [topic.error_code for topic in reply.topics] == [0]
    assert not whole.ended
