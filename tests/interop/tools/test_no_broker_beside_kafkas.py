"""A tool that finds no broker ends in its time, says so, and has the exit code of Kafka's."""

from __future__ import annotations

import pytest

from tests.interop.tools.beside import NAMES, Beside

pytestmark = pytest.mark.interop

NOWHERE = "--bootstrap-server 127.0.0.1:1"
SOON = "request.timeout.ms=1000\ndefault.api.timeout.ms=2000\n"
FILE = "--command-config {files}/soon.properties"


@pytest.fixture(scope="module")
def nowhere(beside: Beside) -> Beside:
    beside.file("soon.properties", SOON)
    beside.file("offsets.json", '{"partitions": [{"topic": "a", "partition": 0, "offset": 1}], "version": 1}')
    return beside


@pytest.mark.parametrize(
    "command",
    [
        f"kafka-topics {NOWHERE} {FILE} --list",
        f"kafka-topics {NOWHERE} {FILE} --describe --topic a",
        f"kafka-topics {NOWHERE} {FILE} --create --topic a",
        f"kafka-configs {NOWHERE} {FILE} --describe --topic a",
        f"kafka-consumer-groups {NOWHERE} {FILE} --list",
        f"kafka-consumer-groups {NOWHERE} {FILE} --describe --group g",
        f"kafka-get-offsets {NOWHERE} {FILE} --topic a",
        f"kafka-delete-records {NOWHERE} {FILE} --offset-json-file {{files}}/offsets.json",
        f"kafka-acls {NOWHERE} {FILE} --list",
    ],
)
def test_a_tool_of_options(nowhere: Beside, command: str) -> None:
    kafkas, ours = (nowhere.printed(me, command) for me in NAMES)
    assert ours.exit_code == kafkas.exit_code, f"--- Kafka\n{kafkas}\n--- ours\n{ours}"
    assert "127.0.0.1:1" in ours.out + ours.err, ours


@pytest.mark.parametrize(
    "command",
    [
        f"kafka-console-producer {NOWHERE} --topic a --max-block-ms 500",
        f"kafka-console-producer {NOWHERE} --topic a --max-block-ms 500 --sync",
        f"kafka-console-consumer {NOWHERE} --topic a --timeout-ms 1500",
    ],
)
def test_a_tool_that_ends_its_process(nowhere: Beside, command: str) -> None:
    kafkas, ours = (nowhere.printed(me, command, input="a\nb\n", alone=True) for me in NAMES)
    assert ours.exit_code == kafkas.exit_code, f"--- Kafka\n{kafkas}\n--- ours\n{ours}"
