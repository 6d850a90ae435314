"""What a consumer asks of the cluster apart from what it reads."""

import pytest

from ottla.client.consumer.cluster_queries import partitions_for
from ottla.client.errors import UnknownTopicOrPartition
from ottla.client.promise import spawn

MINUTE_MS = 60_000


def test_the_partitions_of_a_topic(make_bench):
    bench = make_bench(topics={"clicks": 3})
    assert [one.partition for one in bench.call(partitions_for(bench.core.cluster, "clicks", MINUTE_MS))] == [0, 1, 2]


def test_a_topic_that_is_not_there_is_told_of_and_not_waited_for(make_bench):
    bench = make_bench()
    asked = spawn(partitions_for(bench.core.cluster, "nowhere", MINUTE_MS))
    bench.brokers.run()
    assert not asked.is_done, "another broker may know of it already"
    bench.brokers.advance(3_000)
    with pytest.raises(UnknownTopicOrPartition, match="nowhere"):
        asked.value()


def test_a_topic_that_has_just_been_made_is_found(make_bench):
    bench = make_bench()
    asked = spawn(partitions_for(bench.core.cluster, "new", MINUTE_MS))
    bench.brokers.run()
    bench.brokers.topics["new"] = 1
    bench.brokers.advance(500)
    assert [one.partition for one in asked.value()] == [0]
