"""Controllers with several listeners: each is asked at the one that is named, and told of the one that it asked at.

Apache Kafka keeps the listeners of a voter in a hash table, and writes them to the log in its order.
"""

from collections.abc import Callable
from typing import Any

import pytest

from ottla.machines.raft.voters import Endpoint, ReplicaKey, Voter
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import AddRaftVoterRequest, BeginQuorumEpochRequest, FetchSnapshotRequest, VoteRequest
from tests.unit.runtime.metadata.quorum_of_replicas import (
    CLUSTER_ID,
    Quorum,
    Replica,
    directory_of,
    keep_place,
    raise_version,
    settled,
)
from tests.unit.runtime.metadata.test_replicating_metadata import fetch

OTHER = "OTHER"
NOBODY = -1
METADATA = "__cluster_metadata"


def elected() -> Quorum:
    quorum = Quorum(other_listeners=[OTHER])
    quorum.run(5000)
    return quorum


def test_controllers_are_asked_at_the_listener_of_that_name_wherever_it_stands() -> None:
    quorum = elected()
    quorum.leader.create("orders")
    quorum.run(1000)
    assert [replica.topics for replica in quorum.replicas.values()] == [["orders"]] * 3


def test_the_order_of_listeners_does_not_make_another_voter() -> None:
    ends = Endpoint("CONTROLLER", "host1", 9093), Endpoint(OTHER, "host1", 9094)
    one, same = Voter(ReplicaKey(1), ends), Voter(ReplicaKey(1), ends[::-1])
    assert one == same
    assert (one != same) is False
    assert len({one, same}) == 1
    assert one != Voter(ReplicaKey(1), ends[:1])
    assert one != Voter(ReplicaKey(1), ends, (1, 1))


def test_a_voter_that_the_log_describes_in_another_order_is_known_as_it_is() -> None:
    """Else it would tell the leader again every two seconds, which writes its voters each time."""
    quorum = Quorum(other_listeners=[OTHER])
    for replica in quorum.replicas.values():
        keep_place(replica, joins=False)
    quorum.run(8000)
    assert raise_version(quorum) == [ErrorCode.NONE]
    (follower, _) = quorum.followers()
    raft = follower.log.raft
    known = raft.voters.get(follower.node_id)
    assert known is not None
    described = raft.voters.updated(known._replace(endpoints=known.endpoints[::-1]))
    quorum.leader.log.write_control([described.to_record()], lambda: None, lambda _error: None)
    quorum.run(1000)
    written_at = raft.history.offset
    quorum.run(8000)
    assert raft.history.offset == written_at, "nothing more was said of voters"


def vote(replica: Replica, listener: str, then: Callable[[Any], None]) -> None:
    partition = VoteRequest.PartitionData(replica_epoch=0, replica_id=2, last_offset_epoch=0, last_offset=0)
    topics = [VoteRequest.TopicData(topic_name=METADATA, partitions=[partition])]
    assert replica.log.answers is not None
    replica.log.answers.vote(VoteRequest(voter_id=replica.node_id, topics=topics), 2, then, listener)


def begin(replica: Replica, listener: str, then: Callable[[Any], None]) -> None:
    make = BeginQuorumEpochRequest
    topics = [make.TopicData(topic_name=METADATA, partitions=[make.PartitionData(leader_id=2, leader_epoch=0)])]
    assert replica.log.answers is not None
    replica.log.answers.begin_epoch(make(voter_id=replica.node_id, topics=topics), 1, then, listener)


def part(replica: Replica, listener: str, then: Callable[[Any], None]) -> None:
    make = FetchSnapshotRequest
    topics = [make.TopicSnapshot(name=METADATA, partitions=[make.PartitionSnapshot()])]
    assert replica.log.leader is not None
    replica.log.leader.fetch_snapshot(make(topics=topics), 1, then, listener)


def fetched(replica: Replica, listener: str, then: Callable[[Any], None]) -> None:
    for reply in fetch(replica, 9, 0, listener=listener):
        then(reply)


def place_of_leader(replica: Replica, ask: Callable[..., None], listener: str) -> tuple[int, list[tuple[str, int]]]:
    """The leader's id in the answer, and where it is said to listen."""
    told: list[Any] = []
    ask(replica, listener, told.append)
    (reply,) = told
    partition = (reply.responses if ask is fetched else reply.topics)[0].partitions[0]
    leader_id = partition.current_leader.leader_id if ask in (fetched, part) else partition.leader_id
    return leader_id, [(end.host, end.port) for end in reply.node_endpoints]


@pytest.mark.parametrize("ask", [vote, begin, part, fetched])
def test_a_replica_is_told_of_the_listener_at_which_it_asks(ask: Callable[..., None]) -> None:
    """It connects to the leader with the protocol that it has used here."""
    quorum = elected()
    leader = quorum.leader.node_id
    for replica in quorum.replicas.values():
        assert place_of_leader(replica, ask, "CONTROLLER") == (leader, [(f"host{leader}", 9093)])
        assert place_of_leader(replica, ask, "other") == (leader, [("host0", 1)])


@pytest.mark.parametrize("ask", [vote, begin, part, fetched])
def test_a_leader_that_has_removed_itself_is_told_with_its_address(ask: Callable[..., None]) -> None:
    """Apache Kafka's nodes end when they hear of a leader that neither the answer nor their voters have an address of.

    It leads until its removal is committed, and the voters that its followers know are without it.
    """
    quorum = elected()
    leader, (follower, other) = quorum.leader.node_id, quorum.followers()
    for replica in (follower, other):
        raft = replica.log.raft
        raft.history.note(raft.log_end.offset, voters=raft.voters.without(ReplicaKey(leader)))
    assert place_of_leader(follower, ask, "CONTROLLER") == (leader, [(f"host{leader}", 9093)])
    assert other.log._network is not None
    other.log._network._announced.clear()
    assert place_of_leader(other, ask, "CONTROLLER") == (NOBODY, [])


def test_a_voter_that_is_not_at_the_listener_of_that_name_is_not_added() -> None:
    quorum = settled(observers=1)
    raise_version(quorum)
    make = AddRaftVoterRequest
    request = make(
        cluster_id=CLUSTER_ID,
        voter_id=4,
        voter_directory_id=directory_of(4),
        listeners=[make.Listener(name=OTHER, host="host4", port=9093)],
    )
    told: list[tuple[ErrorCode, str | None]] = []
    assert quorum.leader.log.voter_changes is not None
    quorum.leader.log.voter_changes.add(request, lambda error, words: told.append((error, words)))
    words = "Add voter request didn't include the endpoint of the default listener."
    assert told == [(ErrorCode.INVALID_REQUEST, words)]
