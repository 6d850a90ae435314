"""Every example of docs/clients/consumer.md runs, as it stands there."""

import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import confluent_kafka
import pytest

from ottla.testing.node import RunningNode

PAGE = Path(__file__).parents[3] / "docs" / "clients" / "consumer.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
RUN_TIMEOUT_S = 60


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    with RunningNode(config={"group.initial.rebalance.delay.ms": 0}) as node:
        producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap})
        for number in range(3):
            producer.produce("orders", b"value-%d" % number, partition=0)
        assert producer.flush(20) == 0
        yield node.bootstrap


@pytest.mark.parametrize("number", range(len(EXAMPLES)))
def test_an_example_does_what_it_says(bootstrap: str, number: int) -> None:
    """One that reads for ever is ended once it has shown the last record; the others end by themselves."""
    # Each in a group of its own, or the examples before would have read everything.
    program = EXAMPLES[number].replace("localhost:9092", bootstrap).replace('"billing"', f'"billing-{number}"')
    reads_for_ever = "in consumer:" in program
    command = [sys.executable, "-u", "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            assert run.stdout is not None
            if reads_for_ever:
                assert any("value-2" in line for line in run.stdout)
            else:
                said, _ = run.communicate(timeout=RUN_TIMEOUT_S)
                assert run.returncode == 0, said
                assert said, "it shows nothing"
        finally:
            run.kill()


def test_a_signal_ends_the_program_that_has_a_handler_for_it(bootstrap: str) -> None:
    (program,) = [example for example in EXAMPLES if "signal.signal" in example]
    program = program.replace("localhost:9092", bootstrap).replace('"billing"', '"billing-and-stopping"')
    command = [sys.executable, "-u", "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as run:
        try:
            assert run.stdout is not None
            assert any("value-2" in line for line in run.stdout)
            run.send_signal(signal.SIGINT)
            said, _ = run.communicate(timeout=RUN_TIMEOUT_S)
            assert (run.returncode, said) == (0, "stopping\n")
        finally:
            run.kill()
