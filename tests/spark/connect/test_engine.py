"""Connectors in Spark: what a worker sees of them, from start to stop, and after deaths."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import ottla
from ottla.connect.engine import SparkEngine
from ottla.connect.engine.session import activate
from ottla.connect.engine_port import ConnectorSpec
from ottla.testing import Broker
from tests.spark.connect.scene import Listener, SourceScene, make_topic
from tests.spark.sink_scene import records

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def engine(spark: "SparkSession") -> Iterator[SparkEngine]:
    made = SparkEngine({})
    yield made
    made.close()
    activate(spark)
    assert spark.conf.get("spark.sql.streaming.numRecentProgressUpdates") == "100", "connectors have their own settings"


@pytest.fixture
def scene(ottla_broker: Broker, ottla_topic: str, tmp_path: Path) -> SourceScene:
    return SourceScene(ottla_broker, ottla_topic, tmp_path)


def spec(scene: SourceScene, name: str | None = None, **config: str) -> ConnectorSpec:
    name = name or scene.name
    return ConnectorSpec(name, {**scene.config, "name": name, **config}, scene.worker, 1)


def until(done: Any, timeout_s: float = 180) -> None:
    deadline_s = time.monotonic() + timeout_s
    while not done():
        assert time.monotonic() < deadline_s, "it does not happen"
        time.sleep(0.05)


def test_lines_of_a_file_reach_a_topic_and_another_file(
    engine: SparkEngine, scene: SourceScene, tmp_path: Path
) -> None:
    source, sink = Listener(), Listener()
    scene.append(*(f"line {number}" for number in range(1000)))
    engine.start(spec(scene), source)
    source.wait_for("running")
    until(lambda: len(scene.lines()) == 1000)
    out = tmp_path / "out.txt"
    engine.start(
        spec(
            scene,
            f"sink-{scene.topic}",
            **{"connector.class": "FileStreamSink", "file": str(out), "topics": scene.topic},
        ),
        sink,
    )
    sink.wait_for("running")
    scene.append("more")
    until(lambda: out.exists() and len(out.read_text().splitlines()) == 1001)
    until(lambda: source.topics == sink.topics == [scene.topic])
    engine.stop(scene.name)
    source.wait_for("stopped")
    scene.append("while it is stopped")
    again = Listener()
    engine.start(spec(scene), again)
    until(lambda: len(out.read_text().splitlines()) == 1002)
    assert out.read_text().splitlines() == scene.lines()
    assert scene.lines() == [*(f"line {number}" for number in range(1000)), "more", "while it is stopped"]
    group = f"connect-sink-{scene.topic}"
    with ottla.Admin(bootstrap_servers=scene.broker.bootstrap) as admin:

        def lag() -> int:
            committed = admin.list_consumer_group_offsets([group])[group]
            end = admin.list_offsets({ottla.TopicPartition(scene.topic, 0): -1})
            found = committed.get(ottla.TopicPartition(scene.topic, 0))
            return -1 if found is None else end[ottla.TopicPartition(scene.topic, 0)].offset - found.offset

        until(lambda: lag() == 0)
    for name in (scene.name, f"sink-{scene.topic}"):
        engine.stop(name)
    again.wait_for("stopped")
    sink.wait_for("stopped")
    assert "failed" not in source.events + sink.events + again.events


def test_a_wrong_configuration_fails_by_name_and_is_not_tried_again(engine: SparkEngine, scene: SourceScene) -> None:
    refused = {
        "file": ({"file": "/etc/passwd"}, "file.allowed.paths"),
        "class": ({"connector.class": "NoSuchSource"}, "Failed to find any class"),
        "transform": ({"transforms": "a", "transforms.a.type": "NoSuch"}, "Class NoSuch could not be found"),
    }
    for name, (config, said) in refused.items():
        listener = Listener()
        engine.start(spec(scene, f"{scene.name}-{name}", **config), listener)
        until(lambda listener=listener: bool(listener.events))
        assert listener.events == ["failed"], listener.traces
        assert said in listener.traces[0]
        engine.stop(f"{scene.name}-{name}")
        listener.wait_for("stopped")


@pytest.mark.parametrize("way", ["direct", "through Spark"])
def test_a_planner_that_is_killed_is_started_again_and_nothing_is_lost(
    engine: SparkEngine, scene: SourceScene, way: str
) -> None:
    listener = Listener()
    scene.config["ottla.connect.direct"] = str(way == "direct").lower()
    scene.append("one")
    engine.start(spec(scene), listener)
    until(lambda: scene.lines() == ["one"])
    for pid in _planners():
        os.kill(pid, signal.SIGKILL)
    scene.append("two")
    listener.wait_for("retried")
    listener.wait_for("running", 2)
    until(lambda: scene.lines() == ["one", "two"])
    engine.stop(scene.name)
    listener.wait_for("stopped")


def test_how_far_a_source_is_shows_in_its_query_and_to_the_worker(engine: SparkEngine, scene: SourceScene) -> None:
    listener = Listener()
    scene.append("one", "two", "three")
    assert engine.progress(scene.name) is None
    engine.start(spec(scene), listener)
    until(lambda: (found := engine.progress(scene.name)) is not None and found.progress.is_at_end)
    measured = engine.progress(scene.name)
    assert measured is not None
    progress = measured.progress
    assert (progress.read, progress.written, progress.under_way, progress.batches) == (3, 3, 0, 1)
    assert progress.lag_s is not None
    assert progress.longest_batch_ms > 0
    (query,) = [one for one in engine.session.get().streams.active if (one.name or "").startswith(f"{scene.name} ")]

    def shown() -> Any:
        return query.lastProgress and json.loads(query.lastProgress["sources"][0]["latestOffset"] or "null")

    until(lambda: shown() == {"batches": 1, "records": 3})
    engine.stop(scene.name)
    listener.wait_for("stopped")
    assert engine.progress(scene.name) is None


def _planners() -> list[int]:
    """The planner processes below this one."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            try:
                command = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if b"python_streaming_source_runner" in command and _is_below(int(entry.name)):
                found.append(int(entry.name))
    assert found, "no planner runs"
    return found


def _is_below(pid: int) -> bool:
    while pid > 1:
        if pid == os.getpid():
            return True
        pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    return False


def test_records_that_are_refused_go_to_the_dead_letters_and_the_others_go_on(
    engine: SparkEngine, scene: SourceScene, tmp_path: Path
) -> None:
    letters = f"{scene.topic}-letters"
    make_topic(scene.broker, letters)
    with ottla.Producer(bootstrap_servers=scene.broker.bootstrap) as producer:
        for value in (b'{"a": 1}', b"no json", b'{"a": 2}'):
            producer.send(scene.topic, value, key=b"k", headers=[("h", b"v")])
    out, listener = tmp_path / "out.txt", Listener()
    config = {
        "connector.class": "FileStreamSink",
        "file": str(out),
        "topics": scene.topic,
        "value.converter": "org.apache.kafka.connect.json.JsonConverter",
        "value.converter.schemas.enable": "false",
        "errors.tolerance": "all",
        "errors.log.enable": "true",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    engine.start(spec(scene, f"sink-{scene.topic}", **config), listener)
    until(lambda: "failed" in listener.events or (out.exists() and len(out.read_text().splitlines()) == 2))
    assert out.read_text().splitlines() == ["{a=1}", "{a=2}"]
    (letter,) = records(scene.broker, letters)
    assert (letter.key, letter.value) == (b"k", b"no json")
    headers = dict(letter.headers)
    assert headers["h"] == b"v"
    assert headers["__connect.errors.topic"] == scene.topic.encode()
    assert headers["__connect.errors.offset"] == b"1"
    assert headers["__connect.errors.stage"] == b"VALUE_CONVERTER"
    assert headers["__connect.errors.connector.name"] == f"sink-{scene.topic}".encode()
    engine.stop(f"sink-{scene.topic}")
    listener.wait_for("stopped")


def test_a_sources_refused_records_go_to_the_dead_letters_too(engine: SparkEngine, scene: SourceScene) -> None:
    letters = f"{scene.topic}-letters"
    make_topic(scene.broker, letters)
    scene.append("1", "two", "3")
    listener = Listener()
    config = {
        "value.converter": "org.apache.kafka.connect.converters.IntegerConverter",
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
    }
    engine.start(spec(scene, **config), listener)  # every line is a string, which no IntegerConverter takes
    until(lambda: len(records(scene.broker, letters)) == 3)
    assert [json.loads(letter.value) for letter in records(scene.broker, letters)] == ["1", "two", "3"]
    assert records(scene.broker, scene.topic) == []
    until(lambda: scene.offsets() == {"position": 8})
    engine.stop(scene.name)
    listener.wait_for("stopped")
