"""kafka-get-offsets, kafka-delete-records, kafka-log-dirs and kafka-leader-election print what Kafka's print."""

import json
from typing import Any

import pytest

from tests.interop.tools.beside import NAMES, Beside

pytestmark = pytest.mark.interop


@pytest.fixture(scope="module")
def scene(beside: Beside) -> Beside:
    """A topic of three partitions with five records in the first, for each of the two."""
    beside.both("kafka-topics {at} --create --topic part-{me} --partitions 3")
    for me in ("zebra", "zorro"):
        settings = f"--bootstrap-server {beside.bootstrap} --topic part-{me} --reader-property parse.key=true"
        produced = beside.kafkas.alone(
            "kafka-console-producer", *settings.split(), input="k\ta\nk\tb\nk\tc\nk\td\nk\te\n"
        )
        assert produced.exit_code == 0
    both = ("--bootstrap-server", beside.bootstrap, "--topic", "part-both")
    assert beside.kafkas.alone("kafka-console-producer", *both, input="a\n").exit_code == 0
    return beside


@pytest.mark.parametrize(
    "words",
    [
        "--topic part-{me}",
        "--topic part-{me} --time earliest",
        "--topic part-{me} --time latest",
        "--topic part-both --time -3",
        "--topic part-both --time 0",
        "--topic part-both --time 99999999999999",
        "--topic part-{me} --time -4",
        "--topic part-{me} --time latest-tiered",
        "--topic part-{me} --time earliest-pending-upload",
        "--topic part-{me} --partitions 0,2",
        "--topic-partitions part-{me}:1-3,nope:0",
        "--topic-partitions part-{me}:0",
        "--topic-partitions part-{me}:-2",
        "--topic-partitions part-{me}:2-",
        "--topic-partitions part-{me}",
        "--exclude-internal-topics --topic .*{me}",
        "--topic nope",
        "--topic part-{me} --time bad",
        "--topic part-{me} --partitions x",
        "--topic-partitions part-{me}:1 --topic x",
        "--nonsense",
    ],
)
def test_offsets(scene: Beside, words: str) -> None:
    scene.same(f"kafka-get-offsets {{at}} {words}")


def test_offsets_need_a_broker(beside: Beside) -> None:
    beside.same("kafka-get-offsets --topic x")


def test_log_directories(scene: Beside) -> None:
    same = scene.same
    kafkas, ours = (
        json.loads(scene.printed(me, "kafka-log-dirs {at} --describe --topic-list part-{me}").out.splitlines()[-1])
        for me in NAMES
    )
    (broker,) = ours["brokers"]
    assert {one["partition"] for one in broker["logDirs"][0]["partitions"]} == {f"part-zorro-{n}" for n in range(3)}
    assert _without_names(ours) == _without_names(kafkas)
    for words in (
        "{at} --describe --topic-list nope",
        "{at} --describe --topic-list nope --broker-list 1,7",
        "{at} --describe --broker-list x",
        "{at}",
        "--describe",
    ):
        same(f"kafka-log-dirs {words}")


def test_elections(scene: Beside) -> None:
    same = scene.same
    scene.file("elect.json", '{"partitions": [{"topic": "part-{me}", "partition": 1}]}')
    same("kafka-leader-election {at} --election-type preferred --topic part-{me} --partition 0")
    same("kafka-leader-election {at} --election-type PREFERRED --all-topic-partitions")
    same("kafka-leader-election {at} --election-type unclean --path-to-json-file {files}/elect.json")
    for words in (
        "{at} --election-type preferred --topic nope --partition 0",
        "{at} --election-type bad --topic nope --partition 0",
        "{at} --election-type preferred --topic nope",
        "{at} --election-type preferred --partition 0",
        "{at} --election-type preferred",
        "{at} --topic x --partition 0",
        "--election-type preferred --topic x --partition 0",
        "{at} --election-type preferred --topic x --partition 0 --all-topic-partitions",
        "{at} --election-type preferred --path-to-json-file /no/such",
    ):
        same(f"kafka-leader-election {words}")


def test_records_are_deleted(scene: Beside) -> None:
    same = scene.same
    entry = '{"topic": "part-{me}", "partition": 0, "offset": 0}'
    scene.file("delete.json", '{"partitions": [' + entry.replace(": 0}", ": -1}") + '], "version": 1}')
    scene.file("twice.json", '{"partitions": [' + f"{entry}, {entry}" + '], "version": 1}')
    scene.file("beyond.json", '{"partitions": [' + entry.replace(": 0}", ": 9}") + '], "version": 1}')
    same("kafka-delete-records {at} --offset-json-file {files}/beyond.json")
    assert "low_watermark: " in same("kafka-delete-records {at} --offset-json-file {files}/delete.json").out
    same("kafka-get-offsets {at} --topic part-{me} --time earliest")
    for words in ("--offset-json-file {files}/twice.json", "--offset-json-file /no/such", ""):
        same(f"kafka-delete-records {{at}} {words}")


def _without_names(described: dict[str, Any]) -> Any:
    """Kafka's tool has the partitions in the order of a hash table."""
    for broker in described["brokers"]:
        for directory in broker["logDirs"]:
            partitions = directory["partitions"]
            directory["partitions"] = sorted(
                json.dumps(one).replace("zebra", "{me}").replace("zorro", "{me}") for one in partitions
            )
    return described
