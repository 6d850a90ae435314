"""Fetching, by example: what is asked of which broker, and what becomes of the answers."""

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.errors import (
    CorruptMessage,
    DeserializationFailed,
    InvalidState,
    NoOffsetForPartition,
    OffsetOutOfRange,
    TopicAuthorizationFailed,
    Wakeup,
)
from ottla.client.topic_partition import OffsetAndMetadata
from ottla.testing.scripted_brokers import DROP, KEEP
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import FetchResponse

T0, T1 = TopicPartition("clicks", 0), TopicPartition("clicks", 1)


def test_assigned_partitions_are_read_from_their_beginning(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a", b"b")
    bench.logs.append(T1, b"c")
    bench.core.assign([T0, T1])
    assert sorted(bench.values()) == [b"a", b"b", b"c"]
    assert bench.core.subscription.partitions[T0].position.offset == 2


def test_nothing_is_asked_before_the_first_poll_but_metadata(make_bench):
    bench = make_bench()
    bench.core.assign([T0])
    bench.brokers.run()
    assert {asked.api for asked in bench.brokers.transcript} == {"ApiVersions", "Metadata"}


def test_polling_without_a_subscription_is_refused(make_bench):
    with pytest.raises(InvalidState, match="subscribe to topics or assign partitions first"):
        make_bench().core.poll(1)


def test_records_are_handed_out_in_portions_and_positions_follow(make_bench):
    bench = make_bench()
    bench.logs.append(T0, *(b"%d" % number for number in range(5)))
    bench.core.assign([T0])
    assert bench.values(2) == [b"0", b"1"]
    assert bench.core.subscription.partitions[T0].position.offset == 2
    assert bench.values(10) == [b"2", b"3", b"4"]


MUCH = b"m" * 10_000


def test_the_next_fetch_is_under_way_while_records_wait(make_bench):
    bench = make_bench()
    bench.logs.append(T0, MUCH)
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.run()
    assert bench.asked_offsets()[-1] == {T0: 1}
    assert bench.core.poll(1)[0].value == MUCH


def test_a_few_records_are_handed_out_before_the_next_fetch_is_sent(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a")
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.run()
    assert bench.core.poll(1)[0].value == b"a"
    bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}]
    assert bench.core.poll(1) == []
    bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}, {T0: 1}]


def test_a_few_records_that_nobody_polls_for_hold_up_nothing(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a")
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.run()
    bench.brokers.advance(2)
    assert bench.asked_offsets() == [{T0: 0}, {T0: 1}]


def test_a_session_names_only_what_has_changed(make_bench):
    bench = make_bench()
    bench.core.assign([T0, T1])
    bench.values()
    bench.logs.append(T1, MUCH)
    bench.end_long_polls()
    bench.brokers.run()
    requests = bench.brokers.asked("Fetch")
    assert [(request.session_id, request.session_epoch) for request in requests] == [(0, 0), (77, 1), (77, 2)]
    assert [sum(len(topic.partitions) for topic in request.topics) for request in requests] == [2, 0, 1]


def test_a_single_partition_is_read_without_a_session(make_bench):
    bench = make_bench()
    bench.core.assign([T0])
    bench.values()
    bench.logs.append(T0, MUCH)
    bench.end_long_polls()
    bench.brokers.run()
    bench.core.assign([T0, T1])
    bench.end_long_polls()
    bench.brokers.run()
    requests = bench.brokers.asked("Fetch")
    assert [(request.session_id, request.session_epoch) for request in requests][:2] == [(0, -1), (0, -1)]
    assert (requests[-1].session_id, requests[-1].session_epoch) != (0, -1)


def test_a_session_that_the_broker_has_forgotten_begins_anew(make_bench):
    bench = make_bench()
    bench.core.assign([T0, T1])
    bench.values()
    bench.brokers.release(FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND))
    bench.logs.append(T0, MUCH)
    bench.brokers.run()
    assert bench.values() == [MUCH]
    assert [request.session_epoch for request in bench.brokers.asked("Fetch")][-2:] == [0, 1]


def test_partitions_that_are_given_up_are_forgotten_in_the_session(make_bench):
    bench = make_bench()
    bench.core.assign([T0, T1])
    bench.values()
    bench.core.assign([T0])
    bench.logs.append(T0, MUCH)
    bench.end_long_polls()
    bench.brokers.run()
    last = bench.brokers.asked("Fetch")[-1]
    assert [list(topic.partitions) for topic in last.forgotten_topics_data] == [[1]]


def test_brokers_that_know_no_topic_ids_are_asked_by_name(make_bench):
    bench = make_bench(newest={"Fetch": 11, "ListOffsets": 5, "Metadata": 7})
    bench.logs.append(T0, b"a")
    bench.core.assign([T0])
    assert bench.values() == [b"a"]
    assert bench.brokers.asked("Fetch")[0].topics[0].topic == "clicks"


def test_what_a_paused_partition_keeps_does_not_stop_the_others(make_bench):
    bench = make_bench(max_partition_fetch_bytes=1000, fetch_max_bytes=1500)
    bench.logs.append(T0, bytes(900))
    bench.core.assign([T0, T1])
    bench.core.poll(1)
    bench.brokers.run()
    bench.core.pause([T0], is_paused=True)
    assert bench.values() == []
    bench.logs.append(T1, b"x")
    bench.end_long_polls()
    bench.brokers.run()
    assert bench.values() == [b"x"]
    bench.core.pause([T0], is_paused=False)
    bench.end_long_polls()
    assert bench.values() == [bytes(900)]


def test_a_seek_drops_what_is_buffered_and_what_is_under_way(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a", b"b", b"c")
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.run()
    bench.core.seek(T0, OffsetAndMetadata(2))
    bench.end_long_polls()
    assert bench.values() == [b"c"]
    bench.core.seek_to_end_of([T0], beginning=True)
    bench.end_long_polls()
    assert bench.values() == [b"a", b"b", b"c"]


def test_an_offset_that_is_gone_is_reset_as_the_setting_says(make_bench):
    bench = make_bench(auto_offset_reset="earliest")
    bench.logs.start[T0] = 5
    bench.logs.append(T0, b"f")
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(2))
    assert bench.values() == [b"f"]


def test_an_offset_that_is_gone_is_told_when_there_is_no_reset(make_bench):
    bench = make_bench(auto_offset_reset="none")
    bench.logs.start[T0] = 5
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(2))
    with pytest.raises(OffsetOutOfRange, match="offset 2 is not in the log of clicks-0") as raised:
        bench.poll()
    assert (raised.value.partition, raised.value.offset) == (T0, 2)
    bench.core.seek(T0, OffsetAndMetadata(5))
    bench.logs.append(T0, b"f")
    assert bench.values() == [b"f"]


def test_without_a_position_and_a_reset_the_application_is_told(make_bench):
    bench = make_bench(auto_offset_reset="none")
    bench.core.assign([T0])
    with pytest.raises(NoOffsetForPartition, match="no offset is known for clicks-0"):
        bench.poll()


def test_a_partition_that_is_assigned_and_then_sought_needs_no_reset(make_bench):
    """Also while the consumer is at work, which looks for the position at once."""
    bench = make_bench(auto_offset_reset="none")
    bench.logs.append(T0, b"a")
    bench.logs.append(T1, b"b")
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(0))
    assert bench.values() == [b"a"]
    bench.core.assign([T0, T1])
    bench.core.seek(T1, OffsetAndMetadata(0))
    read = bench.values()
    bench.end_long_polls()
    assert read + bench.values() == [b"b"]


def test_the_latest_offset_is_the_logs_end(make_bench):
    bench = make_bench(auto_offset_reset="latest")
    bench.logs.append(T0, b"old")
    bench.core.assign([T0])
    assert bench.values() == []
    bench.logs.append(T0, b"new")
    bench.end_long_polls()
    assert bench.values() == [b"new"]


def test_a_duration_is_counted_back_from_now(make_bench):
    bench = make_bench(auto_offset_reset="by_duration:PT1H")
    bench.core.assign([T0])
    bench.poll()
    [request] = bench.brokers.asked("ListOffsets")
    assert request.topics[0].partitions[0].timestamp == bench.brokers.clock.now_ms() - 3_600_000


def test_a_moved_leader_is_found_through_metadata(make_bench):
    bench = make_bench(nodes=(1, 2))
    bench.core.assign([T0])
    bench.values()
    bench.brokers.leaders["clicks", 0] = 2, 1
    bench.logs.errors[T0, 1] = ErrorCode.NOT_LEADER_OR_FOLLOWER
    bench.logs.append(T0, b"x")
    bench.end_long_polls()
    bench.brokers.advance(500)
    assert bench.values() == [b"x"]
    assert bench.brokers.transcript[-1].node_id == 2


def test_a_leader_that_the_answer_names_is_asked_at_once(make_bench):
    bench = make_bench(nodes=(1, 2))
    bench.core.assign([T0])
    bench.values()
    leader = FetchResponse.LeaderIdAndEpoch(leader_id=2, leader_epoch=1)
    bench.logs.errors[T0, 1] = {"error_code": ErrorCode.NOT_LEADER_OR_FOLLOWER, "current_leader": leader}
    bench.logs.append(T0, b"x")
    metadata_before = len(bench.brokers.asked("Metadata"))
    bench.end_long_polls()
    bench.brokers.run()
    assert bench.values() == [b"x"]
    assert len(bench.brokers.asked("Metadata")) == metadata_before


def test_a_broken_connection_is_tried_again_with_a_full_request(make_bench):
    bench = make_bench()
    bench.core.assign([T0, T1])
    bench.values()
    bench.brokers.release(DROP)
    bench.brokers.answer("Fetch", [DROP, bench.logs.fetch, bench.logs.fetch, KEEP])
    bench.logs.append(T0, b"x")
    bench.brokers.advance(2000)
    assert bench.values() == [b"x"]
    assert bench.brokers.asked("Fetch")[-2].session_epoch == 0


def test_the_closest_replica_is_read_until_it_fails_or_time_is_over(make_bench):
    bench = make_bench(nodes=(1, 2), client_rack="here", metadata_max_age_ms=10_000)
    bench.logs.errors[T0, 1] = {"preferred_read_replica": 2, "high_watermark": 0, "last_stable_offset": 0}
    bench.logs.append(T0, MUCH)
    bench.core.assign([T0])
    assert bench.values() == [MUCH]
    assert bench.brokers.asked("Fetch")[0].rack_id == "here"
    nodes = [asked.node_id for asked in bench.brokers.transcript if asked.api == "Fetch"]
    assert nodes == [1, 2, 2]
    del bench.logs.errors[T0, 1]
    bench.brokers.advance(11_000)
    bench.logs.append(T0, b"y")
    bench.end_long_polls()
    assert bench.values() == [b"y"]
    assert [asked.node_id for asked in bench.brokers.transcript if asked.api == "Fetch"][-1] == 1


def test_a_closest_replica_that_cannot_be_reached_is_forgotten(make_bench):
    """KIP-392: metadata may name it for minutes, and the leader is there."""
    bench = make_bench(nodes=(1, 2), client_rack="here")
    bench.logs.errors[T0, 1] = {"preferred_read_replica": 2, "high_watermark": 0, "last_stable_offset": 0}
    bench.logs.append(T0, MUCH)
    bench.core.assign([T0])
    bench.brokers.answer("Fetch", [bench.logs.fetch, DROP, bench.logs.fetch, KEEP, KEEP])
    bench.poll()
    del bench.logs.errors[T0, 1]
    bench.brokers.advance(2000)
    assert bench.values() == [MUCH]
    assert [asked.node_id for asked in bench.brokers.transcript if asked.api == "Fetch"][:3] == [1, 2, 1]


def test_an_offset_that_a_follower_does_not_have_is_asked_of_the_leader(make_bench):
    bench = make_bench(nodes=(1, 2), client_rack="here", auto_offset_reset="none")
    bench.core.assign([T0])
    bench.core.seek(T0, OffsetAndMetadata(0))
    bench.logs.errors[T0, 1] = {"preferred_read_replica": 2, "high_watermark": 0, "last_stable_offset": 0}
    bench.logs.errors[T0, 2] = ErrorCode.OFFSET_OUT_OF_RANGE
    bench.brokers.answer("Fetch", [bench.logs.fetch, bench.logs.fetch, KEEP])
    assert bench.values() == []
    assert [asked.node_id for asked in bench.brokers.transcript if asked.api == "Fetch"] == [1, 2, 1]


def test_an_error_that_only_people_can_mend_is_told(make_bench):
    bench = make_bench()
    bench.logs.errors[T0] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    bench.core.assign([T0])
    with pytest.raises(TopicAuthorizationFailed):
        bench.poll()


def test_damaged_records_are_told_after_those_before_them(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a")
    bench.logs.append(T0, b"b")
    begin, end, made = bench.logs.batches[T0][1]
    bench.logs.batches[T0][1] = begin, end, made[:-1] + b"\xff"
    bench.core.assign([T0])
    assert bench.values() == [b"a"]
    for _ in range(2):
        with pytest.raises(CorruptMessage, match="clicks-0 at offset 1 is damaged"):
            bench.poll()
    bench.core.seek(T0, OffsetAndMetadata(2))
    bench.logs.append(T0, b"c")
    bench.end_long_polls()
    assert bench.values() == [b"c"]


def test_a_record_that_cannot_be_deserialized_can_be_passed_over(make_bench):
    bench = make_bench(value_deserializer=lambda topic, content, headers: int(content))
    bench.logs.append(T0, b"1", b"poison", b"3")
    bench.core.assign([T0])
    assert bench.values() == [1]
    with pytest.raises(DeserializationFailed, match="clicks-0 at offset 1 could not be read") as raised:
        bench.poll()
    assert (raised.value.record.offset, raised.value.record.value) == (1, b"poison")
    bench.core.seek(T0, OffsetAndMetadata(2))
    bench.end_long_polls()
    assert bench.values() == [3]


def test_aborted_transactions_are_not_shown(make_bench):
    bench = make_bench(isolation_level="read_committed")
    of_9 = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    bench.logs.append(T0, b"aborted", **of_9)
    bench.logs.append(T0, b"shown")

    def fetch(node_id, version, request):
        response = bench.logs.fetch(node_id, version, request)
        if response is not KEEP and response.responses:
            aborted = FetchResponse.AbortedTransaction(producer_id=9, first_offset=0)
            response.responses[0].partitions[0].aborted_transactions = [aborted]
        return response

    bench.brokers.answer("Fetch", fetch)
    bench.core.assign([T0])
    assert bench.values() == [b"shown"]
    assert bench.brokers.asked("Fetch")[0].isolation_level == 1


def test_wakeup_ends_the_next_poll_once(make_bench):
    bench = make_bench()
    bench.core.assign([T0])
    bench.core.wakeup()
    with pytest.raises(Wakeup):
        bench.core.poll(1)
    assert bench.core.poll(1) == []


def test_lag_and_metrics_follow_what_fetches_tell(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a", b"b", b"c")
    bench.core.assign([T0])
    assert bench.core.lag(T0) is None
    bench.values(1)
    assert bench.core.lag(T0) == 2
    metrics = bench.core.snapshot()
    assert (metrics["records-consumed-total"], metrics["records-lag-max"], metrics["fetch-total"]) == (1, 2, 1)
    assert len(bench.values()) == 2
    assert bench.core.snapshot()["bytes-consumed-total"] == len(bench.logs.batches[T0][0][2])


def test_closing_ends_the_sessions_that_no_fetch_is_in(make_bench):
    bench = make_bench()
    bench.core.assign([T0, T1])
    bench.core.poll(1)
    bench.brokers.answer("Fetch", [bench.logs.fetch, KEEP])
    bench.brokers.run()
    bench.call(bench.core.close())
    bench.core.stop()
    bench.brokers.run()
    assert bench.brokers.open_connections == 0


def test_an_error_that_comes_again_and_again_is_raised_once(make_bench):
    bench = make_bench()
    bench.logs.append(T0, b"a")
    bench.logs.errors[T0] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.advance(10_000)
    del bench.logs.errors[T0]
    with pytest.raises(TopicAuthorizationFailed):
        bench.core.poll(1)
    bench.brokers.advance(1_000)
    assert bench.values() == [b"a"]


@pytest.mark.parametrize("damage", ["cut off", "garbage", "a size that is none"])
def test_bytes_without_a_batch_are_told_and_not_asked_for_without_pause(make_bench, damage):
    bench = make_bench()
    bench.logs.append(T0, b"a", b"b")
    [(first, end, whole)] = bench.logs.batches[T0]
    damaged = {"cut off": whole[:40], "garbage": b"\xff" * 80, "a size that is none": whole[:8] + b"\xff" * 4}[damage]
    bench.logs.batches[T0] = [(first, end, damaged)]
    bench.core.assign([T0])
    with pytest.raises(CorruptMessage, match="clicks-0 at offset 0"):
        bench.values()
    assert len(bench.brokers.asked("Fetch")) < 5
    bench.logs.batches[T0] = [(first, end, whole)]
    bench.brokers.advance(1_000)
    assert bench.values() == [b"a", b"b"]


def test_a_damaged_base_offset_does_not_have_the_same_fetched_for_ever(make_bench):
    """The checksum does not cover it. What is ahead of the application is no reason to move the application."""
    bench = make_bench()
    bench.logs.append(T0, b"a", b"b")
    [(first, end, whole)] = bench.logs.batches[T0]
    bench.logs.batches[T0] = [(first, end, (1 << 40).to_bytes(8, "big") + whole[8:])]
    bench.core.assign([T0])
    bench.core.poll(0)
    bench.brokers.advance(10)
    assert len(bench.brokers.asked("Fetch")) < 5
    assert [record.offset for record in bench.core.poll(10)] == [1 << 40, (1 << 40) + 1]
