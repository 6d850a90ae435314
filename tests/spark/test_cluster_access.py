"""What the sink reads of a cluster, from brokers that answer as a test says."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.asking import Asking
from ottla.client.cluster.cluster import Cluster
from ottla.client.promise import spawn
from ottla.client.settings import read_settings
from ottla.config.scopes import Scope
from ottla.spark.sink import cluster_access
from ottla.testing.scripted_brokers import ScriptedBrokers
from ottla.wire.messages import FetchResponse


def test_a_reply_without_partitions_is_that_of_a_broker_whose_quota_is_used_up() -> None:
    brokers = ScriptedBrokers(topics={"t": 1})
    partition = FetchResponse.PartitionData(partition_index=0, high_watermark=7, log_start_offset=3)
    read = FetchResponse.FetchableTopicResponse(topic="t", partitions=[partition])
    brokers.answer("Fetch", [FetchResponse(throttle_time_ms=200), FetchResponse(responses=[read])])
    settings = read_settings(Scope.ADMIN, {"bootstrap.servers": brokers.bootstrap}, {})
    asking = Asking(Cluster(brokers.world, settings))
    fetched = spawn(cluster_access._fetch(asking, TopicPartition("t", 0), 3, False, 1 << 20))
    brokers.advance(5000)
    assert (fetched.value().log_start_offset, fetched.value().high_watermark) == (3, 7)
