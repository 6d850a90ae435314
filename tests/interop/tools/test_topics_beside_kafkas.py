"""kafka-topics prints what Apache Kafka's prints."""

import pytest

from tests.interop.tools.beside import Beside

pytestmark = pytest.mark.interop


def test_topics_are_created_described_altered_and_deleted(beside: Beside) -> None:
    same = beside.same
    made = same(
        "kafka-topics {at} --create --topic t-{me} --partitions 2 --config retention.ms=1000 --config segment.ms=9"
    )
    assert made.out == "Created topic t-{me}."
    same("kafka-topics {at} --create --topic t-{me}")
    same("kafka-topics {at} --create --topic t-{me} --if-not-exists")
    same("kafka-topics {at} --create --topic t.under_score-{me}")
    same("kafka-topics {at} --create --topic manual-{me} --replica-assignment 1,1,1")
    same("kafka-topics {at} --list", ordered=False)
    same("kafka-topics {at} --list --topic t-.*{me}")
    same("kafka-topics {at} --list --topic no-{me}")
    described = same("kafka-topics {at} --describe --topic t-{me}")
    assert "PartitionCount: 2\tReplicationFactor: 1\tConfigs: min.insync.replicas=1,retention.ms=1000" in described.out
    same("kafka-topics {at} --describe --exclude-internal", ordered=False)
    same("kafka-topics {at} --describe --topic t-{me},manual-{me}", ordered=False)
    same("kafka-topics {at} --describe --topic t-{me} --topics-with-overrides")
    same("kafka-topics {at} --describe --topic .*-{me} --under-replicated-partitions")
    same("kafka-topics {at} --describe --topic .*-{me} --at-min-isr-partitions", ordered=False)
    same("kafka-topics {at} --describe --topic .*-{me} --unavailable-partitions")
    same("kafka-topics {at} --describe --topic .*-{me} --under-min-isr-partitions")
    same("kafka-topics {at} --describe --topic t-{me} --partition-size-limit-per-response 1")
    assert same("kafka-topics {at} --alter --topic t-{me} --partitions 4").exit_code == 0
    same("kafka-topics {at} --alter --topic manual-{me} --partitions 5 --replica-assignment 1,1,1,1,1")
    same("kafka-topics {at} --describe --topic .*-{me}", ordered=False)
    assert same("kafka-topics {at} --delete --topic .*-{me}").exit_code == 0
    same("kafka-topics {at} --list --exclude-internal", ordered=False)


@pytest.mark.parametrize(
    "words",
    [
        "{at} --create --topic bad!name",
        "{at} --create --topic three --replication-factor 3",
        "{at} --create --topic zero --partitions 0",
        "{at} --create --topic zero --replication-factor 0",
        "{at} --create --topic wrong --config nonsense",
        "{at} --create --topic wrong --config nonsense=1",
        "{at} --create --topic wrong --config retention.ms=soon",
        "{at} --create --topic dup --replica-assignment 1:1",
        "{at} --create --topic dup --replica-assignment 1:2,1",
        "{at} --create --topic dup --replica-assignment a",
        "{at} --create --topic x --if-exists",
        "{at} --create",
        "{at} --describe --topic nope",
        "{at} --describe --topic nope --if-exists",
        "{at} --describe --topic-id xxx",
        "{at} --describe --topic-id 4L6g3nShT-eMCtK--X86sw",
        "{at} --describe --if-not-exists",
        "{at} --describe --under-min-isr-partitions --topics-with-overrides",
        "{at} --alter --topic nope --partitions 4",
        "{at} --alter --topic nope --partitions 4 --if-exists",
        "{at} --alter --topic x",
        "{at} --alter --topic x --partitions 5 --config a=b",
        "{at} --delete --topic nope",
        "{at} --delete --topic nope --if-exists",
        "{at} --delete",
        "{at} --list --describe",
        "{at} --lis",
        "{at} -zyx",
        "--list",
        "{at}",
        "{at} --list --partitions 3",
        "{at} --list --replication-factor x",
        "{at} --list --replication-factor",
        "{at} --topic a --topic b --list",
        "--bootstrap-server nohost.invalid:1 --list",
        "{at} --command-config /no/such --list",
        "--version",
    ],
)
def test_what_is_wrong_is_told_alike(beside: Beside, words: str) -> None:
    beside.same(f"kafka-topics {words}")


def test_ways_to_write_options(beside: Beside) -> None:
    listed = beside.same("kafka-topics --bootstrap-server {broker} -list --topic=nope extra words")
    assert listed.exit_code == 0
