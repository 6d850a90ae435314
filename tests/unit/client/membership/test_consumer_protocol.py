"""What members of a classic group say to each other, in all versions."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.membership.assignors.assignor import MemberSubscription
from ottla.client.membership.classic.consumer_protocol import (
    MalformedMemberData,
    read_assignment,
    read_subscription,
    write_assignment,
    write_subscription,
)

SAID = MemberSubscription(("a", "b"), b"data", (TopicPartition("a", 0), TopicPartition("a", 2)), 7, "rack")


@pytest.mark.parametrize(
    ("version", "heard"),
    [
        (0, MemberSubscription(("a", "b"), b"data")),
        (1, MemberSubscription(("a", "b"), b"data", SAID.owned_partitions)),
        (2, MemberSubscription(("a", "b"), b"data", SAID.owned_partitions, 7)),
        (3, SAID),
    ],
)
def test_a_subscription_says_as_much_as_its_version_can(version: int, heard: MemberSubscription) -> None:
    assert read_subscription(write_subscription(SAID, version)) == heard


def test_a_subscription_is_written_as_java_writes_it() -> None:
    written = write_subscription(MemberSubscription(("b", "a"), None, (), None, ""))
    assert written.hex() == "000300000002000161000162ffffffff00000000ffffffffffff"


def test_a_version_of_the_future_is_read_as_the_newest_known() -> None:
    future = b"\x00\x09" + write_subscription(SAID)[2:] + b"more"
    assert read_subscription(future) == SAID


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_comes_back_sorted_by_topic(version: int) -> None:
    given = (TopicPartition("b", 1), TopicPartition("a", 5), TopicPartition("b", 0))
    assert read_assignment(write_assignment(given, version)) == tuple(sorted(given))


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x00", b"\x00\x03\x00\x00\x00\x09"])
def test_what_no_consumer_has_written_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedMemberData):
        read_assignment(data)
