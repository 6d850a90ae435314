"""What `admin_scenes` asked Apache Kafka 4.3.1: our controller gives the same answers, in its words."""

import json
from typing import Any

import pytest

from ottla.base.ids import Uuid
from ottla.machines.metadata.image.delta import delta_between
from ottla.machines.metadata.image.metadata_image import MetadataImage
from tests.interop.apache_kafka import ApacheKafka
from tests.unit.machines.metadata.admin_scenes import scenes
from tests.unit.machines.metadata.controllers import one_node
from tests.unit.machines.metadata.plain_messages import plain
from tests.unit.machines.metadata.record_kafka_answers import ANSWERS, ask_kafka

KAFKAS_ANSWERS = json.loads(ANSWERS.read_text())


def our_answers() -> dict[str, Any]:
    """One run through all the scenes: each builds on those before it."""
    node, ids, answers = one_node(), dict[str, Uuid](), dict[str, Any]()
    for name, request in scenes(ids):
        reply = node.ask(request)
        for result in getattr(reply, "topics", ()):
            if getattr(result, "error_code", 1) == 0:
                ids[result.name] = result.topic_id
        answers[name] = plain(reply)
    again = MetadataImage()
    for record in node.image.snapshot_records():
        again.replay(record.message)
    assert not delta_between(node.image, again)
    return answers


OUR_ANSWERS = our_answers()


def in_any_order(value: Any) -> Any:
    """Kafka keeps results in hash maps, and shuffles those of deletions."""
    if isinstance(value, dict):
        return {key: in_any_order(item) for key, item in value.items()}
    if isinstance(value, list):
        return sorted((in_any_order(item) for item in value), key=repr)
    return value


def test_every_scene_was_put_to_kafka() -> None:
    assert list(KAFKAS_ANSWERS) == list(OUR_ANSWERS)


@pytest.mark.parametrize("scene", KAFKAS_ANSWERS)
def test_the_answer_is_kafkas(scene: str) -> None:
    assert in_any_order(OUR_ANSWERS[scene]) == in_any_order(KAFKAS_ANSWERS[scene])


@pytest.mark.interop
def test_kafka_still_answers_so() -> None:
    with ApacheKafka() as kafka:
        assert in_any_order(ask_kafka(kafka.bootstrap)) == in_any_order(KAFKAS_ANSWERS)
