"""Assignors decide as Apache Kafka's do: recorded groups, and examples.

The groups were made by `tests/interop/groups/random_groups.py`.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import MemberSubscription
from ottla.client.membership.assignors.by_name import ASSIGNORS
from ottla.client.membership.assignors.java_order import in_hash_order, partition_hash, text_hash, text_order
from ottla.client.membership.assignors.sticky_data import Held, read_generation, read_held, write_held
from ottla.client.membership.classic.consumer_protocol import read_assignment, read_subscription

GROUPS = [
    json.loads(line)
    for line in Path(__file__).with_name("groups_of_kafka.jsonl").read_text(encoding="utf-8").splitlines()
]
NO_RACKS = frozenset[str]()


def no_racks(**counts: int) -> dict[str, list[frozenset[str]]]:
    return {topic: [NO_RACKS] * count for topic, count in counts.items()}


@pytest.mark.parametrize("group", GROUPS, ids=lambda group: group["assignor"])
def test_a_recorded_group_is_divided_as_apache_kafka_divided_it(group: dict[str, Any]) -> None:
    leader = ASSIGNORS[group["assignor"]]()
    for played, decided in zip(group["rounds"], group["decided"], strict=True):
        members = {
            member: read_subscription(bytes.fromhex(told), instance) for member, instance, told in played["members"]
        }
        topics = {topic: list(map(frozenset, racks)) for topic, racks in played["topics"].items()}
        division = leader.divide(topics, members)
        expected = {member: read_assignment(bytes.fromhex(assignment)) for member, (assignment, _) in decided.items()}
        assert {member: sorted(got) for member, got in division.items()} == {
            member: sorted(got) for member, got in expected.items()
        }


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_every_partition_of_a_wanted_topic_has_one_member_that_wants_it(assignor: str) -> None:
    members = {
        "a": MemberSubscription(["one", "two"]),
        "b": MemberSubscription(["two"]),
        "c": MemberSubscription(["gone"]),
    }
    division = ASSIGNORS[assignor]().divide(no_racks(one=3, two=4, unwanted=2), members)
    given = [(partition, member) for member, partitions in division.items() for partition in partitions]
    assert sorted(partition for partition, _ in given) == [
        *(TopicPartition("one", number) for number in range(3)),
        *(TopicPartition("two", number) for number in range(4)),
    ]
    assert all(partition.topic in members[member].topics for partition, member in given)


def test_range_gives_static_members_their_place_whatever_their_member_ids_are() -> None:
    members = {"z": MemberSubscription(["t"], group_instance_id="first"), "a": MemberSubscription(["t"])}
    division = ASSIGNORS["range"]().divide(no_racks(t=3), members)
    assert division["z"] == [TopicPartition("t", 0), TopicPartition("t", 1)]


def test_range_gives_co_partitioned_topics_to_the_same_member_near_them() -> None:
    near_b = [frozenset({"west"}), frozenset({"east"})]
    members = {"a": MemberSubscription(["x", "y"], rack="east"), "b": MemberSubscription(["x", "y"], rack="west")}
    division = ASSIGNORS["range"]().divide({"x": near_b, "y": near_b}, members)
    assert division == {
        "a": [TopicPartition("x", 1), TopicPartition("y", 1)],
        "b": [TopicPartition("x", 0), TopicPartition("y", 0)],
    }


def test_cooperative_sticky_leaves_out_what_another_member_still_owns() -> None:
    owned = [TopicPartition("t", number) for number in range(4)]
    members = {"old": MemberSubscription(["t"], None, owned, generation=1), "new": MemberSubscription(["t"])}
    assignor = ASSIGNORS["cooperative-sticky"]()
    first = assignor.divide(no_racks(t=4), members)
    assert first == {"old": owned[:2], "new": []}
    members["old"] = MemberSubscription(["t"], None, first["old"], generation=2)
    assert assignor.divide(no_racks(t=4), members) == {"old": owned[:2], "new": owned[2:]}


def test_a_claim_of_a_newer_generation_wins_and_claims_of_the_same_cancel_each_other() -> None:
    both = [TopicPartition("t", 0), TopicPartition("t", 1)]
    topics = no_racks(t=2)

    def kept(generation_of_b: int) -> dict[str, list[TopicPartition]]:
        members = {
            "a": MemberSubscription(["t"], None, both, generation=5),
            "b": MemberSubscription(["t"], None, both, generation_of_b),
        }
        return ASSIGNORS["cooperative-sticky"]().divide(topics, members)

    assert kept(6) == {"a": [], "b": [both[0]]}, "partition 1 has to be given up by b first"
    assert kept(5) == {"a": [], "b": []}, "both have to give up both"


@pytest.mark.parametrize("assignor", ["sticky", "cooperative-sticky"])
def test_members_that_share_no_topic_have_nothing_to_even_out(assignor: str) -> None:
    members = {"a": MemberSubscription(["one"]), "b": MemberSubscription(["two"]), "c": MemberSubscription([])}
    division = ASSIGNORS[assignor]().divide(no_racks(one=1, two=3), members)
    assert {member: len(got) for member, got in division.items()} == {"a": 1, "b": 3, "c": 0}


def test_an_owned_partition_that_no_longer_exists_is_nobodys() -> None:
    gone = [TopicPartition("t", 7), TopicPartition("t", 0), TopicPartition("deleted", 0)]
    members = {"a": MemberSubscription(["t"], None, gone, generation=1), "b": MemberSubscription(["t"])}
    division = ASSIGNORS["cooperative-sticky"]().divide(no_racks(t=2), members)
    assert division == {"a": [TopicPartition("t", 0)], "b": [TopicPartition("t", 1)]}


def test_sticky_data_of_both_versions_is_read_and_nonsense_says_nothing() -> None:
    held = Held([TopicPartition("t", 0), TopicPartition("t", 3), TopicPartition("ü", 1)], 9)
    written = write_held(held)
    assert read_held(written) == held
    assert read_held(written[:-4]) == Held(held.partitions, None), "version 0 has no generation"
    for nonsense in (
        b"\x00",
        b"\xff\xff\xff\xff",
        b"\x00\x00\x00\x01\x00\x01",
        b"\x7f\xff\xff\xff\x00\x00\x7f\xff\xff\xff",
    ):
        assert read_held(nonsense) == Held((), -1)
    assert read_generation(b"\x00\x00\x00\x05") == 5
    assert read_generation(b"\x05") == -1


def test_hash_codes_and_orders_are_javas() -> None:
    assert text_hash("kafka") == 101807910
    assert text_hash("\U0001f600") == 1772899
    assert partition_hash(TopicPartition("t", 3)) == 31 * 34 + 116
    assert sorted(["\uffee", "\U0001f600"], key=text_order) == ["\U0001f600", "\uffee"]
    assert in_hash_order(["b", "a", "q"]) == ["a", "q", "b"], "q and a share a bucket of sixteen"
