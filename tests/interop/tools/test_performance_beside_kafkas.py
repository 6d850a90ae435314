"""The measuring and the verifying tools print what Apache Kafka's print, but for what they measure."""

import json
import re

import pytest

from tests.interop.tools.beside import NAMES, Beside
from tests.interop.tools.kafkas_tools import Printed

pytestmark = pytest.mark.interop

NUMBER = re.compile(r"\d+(?:\.\d+)?(?:E-?\d+)?")
KEPT = ("50th", "95th", "99th", "99.9th")


def shape(printed: Printed, me: str) -> tuple[int, list[str]]:
    """What was printed, with every number the same, and names alike. Counts of records are compared apart."""
    text = (printed.out + printed.err).replace(me, "me")
    for word in KEPT:
        text = text.replace(word, word.translate(str.maketrans("0123456789.", "abcdefghijk")))
    return printed.exit_code, [NUMBER.sub("#", line) for line in text.splitlines()]


def both(beside: Beside, command: str) -> list[Printed]:
    kafkas, ours = (beside.printed(name, command, alone=True) for name in NAMES)
    left, right = shape(kafkas, NAMES[0]), shape(ours, NAMES[1])
    assert right == left, f"$ {command}\n--- Apache Kafka\n{kafkas.out}{kafkas.err}\n--- ours\n{ours.out}{ours.err}"
    return [kafkas, ours]


@pytest.fixture(scope="module", autouse=True)
def topics(beside: Beside) -> None:
    beside.both("kafka-topics {at} --create --topic perf-{me} --partitions 2")


def test_producers_are_measured_alike(beside: Beside) -> None:
    perf = "kafka-producer-perf-test {at} --topic perf-{me} --num-records"
    for printed in both(beside, f"{perf} 500 --record-size 100 --throughput -1"):
        assert printed.out.startswith("500 records sent, ")
    both(beside, f"{perf} 200 --payload-monotonic --throughput 1000 --transactional-id perf-{{me}}")
    beside.file("payloads", "a\nbb\nccc\n")
    for printed in both(beside, f"{perf} 100 --payload-file {{files}}/payloads --throughput -1 --warmup-records 10"):
        assert "90 steady state records sent" in printed.out
    both(beside, f"{perf} 10 --record-size 1 --throughput -1 --producer-props acks=1")


def test_consumers_are_measured_alike(beside: Beside) -> None:
    beside.both("kafka-producer-perf-test {at} --topic perf-{me} --num-records 500 --record-size 100 --throughput -1")
    perf = "kafka-consumer-perf-test {at} --topic perf-{me}"
    both(beside, f"{perf} --num-records 500")
    both(beside, f"{perf} --messages 500 --hide-header")
    both(beside, f"{perf} --num-records 1000000 --timeout 2000 --date-format HH.mm")


def test_the_way_of_a_record_is_measured_alike(beside: Beside) -> None:
    both(beside, "kafka-e2e-latency {broker} e2e-{me} 20 1 100")
    named = "kafka-e2e-latency {at} --topic e2e-{me} --num-records 20 --producer-acks all --record-size 20"
    both(beside, f"{named} --record-key-size 5 --num-headers 2 --record-header-key-size 3 --record-header-size 4")


def test_a_record_that_is_refused_is_told_alike(beside: Beside) -> None:
    beside.both("kafka-topics {at} --create --topic tiny-{me} --config max.message.bytes=10")
    told = []
    for me in NAMES:
        command = "kafka-verifiable-producer {at} --topic tiny-{me} --max-messages 1"
        printed = beside.printed(me, command, alone=True)
        (error,) = (json.loads(line) for line in printed.out.splitlines() if "producer_send_error" in line)
        told.append([(name, value) for name, value in error.items() if name not in ("timestamp", "topic", "message")])
        assert error["topic"].startswith("tiny-")
        assert error["message"], "its words are each client's own"
    assert told[0] == told[1]


def test_events_of_verifiable_clients_are_alike(beside: Beside) -> None:
    at = "--bootstrap-server {broker} --topic verified-{me}"
    beside.both("kafka-topics {at} --create --topic verified-{me}")
    for printed in both(beside, f"kafka-verifiable-producer {at} --max-messages 5 --repeating-keys 2 --value-prefix 7"):
        assert '"key":"1","value":"7.3","offset":3' in printed.out
    both(beside, f"kafka-verifiable-producer {at} --max-messages 2 --message-create-time 1000 --acks 1")
    both(beside, f"kafka-verifiable-consumer {at} --group-id v-{{me}} --max-messages 3 --verbose")
    both(beside, f"kafka-verifiable-consumer {at} --group-id w-{{me}} --max-messages 3 --group-protocol consumer")


def test_replicas_are_verified_alike(beside: Beside) -> None:
    """It runs until it is stopped: what counts are its beginning and its first two reports."""
    beside.both("kafka-topics {at} --create --topic replicas-{me} --partitions 2")
    beside.both(
        "kafka-producer-perf-test {at} --topic replicas-{me} --num-records 100 --record-size 10 --throughput -1"
    )
    command = "kafka-replica-verification --broker-list {broker} --topics-include replicas-{me} --time -2"
    told = []
    for me in NAMES:
        begun = beside.begin(me, f"{command} --report-interval-ms 1000")
        try:
            assert begun.stdout is not None
            lines = [begun.stdout.readline() for _ in range(3)]
        finally:
            begun.kill()
            begun.communicate(timeout=60)
        told.append([NUMBER.sub("#", line.replace(me, "me")) for line in lines])
        assert all(" max lag is 0 for partition " in line for line in lines[1:]), lines
    assert told[1] == told[0]
    nothing = "kafka-replica-verification --broker-list {broker} --topics-include nothing-{me}"
    kafkas, ours = (beside.printed(me, nothing, alone=True) for me in NAMES)
    assert ours.exit_code == kafkas.exit_code  # Kafka's has the reason in its log only.
