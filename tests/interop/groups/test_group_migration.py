"""Groups that change their protocol while they have members, at Apache Kafka's coordinator and at ours (KIP-848).

Every reply is the same, and so is every batch that is left in `__consumer_offsets`, as in `test_group_replies`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ottla.testing.node import RunningNode
from tests.interop.apache_kafka import ApacheKafka
from tests.interop.group_scenes import Talk
from tests.interop.groups.migration_scenes import SCENES, whatever_the_policy
from tests.interop.groups.test_group_replies import CONFIG, batches

pytestmark = pytest.mark.interop

Talks = dict[str, tuple[Talk, Path]]


def both(policy: str) -> Iterator[Talks]:
    config = {**CONFIG, "group.consumer.migration.policy": policy}
    with ApacheKafka(config=config) as kafka, RunningNode(config=config) as ours:
        found = {"Kafka": (Talk(kafka.bootstrap), kafka.data), "we": (Talk(ours.bootstrap), ours.data)}
        for talk, _ in found.values():
            talk.create_topics(orders=2, payments=1)
            talk.find_coordinator("a group")
        yield found
        for talk, _ in found.values():
            talk.close()


@pytest.fixture(scope="module")
def talks() -> Iterator[Talks]:
    yield from both("bidirectional")


def differences(theirs: list[object], mine: list[object]) -> str:
    pairs = zip(theirs, mine, strict=False)
    found = [f"Kafka {kafkas}\n   we {ours}" for kafkas, ours in pairs if kafkas != ours]
    return "\n".join(found) or ("" if len(theirs) == len(mine) else "one has more than the other")


@pytest.mark.parametrize("scene", SCENES)
def test_mixed_groups_are_answered_as_kafkas(talks: Talks, scene: str) -> None:
    notes = []
    for talk, _ in talks.values():
        talk.notes.clear()
        SCENES[scene](talk)
        notes.append(list(talk.notes))
    assert not (found := differences(*notes)), found


def test_what_is_left_in_the_log_is_the_same(talks: Talks) -> None:
    """After all scenes, in the same order."""
    assert not (found := differences(*(list(batches(data, talk.stand_ins)) for talk, data in talks.values()))), found


@pytest.mark.parametrize("policy", ["disabled", "Upgrade", "DOWNGRADE"])
def test_the_policy_decides_as_kafkas(policy: str) -> None:
    for found in both(policy):
        notes = []
        for talk, _ in found.values():
            whatever_the_policy(talk)
            notes.append(talk.notes)
        assert not (unlike := differences(*notes)), unlike
