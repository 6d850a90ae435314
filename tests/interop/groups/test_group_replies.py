"""The same members and admins of classic groups, at Apache Kafka's coordinator and at ours.

Every reply is the same, and so is every batch that is left in `__consumer_offsets`, byte for byte but for times, the
ids that are made up, and the order of what Kafka has in hash maps.
"""

import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.records.batch import complete_batches
from ottla.records.reader import read_records
from ottla.testing.node import RunningNode
from ottla.wire.record_values import CoordinatorTopic, decode_key, decode_value
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.group_scenes import SCENES, StandIns, Talk

pytestmark = pytest.mark.interop

CONFIG = {
    "offsets.topic.num.partitions": 1,
    "group.initial.rebalance.delay.ms": 0,
    "group.consumer.assignment.interval.ms": 0,
    "log.cleaner.enable": "false",
}
TIMES = re.compile(r"timestamp|metadata_hash")  # A topic's id is part of the hash.


@pytest.fixture(scope="module")
def talks() -> Iterator[dict[str, tuple[Talk, Path]]]:
    with ApacheKafka(config=CONFIG) as kafka, RunningNode(config=CONFIG) as ours:
        found = {
            "Kafka": (Talk(kafka.bootstrap), kafka.data),
            "we": (Talk(ours.bootstrap), ours.data),
        }
        for talk, _ in found.values():
            talk.create_topics(orders=2, payments=1)
            talk.find_coordinator("a group")
        yield found
        for talk, _ in found.values():
            talk.close()


@pytest.mark.parametrize("scene", SCENES)
def test_our_coordinator_answers_as_kafkas(talks: dict[str, tuple[Talk, Path]], scene: str) -> None:
    notes = []
    for talk, _ in talks.values():
        talk.notes.clear()
        SCENES[scene](talk)
        notes.append(list(talk.notes))
    theirs, mine = notes
    assert len(mine) == len(theirs)
    differences = [f"Kafka {kafkas}\n   we {ours}" for kafkas, ours in zip(*notes, strict=True) if kafkas != ours]
    assert not differences, "\n".join(differences)


def test_what_is_left_in_the_log_is_the_same(talks: dict[str, tuple[Talk, Path]]) -> None:
    """After all scenes, in the same order."""
    theirs, mine = (list(batches(data, talk.stand_ins)) for talk, data in talks.values())
    pairs = zip(theirs, mine, strict=False)
    differences = [f"Kafka {kafkas}\n   we {ours}" for kafkas, ours in pairs if kafkas != ours]
    assert not differences, "\n".join(differences)
    assert len(mine) == len(theirs)


def batches(data: Path, stand_ins: StandIns) -> Iterator[dict[str, Any]]:
    (segment,) = (data / "__consumer_offsets-0").glob("*.log")
    content = segment.read_bytes()
    for position, header in complete_batches(content):
        records = [shown(record, stand_ins) for record in read_records(content, position, header)]
        yield {
            "size": header.size,
            "attributes": header.attributes,
            "producer": (header.producer_id, header.producer_epoch, header.base_sequence),
            "records": sorted(records, key=repr),
        }


def shown(record: Any, stand_ins: StandIns) -> Any:
    key = decode_key(CoordinatorTopic.CONSUMER_OFFSETS, record.key)
    if record.value is None:
        return stand_ins.of(key), None
    (version,) = struct.unpack_from(">h", record.value)
    value = stand_ins.of(decode_value(key, record.value))
    return stand_ins.of(key), version, {name: part for name, part in value.items() if not TIMES.search(name)}
