"""`ottla demo node`, as somebody sees it who runs it."""

import subprocess
import sys
from typing import NamedTuple

import pytest

from ottla.cli import demo, node_demo


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "ottla.cli.main", "demo", "node", *arguments],
        capture_output=True,
        text=True,
        timeout=120,
    )


def test_every_acknowledged_record_survives_the_kill() -> None:
    done = run("--records", "20000")
    assert (done.returncode, done.stderr) == (0, "")
    assert "killed, with" in done.stdout
    assert "20,000 of 20,000 read" in done.stdout
    assert "20,000 records were acknowledged: 0 of them lost, 0 there twice" in done.stdout


@pytest.mark.parametrize("arguments", [["--records"], ["--records", "many"], ["--records", "0"], ["--fast"]])
def test_arguments_that_it_does_not_know_are_named(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert demo.main(["node", *arguments]) == 2
    assert " ".join(arguments) in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["--events"], ["--events", "0"], ["--rate", "fast"], ["nod"]])
def test_arguments_of_the_spark_demo_are_named_too(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        demo.main(arguments)
    assert ended.value.code == 2
    assert arguments[-1] in capsys.readouterr().err


def test_without_spark_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(demo, "is_installed", lambda module: module != "pyspark")
    assert demo.main([]) == 1
    told = capsys.readouterr().err
    assert "pyspark is not installed" in told
    assert "[spark,terminal]'" in told


def test_a_record_that_is_lost_or_there_twice_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The demo is a promise: it must be able to fail."""

    class Record(NamedTuple):
        value: bytes

    class Consumer:
        numbers = (0, 1, 1, 2)

        def __init__(self, **settings: object) -> None:
            pass

        def __enter__(self) -> "Consumer":
            return self

        def __exit__(self, *_: object) -> None:
            pass

        def assign(self, partitions: object) -> None:
            pass

        def end_offsets(self, partitions: list[object]) -> dict[object, int]:
            return dict.fromkeys(partitions, 1)

        def poll(self, timeout: float) -> list[Record]:
            return [Record(b"%010d" % number) for number in self.numbers]

    class Node:
        bootstrap = "nowhere:1"

        def rss_bytes(self) -> int:
            return 0

    monkeypatch.setattr("ottla.client.blocking.consumer.Consumer", Consumer)
    assert not node_demo.read_back(Node(), bytearray([1, 1, 1, 1]))  # type: ignore[arg-type]
    Consumer.numbers = (0, 1, 3, 2)
    assert node_demo.read_back(Node(), bytearray([1, 1, 1, 1]))  # type: ignore[arg-type]
