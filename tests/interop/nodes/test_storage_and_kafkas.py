"""Our kafka-storage beside Apache Kafka's: the same words on the command line, the same lines and exit codes."""

import re
from pathlib import Path

import pytest

from ottla.cli.storage import main
from tests.interop.apache_kafka import CLUSTER_ID, MAIN_CLASSES, java

pytestmark = pytest.mark.interop

STATIC = "controller.quorum.voters=1@127.0.0.1:9093"
DYNAMIC = "controller.quorum.bootstrap.servers=127.0.0.1:9093"


UNSERVED_OFF = ["-f", "share.version=0", "-f", "streams.version=0"]
"""Ours has them off, and Kafka's formats for a cluster that has them unless it is told."""


def configure(directory: Path, quorum: str) -> None:
    settings = [
        "process.roles=broker,controller",
        "node.id=1",
        "listeners=PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
        "controller.listener.names=CONTROLLER",
        f"log.dirs={directory}/data",
        quorum,
    ]
    (directory / "server.properties").write_text("\n".join(settings))


def ours(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    capsys.readouterr()
    status = main(arguments)
    return (status, *capsys.readouterr())


def theirs(arguments: list[str]) -> tuple[int, str, str]:
    """What they say is wrong is the last words of a line; what is left of it is Java's."""
    done = java(MAIN_CLASSES["kafka-storage"], *arguments, check=False)
    complaint = re.sub(r'^Exception in thread "main" [\w.]+: ', "", done.stderr.partition("\n\tat ")[0].rstrip("\n"))
    return done.returncode, done.stdout, f"{complaint}\n" if complaint else ""


@pytest.mark.parametrize(
    "arguments",
    [
        "version-mapping",
        "version-mapping -r 3.3",
        "version-mapping -r 3.9-IV0",
        "version-mapping --release-version 4.0",
        "version-mapping -r 4.1.0",
        "version-mapping -r 4.2-IV0",
        "feature-dependencies -f metadata.version=20 -f group.version=1 --feature transaction.version=2",
        "feature-dependencies -f eligible.leader.replicas.version=1 -f kraft.version=1 -f streams.version=0",
        "feature-dependencies -f group.version=9",
        "feature-dependencies -f nope=1",
        "feature-dependencies -f metadata.version=x",
        "feature-dependencies -f metadata.version=99",
        "feature-dependencies -f group.version",
    ],
)
def test_features_are_told_in_the_same_words(arguments: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert ours(arguments.split(), capsys) == theirs(arguments.split())


@pytest.mark.parametrize(
    ("quorum", "options"),
    [
        (STATIC, ""),
        (STATIC, "-r 3.4"),
        (STATIC, "-f metadata.version=20"),
        (STATIC, "-f transaction.version=0 -f group.version=0"),
        (DYNAMIC, "--standalone"),
        (DYNAMIC, "-s --release-version 3.8"),
        (DYNAMIC, "--no-initial-controllers"),
        (DYNAMIC, "-N -f kraft.version=1"),
        (DYNAMIC, "-I 1@localhost:9093:JEXY6aqzQY-32P5TStzaFg,2@h:9094:MvDxzVmcRsaTz33bUuRU6A"),
        (DYNAMIC, "-I 2@localhost:9093:JEXY6aqzQY-32P5TStzaFg"),
        (DYNAMIC, ""),
        (STATIC, "--standalone"),
        (STATIC, "-r 9.4"),
        (STATIC, "-f metadata.version=20 -r 4.0"),
        (STATIC, "-f nope=20"),
        (STATIC, "-f group.version=9"),
        (STATIC, "-f kraft.version=1"),
        (DYNAMIC, "-s -f kraft.version=0"),
        (STATIC, "-f group.version"),
        (STATIC, "-f group.version=x"),
        (STATIC, "-r 3.9 -f eligible.leader.replicas.version=1"),
        (STATIC, "-r 3.5-IV1 -S SCRAM-SHA-256=[name=alice,password=secret]"),
        (STATIC, "-S SCRAM-SHA-256=[name=alice]"),
        (STATIC, "-S SCRAM-SHA-1=[name=alice,password=secret]"),
        (STATIC, "-S SCRAM-SHA-256=[name=alice,password=secret,iterations=1]"),
    ],
)
def test_formatting_ends_the_same_way(
    quorum: str, options: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said, files = [], []
    for run in (lambda words: ours(words, capsys), lambda words: theirs([*words, *UNSERVED_OFF])):
        root = tmp_path / "node"
        root.mkdir()
        configure(root, quorum)
        words = ["format", "-t", CLUSTER_ID, "-c", str(root / "server.properties"), *options.split()]
        said.append(run(words))
        files.append({str(path.relative_to(root)): path.stat().st_size for path in root.rglob("*") if path.is_file()})
        root.rename(tmp_path / str(len(said)))
    assert said[0] == said[1]
    assert files[0] == files[1]


def test_info_and_a_second_formatting_say_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    configure(tmp_path, STATIC)
    config = ["-c", str(tmp_path / "server.properties")]
    data = tmp_path / "data"

    def assert_same(*words: str) -> None:
        assert ours([*words, *config], capsys) == theirs([*words, *config])

    assert_same("info")
    data.mkdir()
    assert_same("info")
    main(["format", "-t", CLUSTER_ID, *config])
    assert_same("info")
    assert_same("format", "-t", CLUSTER_ID)
    assert_same("format", "-t", CLUSTER_ID, "--ignore-formatted")
    assert_same("format", "-t", "AAAAAAAAAAAAAAAAAAAAAQ", "-g")
    meta = data / "meta.properties"
    meta.write_text("version=0\n")
    assert_same("info")
