"""What `partition_stories` told Apache Kafka 4.3.1: partitions of our controller fare alike, but for contradictions.

Its controller may leave a partition that is to add and to remove the same replica, that removes a replica which was
just named, or that would elect one which it no longer has. Ours does not (`reassign_partitions`, `partition_change`);
from there on a story goes another way, and is only held to that.
"""

import re

import pytest

from tests.unit.machines.metadata.controllers import ControllerUnderTest
from tests.unit.machines.metadata.record_kafka_partitions import OUTCOMES, ask_kafka, outcomes


def by_story(lines: list[str]) -> list[list[str]]:
    told: list[list[str]] = []
    for line in lines:
        if line.startswith(" "):
            told[-1].append(line.strip())
        else:
            told.append([line])
    return told


KAFKAS = by_story(OUTCOMES.read_text().splitlines())
OURS = by_story(outcomes(ControllerUnderTest()))


def contradicts(line: str) -> bool:
    step, _, came_of_it = line.removesuffix(" recovering").partition("; ")
    assigned, *parts = re.split(
        r" (isr|leader|epochs|adding|removing|elr|last known elr) ", came_of_it.removesuffix(" recovering")
    )
    lists = {word: set(ids.split(",")) for word, ids in zip(parts[::2], parts[1::2], strict=True)}
    removing = lists.get("removing", set())
    named = re.match(r"reassign[a-z ]* ([\d,]+): NONE", step)
    return bool(
        removing & lists.get("adding", set())
        or (named and removing & set(named[1].split(",")))
        or not lists.get("elr", set()) <= set(assigned.split(","))
    )


def test_every_story_was_told_to_kafka() -> None:
    assert [story[0] for story in KAFKAS] == [story[0] for story in OURS]


@pytest.mark.parametrize("number", range(len(KAFKAS)))
def test_the_partition_fares_as_with_kafka_until_kafkas_contradicts_itself(number: int) -> None:
    ours, kafkas = OURS[number], KAFKAS[number]
    until = next((at for at, line in enumerate(kafkas[1:], 1) if contradicts(line)), len(kafkas))
    assert ours[:until] == kafkas[:until]
    assert not [line for line in ours[1:] if contradicts(line)]


def test_most_of_what_kafka_was_told_is_compared() -> None:
    compared = [story for story in KAFKAS if not any(contradicts(line) for line in story[1:])]
    assert len(compared) > len(KAFKAS) / 2


@pytest.mark.interop
def test_kafkas_partitions_still_fare_so() -> None:
    assert by_story(ask_kafka()) == KAFKAS
