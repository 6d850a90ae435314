"""kafka-consumer-groups and kafka-groups print what Kafka's print."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.interop.tools.beside import NAMES, Beside

pytestmark = pytest.mark.interop

MEMBER = Path(__file__).with_name("member_process.py")


@pytest.fixture(scope="module")
def scene(beside: Beside) -> Iterator[Beside]:
    """A topic with three records; a group that has read them and left; one member each of a classic and a new group."""
    beside.both("kafka-topics {at} --create --topic g-{me} --partitions 2")
    members = []
    for me in NAMES:
        at = ("--bootstrap-server", beside.bootstrap, "--topic", f"g-{me}")
        keyed = ("--reader-property", "parse.key=true")
        sent = beside.kafkas.alone("kafka-console-producer", *at, *keyed, input="k\ta\nk\tb\nk\tc\n")
        assert sent.exit_code == 0
        read = beside.kafkas(
            "kafka-console-consumer", *at, "--group", f"done-{me}", "--from-beginning", "--max-messages", "3"
        )
        assert read.exit_code == 0
        for protocol in ("classic", "consumer"):
            command = [sys.executable, str(MEMBER), beside.bootstrap, f"{protocol}-{me}", protocol, f"g-{me}"]
            members.append(subprocess.Popen(command, stdout=subprocess.PIPE, text=True))
    for member in members:
        assert member.stdout is not None
        assert member.stdout.readline() == "ready\n"
    yield beside
    for member in members:
        member.kill()
        member.wait()


@pytest.mark.parametrize(
    "words",
    [
        "--list",
        "--list --state",
        "--list --state stable",
        "--list --state Empty,Dead",
        "--list --type",
        "--list --type consumer",
        "--list --type --state",
    ],
)
def test_groups_are_listed(scene: Beside, words: str) -> None:
    scene.same(f"kafka-consumer-groups {{at}} {words}", ordered=False)


@pytest.mark.parametrize("group", ["done-{me}", "classic-{me}", "consumer-{me}"])
@pytest.mark.parametrize(
    "view", ["", "--verbose", "--members", "--members --verbose", "--state", "--state --verbose", "--offsets"]
)
def test_groups_are_described(scene: Beside, group: str, view: str) -> None:
    described = scene.same(f"kafka-consumer-groups {{at}} --describe --group {group} {view}")
    assert described.out.splitlines()[1].startswith("GROUP ")


def test_several_groups_are_described_by_name(scene: Beside) -> None:
    scene.same("kafka-consumer-groups {at} --describe --group done-{me} --group classic-{me}")


@pytest.mark.parametrize(
    "how",
    [
        "--topic g-{me} --to-earliest",
        "--topic g-{me} --to-latest --dry-run",
        "--topic g-{me}:0,1 --to-offset 1 --dry-run",
        "--topic g-{me} --to-offset 100 --dry-run",
        "--topic g-{me} --to-datetime 2020-01-01T00:00:00.000 --dry-run",
        "--topic g-{me} --to-datetime 2040-01-01T00:00:00.000+02:00 --dry-run",
        "--topic g-{me} --to-datetime bad --dry-run",
        "--topic g-{me} --by-duration P1D --dry-run",
        "--topic g-{me} --by-duration bad --dry-run",
        "--all-topics --to-current --dry-run",
        "--all-topics --shift-by -1 --dry-run",
        "--all-topics --shift-by 100 --dry-run",
        "--all-topics --to-earliest --export --dry-run",
        "--topic nope --to-latest --dry-run",
        "--topic g-{me}:x --to-latest --dry-run",
        "--topic g-{me} --to-latest --dry-run --execute",
        "--to-latest --dry-run",
        "--topic g-{me}:0 --to-earliest --execute",
    ],
)
def test_offsets_are_reset(scene: Beside, how: str) -> None:
    scene.same(f"kafka-consumer-groups {{at}} --group done-{{me}} --reset-offsets {how}", ordered=False)


def test_offsets_of_a_group_with_members_are_not_reset(scene: Beside) -> None:
    scene.same("kafka-consumer-groups {at} --group classic-{me} --reset-offsets --topic g-{me} --to-latest --dry-run")


def test_offsets_of_a_group_that_is_not_there_yet_are_set(scene: Beside) -> None:
    reset = "--reset-offsets --topic g-{me}:1 --to-offset 0"
    scene.same(f"kafka-consumer-groups {{at}} --group new-{{me}} {reset} --execute")
    scene.same("kafka-consumer-groups {at} --group new-{me} --describe")


def test_offsets_are_reset_from_a_file(scene: Beside) -> None:
    scene.file("plan.csv", "g-{me},0,1\n")
    scene.file("plans.csv", "plan-{me},g-{me},0,1\nother-{me},g-{me},1,0\n")
    for words in (
        "--group plan-{me} --reset-offsets --from-file {files}/plan.csv --execute",
        "--group plan-{me} --group other-{me} --reset-offsets --from-file {files}/plans.csv --dry-run",
    ):
        scene.same(f"kafka-consumer-groups {{at}} {words}", ordered=False)


def test_offsets_and_groups_are_deleted(scene: Beside) -> None:
    reset = "--reset-offsets --topic g-{me} --to-earliest --execute"
    scene.both(f"kafka-consumer-groups {{at}} --group gone-{{me}} {reset}")
    scene.both(f"kafka-consumer-groups {{at}} --group away-{{me}} {reset}")
    for words in (
        "--group gone-{me} --delete-offsets --topic g-{me}:0",
        "--group gone-{me} --delete-offsets --topic g-{me}:7",
        "--group classic-{me} --delete-offsets --topic g-{me}",
        "--group nope --delete-offsets --topic g-{me}",
        "--group gone-{me} --delete-offsets",
        "--delete --group classic-{me}",
        "--delete --group gone-{me} --group nope",
        "--delete --group away-{me}",
        "--delete --group away-{me} --topic x",
    ):
        scene.same(f"kafka-consumer-groups {{at}} {words}", ordered=False)


@pytest.mark.parametrize(
    "words",
    [
        "{at}",
        "{at} --list --state bad",
        "{at} --list --type bad",
        "{at} --list --group x",
        "{at} --describe",
        "{at} --describe --group nope",
        "{at} --describe --group nope --members",
        "{at} --describe --group x --members --state",
        "--describe --group x",
        "{at} --group x --reset-offsets --all-topics --dry-run",
        "{at} --group x --reset-offsets --all-topics --to-latest --to-earliest --dry-run",
        "--validate-regex ab.*",
        "--validate-regex ab(",
        "--validate-regex ab.* --list",
    ],
)
def test_what_is_wrong_is_told_alike(scene: Beside, words: str) -> None:
    scene.same(f"kafka-consumer-groups {words}")


@pytest.mark.parametrize(
    "words",
    [
        "{at} --list",
        "{at} --list --consumer",
        "{at} --list --share",
        "{at} --list --streams",
        "{at} --list --group-type classic",
        "{at} --list --group-type bad",
        "{at} --list --protocol consumer",
        "{at} --list --protocol connect",
        "{at} --list --protocol connect --consumer",
        "{at}",
        "--list",
    ],
)
def test_groups_of_all_types(scene: Beside, words: str) -> None:
    scene.same(f"kafka-groups {words}", ordered=False)
