"""The measuring and the verifying tools against a node; what Apache Kafka's print is compared in tests/interop."""

import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla import Producer
from ottla.base.ids import TopicPartition
from ottla.cli.kafka import run
from ottla.cli.performance.java_dates import date_formatter
from ottla.cli.performance.latencies import Latencies
from ottla.cli.performance.replica_verification import ReplicaVerifier
from ottla.testing import Broker

pytestmark = pytest.mark.slow  # they start nodes in processes of their own

WAIT_S = 30
NUMBER = r"[\d.]+"
SUMMARY = (
    rf"100{{kind}} records sent, {NUMBER} records/sec \({NUMBER} MB/sec\), {NUMBER} ms avg latency, {NUMBER} ms max "
    rf"latency, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th\."
)


@pytest.fixture(scope="module")
def node() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("filled", partitions=2)
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            for number in range(1000):
                producer.send("filled", str(number).encode(), partition=number % 2)
        yield broker


def lines(capsys: pytest.CaptureFixture[str], name: str, *words: str, status: int = 0) -> list[str]:
    assert run(name, list(words)) == status
    return capsys.readouterr().out.splitlines()


def events(printed: list[str]) -> list[dict[str, object]]:
    found = [json.loads(line) for line in printed]
    assert all(list(one)[:2] == ["timestamp", "name"] for one in found)
    return [{name: value for name, value in one.items() if name != "timestamp"} for one in found]


# kafka-producer-perf-test


def test_a_producer_is_measured(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    node.create_topic("perf")
    words = ["--topic", "perf", "--num-records", "100", "--throughput", "-1", "--bootstrap-server", node.bootstrap]
    [summary] = lines(capsys, "producer-perf-test", *words, "--record-size", "10")
    assert re.fullmatch(SUMMARY.format(kind=""), summary)


def test_payloads_are_drawn_from_a_file_in_transactions(
    node: Broker, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    node.create_topic("perf-payloads")
    (tmp_path / "payloads").write_text("a|bb|ccc|")
    printed = lines(
        capsys,
        "producer-perf-test",
        *("--topic", "perf-payloads", "--num-records", "100", "--throughput", "1000"),
        *("--payload-file", str(tmp_path / "payloads"), "--payload-delimiter", "|", "--warmup-records", "10"),
        *("--command-property", f"bootstrap.servers={node.bootstrap}", "acks=all"),
        *("--transaction-duration-ms", "20", "--print-metrics"),
    )
    assert printed[:3] == [
        f"Reading payloads from: {tmp_path}/payloads",
        "Number of records read: 3",
        "Warmup first 10 records. Steady state results will print after the complete test summary.",
    ]
    assert re.fullmatch(SUMMARY.format(kind=""), printed[3])
    assert printed[4].startswith("90 steady state records sent, ")
    assert printed[6].startswith("Metric Name")
    assert any(line.startswith("producer-metrics:record-send-total:{client-id=perf-") for line in printed)
    words = ["--topic", "perf-payloads", "--num-records", "100", "--bootstrap-server", node.bootstrap]
    read = lines(capsys, "consumer-perf-test", *words, "--command-property", "isolation.level=read_committed")
    assert read[1].split(", ")[4] == "100"


def test_exactly_one_payload_is_needed(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        run("producer-perf-test", ["--topic", "t", "--num-records", "1", "--throughput", "-1"])
    assert ended.value.code == 1
    assert (
        "one of the arguments --record-size --payload-file --payload-monotonic is required" in capsys.readouterr().err
    )


def test_a_report_is_printed_after_every_interval(capsys: pytest.CaptureFixture[str]) -> None:
    latencies = Latencies(10, 0)
    latencies.add(4, 1024)
    assert re.fullmatch(
        r"1 records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), 4.0 ms avg latency, 4.0 ms max latency.\n",
        capsys.readouterr().out,
    )


# kafka-consumer-perf-test


def test_a_consumer_is_measured(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--bootstrap-server", node.bootstrap, "--topic", "filled", "--num-records", "1000"]
    header, line = lines(capsys, "consumer-perf-test", *words)
    assert header.startswith("start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, ")
    fields = line.split(", ")
    assert len(fields) == len(header.split(", ")) == 10
    assert fields[4] == "1000"
    assert re.fullmatch(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d:\d{3}", fields[0])


def test_too_few_records_are_told(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--bootstrap-server", node.bootstrap, "--include", "fill.*", "--messages", "1001", "--timeout", "300"]
    old, warning, line = lines(capsys, "consumer-perf-test", *words, "--hide-header", "--date-format", "HH.mm")
    assert old == "Warning: --messages is deprecated. Use --num-records instead."
    assert warning.startswith("WARNING: Exiting before consuming the expected number of records: timeout (300 ms)")
    assert re.match(r"\d\d\.\d\d, \d\d\.\d\d, ", line)


def test_dates_are_formatted_as_java_does() -> None:
    assert re.fullmatch(r"\d\d/\d\d '70 at \d\dh", date_formatter("dd/MM ''yy 'at' HH'h'")(86_400_000))
    with pytest.raises(ValueError, match="letters only"):
        date_formatter("yyyy-MM-dd z")


# kafka-e2e-latency


def test_the_way_of_a_record_is_measured(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    old, made, first, average, percentiles = lines(capsys, "e2e-latency", node.bootstrap, "e2e", "20", "1", "100")
    assert old.startswith("WARNING: Positional argument usage is deprecated")
    assert made.startswith('Topic "e2e" does not exist. Will create topic with 1 partition(s)')
    assert re.fullmatch(r"0\t[\d.]+", first)
    assert re.fullmatch(r"Avg latency: [\d.]+ ms", average)
    assert re.fullmatch(r"Percentiles: 50th = \d+, 99th = \d+, 99\.9th = \d+", percentiles)


def test_keys_and_headers_make_the_way_too(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    words = [
        "--bootstrap-server",
        node.bootstrap,
        "--topic",
        "e2e-keys",
        "--num-records",
        "5",
        "--producer-acks",
        "all",
    ]
    sizes = ["--record-size", "9", "--record-key-size", "4", "--num-headers", "2", "--record-header-key-size", "3"]
    printed = lines(capsys, "e2e-latency", *words, *sizes, "--record-header-size", "4")
    assert printed[-1].startswith("Percentiles: ")


# kafka-verifiable-producer and kafka-verifiable-consumer


def test_what_was_confirmed_is_printed(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    node.create_topic("verified")
    words = ["--bootstrap-server", node.bootstrap, "--topic", "verified", "--max-messages", "3"]
    first, *sent, last, data = events(
        lines(capsys, "verifiable-producer", *words, "--repeating-keys", "2", "--value-prefix", "7")
    )
    assert first == {"name": "startup_complete"}
    assert sent == [
        {
            "name": "producer_send_success",
            "key": str(number % 2),
            "value": f"7.{number}",
            "offset": number,
            "topic": "verified",
            "partition": 0,
        }
        for number in range(3)
    ]
    assert last == {"name": "shutdown_complete"}
    assert {**data, "avg_throughput": 0} == {
        "name": "tool_data",
        "sent": 3,
        "acked": 3,
        "target_throughput": -1,
        "avg_throughput": 0,
    }


def test_what_was_refused_is_printed_with_the_name_of_javas_exception(
    node: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    node.create_topic("tiny", settings={"max.message.bytes": 10})
    words = ["--bootstrap-server", node.bootstrap, "--topic", "tiny", "--max-messages", "1"]
    _, error, *_ = events(lines(capsys, "verifiable-producer", *words))
    assert list(error) == ["name", "topic", "key", "value", "exception", "message"]
    assert error["exception"] == "class org.apache.kafka.common.errors.RecordTooLargeException"


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_what_was_read_and_committed_is_printed(
    protocol: str, node: Broker, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--bootstrap-server", node.bootstrap, "--topic", "filled", "--group-id", f"verifying-{protocol}"]
    told = events(
        lines(capsys, "verifiable-consumer", *words, "--max-messages", "3", "--verbose", "--group-protocol", protocol)
    )
    names = [one["name"] for one in told]
    assert names[:2] == ["startup_complete", "partitions_assigned"]
    assert names[2:5] == ["record_data"] * 3
    assert names[5:] == [
        "records_consumed",
        "offsets_committed",
        "partitions_revoked",
        "shutdown_complete",
        "shutdown_requested",
    ]
    assert told[6]["success"] is True
    [span] = told[5]["partitions"]  # type: ignore[misc]
    assert (span["count"], span["minOffset"], span["maxOffset"]) == (3, 0, 2)


@pytest.mark.parametrize(
    ("tool", "words", "last"),
    [
        ("verifiable_producer", ["--topic", "stopped", "--throughput", "50"], "tool_data"),
        ("verifiable_consumer", ["--topic", "filled", "--group-id", "stopped"], "shutdown_complete"),
    ],
)
def test_a_signal_ends_it_in_good_order(tool: str, words: list[str], last: str, node: Broker) -> None:
    command = [sys.executable, "-m", f"ottla.cli.performance.{tool}", "--bootstrap-server", node.bootstrap, *words]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        seen = [process.stdout.readline() for _ in range(3)]
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=WAIT_S)
    finally:
        process.kill()
        process.wait()
    told = events([*seen, *rest.splitlines()])
    assert process.returncode == 0
    assert told[-1]["name"] == last
    if tool == "verifiable_consumer":
        assert [one["name"] for one in told][-3:-1] == ["shutdown_requested", "partitions_revoked"]
    else:
        assert told[-1]["sent"] == told[-1]["acked"]


# kafka-replica-verification


def test_replicas_are_verified_up_to_the_end(node: Broker) -> None:
    words = [
        "--broker-list",
        node.bootstrap,
        "--topics-include",
        "filled",
        "--report-interval-ms",
        "100",
        "--time",
        "-2",
    ]
    command = [sys.executable, "-m", "ottla.cli.performance.replica_verification", "--report-interval-ms", "100"]
    process = subprocess.Popen([*command, *words], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        assert process.stdout.readline().endswith(": verification process is started\n")
        assert process.stdout.readline().endswith(
            ": max lag is 0 for partition filled-0 at offset 500 among 2 partitions\n"
        )
    finally:
        process.kill()
        process.communicate(timeout=WAIT_S)


def test_no_topic_is_told(node: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("replica-verification", ["--broker-list", node.bootstrap, "--topics-include", "nothing"]) == 1
    assert "No topics found" in capsys.readouterr().err


class Reply:
    """A fetch response with one partition."""

    def __init__(self, records: bytes, high_watermark: int) -> None:
        self.topic, self.partition_index, self.high_watermark, self.records = "t", 0, high_watermark, records
        self.partitions = [self]
        self.responses = [self]


def batch(base_offset: int, value: bytes) -> bytes:
    from ottla.records.builder import BatchBuilder

    builder = BatchBuilder(base_offset=base_offset)
    builder.append(0, None, value)
    return bytes(builder.build())


def test_batches_that_differ_are_told() -> None:
    partition = TopicPartition("t", 0)
    verifier = ReplicaVerifier({partition: (1, 2)}, {partition: 0})
    verifier.take(1, Reply(batch(0, b"same") + batch(1, b"one"), 3))
    verifier.take(2, Reply(batch(0, b"same") + batch(1, b"other"), 3))
    [told] = verifier.verify()
    assert told.startswith("partition t-0 has unmatched checksum at offset 1; replica 1's checksum ")
    verifier.take(1, Reply(batch(2, b"x"), 4))
    verifier.take(2, Reply(batch(3, b"x"), 4))
    assert verifier.verify() == ["partition t-0: replica 2's offset 3 doesn't match replica 1's offset 2"]


def test_verification_waits_for_all_replicas() -> None:
    partition = TopicPartition("t", 0)
    verifier = ReplicaVerifier({partition: (1, 2)}, {partition: 0})
    verifier.take(1, Reply(batch(0, b"x"), 1))
    assert verifier.verify() == []
    assert verifier.is_idle
    assert verifier.report() == "max lag is 1 for partition t-0 at offset 0 among 1 partitions"
