"""Whole workers on a node: what people do through REST, failures, a second worker, and a restart on the same topics."""

import json
import os
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from ottla.client.blocking.producer import Producer
from ottla.client.errors import KafkaError
from ottla.connect.engine_port import Progress
from ottla.testing.node import RunningNode
from tests.unit.connect.worker.worker_in_a_thread import (
    FILE_SINK,
    FILE_SOURCE,
    SECRET_SOURCE,
    WAIT_S,
    Reply,
    WorkerInAThread,
    may_go_on,
    validating,
    wait_for,
)

pytestmark = pytest.mark.slow

SOURCE = {"connector.class": FILE_SOURCE, "file": "/in.txt", "topic": "lines", "tasks.max": "1"}
SINK = {"connector.class": FILE_SINK, "file": "/out.txt", "topics": "lines"}
RUNNING = ("RUNNING", ["RUNNING"])


@pytest.fixture(scope="module")
def node() -> Iterator[RunningNode]:
    settings = {"transaction.state.log.num.partitions": 3, "offsets.topic.num.partitions": 3}
    with RunningNode(config={**settings, "group.initial.rebalance.delay.ms": 0}) as node:
        yield node


@pytest.fixture
def worker(node: RunningNode, request: pytest.FixtureRequest) -> Iterator[WorkerInAThread]:
    with WorkerInAThread(node.bootstrap, request.node.name[:60]) as worker:
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "a worker leads")
        yield worker


def test_a_connector_is_created_runs_and_is_deleted(worker: WorkerInAThread) -> None:
    made = worker.ask("POST", "/connectors", {"name": "lines", "config": SOURCE})
    assert made.status == 201
    assert made.body == {"name": "lines", "config": {**SOURCE, "name": "lines"}, "tasks": [], "type": "source"}
    assert made.headers["Location"] == f"{worker.url}/connectors/lines"
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    assert worker.engine.starts[0].config["file"] == "/in.txt"
    assert worker.engine.starts[0].worker["offset.storage.topic"].endswith("-offsets")
    assert worker.ask("GET", "/connectors/lines/tasks").body[0]["config"] == {
        **SOURCE,
        "name": "lines",
        "task.class": "org.apache.kafka.connect.file.FileStreamSourceTask",
    }
    assert worker.ask("DELETE", "/connectors/lines").status == 204
    assert worker.ask("GET", "/connectors").body == []
    wait_for(lambda: worker.ask("GET", "/connectors/lines/status").status == 404, "its state is forgotten")
    assert not worker.engine.running


def test_a_changed_configuration_stops_the_run_and_starts_another(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    assert worker.ask("PUT", "/connectors/lines/config", {**SOURCE, "file": "/other"}).status == 200
    wait_for(lambda: len(worker.engine.starts) == 2 and worker.state_of("lines") == RUNNING, "it runs again")
    assert [spec.config["file"] for spec in worker.engine.starts] == ["/in.txt", "/other"]
    patched = worker.ask("PATCH", "/connectors/lines/config", {"tasks.max": None, "batch.size": "7"})
    assert patched.body["config"] == {
        "connector.class": FILE_SOURCE,
        "file": "/other",
        "topic": "lines",
        "name": "lines",
        "batch.size": "7",
    }


def test_a_patch_loses_no_change_that_comes_while_it_is_validated(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    with patch_under_way(worker) as patched:
        assert worker.ask("PATCH", "/connectors/lines/config", {"topic": "other"}).status == 200
    assert patched.result().status == 200
    assert worker.ask("GET", "/connectors/lines/config").body == {
        **SOURCE,
        "name": "lines",
        "file": "/slow",
        "topic": "other",
    }


def test_a_patch_does_not_make_a_connector_again_that_is_deleted_meanwhile(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    with patch_under_way(worker) as patched:
        assert worker.ask("DELETE", "/connectors/lines").status == 204
    assert patched.result().status == 404
    assert worker.ask("GET", "/connectors").body == []


@contextmanager
def patch_under_way(worker: WorkerInAThread) -> "Iterator[Future[Reply]]":
    """A patch of `lines` with `file=/slow`, which is validated until the block ends."""
    validating.clear()
    may_go_on.clear()
    with ThreadPoolExecutor(1) as threads:
        patched = threads.submit(worker.ask, "PATCH", "/connectors/lines/config", {"file": "/slow"})
        assert validating.wait(WAIT_S)
        try:
            yield patched
        finally:
            may_go_on.set()


def test_pause_keeps_the_task_and_stop_takes_it_away(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    assert worker.ask("PUT", "/connectors/lines/pause").status == 202
    wait_for(lambda: worker.state_of("lines") == ("PAUSED", ["PAUSED"]), "it is paused")
    assert not worker.engine.running
    assert worker.ask("PUT", "/connectors/lines/resume").status == 202
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs again")
    assert worker.ask("PUT", "/connectors/lines/stop").status == 204
    wait_for(lambda: worker.state_of("lines") == ("STOPPED", []), "it is stopped")
    assert worker.ask("GET", "/connectors/lines").body["tasks"] == []


def test_a_failure_is_shown_with_its_trace_until_the_task_is_restarted(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    worker.engine.fail("lines", "OSError: the disk is full")
    wait_for(lambda: worker.state_of("lines") == ("RUNNING", ["FAILED"]), "its task failed")
    task = worker.ask("GET", "/connectors/lines/tasks/0/status").body
    assert task["trace"] == "OSError: the disk is full"
    assert worker.ask("POST", "/connectors/lines/restart").status == 204
    time.sleep(0.2)
    assert worker.state_of("lines") == ("RUNNING", ["FAILED"]), "a restart without tasks restarts none"
    restarted = worker.ask("POST", "/connectors/lines/restart?includeTasks=true&onlyFailed=true")
    assert restarted.status == 202
    assert [one["state"] for one in restarted.body["tasks"]] == ["RESTARTING"]
    assert restarted.body["connector"]["state"] == "RUNNING"
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs again")
    assert "trace" not in worker.ask("GET", "/connectors/lines/tasks/0/status").body


def test_what_no_topic_takes_is_refused_or_shortened(worker: WorkerInAThread) -> None:
    refused = worker.ask("PUT", "/connectors/huge/config", {**SOURCE, "file": "x" * 1_000_000})
    assert (refused.status, "900000 bytes" in refused.body["message"]) == (400, True)
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    worker.engine.fail("lines", "begin" + "x" * 5_000_000 + "end")
    wait_for(lambda: worker.state_of("lines") == ("RUNNING", ["FAILED"]), "its task failed")
    trace = worker.ask("GET", "/connectors/lines/tasks/0/status").body["trace"]
    assert trace.startswith("begin")
    assert trace.endswith("end")
    assert len(trace) < 40_000
    worker.ask("POST", "/connectors/lines/tasks/0/restart")
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs again")
    worker.engine.fail("lines", f"OSError: cannot open {os.fsdecode(bytes([255]))}")
    wait_for(lambda: worker.state_of("lines") == ("RUNNING", ["FAILED"]), "its task failed")
    assert worker.ask("GET", "/connectors/lines/tasks/0/status").body["trace"] == "OSError: cannot open \\udcff"


def test_a_retriable_failure_is_shown_as_restarting_until_it_runs(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    worker.engine.fail("lines", "ConnectionRefusedError: no database", retry_in_s=4.0)
    wait_for(lambda: worker.state_of("lines") == ("RUNNING", ["RESTARTING"]), "it is to start again")
    worker.engine.running["lines"].listener.on_running("lines")
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs again")


def test_a_restarted_task_is_another_run(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    assert worker.ask("POST", "/connectors/lines/tasks/0/restart").status == 204
    wait_for(lambda: len(worker.engine.starts) == 2 and worker.state_of("lines") == RUNNING, "it runs again")
    assert worker.ask("POST", "/connectors/lines/tasks/1/restart").body["message"] == "Unknown task: lines-1"


def test_a_worker_goes_on_with_what_the_one_before_left(node: RunningNode) -> None:
    with WorkerInAThread(node.bootstrap, "continued") as first:
        wait_for(lambda: first.ask("GET", "/health").status == 200, "a worker leads")
        first.ask("PUT", "/connectors/one/config", SOURCE)
        first.ask("PUT", "/connectors/two/config", SOURCE)
        wait_for(lambda: first.state_of("two") == RUNNING, "it runs")
        first.ask("PUT", "/connectors/two/stop")
        wait_for(lambda: first.state_of("two") == ("STOPPED", []), "it is stopped")
    assert first.engine.is_closed
    with WorkerInAThread(node.bootstrap, "continued") as second:
        wait_for(lambda: second.state_of("one") == RUNNING, "it runs")
        assert [spec.name for spec in second.engine.starts] == ["one"]
        assert second.state_of("two") == ("STOPPED", [])


@pytest.mark.slow
def test_a_standby_passes_changes_on_and_takes_over_from_one_that_is_killed(node: RunningNode) -> None:
    first = WorkerInAThread(node.bootstrap, "pair")
    first.start()
    try:
        wait_for(lambda: first.ask("GET", "/health").status == 200, "a worker leads")
        with WorkerInAThread(node.bootstrap, "pair") as second:
            wait_for(lambda: second.ask("GET", "/health").status == 200, "the second knows the leader")
            assert second.ask("PUT", "/connectors/lines/config", SOURCE).status == 201
            wait_for(lambda: second.state_of("lines") == RUNNING, "it runs")
            assert list(first.engine.running) == ["lines"]
            assert not second.engine.starts
            began_s = time.monotonic()
            first.kill()
            wait_for(lambda: second.engine.running, "the second takes over", 20.0)
            took_s = time.monotonic() - began_s
            assert took_s < 10.0, f"it took {took_s:.1f} s"

            def worker_id() -> str:
                return second.ask("GET", "/connectors/lines/status").body["connector"]["worker_id"]

            wait_for(lambda: second.url.endswith(worker_id()), "the second says that it runs it")
            assert second.ask("PUT", "/connectors/lines/pause").status == 202
    finally:
        first.kill()


@pytest.mark.slow
def test_a_leader_that_was_frozen_writes_nothing_any_more_and_stops_its_connectors(node: RunningNode) -> None:
    with WorkerInAThread(node.bootstrap, "frozen") as first:
        wait_for(lambda: first.ask("GET", "/health").status == 200, "a worker leads")
        first.ask("PUT", "/connectors/lines/config", SOURCE)
        wait_for(lambda: first.state_of("lines") == RUNNING, "it runs")
        with WorkerInAThread(node.bootstrap, "frozen") as second:
            wait_for(lambda: second.ask("GET", "/health").status == 200, "the second knows the leader")
            first.freeze(10.0)
            # Waits in the frozen worker, and is the first thing that it would do after.
            first.engine.running["lines"].listener.on_failed("lines", "of the frozen one", retry_in_s=None)
            wait_for(lambda: second.engine.running, "the second takes over", 10.0)
            wait_for(lambda: not first.engine.running, "the first has stopped it", 20.0)
            assert second.ask("PUT", "/connectors/other/config", SOURCE).status == 201
            wait_for(lambda: first.state_of("other") == RUNNING, "the first follows")
            assert list(second.engine.running) == ["lines", "other"]
            assert second.state_of("lines") == RUNNING, "what the frozen one said was refused"
            assert first.ask("DELETE", "/connectors/other").status == 204, "the first passes changes on"
            assert [spec.name for spec in first.engine.starts] == ["lines"]


def test_a_standby_takes_over_at_once_from_one_that_stops(node: RunningNode) -> None:
    first = WorkerInAThread(node.bootstrap, "handed")
    first.start()
    wait_for(lambda: first.ask("GET", "/health").status == 200, "a worker leads")
    first.ask("PUT", "/connectors/lines/config", SOURCE)
    with WorkerInAThread(node.bootstrap, "handed") as second:
        wait_for(lambda: second.ask("GET", "/health").status == 200, "the second knows the leader")
        first.stop()
        wait_for(lambda: second.state_of("lines") == RUNNING and second.engine.running, "the second runs it", 5.0)


def test_a_class_that_is_not_here_fails_by_name_and_is_left_alone(node: RunningNode) -> None:
    from ottla import Producer

    with WorkerInAThread(node.bootstrap, "unknown") as first:
        wait_for(lambda: first.ask("GET", "/health").status == 200, "a worker leads")
    with Producer(bootstrap_servers=node.bootstrap) as producer:
        value = b'{"properties":{"connector.class":"com.example.Nope","name":"nope"}}'
        producer.send("unknown-configs", value, b"connector-nope")
    with WorkerInAThread(node.bootstrap, "unknown") as second:
        wait_for(lambda: second.state_of("nope") == ("FAILED", []), "it is failed")
        status = second.ask("GET", "/connectors/nope/status").body
        assert "com.example.Nope" in status["connector"]["trace"]
        assert status["type"] == "unknown"
        assert second.ask("GET", "/connectors/nope/config").body["connector.class"] == "com.example.Nope"


def test_secrets_of_providers_stay_out_of_topics_states_and_replies(node: RunningNode) -> None:
    properties = {
        "config.providers": "env",
        "config.providers.env.class": "org.apache.kafka.common.config.provider.EnvVarConfigProvider",
    }
    environment = {"DB": "s3cret-word", "BATCH": "no-number"}
    with WorkerInAThread(node.bootstrap, "secret", properties=properties, environment=environment) as worker:
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "a worker leads")
        config = {**SOURCE, "connector.class": SECRET_SOURCE, "database.password": "${env:DB}"}
        made = worker.ask("PUT", "/connectors/lines/config", config)
        assert made.body["config"]["database.password"] == "${env:DB}"
        wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
        assert worker.engine.starts[0].config["database.password"] == "s3cret-word"
        assert worker.ask("GET", "/connectors/lines/tasks").body[0]["config"]["database.password"] == "${env:DB}"
        worker.engine.fail("lines", "psycopg: no login with s3cret-word")
        wait_for(lambda: worker.state_of("lines") == ("RUNNING", ["FAILED"]), "its task failed")
        assert worker.ask("GET", "/connectors/lines/tasks/0/status").body["trace"] == "psycopg: no login with ${env:DB}"
        refused = worker.ask("PUT", "/connectors/other/config", {**SOURCE, "batch.size": "${env:BATCH}"})
        assert refused.status == 400
        assert "${env:BATCH}" in refused.body["message"]
        assert "no-number" not in refused.body["message"]


def test_offsets_of_a_source_are_changed_only_when_it_is_stopped(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    offsets = {"offsets": [{"partition": {"filename": "/in.txt"}, "offset": {"position": 4}}]}
    refused = worker.ask("PATCH", "/connectors/lines/offsets", offsets)
    assert (refused.status, refused.body["message"][:45]) == (400, "Connectors must be in the STOPPED state befor")
    worker.ask("PUT", "/connectors/lines/stop")
    wait_for(lambda: worker.state_of("lines") == ("STOPPED", []), "it is stopped")
    assert worker.ask("PATCH", "/connectors/lines/offsets", offsets).status == 200
    assert worker.ask("GET", "/connectors/lines/offsets").body == offsets
    assert worker.ask("DELETE", "/connectors/lines/offsets").status == 200
    assert worker.ask("GET", "/connectors/lines/offsets").body == {"offsets": []}


@pytest.mark.parametrize(("name", "config"), [("in", SOURCE), ("out", SINK)])
def test_offsets_are_not_changed_while_what_is_to_stop_still_runs(
    worker: WorkerInAThread, name: str, config: dict[str, str]
) -> None:
    """A task that starts is UNASSIGNED, and may move records by then."""
    worker.engine.silent.add(name)
    worker.ask("PUT", f"/connectors/{name}/config", config)
    wait_for(lambda: name in worker.engine.running, "the engine has it")
    assert worker.ask("PUT", f"/connectors/{name}/stop").status == 204
    assert worker.ask("DELETE", f"/connectors/{name}/offsets").status == 400
    offsets = {"offsets": [{"partition": {"filename": "/in.txt"}, "offset": {"position": 4}}]}
    assert worker.ask("PATCH", f"/connectors/{name}/offsets", offsets).status == 400
    worker.engine.silent.clear()
    worker.engine.stop(name)
    wait_for(lambda: worker.state_of(name) == ("STOPPED", []), "it is stopped")
    assert worker.ask("DELETE", f"/connectors/{name}/offsets").status == 200


def test_who_still_writes_for_a_stopped_source_is_fenced_before_its_offsets_are_changed(
    node: RunningNode, worker: WorkerInAThread
) -> None:
    """As Kafka Connect does (KIP-875): a worker that was killed may have left a process behind."""
    worker.ask("POST", "/connectors", {"name": "lines", "config": SOURCE, "initial_state": "stopped"})
    wait_for(lambda: worker.state_of("lines") == ("STOPPED", []), "it is stopped")
    group = worker.settings.values.text("group.id")
    left_behind = {"bootstrap.servers": node.bootstrap, "transactional.id": f"{group}-lines-0"}
    key, offsets = b'["lines",{"filename":"/in.txt"}]', f"{group}-offsets"
    with Producer(left_behind) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send(offsets, b'{"position":9}', key)
        producer.flush()
        altered = {"offsets": [{"partition": {"filename": "/in.txt"}, "offset": {"position": 4}}]}
        assert worker.ask("PATCH", "/connectors/lines/offsets", altered).status == 200
        with pytest.raises(KafkaError):
            producer.commit_transaction()
    assert worker.ask("GET", "/connectors/lines/offsets").body == altered


def test_offsets_of_a_sink_are_those_of_its_group(worker: WorkerInAThread) -> None:
    from ottla import Admin, NewTopic

    with Admin(bootstrap_servers=worker.settings.properties["bootstrap.servers"]) as admin:
        admin.create_topics(NewTopic("sink-lines", 1, 1))
    config = {"connector.class": FILE_SINK, "topics": "sink-lines", "file": "/out"}
    worker.ask("POST", "/connectors", {"name": "out", "config": config, "initial_state": "stopped"})
    wait_for(lambda: worker.state_of("out") == ("STOPPED", []), "it is stopped")
    partition = {"kafka_topic": "sink-lines", "kafka_partition": 0}
    offsets = {"offsets": [{"partition": partition, "offset": {"kafka_offset": 7}}]}
    altered = worker.ask("PATCH", "/connectors/out/offsets", offsets)
    assert altered.body == {"message": "The offsets for this connector have been altered successfully"}
    assert worker.ask("GET", "/connectors/out/offsets").body == offsets
    assert worker.ask("DELETE", "/connectors/out/offsets").status == 200
    assert worker.ask("GET", "/connectors/out/offsets").body == {"offsets": []}


def test_a_standalone_worker_keeps_configurations_in_memory(node: RunningNode) -> None:
    with WorkerInAThread(node.bootstrap, "alone", standalone=True) as worker:
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "it is ready")
        assert worker.ask("PUT", "/connectors/lines/config", SOURCE).status == 201
        wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    with WorkerInAThread(node.bootstrap, "alone", standalone=True) as worker:
        wait_for(lambda: worker.ask("GET", "/health").status == 200, "it is ready")
        assert worker.ask("GET", "/connectors").body == []


def test_metrics_have_the_states_of_tasks(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    page = worker.ask("GET", "/metrics").body.splitlines()
    assert "kafka_connect_worker_connector_count 1" in page
    assert 'kafka_connect_connector_task_status{connector="lines",task="0",status="running"} 1' in page
    assert 'ottla_connect_tasks{status="failed"} 0' in page
    assert 'ottla_connect_requests_total{method="PUT",status="201"} 1' in page


def test_metrics_have_kafkas_names_and_each_says_what_it_is(worker: WorkerInAThread) -> None:
    worker.ask("PUT", "/connectors/lines/config", SOURCE)
    worker.ask("PUT", "/connectors/out/config", SINK)
    wait_for(lambda: worker.state_of("lines") == worker.state_of("out") == RUNNING, "they run")
    own = {"lag_seconds": 0.5, "wal_retained_bytes": 4096.0, "ready": 7.0, "no name": 1.0, "tables": 3.0}
    worker.engine.progresses["lines"] = Progress(
        read=10, written=8, skipped=1, under_way=1, polls=4, poll_ms=20, batches=2, batch_ms=30, lag_s=0.5, own=own
    )
    worker.engine.progresses["out"] = Progress(read=6, written=5, batches=1, partitions=3, lag_records=4, lag_s=2.0)
    page = worker.ask("GET", "/metrics").body.splitlines()
    source, sink = '{connector="lines",task="0"}', '{connector="out",task="0"}'
    for line in (
        f"kafka_connect_source_task_metrics_source_record_poll_total{source} 10",
        f"kafka_connect_source_task_metrics_source_record_write_total{source} 8",
        f"kafka_connect_source_task_metrics_source_record_poll_rate{source} 2.5",
        f"kafka_connect_source_task_metrics_source_record_active_count{source} 1",
        f"kafka_connect_source_task_metrics_poll_batch_avg_time_ms{source} 5",
        f"kafka_connect_task_error_metrics_total_records_skipped{source} 1",
        f"kafka_connect_sink_task_metrics_sink_record_send_total{sink} 5",
        f"kafka_connect_sink_task_metrics_sink_record_lag_max{sink} 4",
        f"kafka_connect_sink_task_metrics_partition_count{sink} 3",
        f"kafka_connect_connector_task_metrics_running_ratio{source} 1",
        'kafka_connect_connect_worker_metrics_connector_running_task_count{connector="out"} 1',
        f"ottla_connect_lag_seconds{source} 0.5",
        f"ottla_connect_lag_seconds{sink} 2",
        f"ottla_connect_rows_per_second{source} 2",
        f"ottla_connect_wal_retained_bytes{source} 4096",
        f"ottla_connect_tables{source} 3",
        "ottla_connect_ready 1",
    ):
        assert line in page, line
    named = [line.split()[2] for line in page if line.startswith("# TYPE ")]
    assert len(named) == len(set(named))
    assert named == [line.split()[2] for line in page if line.startswith("# HELP ")]


def test_a_level_with_the_scope_of_the_cluster_reaches_all_workers(worker: WorkerInAThread) -> None:
    logger = "levels.of.the.cluster"
    assert worker.ask("GET", f"/admin/loggers/{logger}").status == 404
    assert (
        worker.ask("PUT", f"/admin/loggers/{logger}", {"level": "loud"}).body["message"] == "invalid log level 'loud'."
    )
    assert worker.ask("PUT", f"/admin/loggers/{logger}", {"level": "info"}).body == [logger]
    assert worker.ask("PUT", f"/admin/loggers/{logger}?scope=cluster", {"level": "DEBUG"}).status == 204
    wait_for(lambda: worker.ask("GET", f"/admin/loggers/{logger}").body["level"] == "DEBUG", "it is set")


def test_odd_records_in_the_topics_cost_nothing_but_themselves(node: RunningNode, worker: WorkerInAThread) -> None:
    group = worker.settings.values.text("group.id")
    odd = [
        ("configs", b"logger-cluster-odd.logger", b'{"level":"LOUD"}'),
        ("configs", b"commit-lines", b'{"tasks":1000000000000000}'),
        ("configs", b"connector-half", b'{"properties":{"connector.class":"FileStreamSource","topic":"\\ud800"}}'),
        ("status", b"status-connector-lines", b'{"state":"RUNNING","worker_id":"a:1","generation":1e999}'),
        ("offsets", b'["lines",{}]', b'{"at":"\\ud800"}'),
        ("configs", None, b"{}"),
        ("configs", b"connector-half", b"\xff"),
        ("configs", b"of-a-later-version", None),
    ]
    with Producer({"bootstrap.servers": node.bootstrap}) as producer:
        for topic, key, value in odd:
            producer.send(f"{group}-{topic}", value, key)
        producer.flush()
    assert worker.ask("PUT", "/connectors/lines/config", SOURCE).status == 201
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
    assert worker.ask("GET", "/connectors?expand=info&expand=status").status == 200
    assert worker.ask("GET", "/connectors/lines/offsets").body == {"offsets": []}


def test_a_configuration_as_large_as_a_topic_takes_does_not_cost_the_lead(
    node: RunningNode, worker: WorkerInAThread
) -> None:
    """Another worker may have written it; that it cannot be started must fit into a record too."""
    value = json.dumps({"properties": {"file": "x" * 1_048_400}}).encode()
    with Producer({"bootstrap.servers": node.bootstrap, "max.request.size": "2000000"}) as producer:
        producer.send(f"{worker.settings.values.text('group.id')}-configs", value, b"connector-huge")
        producer.flush()
    wait_for(lambda: worker.state_of("huge") == ("FAILED", []), "it cannot be started")
    assert worker.ask("PUT", "/connectors/lines/config", SOURCE).status == 201
    wait_for(lambda: worker.state_of("lines") == RUNNING, "it runs")
