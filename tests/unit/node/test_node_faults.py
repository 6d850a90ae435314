"""What stops a node, and what does not: see docs/decisions/0007-faults.md."""

import errno
from types import SimpleNamespace

import pytest

from ottla.node.broker_server import BrokerServer

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
