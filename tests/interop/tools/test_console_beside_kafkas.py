"""kafka-console-producer and kafka-console-consumer take and print what Kafka's take and print."""

from __future__ import annotations

import pytest

from tests.interop.tools.beside import NAMES, Beside

pytestmark = pytest.mark.interop

PARTS = ("key", "partition", "offset", "headers", "epoch", "timestamp")
SHOW_ALL = " ".join(f"--formatter-property print.{part}=true" for part in PARTS)


@pytest.fixture(scope="module")
def scene(beside: Beside) -> Beside:
    """What each producer has sent is in its own topic."""
    beside.both("kafka-topics {at} --create --topic lines-{me}")
    for words, text in (
        ("", "a\nb\nc\n"),
        ("parse.key=true key.separator=: parse.headers=true", "h1:v1,h2:v2\tk1:v1\nh:\tk2:v2\n"),
        ("parse.key=true ignore.error=true", "no key\n"),
        ("parse.key=true null.marker=NUL", "NUL\tb\nx\tNUL\n"),
        ("parse.headers=true headers.delimiter=| headers.separator=; headers.key.separator==", "a=1;b=2|v\n"),
    ):
        properties = [word for pair in words.split() for word in ("--reader-property", pair)]
        command = " ".join(["kafka-console-producer {at} --topic lines-{me}", *(f"'{word}'" for word in properties)])
        for me in NAMES:
            assert beside.printed(me, command, input=text, alone=True) == (0, "", "")
    return beside


def test_what_was_sent_is_the_same(scene: Beside) -> None:
    read = f"--topic lines-{{me}} --from-beginning --max-messages 9 {SHOW_ALL}"
    shown = scene.same(f"kafka-console-consumer {{at}} {read}")
    _, *fields = shown.out.splitlines()[3].split("\t")
    assert fields == ["Partition:0", "Offset:3", "Epoch:NOT_PRESENT", "h1:v1,h2:v2", "k1", "v1"]


@pytest.mark.parametrize(
    "words",
    [
        "--topic lines-{me} --from-beginning --max-messages 2",
        "--topic lines-{me} --from-beginning --timeout-ms 3000",
        "--topic lines-{me} --from-beginning --max-messages 6 --formatter-property print.key=true "
        "--formatter-property null.literal=NIL --formatter-property key.separator=: "
        "--formatter-property line.separator=;",
        "--topic lines-{me} --partition 0 --offset 4 --max-messages 1",
        "--topic lines-{me} --partition 0 --offset earliest --max-messages 1",
        "--topic lines-{me} --partition 0 --from-beginning --max-messages 1",
        "--topic lines-{me} --partition 0 --offset earliest --max-messages 1 "
        "--formatter org.apache.kafka.tools.consumer.NoOpMessageFormatter",
        "--include lines-{me} --from-beginning --max-messages 1",
        "--topic lines-{me} --from-beginning --max-messages 2 --group in-{me}",
        "--topic lines-{me} --from-beginning --max-messages 3 --group in-{me}",
        "--topic lines-{me} --from-beginning --max-messages 1 --property print.key=true "
        "--consumer-property client.id=x",
        "--topic lines-{me} --from-beginning --max-messages 1 --isolation-level read_committed",
        "--topic lines-{me} --from-beginning --max-messages 1 --command-property group.protocol=consumer",
        "--topic lines-{me} --partition 0 --offset bad",
        "--topic lines-{me} --partition 0 --offset -4",
        "--topic lines-{me} --offset 4",
        "--topic lines-{me} --partition 0 --group x",
        "--include x --partition 0",
        "--topic lines-{me} --partition 0 --from-beginning --offset 4",
        "",
        "--topic a --include b",
        "--topic a --from-beginning --group g1 --command-property group.id=g2",
        "--topic a --from-beginning --command-property auto.offset.reset=latest",
        "--topic a --property print.key=true --formatter-property print.offset=true",
        "--topic a --formatter nonsense",
        "--nonsense",
    ],
)
def test_consumer(scene: Beside, words: str) -> None:
    scene.same(f"kafka-console-consumer {{at}} {words}")


@pytest.mark.parametrize(
    ("topic", "formatter"),
    [
        ("__consumer_offsets", "OffsetsMessageFormatter"),
        ("__consumer_offsets", "GroupMetadataMessageFormatter"),
        ("__transaction_state", "TransactionLogMessageFormatter"),
    ],
)
def test_records_of_the_coordinators(scene: Beside, topic: str, formatter: str) -> None:
    """Partition by partition, because a group that reads them writes into them. Nothing stands between records."""
    scene.both(
        "kafka-console-consumer {at} --topic lines-{me} --from-beginning --max-messages 1 --group committed-{me}"
    )
    scene.both(
        "kafka-producer-perf-test {at} --topic lines-{me} --num-records 1 --record-size 1 --throughput -1 "
        "--transactional-id console-{me}"
    )
    read = f"--from-beginning --timeout-ms 3000 --formatter org.apache.kafka.tools.consumer.{formatter}"
    shown = ""
    for partition in range(4):
        command = f"kafka-console-consumer {{at}} --topic {topic} --partition {partition} {read}"
        kafkas, ours = (scene.printed(me, command) for me in NAMES)
        assert ours == kafkas
        shown += ours.out
    assert '"value":{"version":' in shown


def test_consumer_needs_a_broker(beside: Beside) -> None:
    beside.same("kafka-console-consumer --topic x")


def test_a_record_that_cannot_be_printed_ends_the_consumer_or_is_passed_over(scene: Beside) -> None:
    long = "--value-deserializer org.apache.kafka.common.serialization.LongDeserializer --max-messages 2"
    read = f"kafka-console-consumer {{at}} --topic lines-{{me}} --from-beginning {long}"
    assert scene.same(f"{read} --skip-message-on-error").exit_code == 0
    kafkas, ours = (scene.printed(me, read) for me in NAMES)
    assert ours.exit_code == kafkas.exit_code == 1
    assert ours.out == kafkas.out == ""


@pytest.mark.parametrize(
    "words",
    [
        "--topic lines-{me} --reader-property parse.key=true",
        "--topic lines-{me} --reader-property headers.separator=:",
        "--topic lines-{me} --line-reader nonsense",
        "--topic lines-{me} --property parse.key=false --producer-property acks=1 --sync",
        "--topic lines-{me} --property parse.key=true --reader-property a=b",
        "",
        "--nonsense",
    ],
)
def test_producer(scene: Beside, words: str) -> None:
    scene.same(f"kafka-console-producer {{at}} {words}", input="nokey\n", alone=True)


def test_producer_needs_a_broker(beside: Beside) -> None:
    beside.same("kafka-console-producer --topic x", alone=True)
