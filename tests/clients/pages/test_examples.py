"""Every program in `examples/` runs, and shows what it is there to show."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[3] / "examples"


def run(name: str) -> list[str]:
    ended = subprocess.run([sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stderr == ""
    return ended.stdout.splitlines()


def test_at_most_once_loses_at_least_once_repeats_and_exactly_once_does_neither() -> None:
    _, *rows = run("delivery_semantics")
    found = {name: (int(lost), int(twice)) for name, lost, twice in (row.split() for row in rows)}
    at_most, at_least = found["at-most-once"], found["at-least-once"]
    assert at_most[0] > 0
    assert at_most[1] == 0
    assert at_least[0] == 0
    assert at_least[1] > 0
    assert found["exactly-once"] == (0, 0)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("transform", ['{"order":1,"total":16}', '{"order":2,"total":20}', '{"order":3,"total":0}']),
        ("event_sourcing", ["before: {'apples': 7, 'plums': 30}", "after a restart: {'apples': 7, 'plums': 30}"]),
        ("web_service", ["{'ada': 2, 'bob': 1}"]),
        (
            "dead_letters",
            [
                "handled: [7, 12, 30]",
                "dead: 'many', orders at offset 1, 3 times, "
                "ValueError: invalid literal for int() with base 10: b'many'",
            ],
        ),
        (
            "outbox",
            [
                "the database: {'ada': 17, 'bob': 5}",
                "the events:   {'ada': 17, 'bob': 5}, after 2 that came twice",
            ],
        ),
    ],
)
def test_a_program_shows_what_it_says(name: str, shown: list[str]) -> None:
    assert run(name) == shown


def test_the_page_names_every_program() -> None:
    named = re.findall(r"\]\((\w+)\.py\)", (EXAMPLES / "README.md").read_text())
    assert sorted([*named, "cluster"]) == sorted(path.stem for path in EXAMPLES.glob("*.py"))
