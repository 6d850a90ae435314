"""What stands in requests: read strictly, refused with 400."""

import pytest

from ottla.connect.rest.api import OPERATIONS, find
from ottla.connect.rest.requests import path_parts, read_config, read_new_connector, read_offsets
from ottla.connect.worker.decisions import OffsetChange
from ottla.connect.worker.records import TargetState
from ottla.connect.worker.refusals import Refused
from ottla.connect.worker.sink_offsets import read_changes


@pytest.mark.parametrize(
    ("given", "target"),
    [("paused", TargetState.PAUSED), ("RUNNING", TargetState.STARTED), ("Stopped", TargetState.STOPPED)],
)
def test_initial_state_is_taken_in_any_case(given: str, target: TargetState) -> None:
    new = read_new_connector(b'{"name": " x ", "config": {"a": 1, "b": true}, "initial_state": "%s"}' % given.encode())
    assert new == ("x", {"a": "1", "b": "true", "name": "x"}, target)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"[" * 100_000,
        b'{"name": "x"}',
        b'{"name": 1, "config": {}}',
        b'{"name": "x", "config": []}',
        b'{"name": "x", "config": {"a": {}}}',
        b'{"name": "x", "config": {}, "more": 1}',
        b'{"name": "x", "config": {}, "initial_state": "flying"}',
        b'{"name": "x", "config": {}, "initial_state": 1}',
        b'{"name": "x", "config": {"name": "y"}}',
    ],
)
def test_a_bad_connector_is_refused(body: bytes) -> None:
    with pytest.raises(Refused) as raised:
        read_new_connector(body)
    assert raised.value.status == 400


def test_null_members_of_a_config_are_kept_for_patches() -> None:
    assert read_config(b'{"a": null, "b": 1.5}') == {"a": None, "b": "1.5"}


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"offsets": []}',
        b'{"offsets": 1}',
        b'{"offsets": [1]}',
        b'{"offsets": [{"partition": 1}]}',
        b'{"offsets": [{"partition": {"a": NaN}, "offset": {}}]}',
        b'{"offsets": [{"partition": {}, "offset": {"a": -1e999}}]}',
    ],
)
def test_bad_offsets_are_refused(body: bytes) -> None:
    with pytest.raises(Refused) as raised:
        read_offsets(body)
    assert raised.value.status == 400


@pytest.mark.parametrize("partition", [2**31, -(2**31) - 1, "9" * 5000, 1.5, True, "0x1"])
def test_a_partition_of_a_sinks_offsets_is_a_number_of_kafkas(partition: object) -> None:
    with pytest.raises(Refused) as raised:
        read_changes([OffsetChange({"kafka_topic": "t", "kafka_partition": partition}, {"kafka_offset": 1})])
    assert raised.value.status == 400
    assert len(raised.value.message) < 300


@pytest.mark.parametrize("offset", [2**63, "9" * 5000, 10**30, None])
def test_an_offset_of_a_sink_is_a_number_of_kafkas(offset: object) -> None:
    with pytest.raises(Refused) as raised:
        read_changes([OffsetChange({"kafka_topic": "t", "kafka_partition": "0"}, {"kafka_offset": offset})])
    assert raised.value.status == 400


def test_paths_are_decoded_and_ambiguous_ones_refused() -> None:
    assert path_parts("/connectors/a%20b%C3%A9/") == ["connectors", "a bé"]
    for path in ("/connectors/a%2fb", "/connectors/a%25b", "/connectors/a%00b", "/connectors/%ff"):
        with pytest.raises(Refused):
            path_parts(path)


def test_every_operation_is_found_by_its_path() -> None:
    for operation in OPERATIONS:
        path = operation.path.replace("{name}", "n").replace("{task}", "0")
        found, _, _ = find(operation.method, path_parts(path))
        assert found is operation
    assert find("GET", ["connectors", "n", "tasks", "x", "status"])[0] is None
    assert find("HEAD", ["connectors"])[0] is not None
    assert find("TRACE", ["connectors"])[2] == ["GET", "POST"]


def test_half_of_a_surrogate_pair_is_refused_and_a_whole_one_is_a_character() -> None:
    with pytest.raises(Refused, match="half of a surrogate pair"):
        read_config(b'{"topic": "\\ud800"}')
    assert read_config(b'{"topic": "\\ud83d\\ude00"}') == {"topic": "\U0001f600"}
