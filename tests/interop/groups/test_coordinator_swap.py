"""Groups with members and open transactions survive when Apache Kafka and we change places on a directory."""

from pathlib import Path

import pytest

from ottla.testing.node import RunningNode
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.group_scenes import Talk
from tests.interop.groups.left_behind import FINDS, LEAVES, LeftBehind

pytestmark = pytest.mark.interop


@pytest.mark.parametrize("ending", ["stop", "kill"])
def test_groups_and_open_transactions_go_from_kafka_to_us_and_back(ending: str, tmp_path: Path) -> None:
    with ApacheKafka(tmp_path, config=LEAVES) as kafka:
        kafkas = LeftBehind(kafka.bootstrap, "kafka")
        getattr(kafka, ending)()

    with RunningNode(tmp_path, config=FINDS) as ours:
        kafkas.found_by(ours.bootstrap)
        getattr(ours, ending)()

    with RunningNode(tmp_path, config=LEAVES) as ours:
        mine = LeftBehind(ours.bootstrap, "ours")
        getattr(ours, ending)()

    if ending == "kill":
        let_kafka_recover(tmp_path, mine.topic)
    with ApacheKafka(tmp_path, config=FINDS) as kafka:
        mine.found_by(kafka.bootstrap)
        kafkas.is_read_at(kafka.bootstrap)
        getattr(kafka, ending)()

    with RunningNode(tmp_path, config=LEAVES) as ours:
        for left in (kafkas, mine):
            left.is_read_at(ours.bootstrap)


def let_kafka_recover(directory: Path, topic: str) -> None:
    """Started after a crash, Apache Kafka believes for a moment that it still leads, and then that nobody does.

    A transaction that it finds timed out in that moment stays open for ever in its partitions: it takes those that have
    no leader for deleted, and writes no marker there.
    """
    with ApacheKafka(directory, config=LEAVES) as kafka:
        talk = Talk(kafka.bootstrap)
        talk.await_leaders(topic)
        talk.close()
        kafka.stop()
