"""A quorum of several replicas: it elects, replicates, survives its leader, and heals what parted (KIP-595, 630)."""

import pytest

from ottla.machines.raft.machine import Role
from ottla.runtime.metadata.snapshotter import SnapshotConfig
from ottla.runtime.metadata.storage.snapshots import SnapshotId, snapshot_batches
from ottla.runtime.metadata.storage.store import StoreConfig
from ottla.runtime.peers.node_connections import NodeAddress
from ottla.testing.step_workers import StepWorkers
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchRequest, FetchResponse, VoteRequest
from tests.unit.runtime.metadata.quorum_of_replicas import Quorum, Replica


def elected(**options: object) -> Quorum:
    quorum = Quorum(**options)  # type: ignore[arg-type]
    quorum.run(5000)
    return quorum


def test_three_voters_elect_one_and_all_are_ready() -> None:
    quorum = elected()
    assert quorum.leader.log.raft.role is Role.LEADER
    assert [replica.events for replica in quorum.replicas.values()] == [["ready"]] * 3
    assert {replica.log.raft.leader_id for replica in quorum.replicas.values()} == {quorum.leader.node_id}


def starting_controller(quorum: Quorum) -> Replica:
    """Runs the quorum up to the moment at which a controller's first batch is written and not committed."""
    for _ in range(10_000):
        turned = 0
        for replica in quorum.replicas.values():
            turned += replica.network.turn()
            if _is_starting(replica):
                return replica
        if not turned:
            quorum.agenda.fire_next()
    raise AssertionError("no controller starts")


def _is_starting(replica: Replica) -> bool:
    return replica.log.is_active and not replica.events


def test_a_controller_that_loses_its_epoch_before_its_first_batch_is_committed_is_ready_when_it_follows() -> None:
    quorum = Quorum()
    starting = starting_controller(quorum)
    quorum.isolate(starting.node_id)
    quorum.run(20_000)
    assert starting.events == []
    quorum.cut.clear()
    quorum.run(60_000)
    assert starting.log.raft.role is Role.FOLLOWER
    assert [replica.events for replica in quorum.replicas.values()] == [["ready"]] * 3


def test_a_controller_that_loses_its_epoch_before_its_first_batch_is_committed_is_ready_when_it_leads_again() -> None:
    """Its node starts what it does as a controller (fencing silent brokers above all) when it is ready."""
    quorum = Quorum()
    starting = starting_controller(quorum)
    for node_id in quorum.replicas:
        quorum.isolate(node_id)
    quorum.run(8000)
    assert not starting.log.is_active
    voter = next(node_id for node_id in quorum.replicas if node_id != starting.node_id)
    quorum.cut.discard(frozenset((starting.node_id, voter)))
    for _ in range(10_000):
        quorum.run(1)
        if starting.log.is_active:
            break
        if any(replica.log.is_active for replica in quorum.replicas.values()):
            quorum.isolate(voter)
            quorum.run(8000)
            quorum.cut.discard(frozenset((starting.node_id, voter)))
    quorum.run(1000)
    assert starting.log.is_active
    assert starting.events == ["ready"]
    quorum.cut.clear()
    quorum.run(60_000)
    assert [replica.events for replica in quorum.replicas.values()] == [["ready"]] * 3


def test_what_is_decided_is_in_every_image_and_the_reply_comes_when_a_majority_has_it() -> None:
    quorum = elected()
    leader = quorum.leader
    leader.create("orders")
    assert leader.events == ["ready"]
    quorum.run(50)
    assert leader.events == ["ready", "orders"]
    assert [replica.topics for replica in quorum.replicas.values()] == [["orders"]] * 3


def test_followers_learn_the_high_watermark_without_another_record() -> None:
    """KIP-1166: a fetch that waits is answered when there is a higher high watermark to tell of."""
    quorum = elected()
    quorum.leader.create("orders")
    quorum.run(20)
    assert {replica.log.high_watermark for replica in quorum.replicas.values()} == {quorum.leader.log.log_end_offset}


def test_a_leader_that_is_killed_is_replaced_and_nothing_is_lost() -> None:
    quorum = elected()
    quorum.leader.create("before")
    quorum.run(50)
    dead = quorum.leader.node_id
    disk = quorum.kill(dead)
    quorum.run(1500)
    quorum.leader.create("after")
    quorum.run(50)
    back = quorum.start(dead, disk)
    quorum.run(3000)
    assert back.topics == quorum.leader.topics == ["after", "before"]
    assert back.log.raft.role is Role.FOLLOWER


def test_what_a_cut_off_leader_wrote_is_refused_and_cut_away_when_it_is_back() -> None:
    quorum = elected()
    old = quorum.leader
    quorum.isolate(old.node_id)
    old.create("lost")
    quorum.run(8000)
    assert old.events[-1] is ErrorCode.NOT_CONTROLLER
    assert old.log.raft.role is not Role.LEADER
    new = quorum.leader
    new.create("kept")
    quorum.run(50)
    quorum.cut.clear()
    quorum.run(8000)
    assert old.topics == quorum.leader.topics == ["kept"]
    assert old.log.log_end_offset == quorum.leader.log.log_end_offset


def test_a_voter_that_was_cut_off_comes_back_without_ending_the_epoch() -> None:
    """KIP-996."""
    quorum = elected()
    epoch, away = quorum.leader.log.raft.epoch, quorum.followers()[0]
    quorum.isolate(away.node_id)
    quorum.run(20_000)
    quorum.cut.clear()
    quorum.run(5000)
    assert {replica.log.raft.epoch for replica in quorum.replicas.values()} == {epoch}
    assert away.log.raft.role is Role.FOLLOWER


def test_an_observer_follows_and_counts_for_nothing() -> None:
    quorum = elected(voters=1, observers=2)
    quorum.leader.create("orders")
    quorum.run(600)
    assert [replica.topics for replica in quorum.replicas.values()] == [["orders"]] * 3
    progress = quorum.replicas[1].log.raft.progress
    assert progress is not None
    assert sorted(key.id for key in progress.observers) == [2, 3]


def test_an_observer_finds_the_next_leader() -> None:
    quorum = elected(voters=3, observers=1)
    quorum.kill(quorum.leader.node_id)
    quorum.run(3000)
    quorum.leader.create("later")
    quorum.run(1000)
    assert quorum.replicas[4].topics == ["later"]


def test_a_replica_that_starts_late_gets_a_snapshot() -> None:
    quorum = elected(
        snapshots=SnapshotConfig(max_bytes=1), store_config=StoreConfig(retention_bytes=1, segment_bytes=8 << 20)
    )
    late = quorum.followers()[0].node_id
    quorum.kill(late)
    quorum.run(3000)
    for number in range(5):
        quorum.leader.create(f"topic-{number}")
        quorum.run(100)
        quorum.leader.log._store.log.roll()
    for replica in quorum.replicas.values():
        replica.log.maintain()
    assert quorum.leader.log._store.log.log_start_offset > 0
    fresh = quorum.start(late)
    quorum.run(5000)
    assert fresh.topics == quorum.leader.topics
    assert fresh.log._store.snapshots
    quorum.leader.create("one more")
    quorum.run(600)
    assert "one more" in fresh.topics


def outlived(away_is_observer: bool) -> tuple[Quorum, Replica]:
    """A running replica was cut off, and the leader's log begins after all that it has."""
    quorum = elected(
        observers=1,
        snapshots=SnapshotConfig(max_bytes=1),
        store_config=StoreConfig(retention_bytes=1, segment_bytes=8 << 20),
    )
    quorum.leader.create("before")
    quorum.run(600)
    away = quorum.replicas[4] if away_is_observer else quorum.followers()[0]
    quorum.isolate(away.node_id)
    for number in range(5):
        quorum.leader.create(f"topic-{number}")
        quorum.run(100)
        quorum.leader.log.maintain()
    assert quorum.leader.log._store.log.log_start_offset > away.log.log_end_offset
    return quorum, away


@pytest.mark.parametrize("away_is_observer", [True, False])
def test_a_running_replica_that_the_leaders_log_has_outlived_takes_the_snapshot_in_place(
    away_is_observer: bool,
) -> None:
    quorum, away = outlived(away_is_observer)
    image = away.log.image
    quorum.cut.clear()
    quorum.run(8000)
    assert away.log.image is image
    assert away.topics == quorum.leader.topics
    assert away.log.committed_offset == quorum.leader.log.committed_offset
    quorum.leader.create("one more")
    quorum.run(600)
    assert "one more" in away.topics


def test_listeners_hear_what_lies_between_the_image_and_the_snapshot() -> None:
    quorum, away = outlived(away_is_observer=True)
    heard: list[list[str]] = []
    away.log.listen(lambda delta: heard.append(sorted(topic.name for topic in delta.topics_created.values())))
    quorum.cut.clear()
    quorum.run(8000)
    assert heard == [[f"topic-{number}" for number in range(5)]]


def test_a_replica_that_took_a_snapshot_in_place_starts_again_from_it() -> None:
    quorum, away = outlived(away_is_observer=False)
    quorum.cut.clear()
    quorum.run(8000)
    again = quorum.start(away.node_id, quorum.kill(away.node_id))
    quorum.run(5000)
    assert again.topics == quorum.leader.topics


def test_a_snapshot_of_an_epoch_that_is_over_does_not_replace_the_log() -> None:
    """While it was kept, another replica began to lead, whose log may be followed without it."""
    quorum = elected()
    follower = quorum.followers()[0]
    log, jobs = follower.log, StepWorkers()
    jobs.hold()
    log._receiver._workers = jobs
    told: list[object] = []
    snapshot = SnapshotId(log.log_end_offset + 100, log.raft.epoch)
    data = b"".join(snapshot_batches([], 0))
    log.receive_snapshot(snapshot, 0, data, len(data), told.append, lambda: told.append("refused"))
    log.raft.epoch += 1
    jobs.step()
    assert (told, log.log_end_offset < snapshot.end_offset) == ([False], True)


def test_a_vote_is_given_when_it_is_on_the_disk_and_the_loop_goes_on_meanwhile() -> None:
    quorum = elected()
    voter, epoch = quorum.followers()[0], quorum.leader.log.raft.epoch
    assert voter.log.answers is not None
    assert voter.log.leader is not None
    quorum.isolate(voter.node_id)
    voter.workers.hold()
    partition = VoteRequest.PartitionData(
        replica_epoch=epoch + 1, replica_id=quorum.leader.node_id, last_offset_epoch=epoch, last_offset=1000
    )
    topics = [VoteRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])]
    votes: list[bool] = []
    others: list[object] = []
    voter.log.answers.vote(
        VoteRequest(cluster_id="the-cluster", voter_id=voter.node_id, topics=topics),
        2,
        lambda reply: votes.append(reply.topics[0].partitions[0].vote_granted),
    )
    voter.log.leader.fetch(FetchRequest(cluster_id="other"), 18, lambda reply: others.append(reply.error_code))
    assert (votes, others) == ([], [ErrorCode.INCONSISTENT_CLUSTER_ID])
    voter.workers.let_go()
    assert votes == [True]


def test_requests_of_another_cluster_or_for_another_voter_are_refused() -> None:
    quorum = elected()
    replica = quorum.followers()[0]
    assert replica.log.answers is not None
    assert replica.log.leader is not None
    told: list[object] = []
    replica.log.answers.vote(VoteRequest(cluster_id="other"), 2, lambda reply: told.append(reply.error_code))
    replica.log.leader.fetch(FetchRequest(cluster_id="other"), 18, lambda reply: told.append(reply.error_code))
    partition = VoteRequest.PartitionData(replica_epoch=99, replica_id=1)
    topics = [VoteRequest.TopicData(topic_name="__cluster_metadata", partitions=[partition])]
    for request in (
        VoteRequest(cluster_id="the-cluster", voter_id=99, topics=topics),
        VoteRequest(cluster_id="the-cluster", topics=[]),
    ):
        replica.log.answers.vote(request, 2, lambda reply: told.append(reply.error_code))
    assert told == [
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INCONSISTENT_CLUSTER_ID,
        ErrorCode.INVALID_VOTER_KEY,
        ErrorCode.INVALID_REQUEST,
    ]
    assert replica.log.raft.epoch == quorum.leader.log.raft.epoch


@pytest.mark.parametrize("node_id", [3, 4], ids=["a voter", "an observer"])
def test_a_replica_of_another_cluster_says_so_and_ends(node_id: int, caplog: pytest.LogCaptureFixture) -> None:
    quorum = elected()
    if node_id in quorum.replicas:
        quorum.kill(node_id)
    stranger = quorum.start(node_id, cluster_id="another")
    quorum.run(20_000)
    assert caplog.text.count("is of another cluster than this node's log.dirs, whose cluster.id is another") == (
        node_id - 1
    ), "each of the others is told of once"
    (problem,) = stranger.problems
    assert "every controller that is known is of another cluster" in str(problem)
    assert stranger.events == []
    quorum.leader.create("orders")
    quorum.run(50)
    assert quorum.leader.topics == ["orders"]


def test_a_replica_that_was_ready_outlives_that_all_others_are_replaced_by_another_cluster() -> None:
    """The others may have lent their addresses only for a while."""
    quorum = elected()
    for node_id in (1, 2):
        quorum.kill(node_id)
        quorum.start(node_id, cluster_id="another")
    quorum.run(20_000)
    assert quorum.replicas[3].problems == []


def test_votes_are_asked_for_where_the_log_says_that_voters_are_whatever_was_announced() -> None:
    quorum = elected(voters=3, observers=1)
    one, other = (replica for replica in quorum.followers() if replica.node_id != 4)
    for replica, mistaken in ((one, other), (other, one)):
        replica.log._network.learn_address(mistaken.node_id, NodeAddress("host4", 9093))
    quorum.kill(quorum.leader.node_id)
    quorum.run(5000)
    assert quorum.leader.node_id in (one.node_id, other.node_id)


def test_a_controller_that_knows_who_leads_but_not_where_is_not_taken_for_the_leader() -> None:
    """One that was not a voter when the leader became one: it has the leader's id by an epoch, and no address of it."""
    quorum = elected(voters=3, observers=1)
    observer = quorum.replicas[4]
    network, raft = observer.log._network, observer.log.raft
    partition = FetchResponse.PartitionData(
        error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER,
        current_leader=FetchResponse.LeaderIdAndEpoch(leader_id=5, leader_epoch=raft.epoch + 1),
    )
    response = FetchResponse(responses=[FetchResponse.FetchableTopicResponse(partitions=[partition])])
    network._announced.clear()
    network.next_known = lambda _voters: (-2, NodeAddress("host2", 9093))
    network.fetch = lambda to, epoch, log_end, high_watermark, then, failed: then(response)
    observer.log.find_leader()
    assert raft.leader_id == 5
    assert network.address_of(5, raft.voters) is None


def test_what_a_voter_says_it_has_when_it_asks_who_leads_is_on_its_disk() -> None:
    """The one whom it asks may be the leader, which counts it."""
    quorum = elected(voters=3)
    (one, _) = quorum.followers()
    one.workers.hold()
    quorum.leader.create("orders")
    quorum.run(100)
    sent: list[int] = []
    assert one.log._network is not None
    one.log._network.fetch = lambda to, epoch, log_end, *rest: sent.append(log_end.offset)  # type: ignore[method-assign]
    one.log.find_leader()
    assert sent == []
    one.workers.let_go()
    assert quorum.leader.log.log_end_offset in sent
