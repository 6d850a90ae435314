"""Kafka Connect's records: what version 4.3.1 wrote is read, and what is written is the same, byte for byte.

`golden_topics.json` was made by `tests/interop/connect/make_golden_topics.py`.
"""

import json
from pathlib import Path

import pytest

from ottla.connect.worker import records
from ottla.connect.worker.decisions import OffsetChange, alter_source_offsets
from ottla.connect.worker.records import (
    ConnectorConfig,
    ConnectorStatus,
    Fact,
    LogRecord,
    RunState,
    SourceOffset,
    Target,
    TargetState,
    TaskConfig,
    TasksCommitted,
    TasksFencing,
    TaskStatus,
    Topic,
    TopicUsed,
    parse,
)
from ottla.connect.worker.state import State

GOLDEN = json.loads((Path(__file__).parent / "golden_topics.json").read_text())


def golden() -> list[LogRecord]:
    return [
        LogRecord(topic, key.encode(), None if value is None else value.encode())
        for topic in Topic
        for key, value in GOLDEN[topic.value]
    ]


def written_again(fact: Fact) -> LogRecord | None:
    match fact:
        case ConnectorConfig(name, properties):
            return records.connector_record(name, properties)
        case TaskConfig(name, task, properties) if properties is not None:
            many = records.tasks_records(name, [properties] * (task + 1), is_source=False)
            return many[task]
        case TasksCommitted(name, count):
            return records.commit_record(name, count)
        case TasksFencing(name, count):
            return records.tasks_records(name, [{}] * count, is_source=True)[-1]
        case Target(name, target):
            return records.target_record(name, target)
        case ConnectorStatus(name, status):
            return records.connector_status_record(name, status)
        case TaskStatus(name, task, status):
            return records.task_status_record(name, task, status)
        case TopicUsed(name, topic, task, at_ms):
            return records.topic_record(name, topic, task, at_ms)
        case SourceOffset(name, partition, offset):
            return records.offset_record(name, partition, offset)
    return None


@pytest.mark.parametrize("record", golden(), ids=lambda record: record.key.decode())
def test_what_kafka_connect_wrote_is_written_the_same(record: LogRecord) -> None:
    fact = parse(record)
    if record.key == b"session-key" or record.key.startswith(b"restart-connector-"):
        assert fact is None, "this is for workers that are there at the time"
        return
    assert fact is not None
    assert written_again(fact) == record


def test_kinds_of_records_are_all_among_them() -> None:
    kinds = {type(fact) for fact in map(parse, golden()) if fact is not None}
    wanted = {ConnectorConfig, TaskConfig, TasksCommitted, TasksFencing, Target, ConnectorStatus, TaskStatus}
    assert kinds == wanted | {TopicUsed, SourceOffset}


def test_the_state_is_what_kafka_connect_had() -> None:
    state = State()
    for record in golden():
        state.replay(record)
    assert {name: one.target for name, one in state.connectors.items()} == {
        "source": TargetState.STOPPED,
        "sink-1": TargetState.STARTED,
        "stopped": TargetState.STOPPED,
        "failing": TargetState.STARTED,
    }
    assert [len(one.tasks) for one in state.connectors.values()] == [0, 2, 0, 1]
    assert state.connector_statuses["source"].state is RunState.STOPPED
    assert [status.state for _, status in state.tasks_of("sink-1")] == [RunState.RUNNING, RunState.RUNNING]
    failed = state.task_statuses["failing"][0]
    assert failed.state is RunState.FAILED
    assert failed.trace is not None
    assert "ConnectException" in failed.trace
    assert state.topics["source"].keys() == {"lines"}
    assert state.offsets["stopped"] == {'{"filename":"/data/lines.txt"}': {"position": 2}}
    assert "gone" not in state.connector_statuses
    assert state.is_stopped("source")
    assert not state.is_stopped("sink-1")


@pytest.mark.parametrize(
    ("topic", "key", "value"),
    [
        (Topic.CONFIGS, b"connector-x", b"no json"),
        (Topic.CONFIGS, b"connector-x", b"[]"),
        (Topic.CONFIGS, b"connector-x", b"{}"),
        (Topic.CONFIGS, b"task-x", b"{}"),
        (Topic.CONFIGS, b"commit-x", b'{"tasks":"2"}'),
        (Topic.CONFIGS, b"target-state-x", b'{"state":"FLYING"}'),
        (Topic.CONFIGS, b"\xff\xfe", b"{}"),
        (Topic.STATUS, b"status-connector-x", b'{"state":"FLYING"}'),
        (Topic.STATUS, b"status-connector-x", b'{"state":"RUNNING","generation":{"a":1}}'),
        (Topic.STATUS, b"status-topic-x", b"{}"),
        (Topic.STATUS, b"status-topic-x:connector-y", b'{"topic":7}'),
        (Topic.STATUS, b"status-connector-x", b"[" * 100_000),
        (Topic.STATUS, b"status-connector-x", b'{"state":"RUNNING","generation":1e999}'),
        (Topic.STATUS, b"status-connector-x", b'{"state":"FAILED","trace":"half a pair: \\ud800"}'),
        (Topic.CONFIGS, b"connector-x", b'{"properties":{"file":"\\ud800"}}'),
        (Topic.OFFSETS, b'["x",{"file":"\\udfff"}]', b"{}"),
        (Topic.OFFSETS, b'["x",{}]', b'{"at":"\\udfff"}'),
        (Topic.OFFSETS, b"no json", b"{}"),
        (Topic.OFFSETS, b'["x"]', b"{}"),
        (Topic.OFFSETS, b'{"a":1}', b"{}"),
    ],
)
def test_what_is_no_record_of_connects_is_left_alone(topic: Topic, key: bytes, value: bytes) -> None:
    assert parse(LogRecord(topic, key, value)) is None


def test_a_target_state_of_an_older_worker_counts() -> None:
    older = LogRecord(Topic.CONFIGS, b"target-state-x", b'{"state":"PAUSED"}')
    assert parse(older) == Target("x", TargetState.PAUSED)


def test_a_target_state_that_is_gone_is_the_same_now_and_after_a_restart() -> None:
    paused, gone = records.target_record("x", TargetState.PAUSED), records.target_record("x", None)
    now, later = State(), State()
    for record in (records.connector_record("x", {}), paused, gone):
        now.replay(record)
    later.replay(records.connector_record("x", {}))  # Compaction has taken the others.
    assert now.connectors["x"].target is later.connectors["x"].target is TargetState.STARTED


def test_tasks_count_when_all_of_them_are_committed() -> None:
    state = State()
    state.replay(records.connector_record("x", {"a": "1"}))
    tasks = records.tasks_records("x", [{"n": "0"}, {"n": "1"}], is_source=True)
    state.replay(tasks[1])
    state.replay(tasks[2])
    assert state.connectors["x"].tasks == (), "one of them is missing"
    for record in tasks:
        state.replay(record)
    assert state.connectors["x"].tasks == ({"n": "0"}, {"n": "1"})
    state.replay(records.commit_record("x", 1))
    assert state.connectors["x"].tasks == ({"n": "0"},)
    state.replay(records.commit_record("x", 0))
    assert state.connectors["x"].tasks == ()


def test_a_connector_that_is_deleted_and_made_again_has_no_tasks() -> None:
    state = State()
    state.replay(records.connector_record("x", {"a": "1"}))
    for record in records.tasks_records("x", [{"n": "0"}], is_source=True):
        state.replay(record)
    state.replay(records.connector_record("x", None))
    state.replay(records.connector_record("x", {"a": "2"}))
    assert state.connectors["x"].tasks == ()


def test_a_commit_of_more_tasks_than_there_can_be_is_not_usable() -> None:
    state = State()
    state.replay(records.connector_record("x", {"a": "1"}))
    for record in records.tasks_records("x", [{"n": "0"}], is_source=True):
        state.replay(record)
    state.replay(records.commit_record("x", 10**15))
    assert state.connectors["x"].tasks == ({"n": "0"},)
    state.replay(records.commit_record("x", -1))
    assert state.connectors["x"].tasks == ()


def test_a_partition_is_changed_under_the_text_that_it_is_known_by() -> None:
    """Kafka Connect's order of members is Java's, and people's another: a tombstone of other bytes would go, and the
    offset be there again."""
    state = State()
    state.replay(records.connector_record("x", {}))
    state.replay(records.target_record("x", TargetState.STOPPED))
    state.replay(records.offset_record("x", '{"db":"shop","server":"s"}', {"pos": 7}))
    changes = [
        OffsetChange({"server": "s", "db": "shop"}, None),
        OffsetChange({"server": "t", "db": "shop"}, {"pos": 1}),
    ]
    for record in alter_source_offsets(state, "x", changes).records:
        state.replay(record)
    assert state.offsets["x"] == {'{"server":"t","db":"shop"}': {"pos": 1}}
