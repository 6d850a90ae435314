"""kafka-reassign-partitions: files, throttled replicas, proposals and states of moves, without a cluster."""

import json

import pytest

from ottla.base.ids import TopicPartition
from ottla.cli.failures import Terse
from ottla.cli.reassign.assignment_files import assignment_json, read_assignment, read_sound_assignment
from ottla.cli.reassign.directory_moves import DirectoryMove
from ottla.cli.reassign.proposing import broker_ids, proposed
from ottla.cli.reassign.throttles import partition_moves, topic_settings
from ottla.client.admin.log_dirs import ReplicaPlace, TopicPartitionReplica
from ottla.client.admin.replicas import PartitionReassignment
from ottla.machines.metadata.controller.replica_placement import UsableBroker

FIRST, SECOND = TopicPartition("clicks", 0), TopicPartition("clicks", 10)


def test_what_is_written_can_be_read() -> None:
    directories = {TopicPartitionReplica("clicks", 0, 2): "/disk2"}
    text = assignment_json({SECOND: (3,), FIRST: (1, 2)}, directories)
    assert read_sound_assignment(text) == ({FIRST: (1, 2), SECOND: (3,)}, directories)
    assert [one["log_dirs"] for one in json.loads(text)["partitions"]] == [["any", "/disk2"], ["any"]]


def test_what_may_not_be_executed_can_be_verified() -> None:
    text = '{"partitions": [{"topic": "clicks", "partition": 0, "replicas": [1, 1]}]}'
    assert read_assignment(text).replicas == {FIRST: (1, 1)}
    with pytest.raises(Terse, match="clicks-0 contains multiple entries for 1"):
        read_sound_assignment(text)


def test_sources_are_limited_as_leaders_and_new_replicas_as_followers() -> None:
    moves = partition_moves({SECOND: (2, 3), FIRST: (1, 2)}, {SECOND: (1, 2), FIRST: (1, 2)}, {})
    assert topic_settings(moves) == {
        "clicks": {
            "leader.replication.throttled.replicas": "0:1,0:2,10:1,10:2",
            "follower.replication.throttled.replicas": "10:3",
        }
    }


def test_a_move_that_is_under_way_stays_limited_beside_a_new_one() -> None:
    under_way = {FIRST: PartitionReassignment((2, 3, 1), (3,), (1,))}
    moves = partition_moves({SECOND: (3,)}, {SECOND: (1,)}, under_way)
    assert topic_settings(moves)["clicks"]["follower.replication.throttled.replicas"] == "0:3,10:3"


def test_a_move_that_is_given_another_aim_copies_from_where_it_came() -> None:
    under_way = {FIRST: PartitionReassignment((2, 3, 1), (3,), (1,))}
    moves = partition_moves({FIRST: (2, 4)}, {FIRST: (2, 3, 1)}, under_way)
    assert moves == {FIRST: (frozenset({1, 2}), frozenset({4}))}


def test_a_proposal_keeps_the_number_of_replicas_and_uses_the_brokers_that_are_named() -> None:
    current = {TopicPartition("clicks", number): (1, 2) for number in range(12)}
    brokers = [UsableBroker(broker, None, fenced=False) for broker in (4, 5, 6)]
    proposal = proposed(current, brokers)
    assert proposal.keys() == current.keys()
    assert all(len(set(replicas)) == 2 and set(replicas) <= {4, 5, 6} for replicas in proposal.values())
    leaders = [replicas[0] for replicas in proposal.values()]
    assert {leaders.count(broker) for broker in (4, 5, 6)} == {4}


def test_a_proposal_needs_as_many_brokers_as_replicas() -> None:
    with pytest.raises(Terse, match="only 1 broker"):
        proposed({FIRST: (1, 2)}, [UsableBroker(1, None, fenced=False)])


def test_ids_of_brokers() -> None:
    assert broker_ids("3,1,") == [3, 1]
    with pytest.raises(Terse, match="duplicate entries: \\[1\\]"):
        broker_ids("1,2,1")
    with pytest.raises(Terse, match='For input string: ""'):
        broker_ids("")


@pytest.mark.parametrize(
    ("place", "told", "is_under_way"),
    [
        (("/a", 0, None, None), "Partition clicks-0 on broker 1 is not being moved from log dir /a to /b.", False),
        (("/b", 0, None, None), "Reassignment of replica clicks-0-1 completed successfully.", False),
        (("/a", 0, "/b", 9), "Reassignment of replica clicks-0-1 is still in progress.", True),
        (("/a", 0, "/c", 9), "Partition clicks-0 on broker 1 is being moved to log dir /c instead of /b.", True),
    ],
)
def test_how_far_a_move_between_directories_is(
    place: tuple[str, int, str | None, int | None], told: str, is_under_way: bool
) -> None:
    move = DirectoryMove(TopicPartitionReplica("clicks", 0, 1), "/b", ReplicaPlace(*place))
    assert (str(move), move.is_under_way) == (told, is_under_way)
