"""Records that a sink's target refuses: the connector fails, or they become dead letters before the put has ended."""

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from ottla.connect.connectors.web import client
from ottla.connect.engine import sink_writer
from ottla.connect.engine.sink_writer import write_rows
from ottla.connect.engine.tolerance import RecordRefused
from ottla.testing import Broker
from tests.spark.connect.test_sink_kills import SinkScene
from tests.spark.sink_scene import records
from tests.unit.connect.web.servers import Answer, Asked, WebServer


def refuses_odd(asked: Asked) -> Answer:
    return Answer(422, b"odd") if json.loads(asked.body)["n"] % 2 else Answer(201)


def scene_of(broker: Broker, topic: str, directory: Path, url: str, **config: str) -> SinkScene:
    scene = SinkScene(broker, topic, directory)
    scene.worker |= {"value.converter": "JsonConverter", "value.converter.schemas.enable": "false"}
    scene.config = {
        "name": f"http-{topic}",
        "connector.class": "ottla.connect.HttpSinkConnector",
        "http.url": url,
        "topics": topic,
        # The id of a request and a dead letter have the record's own topic all the same.
        "transforms": "route",
        "transforms.route.type": "RegexRouter",
        "transforms.route.regex": ".*",
        "transforms.route.replacement": "elsewhere",
        **config,
    }
    return scene


def values(*numbers: int) -> Sequence[bytes]:
    return [f'{{"n": {number}}}'.encode() for number in numbers]


def test_a_refused_record_is_a_dead_letter_and_the_others_are_there(
    ottla_broker: Broker, ottla_topic: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "sleep", lambda _: None)
    letters = f"{ottla_topic}-letters"
    config = {
        "errors.tolerance": "all",
        "errors.deadletterqueue.topic.name": letters,
        "errors.deadletterqueue.topic.replication.factor": "1",
        "errors.deadletterqueue.context.headers.enable": "true",
    }
    with WebServer(refuses_odd) as server:
        scene = scene_of(ottla_broker, ottla_topic, tmp_path, server.url, **config)
        write_rows(scene.new_run(), iter([scene.rows(10, 13, values(0, 1, 2, 3))]))
        sink_writer.kept.forget()[0].close()
        assert [asked.headers["idempotency-key"] for asked in server.asked] == [
            f"{ottla_topic}-0-{offset}" for offset in (10, 11, 12, 13)
        ]
    found = records(ottla_broker, letters)
    assert [letter.value for letter in found] == list(values(1, 3))
    headers = dict(found[1].headers)
    assert headers["__connect.errors.topic"] == ottla_topic.encode()
    assert headers["__connect.errors.offset"] == b"13"
    assert headers["__connect.errors.stage"] == b"TASK_PUT"
    assert b"answered 422: odd" in headers["__connect.errors.exception.message"]


def test_without_tolerance_a_refused_record_fails_the_connector_by_its_offset(
    ottla_broker: Broker, ottla_topic: str, tmp_path: Path
) -> None:
    with WebServer(refuses_odd) as server:
        scene = scene_of(ottla_broker, ottla_topic, tmp_path, server.url)
        with pytest.raises(RecordRefused, match=f"the record at offset 11 of {ottla_topic}-0: .*422: odd"):
            write_rows(scene.new_run(), iter([scene.rows(10, 13, values(0, 1, 2, 3))]))
    assert ottla_topic not in sink_writer.kept
