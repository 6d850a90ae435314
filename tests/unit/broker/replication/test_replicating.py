"""Brokers that replicate to each other: what a follower has, what a producer is told, and who is in sync."""

from random import Random

import pytest

from ottla.broker.replication.followed import FollowedPartition
from ottla.records.batch import assign
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ConfigRecord, DeleteRecordsRequest, FetchResponse
from tests.unit.broker.brokers import batch, fetch_request, only, produce_request, produced, values_in
from tests.unit.broker.replicating_nodes import Cluster

LAG_MS = 3000


@pytest.fixture
def cluster() -> Cluster:
    """Three brokers, and a topic that the first leads."""
    cluster = Cluster(3)
    cluster.create_topic(min_insync_replicas="2")
    return cluster


def produce(cluster: Cluster, *values: bytes, to: int = 1, acks: int = -1, **fields):
    reply = cluster[to].ask(produce_request(batch(*values), acks=acks, **fields), 12)
    cluster.run()
    return reply


def bytes_of(cluster: Cluster, node_id: int) -> bytes:
    log = cluster[node_id].partition().log
    return bytes(log.read(log.log_start_offset, 1 << 20, log.log_end_offset, min_one_batch=True).read())


def ends(cluster: Cluster) -> list[tuple[int, int]]:
    """Where the logs end, and their high watermarks."""
    logs = [cluster[node_id].partition().log for node_id in sorted(cluster.nodes)]
    return [(log.log_end_offset, log.high_watermark) for log in logs]


# Following


def test_a_write_is_acknowledged_when_every_replica_in_sync_has_it(cluster):
    reply = cluster[1].ask(produce_request(batch(b"a", b"b")), 12)
    assert not reply.is_here
    cluster.run()
    assert only(reply.message).error_code == ErrorCode.NONE
    assert [end for end, _ in ends(cluster)] == [2, 2, 2]
    assert bytes_of(cluster, 1) == bytes_of(cluster, 2) == bytes_of(cluster, 3)


def test_followers_learn_of_the_high_watermark(cluster):
    produce(cluster, b"a")
    cluster.advance(500)
    assert ends(cluster) == [(1, 1), (1, 1), (1, 1)]


def test_many_partitions_of_several_leaders_are_followed(cluster):
    cluster.create_topic("payments", (2, 3, 1), partitions=20)
    for index in range(20):
        reply = cluster[2].ask(produce_request(batch(b"%d" % index), "payments", index), 12)
        cluster.run()
        assert only(reply.message).error_code == ErrorCode.NONE
    ends_of = [cluster[node_id].partition("payments", 7).log.log_end_offset for node_id in (1, 2, 3)]
    assert ends_of == [1, 1, 1]


def test_more_than_one_reply_holds_is_followed_to_the_end():
    cluster = Cluster(2, replica_fetch_max_bytes="20000", replica_fetch_response_max_bytes="50000")
    cluster.create_topic(replicas=(1, 2))
    cluster.kill(2)
    for _ in range(40):
        cluster[1].produce(batch(bytes(5000)), acks=1)
    cluster.start(2)
    cluster.advance(LAG_MS)
    assert bytes_of(cluster, 1) == bytes_of(cluster, 2)
    assert ends(cluster)[1][0] == 40


@pytest.mark.parametrize("behind", [0, 3], ids=["alone", "with others behind it"])
def test_a_batch_that_is_larger_than_a_segment_may_be_by_now_is_followed(behind):
    """`segment.bytes` was lowered since it was written. A follower that left it out and took those behind it would be
    in sync, and lead, without a record that was acknowledged.
    """
    cluster = Cluster(2)
    cluster.create_topic(replicas=(1, 2))
    cluster.kill(2)
    sizes = [100, 9000, *[100] * behind]
    for size in sizes:
        cluster[1].produce(batch(bytes(size)), acks=1)
    cluster.commit(ConfigRecord(resource_type=2, resource_name="orders", name="internal.segment.bytes", value="5000"))
    cluster.start(2)
    cluster.advance(LAG_MS)
    logs = [cluster[node_id].partition().log for node_id in (1, 2)]
    for log in logs:
        assert log.log_end_offset == len(sizes)
        offsets = [
            log.read(offset, 1, log.log_end_offset, min_one_batch=True).read()[:8] for offset in range(len(sizes))
        ]
        assert offsets == [offset.to_bytes(8, "big") for offset in range(len(sizes))]
    assert cluster.isr() == (1, 2)


def test_a_follower_that_was_away_catches_up(cluster):
    cluster.kill(3)
    produce(cluster, b"a", b"b")
    cluster.start(3)
    cluster.advance(100)
    assert [end for end, _ in ends(cluster)] == [2, 2, 2]
    assert cluster.isr() == (1, 2, 3)


def test_a_follower_that_has_lost_its_disk_begins_where_its_leader_does(cluster):
    produce(cluster, b"a")
    produce(cluster, b"b", b"c")
    cluster.advance(500)
    cluster.kill(3)
    cluster[1].partition().log.advance_log_start_offset(2)  # within the second batch
    cluster.start(3, empty=True)
    cluster.advance(LAG_MS)
    log = cluster[3].partition().log
    assert (log.log_start_offset, log.log_end_offset) == (2, 3)
    assert cluster.isr() == (1, 2, 3)


def test_followers_delete_what_the_leader_has_deleted(cluster):
    produce(cluster, b"a")
    produce(cluster, b"b")
    cluster.advance(500)
    cluster[1].partition().log.advance_log_start_offset(1)
    cluster.advance(500)
    assert cluster[2].partition().log.log_start_offset == 1
    assert cluster[1].partition().state.followers[2].log_start_offset == 1


def test_records_are_deleted_when_every_follower_that_is_alive_has_deleted_them(cluster):
    produce(cluster, b"a")
    cluster.advance(500)
    cluster.down.add(3)
    partition = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=1)
    topic = DeleteRecordsRequest.DeleteRecordsTopic(name="orders", partitions=[partition])
    reply = cluster[1].ask(DeleteRecordsRequest(topics=[topic], timeout_ms=30_000), 2)
    cluster.advance(600)
    assert not reply.is_here
    cluster.kill(3)
    assert (only(reply.message).error_code, only(reply.message).low_watermark) == (ErrorCode.NONE, 1)


def test_batches_that_were_damaged_on_the_way_are_not_appended(cluster, monkeypatch):
    take = FollowedPartition.take

    def take_damaged(followed, data):
        if data.records:
            data.records = bytearray(data.records)
            data.records[-1] ^= 1
        return take(followed, data)

    with monkeypatch.context() as noisy:
        noisy.setattr(FollowedPartition, "take", take_damaged)
        reply = produce(cluster, b"a")
        assert [end for end, _ in ends(cluster)] == [1, 0, 0]
        assert not reply.is_here
    cluster.advance(1000)
    assert only(reply.message).error_code == ErrorCode.NONE


@pytest.mark.parametrize("byte", [7, 26], ids=["its base offset", "its last offset"])
def test_a_batch_whose_offsets_were_damaged_on_the_way_costs_no_partition(cluster, byte):
    follower = cluster[2]
    first, second = batch(b"a"), batch(b"b")
    assign(second, 0, 1, 0)
    damaged = bytearray(first)
    damaged[byte] ^= 1
    followed = FollowedPartition(
        follower.broker.partitions, follower.broker.partition_events, follower.partition(), 1000
    )
    assert not followed.take(FetchResponse.PartitionData(records=bytes(damaged + second)))
    assert follower.broker.partitions.offline == set()
    assert followed.take(FetchResponse.PartitionData(records=bytes(first + second)))
    assert follower.partition().log.log_end_offset == 2


@pytest.mark.parametrize(("leader_epoch", "is_taken"), [(0, True), (1, False)])
def test_batches_of_a_later_leader_epoch_are_not_appended(cluster, leader_epoch, is_taken):
    """They are for a fetch that knows of that epoch."""
    follower = cluster[2]
    records = batch(b"a")
    assign(records, 0, 0, leader_epoch)
    followed = FollowedPartition(
        follower.broker.partitions, follower.broker.partition_events, follower.partition(), 1000
    )
    assert followed.take(FetchResponse.PartitionData(records=bytes(records))) == is_taken
    assert follower.partition().log.log_end_offset == is_taken


def test_what_has_to_be_flushed_is_told_to_the_leader_when_it_is():
    cluster = Cluster(2)
    cluster.create_topic(replicas=(1, 2), flush_messages="1")
    cluster[2].workers.hold()
    reply = produce(cluster, b"a")
    assert cluster[2].partition().log.log_end_offset == 1
    assert not reply.is_here
    cluster[2].workers.let_go()
    cluster.run()
    assert only(reply.message).error_code == ErrorCode.NONE
    assert cluster[2].partition().log.recovery_point == 1


# Who is in sync


def test_a_follower_that_does_not_fetch_leaves_the_isr_and_comes_back(cluster):
    produce(cluster, b"a")
    cluster.down.add(3)  # It is silent, and the controller has not noticed.
    reply = produce(cluster, b"b")
    assert not reply.is_here
    cluster.advance(2 * LAG_MS)
    assert cluster.isr() == (1, 2)
    assert only(reply.message).error_code == ErrorCode.NONE
    cluster.kill(3)
    cluster.start(3)
    cluster.advance(1000)
    assert cluster.isr() == (1, 2, 3)
    assert ends(cluster)[2][0] == 2


@pytest.mark.parametrize("error", [ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT])
def test_an_isr_that_no_controller_answers_for_is_asked_for_again(cluster, monkeypatch, error):
    """As while the active controller changes."""
    unanswered: list[object] = []

    def refuse(request, version, caller, then, failed):
        unanswered.append(request)
        cluster.messages.append(lambda: failed(error))

    cluster.down.add(3)
    with monkeypatch.context() as away:
        away.setattr(cluster, "ask", refuse)
        reply = produce(cluster, b"a")
        cluster.advance(2 * LAG_MS)
        assert len(unanswered) > 1
        assert not reply.is_here
        assert cluster.isr() == (1, 2, 3)
    cluster.advance(1000)
    assert cluster.isr() == (1, 2)
    assert only(reply.message).error_code == ErrorCode.NONE


def test_a_leader_that_is_elected_again_counts_what_it_knew_to_be_replicated(cluster):
    cluster.down |= {2, 3}
    produce(cluster, b"a", acks=1)
    cluster.elect(1, (1, 2, 3))
    assert cluster[1].partition().leader_epoch == 1
    assert ends(cluster)[0] == (1, 0)


def test_with_too_few_in_sync_nothing_is_taken(cluster):
    cluster.kill(2)
    cluster.kill(3)
    assert only(produce(cluster, b"a").message).error_code == ErrorCode.NOT_ENOUGH_REPLICAS
    cluster.start(2)
    cluster.advance(100)
    assert only(produce(cluster, b"a").message).error_code == ErrorCode.NONE


def test_a_follower_that_keeps_up_under_load_stays_in_sync(cluster):
    for _ in range(30):
        for _ in range(3):
            cluster[1].produce(batch(b"x"), acks=1)
        cluster.advance(LAG_MS // 10)
    assert cluster.isr() == (1, 2, 3)
    assert cluster.altered == []


# Leaders that change


def test_another_leader_has_all_that_was_acknowledged(cluster):
    for sequence in range(5):
        reply = cluster[1].ask(produce_request(produced(7, sequence, b"%d" % sequence)), 12)
        cluster.run()
        assert only(reply.message).error_code == ErrorCode.NONE
    cluster.kill(1)
    reply = cluster[2].ask(produce_request(produced(7, 4, b"4")), 12)
    cluster.advance(1000)
    assert only(reply.message).base_offset == 4, "a repetition, which the new leader knows"
    reply = cluster[2].ask(produce_request(produced(7, 5, b"5")), 12)
    cluster.run()
    assert (only(reply.message).error_code, only(reply.message).base_offset) == (ErrorCode.NONE, 5)
    found = cluster[2].fetch(0)
    assert values_in(found) == [b"0", b"1", b"2", b"3", b"4", b"5"]


def test_a_leader_that_comes_back_cuts_what_nobody_else_has(cluster):
    produce(cluster, b"a")
    cluster.down |= {2, 3}
    cluster[1].produce(batch(b"lost"), acks=1)
    cluster.down -= {2, 3}
    cluster.kill(1)
    cluster.advance(100)
    assert only(produce(cluster, b"b", to=2).message).error_code == ErrorCode.NONE
    cluster.start(1)
    cluster.advance(1000)
    assert bytes_of(cluster, 1) == bytes_of(cluster, 2) == bytes_of(cluster, 3)
    assert ends(cluster)[0] == (2, 2)
    assert sorted(cluster.isr()) == [1, 2, 3]


def parted(cluster: Cluster) -> None:
    """Broker 2 leads, with "b" where broker 1, which led and comes back, has "lost" on its disk."""
    produce(cluster, b"a")
    cluster.down |= {2, 3}
    cluster[1].produce(batch(b"lost"), acks=1)
    cluster.down -= {2, 3}
    cluster.elect(2, (2, 3))
    produce(cluster, b"b", to=2)


def test_a_log_that_was_cut_is_synced_by_a_worker_before_its_leader_is_asked_for_more(cluster):
    cluster[1].workers.hold()
    parted(cluster)
    cluster.advance(100)
    log = cluster[1].partition().log
    assert log.has_unsynced_cut
    assert (log.log_end_offset, len(cluster[1].workers)) == (1, 1)
    cluster[1].workers.let_go()
    cluster.advance(100)
    assert not log.has_unsynced_cut
    assert bytes_of(cluster, 1) == bytes_of(cluster, 2)


def test_a_leader_whose_log_was_cut_and_not_synced_yet_syncs_it_before_it_writes(cluster):
    """A power cut must not bring the old end back behind what was written since."""
    cluster[1].workers.hold()
    parted(cluster)
    cluster.advance(100)
    cluster.elect(1, (1,))
    log = cluster[1].partition().log
    assert log.has_unsynced_cut
    cluster[1].produce(batch(b"new!"), acks=1)
    assert not log.has_unsynced_cut
    for seed in range(20):
        files = cluster[1].disk.survivor(Random(seed)).files()
        assert not any(b"lost" in data for path, data in files.items() if path.endswith(".log"))


def test_a_flush_that_was_under_way_when_the_log_was_cut_is_followed_by_another(cluster):
    cluster[1].workers.hold()
    cluster[1].broker.partitions.flushing.flush(cluster[1].partition())
    parted(cluster)
    cluster.advance(100)
    log = cluster[1].partition().log
    cluster[1].workers.step()
    assert log.has_unsynced_cut
    cluster[1].workers.let_go()
    cluster.advance(100)
    assert not log.has_unsynced_cut
    assert bytes_of(cluster, 1) == bytes_of(cluster, 2)


def test_logs_that_parted_several_times_agree_in_the_end(cluster):
    """KIP-279: each has an epoch that the others have not."""
    produce(cluster, b"a")
    for leader in (2, 3, 1):
        cluster.down |= {1, 2, 3} - {leader}
        cluster.elect(leader, (leader,))
        cluster[leader].produce(batch(b"alone on %d" % leader), acks=1)
        cluster.down.clear()
        cluster.down |= {leader}
    cluster.down.clear()
    cluster.elect(2, (2,))
    cluster.advance(LAG_MS)
    assert bytes_of(cluster, 1) == bytes_of(cluster, 2) == bytes_of(cluster, 3)
    assert values_in(cluster[2].fetch(0)) == [b"a", b"alone on 2"]


def test_a_leader_that_has_not_heard_takes_nothing_and_its_followers_go_elsewhere(cluster):
    produce(cluster, b"a")
    cluster.deaf.add(1)
    cluster.elect(2, (2, 3))
    cluster.run()
    reply = produce(cluster, b"b")
    cluster.advance(30_000)
    assert only(reply.message).error_code == ErrorCode.REQUEST_TIMED_OUT
    assert [end for end, _ in ends(cluster)] == [2, 1, 1]
    cluster.deaf.clear()
    cluster.tell()
    cluster.advance(1000)
    assert [end for end, _ in ends(cluster)] == [1, 1, 1]


def test_requests_that_wait_are_told_of_the_new_leader(cluster):
    cluster.down |= {2, 3}
    produced_ = cluster[1].ask(produce_request(batch(b"a")), 12)
    fetched = cluster[1].ask(fetch_request(0, max_wait_ms=10_000, current_leader_epoch=0), 12)
    cluster.down.clear()
    cluster.elect(2, (2, 3))
    assert only(produced_.message).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert only(fetched.message).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_follower_finds_its_leader_again_after_a_while_alone(cluster):
    cluster.down.add(1)
    cluster.advance(10_000)
    cluster.down.clear()
    cluster.advance(1000)
    assert only(produce(cluster, b"a").message).error_code == ErrorCode.NONE


def test_producers_of_a_partition_with_a_new_leader_do_not_wait_for_the_fetches_of_others():
    """Node 3 waits at node 2 for records of `payments` when node 2 becomes the leader of `orders`, too."""
    cluster = Cluster(3, replica_fetch_wait_max_ms="500")
    cluster.create_topic("orders", (1, 2, 3))
    cluster.create_topic("payments", (2, 3, 1))
    cluster.advance(700)
    cluster.kill(1)
    reply = produce(cluster, b"a", to=2)
    assert only(reply.message).error_code == ErrorCode.NONE, "and no time has passed"


def test_the_number_of_fetchers_may_change(cluster):
    cluster.create_topic("payments", (1, 2, 3), partitions=8)
    cluster.commit(ConfigRecord(resource_type=4, resource_name="", name="num.replica.fetchers", value="3"))
    cluster.advance(600)
    for index in range(8):
        reply = cluster[1].ask(produce_request(batch(b"x"), "payments", index), 12)
        cluster.advance(600)
        assert only(reply.message).error_code == ErrorCode.NONE
    assert len(cluster[2].broker.fetchers) == 9
