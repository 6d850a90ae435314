"""Positions across leaders (KIP-320), and the calls that look offsets up."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.client_log import WARNING
from ottla.client.consumer.offsets.offset_reset import EARLIEST, LATEST, NONE, parse_duration_ms, parse_offset_reset
from ottla.client.errors import ClientError, InvalidState, LogTruncated, RequestTimedOut
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.testing.scripted_brokers import KEEP
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListOffsetsResponse

T0, T1 = TopicPartition("clicks", 0), TopicPartition("clicks", 1)


def change_leader(bench, epoch=1):
    bench.brokers.leaders["clicks", 0] = 2, epoch
    bench.core.cluster.refresh()
    bench.brokers.run()
    bench.end_long_polls()
    bench.brokers.advance(500)


@pytest.mark.parametrize(("text", "reset"), [("earliest", EARLIEST), ("LATEST", LATEST), ("none", NONE)])
def test_strategies_are_read(text, reset):
    assert parse_offset_reset(text) == reset


@pytest.mark.parametrize(
    ("text", "duration_ms"), [("PT1H30M", 5_400_000), ("P1D", 86_400_000), ("pt0.5s", 500), ("P1DT1S", 86_401_000)]
)
def test_durations_are_read_as_java_reads_them(text, duration_ms):
    assert parse_duration_ms(text) == duration_ms


@pytest.mark.parametrize("text", ["P", "PT", "1H", "P1M", "-PT1H", ""])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(ClientError, match="is not a duration"):
        parse_duration_ms(text)


def test_a_new_leader_is_asked_whether_it_has_what_was_read(make_bench):
    bench = make_bench(nodes=(1, 2))
    bench.logs.append(T0, b"a", b"b")
    bench.core.assign([T0])
    assert bench.values() == [b"a", b"b"]
    change_leader(bench)
    [request] = bench.brokers.asked("OffsetForLeaderEpoch")
    asked = request.topics[0].partitions[0]
    assert (asked.current_leader_epoch, asked.leader_epoch, request.replica_id) == (1, 0, -1)
    bench.logs.append(T0, b"c", epoch=1)
    bench.end_long_polls()
    assert bench.values() == [b"c"]
    assert bench.core.subscription.partitions[T0].position.epoch == 1


def test_a_leader_of_an_older_epoch_than_the_position_is_not_asked(make_bench):
    """It was deposed and does not know it: its log ends before what others have read since."""
    bench = make_bench(nodes=(1, 2))
    bench.logs.append(T0, b"a")
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(3, leader_epoch=1))
    for _ in range(3):
        bench.poll()
        bench.brokers.advance(1_000)
    assert not bench.brokers.asked("OffsetForLeaderEpoch")
    assert not bench.brokers.asked("Fetch")
    assert bench.core.subscription.partitions[T0].position.offset == 3
    bench.logs.append(T0, b"b", b"c")
    bench.logs.append(T0, b"d", epoch=1)
    change_leader(bench)
    assert bench.values() == [b"d"]


def test_a_cut_log_is_read_again_from_where_it_was_cut(make_bench):
    bench = make_bench(nodes=(1, 2))
    bench.logs.append(T0, b"a", b"b", b"c")
    bench.core.assign([T0])
    assert len(bench.values()) == 3
    bench.logs.batches[T0] = []
    bench.logs.append(T0, b"a")
    bench.logs.append(T0, b"B", b"C", epoch=1)
    bench.logs.epoch_ends[T0] = 0, 1
    change_leader(bench)
    assert bench.values() == [b"B", b"C"]


def test_a_cut_log_is_told_when_there_is_no_reset(make_bench):
    bench = make_bench(nodes=(1, 2), auto_offset_reset="none")
    bench.logs.append(T0, b"a", b"b", b"c")
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(0))
    assert len(bench.values()) == 3
    bench.logs.epoch_ends[T0] = 0, 1
    change_leader(bench)
    with pytest.raises(LogTruncated, match="was read to offset 3, and its log now differs from offset 1 on") as raised:
        bench.poll()
    assert (raised.value.partition, raised.value.diverging_offset) == (T0, 1)


def test_records_that_were_not_handed_out_are_no_loss(make_bench):
    bench = make_bench(nodes=(1, 2), auto_offset_reset="none")
    bench.logs.append(T0, b"a")
    bench.logs.append(T0, b"b", b"c")
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(0))
    assert bench.values(1) == [b"a"]
    bench.logs.batches[T0].pop()
    bench.logs.append(T0, b"B", epoch=1)
    bench.logs.epoch_ends[T0] = 0, 1
    change_leader(bench)
    assert bench.values() == [b"B"]


def test_a_position_is_looked_up_when_it_is_asked_for(make_bench):
    bench = make_bench()
    bench.logs.start[T0] = 4
    bench.core.assign([T0])
    assert bench.call(bench.core.position(T0, 1000)) == 4
    with pytest.raises(InvalidState, match="clicks-1 is not assigned"):
        bench.call(bench.core.position(T1, 1000))


def test_a_position_that_nobody_can_tell_is_waited_for_only_so_long(make_bench):
    bench = make_bench()
    bench.brokers.answer("ListOffsets", KEEP)
    bench.core.assign([T0])
    with pytest.raises(RequestTimedOut, match="the position in clicks-0 was not found in time"):
        bench.call(bench.core.position(T0, 1000), advance_ms=1100)


def test_offsets_are_looked_up_at_every_leader_and_again_where_it_has_moved(make_bench):
    bench = make_bench(nodes=(1, 2))
    bench.logs.append(T0, b"a")
    bench.logs.append(T1, b"a", b"b")
    moved = ListOffsetsResponse.ListOffsetsPartitionResponse(
        partition_index=0, error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER
    )
    topic = ListOffsetsResponse.ListOffsetsTopicResponse(name="clicks", partitions=[moved])
    is_first = [True]

    def list_offsets(node_id, version, request):
        if node_id == 1 and is_first:
            is_first.clear()
            return ListOffsetsResponse(topics=[topic])
        return bench.logs.list_offsets(node_id, version, request)

    bench.brokers.answer("ListOffsets", list_offsets)
    found = bench.call(bench.core.look_up({T0: -1, T1: -1}, 5000), advance_ms=1000)
    assert {partition: one.offset for partition, one in found.items()} == {T0: 1, T1: 2}
    assert len(bench.brokers.asked("ListOffsets")) == 3


def test_an_offset_that_is_not_in_the_log_is_told_of_in_the_log(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a", b"b")
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(50))
    bench.poll()
    bench.brokers.advance(500)
    assert [(line.level, line.text) for line in bench.brokers.lines] == [
        (WARNING, "offset 50 is not in the log of clicks-0: begins again at earliest (auto.offset.reset)")
    ]


def test_a_log_that_was_truncated_is_told_of_in_the_log(make_bench):
    bench = make_bench(nodes=(1, 2))
    bench.logs.append(T0, b"a", b"b", b"c")
    bench.core.assign([T0])
    assert bench.values() == [b"a", b"b", b"c"]
    bench.logs.epoch_ends[T0] = 0, 1
    change_leader(bench)
    texts = [line.text for line in bench.brokers.lines]
    assert "clicks-0 was read to offset 3, and its log was truncated since: begins again at offset 1" in texts
