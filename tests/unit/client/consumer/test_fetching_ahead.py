"""What a consumer fetches ahead of its application, and how much of it at most."""

from random import Random

import pytest

from ottla.base.ids import TopicPartition
from ottla.client.topic_partition import OffsetAndMetadata
from tests.unit.client.consumer.consumer_bench import batch

T0, T1 = TopicPartition("clicks", 0), TopicPartition("clicks", 1)
MUCH = b"m" * 10_000
CHUNK_BYTES = 1000


def test_a_whole_response_waits_while_the_next_is_under_way(make_bench):
    bench = make_bench(max_partition_fetch_bytes=4 * len(batch(0, MUCH)))
    for _ in range(16):
        bench.logs.append(T0, MUCH)
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}, {T0: 4}]
    for _ in range(3):
        bench.core.poll(1)
        bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}, {T0: 4}]
    assert bench.core.poll(1)[0].offset == 3
    assert bench.core.chunks.buffered_bytes == 4 * len(batch(0, MUCH))
    bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}, {T0: 4}, {T0: 8}]


def test_requests_for_one_partition_ask_for_no_more_than_its_share(make_bench):
    bench = make_bench(max_partition_fetch_bytes=1000, fetch_max_bytes=1700)
    for _ in range(8):
        bench.logs.append(T0, bytes(300))
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.run()
    while bench.core.poll(1):
        bench.brokers.run()
    assert {request.max_bytes for request in bench.brokers.asked("Fetch")} <= {1000, *range(850, 1000)}


@pytest.mark.parametrize("settings", [{"fetch_max_bytes": 0}, {"max_partition_fetch_bytes": 0}])
def test_with_no_bytes_at_all_batches_come_one_by_one(make_bench, settings):
    bench = make_bench(**settings)
    for number in range(5):
        bench.logs.append(T0, b"%d" % number)
    bench.core.assign([T0])
    bench.core.poll(1)
    seen = []
    for _ in range(20):
        bench.brokers.advance(2)
        seen += bench.core.poll(1)
    assert [record.offset for record in seen] == [0, 1, 2, 3, 4]


def test_a_slow_consumer_keeps_no_more_than_it_may(make_bench):
    bench = make_bench(max_partition_fetch_bytes=1000, fetch_max_bytes=3000)
    for _ in range(200):
        bench.logs.append(T0, bytes(400))
        bench.logs.append(T1, bytes(400))
    bench.core.assign([T0, T1])
    seen, most = 0, 0
    while seen < 400:
        seen += len(bench.poll(1))
        most = max(most, bench.core.chunks.buffered_bytes)
    assert 1500 <= most <= 3000


def test_batches_larger_than_a_partitions_share_follow_one_another(make_bench):
    bench = make_bench(max_partition_fetch_bytes=100)
    for number in range(5):
        bench.logs.append(T0, b"%d" % number + bytes(400))
    bench.core.assign([T0])
    bench.core.poll(10)
    seen = []
    for _ in range(10):
        bench.brokers.run()
        seen += bench.core.poll(10)
    assert len(seen) == 5


def test_a_batch_whose_head_says_that_it_is_too_large_is_asked_for_when_there_is_room(make_bench):
    bench = make_bench(max_partition_fetch_bytes=CHUNK_BYTES)
    for size in (600, 5000, 600):
        bench.logs.append(T0, bytes(size))
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}]
    assert len(bench.core.poll(1)[0].value) == 600
    assert bench.core.poll(0) == []
    bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}]  # the rest of the chunk has not been looked at
    assert bench.core.poll(1) == []
    bench.brokers.run()
    assert bench.asked_offsets() == [{T0: 0}, {T0: 1}]
    assert len(bench.core.poll(1)[0].value) == 5000
    assert len(bench.poll(1)[0].value) == 600


def test_a_batch_that_nothing_has_told_of_is_kept_however_large_and_nothing_is_asked_for_beside_it(make_bench):
    bench = make_bench(max_partition_fetch_bytes=CHUNK_BYTES)
    bench.logs.append(T0, bytes(600))
    bench.core.assign([T0])
    bench.core.poll(1)
    bench.brokers.advance(2)
    bench.logs.append(T0, bytes(5000))
    bench.logs.append(T0, bytes(600))
    bench.end_long_polls()
    assert bench.core.chunks.buffered_bytes > 5600
    assert bench.asked_offsets() == [{T0: 0}, {T0: 1}]
    assert [len(record.value) for _ in range(3) for record in bench.poll(1)] == [600, 5000, 600]


class Watched:
    """A bench whose brokers look at what the consumer keeps when they are asked, and when they answer."""

    def __init__(self, bench, fetch_max_bytes):
        self.bench, self.fetch_max_bytes = bench, fetch_max_bytes
        self.ahead = self.surprises = 0
        bench.brokers.answer("Fetch", self.fetch)

    def fetch(self, node_id, version, request):
        core, logs = self.bench.core, self.bench.logs
        kept = core.chunks.buffered_bytes
        response = logs.fetch(node_id, version, request)
        if kept:
            self.ahead += 1
            assert kept + request.max_bytes <= self.fetch_max_bytes
        for topic in getattr(response, "responses", ()):
            for one in topic.partitions:
                if one.records:
                    self.look_at(TopicPartition("clicks", one.partition_index), one.records, kept, request.max_bytes)
                    kept += len(one.records)
        return response

    def look_at(self, partition, records, kept, asked):
        state = self.bench.core.subscription.partitions.get(partition)
        if state is None or not kept:
            return
        size = int.from_bytes(records[8:12], "big") + 12
        if size > max(min(CHUNK_BYTES, asked), state.next_batch_bytes):
            self.surprises += 1  # Nothing has told of so large a batch.
            return
        assert kept + len(records) <= self.fetch_max_bytes
        assert not state.buffered_bytes or state.buffered_bytes + len(records) <= 2 * CHUNK_BYTES


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_the_bounds_hold_and_no_record_is_lost_or_repeated_whatever_the_application_does(make_bench, seed):
    """Oversized batches, pauses, seeks, partitions that go and come back, all while responses are under way."""
    chance = Random(seed)
    fetch_max_bytes = chance.choice([1500, 3000, 8000])
    bench = make_bench(max_partition_fetch_bytes=CHUNK_BYTES, fetch_max_bytes=fetch_max_bytes)
    watched = Watched(bench, fetch_max_bytes)
    for partition in (T0, T1):
        for _ in range(60):
            values = [bytes(chance.choice([20, 20, 200, 700])) for _ in range(chance.randint(1, 4))]
            bench.logs.append(partition, *values)
    ends = {partition: bench.logs.end(partition) for partition in (T0, T1)}
    expected = {T0: 0, T1: 0}
    core = bench.core
    core.assign([T0, T1])

    def read(most):
        for record in core.poll(most):
            partition = TopicPartition(record.topic, record.partition)
            assert record.offset == expected[partition]
            expected[partition] += 1

    def seek():
        partition = chance.choice(list(core.subscription.partitions))
        expected[partition] = chance.randint(0, ends[partition])
        core.seek(partition, OffsetAndMetadata(expected[partition]))

    def give_up_and_take_back():
        core.assign([T0])
        bench.brokers.run()
        core.assign([T0, T1])
        expected[T1] = 0

    for _ in range(150):
        action = chance.random()
        if action < 0.05:
            seek()
        elif action < 0.10:
            core.pause([chance.choice([T0, T1])], is_paused=chance.random() < 0.5)
        elif action < 0.12:
            give_up_and_take_back()
        else:
            read(chance.choice([1, 1, 3, 10]))
        if chance.random() < 0.7:
            bench.brokers.advance(chance.choice([0, 2]))
    core.pause([T0, T1], is_paused=False)
    for _ in range(2000):
        if expected == ends:
            break
        read(10)
        bench.end_long_polls()
        bench.brokers.advance(2)
    assert expected == ends
    assert watched.ahead


@pytest.mark.parametrize("seed", range(5))
def test_large_batches_of_a_log_are_known_before_they_are_asked_for(make_bench, seed):
    chance = Random(seed)
    bench = make_bench(max_partition_fetch_bytes=CHUNK_BYTES, fetch_max_bytes=4 * CHUNK_BYTES)
    watched = Watched(bench, 4 * CHUNK_BYTES)
    overhead = len(batch(0, bytes(200))) - 200
    for _ in range(100):
        size = chance.choice([300, 300, 650, 2500])  # No two or three of them are a chunk, but for a head's size.
        bench.logs.append(T0, bytes(size - overhead))
    bench.core.assign([T0])
    seen = most = 0
    while seen < 100:
        seen += len(bench.core.poll(1))
        bench.brokers.advance(2)
        most = max(most, bench.core.chunks.buffered_bytes)
    assert watched.ahead > 10
    assert watched.surprises == 0
    assert most <= 2500 + 2  # As large as the largest batch: nothing was kept when it came.
