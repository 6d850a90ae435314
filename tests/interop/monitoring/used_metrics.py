"""How dashboards that people have use each metric: what is done with it, and by which labels it is told apart.

Facts about Strimzi's dashboards for Kafka, KRaft and its exporter, and about kafka_exporter's own, of November 2026,
without what is about the JVM, containers and volumes. `expression` writes a query of the same meaning.
"""

from typing import Final, NamedTuple


class Use(NamedTuple):
    metric: str
    over: str = ""
    """A function of a range, and the range."""
    total: str = "sum"
    by: str = ""

    @property
    def expression(self) -> str:
        function, _, span = self.over.partition(" ")
        inner = f"{function}({self.metric}[{span}])" if function else self.metric
        return f"{self.total}({inner})" + (f" by ({self.by})" if self.by else "") if self.total else inner


_TRAFFIC: Final = (
    "messagesin",
    "bytesin",
    "bytesout",
    "totalproducerequests",
    "failedproducerequests",
    "totalfetchrequests",
    "failedfetchrequests",
)
_QUORUM: Final = (
    "current_leader",
    "current_vote",
    "current_epoch",
    "high_watermark",
    "log_end_offset",
    "append_records_rate",
    "fetch_records_rate",
    "commit_latency_avg",
)
_CHANNEL: Final = ["incoming_byte", "outgoing_byte", "request", "response"]
_TOPICS: Final = ["replicas", "in_sync_replica", "under_replicated_partition", "leader_is_preferred"]
_MEMBERS: Final = "consumergroup, topic"

USES: Final = (
    Use("kafka_server_replicamanager_leadercount", total="count"),
    Use("kafka_controller_kafkacontroller_activecontrollercount"),
    Use("kafka_controller_controllerstats_uncleanleaderelections_total", "irate 5m"),
    Use("kafka_server_replicamanager_partitioncount"),
    Use("kafka_server_replicamanager_underreplicatedpartitions"),
    Use("kafka_cluster_partition_atminisr"),
    Use("kafka_cluster_partition_underminisr"),
    Use("kafka_controller_kafkacontroller_offlinepartitionscount"),
    Use("process_open_fds", by="instance"),
    Use("kafka_server_kafkaserver_linux_disk_read_bytes", "irate 5m", by="instance"),
    Use("kafka_server_kafkaserver_linux_disk_write_bytes", "irate 5m", by="instance"),
    *(Use(f"kafka_server_brokertopicmetrics_{one}_total", "irate 5m", by="topic") for one in _TRAFFIC),
    Use("kafka_network_socketserver_networkprocessoravgidle_percent", by="instance"),
    Use("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", by="instance"),
    Use("kafka_server_socket_server_metrics_connection_count", by="instance, listener"),
    Use("kafka_log_log_size", by="topic, partition"),
    Use("kafka_server_raftmetrics_current_state", total="max", by="instance, current_state"),
    *(Use(f"kafka_server_raftmetrics_{one}", by="instance") for one in _QUORUM),
    *(Use(f"kafka_server_raftchannelmetrics_{one}_total", "irate 5m", by="instance") for one in _CHANNEL),
    Use("kafka_topic_partitions", total="count"),
    Use("kafka_topic_partitions", by="topic"),
    *(Use(f"kafka_topic_partition_{one}") for one in _TOPICS),
    Use("kafka_topic_partition_current_offset", by="partition, topic"),
    Use("kafka_topic_partition_oldest_offset", by="partition, topic"),
    Use("kafka_topic_partition_current_offset", "rate 5m", by="topic"),
    Use("kafka_topic_partition_current_offset", "delta 5m", by="topic"),
    Use("kafka_consumergroup_current_offset", by="consumergroup, partition, topic"),
    Use("kafka_consumergroup_current_offset", "delta 5m", by=_MEMBERS),
    Use("kafka_consumergroup_lag", by="consumergroup, partition, topic"),
    Use("kafka_consumergroup_lag", by=_MEMBERS),
)
