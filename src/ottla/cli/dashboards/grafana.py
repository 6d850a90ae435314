"""Dashboards for Grafana, from tables: a panel is a title, expressions with their legends, and a unit."""

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

_WIDTH: Final = 24
_SCHEMA_VERSION: Final = 39

COUNT, BYTES, BYTES_S, SECONDS, PER_S, SHARE, MS = "short", "bytes", "Bps", "s", "ops", "percentunit", "ms"


class Panel(NamedTuple):
    title: str
    unit: str
    queries: tuple[tuple[str, str], ...]
    """Expression and legend."""
    is_number: bool = False
    """Shown as one number, and not over time."""


class Dashboard(NamedTuple):
    name: str
    title: str
    panels: tuple[Panel, ...]
    variables: tuple[tuple[str, str], ...] = ()
    """Name, and the metric and label that its values come from, as Grafana's `label_values` takes them."""


def _number(title: str, expression: str, unit: str = COUNT) -> Panel:
    return Panel(title, unit, ((expression, ""),), is_number=True)


def _graph(title: str, unit: str, *queries: tuple[str, str]) -> Panel:
    return Panel(title, unit, queries)


_NODE: Final = '{instance=~"$instance"}'
_TOPIC: Final = '{topic=~"$topic",topic!=""}'
_GROUP: Final = '{consumergroup=~"$group"}'
_BY_GROUP: Final = "{{consumergroup}} {{topic}}"
_BY_TOPIC: Final = "{{topic}}"
_TRAFFIC: Final = "kafka_server_brokertopicmetrics_"

DASHBOARDS: Final = (
    Dashboard(
        "ottla-cluster",
        "Ottla: cluster",
        (
            _number("Brokers", "max(kafka_controller_kafkacontroller_activebrokercount)"),
            _number("Fenced brokers", "max(kafka_controller_kafkacontroller_fencedbrokercount)"),
            _number("Active controllers", "sum(kafka_controller_kafkacontroller_activecontrollercount)"),
            _number("Partitions without a leader", "max(kafka_controller_kafkacontroller_offlinepartitionscount)"),
            _number("Under-replicated partitions", "sum(kafka_server_replicamanager_underreplicatedpartitions)"),
            _number("Under min ISR", "sum(kafka_server_replicamanager_underminisrpartitioncount)"),
            _number("Topics", "max(kafka_controller_kafkacontroller_globaltopiccount)"),
            _number("Partitions", "max(kafka_controller_kafkacontroller_globalpartitioncount)"),
            _graph(
                "Bytes in and out",
                BYTES_S,
                (f'sum(rate({_TRAFFIC}bytesin_total{{topic=""}}[5m]))', "in"),
                (f'sum(rate({_TRAFFIC}bytesout_total{{topic=""}}[5m]))', "out"),
            ),
            _graph("Records in", PER_S, (f'sum(rate({_TRAFFIC}messagesin_total{{topic=""}}[5m]))', "records")),
            _graph(
                "Produce, 99 %",
                SECONDS,
                (
                    "histogram_quantile(0.99, sum by (instance, le) "
                    '(rate(ottla_request_duration_seconds_bucket{request="Produce"}[5m])))',
                    "{{instance}}",
                ),
            ),
            _graph("Loop: longest stall", SECONDS, ("ottla_loop_longest_stall_seconds", "{{instance}}")),
            _graph(
                "Disk: free", SHARE, ("ottla_disk_free_bytes / ottla_disk_size_bytes", "{{instance}} {{directory}}")
            ),
            _graph("Leaders by broker", COUNT, ("kafka_server_replicamanager_leadercount", "{{instance}}")),
            _graph(
                "Groups that are furthest behind",
                SECONDS,
                (
                    "topk(10, max by (consumergroup, topic) (ottla_consumergroup_lag_seconds))",
                    _BY_GROUP,
                ),
            ),
            _graph(
                "ISR changes",
                PER_S,
                ("sum(rate(kafka_server_replicamanager_isrshrinks_total[5m]))", "shrinks"),
                ("sum(rate(kafka_server_replicamanager_isrexpands_total[5m]))", "expands"),
            ),
        ),
    ),
    Dashboard(
        "ottla-node",
        "Ottla: node",
        (
            _number("Version", f"ottla_build_info{_NODE}"),
            _number("Since", f"time() - process_start_time_seconds{_NODE}", SECONDS),
            _number("Connections", f"sum(kafka_server_socket_server_metrics_connection_count{_NODE})"),
            _number("Leads", f"kafka_server_replicamanager_leadercount{_NODE}"),
            _graph(
                "Loop",
                SHARE,
                (f"rate(ottla_loop_busy_seconds_total{_NODE}[5m])", "busy {{instance}}"),
            ),
            _graph("Loop: longest stall", SECONDS, (f"ottla_loop_longest_stall_seconds{_NODE}", "{{instance}}")),
            _graph(
                "Requests",
                PER_S,
                (f"sum by (request) (rate(kafka_network_requestmetrics_requests_total{_NODE}[5m]))", "{{request}}"),
            ),
            _graph(
                "Time of requests, 99 %",
                SECONDS,
                (
                    "histogram_quantile(0.99, sum by (request, le) "
                    f"(rate(ottla_request_duration_seconds_bucket{_NODE}[5m])))",
                    "{{request}}",
                ),
            ),
            _graph(
                "Requests without a reply",
                COUNT,
                (f"kafka_network_requestchannel_requestqueuesize{_NODE}", "{{instance}}"),
            ),
            _graph(
                "Disk latency, 90 %",
                SECONDS,
                (f"histogram_quantile(0.9, rate(ottla_disk_latency_seconds_bucket{_NODE}[5m]))", "{{directory}}"),
            ),
            _graph(
                "Disk",
                BYTES_S,
                (f"rate(kafka_server_kafkaserver_linux_disk_read_bytes{_NODE}[5m])", "read"),
                (f"rate(kafka_server_kafkaserver_linux_disk_write_bytes{_NODE}[5m])", "written"),
            ),
            _graph("Disk: free", BYTES, (f"ottla_disk_free_bytes{_NODE}", "{{directory}}")),
            _graph("Memory", BYTES, (f"process_resident_memory_bytes{_NODE}", "{{instance}}")),
            _graph("Processor", SHARE, (f"rate(process_cpu_seconds_total{_NODE}[5m])", "{{instance}}")),
            _graph(
                "File descriptors",
                COUNT,
                (f"process_open_fds{_NODE}", "open"),
                (f"process_max_fds{_NODE}", "most"),
            ),
            _graph(
                "Refused",
                PER_S,
                (f"rate(ottla_connections_refused_total{_NODE}[5m])", "connections: {{reason}}"),
                (
                    f"rate(kafka_server_socket_server_metrics_failed_authentication_total{_NODE}[5m])",
                    "logins at {{listener}}",
                ),
            ),
            _graph(
                "Certificates expire in",
                SECONDS,
                (f"ottla_certificate_expiry_timestamp_seconds{_NODE} - time()", "{{listener}}"),
            ),
            _graph("Unexpected exceptions", COUNT, (f"increase(ottla_faults_total{_NODE}[5m])", "{{where}}")),
        ),
        (("instance", "process_start_time_seconds, instance"),),
    ),
    Dashboard(
        "ottla-topics",
        "Ottla: topics",
        (
            _graph("Bytes in", BYTES_S, (f"sum by (topic) (rate({_TRAFFIC}bytesin_total{_TOPIC}[5m]))", _BY_TOPIC)),
            _graph("Bytes out", BYTES_S, (f"sum by (topic) (rate({_TRAFFIC}bytesout_total{_TOPIC}[5m]))", _BY_TOPIC)),
            _graph("Records in", PER_S, (f"sum by (topic) (rate({_TRAFFIC}messagesin_total{_TOPIC}[5m]))", _BY_TOPIC)),
            _graph("Size, with replicas", BYTES, (f"sum by (topic) (kafka_log_log_size{_TOPIC})", _BY_TOPIC)),
            _graph(
                "Failed requests",
                PER_S,
                (f"sum by (topic) (rate({_TRAFFIC}failedproducerequests_total{_TOPIC}[5m]))", "produce {{topic}}"),
                (f"sum by (topic) (rate({_TRAFFIC}failedfetchrequests_total{_TOPIC}[5m]))", "fetch {{topic}}"),
            ),
            _graph(
                "Replicas out of sync",
                COUNT,
                (f"sum by (topic) (kafka_topic_partition_under_replicated_partition{_TOPIC})", _BY_TOPIC),
            ),
            _graph(
                "Partitions that their first replica does not lead",
                COUNT,
                (f"sum by (topic) (kafka_topic_partition_leader_is_preferred{_TOPIC} < bool 1)", _BY_TOPIC),
            ),
            _graph("Partitions", COUNT, (f"sum by (topic) (kafka_topic_partitions{_TOPIC})", _BY_TOPIC)),
        ),
        (("topic", "kafka_topic_partitions, topic"),),
    ),
    Dashboard(
        "ottla-groups",
        "Ottla: groups",
        (
            _graph(
                "Behind, in seconds",
                SECONDS,
                (
                    f"max by (consumergroup, topic) (ottla_consumergroup_lag_seconds{_GROUP})",
                    _BY_GROUP,
                ),
            ),
            _graph(
                "Behind, in records",
                COUNT,
                (f"sum by (consumergroup, topic) (kafka_consumergroup_lag{_GROUP})", _BY_GROUP),
            ),
            _graph(
                "Committed",
                PER_S,
                (
                    f"sum by (consumergroup, topic) (rate(kafka_consumergroup_current_offset{_GROUP}[5m]))",
                    _BY_GROUP,
                ),
            ),
            _graph("Members", COUNT, (f"kafka_consumergroup_members{_GROUP}", "{{consumergroup}}")),
            _graph("Groups by state", COUNT, ("sum by (state) (ottla_consumergroups)", "{{state}}")),
            _graph("Left out of the page", COUNT, ("sum(ottla_consumergroup_partitions_left_out)", "partitions")),
        ),
        (("group", "kafka_consumergroup_members, consumergroup"),),
    ),
    Dashboard(
        "ottla-kraft",
        "Ottla: KRaft",
        (
            _number("Leader", "max(kafka_server_raftmetrics_current_leader)"),
            _number("Epoch", "max(kafka_server_raftmetrics_current_epoch)"),
            _number("Voters", "max(kafka_server_raftmetrics_number_of_voters)"),
            _number("Unclean elections", "sum(kafka_controller_controllerstats_uncleanleaderelections_total)"),
            _graph("Roles", COUNT, ("kafka_server_raftmetrics_current_state", "{{instance}} {{current_state}}")),
            _graph("Voters behind", COUNT, ("ottla_quorum_voter_lag", "voter {{voter}}")),
            _graph(
                "Metadata log",
                COUNT,
                ("kafka_server_raftmetrics_log_end_offset", "end {{instance}}"),
                ("kafka_server_raftmetrics_high_watermark", "committed {{instance}}"),
            ),
            _graph(
                "Records",
                PER_S,
                ("kafka_server_raftmetrics_append_records_rate", "written {{instance}}"),
                ("kafka_server_raftmetrics_fetch_records_rate", "fetched {{instance}}"),
            ),
            _graph(
                "Time to commit",
                MS,
                ("kafka_server_raftmetrics_commit_latency_avg", "average {{instance}}"),
                ("kafka_server_raftmetrics_commit_latency_max", "most {{instance}}"),
            ),
            _graph(
                "Between controllers",
                BYTES_S,
                ("rate(kafka_server_raftchannelmetrics_incoming_byte_total[5m])", "in {{instance}}"),
                ("rate(kafka_server_raftchannelmetrics_outgoing_byte_total[5m])", "out {{instance}}"),
            ),
        ),
    ),
    Dashboard(
        "ottla-pipelines",
        "Ottla: Spark pipelines",
        (
            _graph(
                "Read by sources",
                BYTES_S,
                (f"sum by (topic) (rate({_TRAFFIC}bytesout_total{_TOPIC}[1m]))", _BY_TOPIC),
            ),
            _graph(
                "Written by sinks",
                PER_S,
                (f"sum by (topic) (rate({_TRAFFIC}messagesin_total{_TOPIC}[1m]))", _BY_TOPIC),
            ),
            _graph("Transactions", COUNT, ("sum by (state) (ottla_transactional_ids)", "{{state}}")),
            _graph("Oldest open transaction", SECONDS, ("max(ottla_transaction_open_seconds_max)", "silent for")),
            _graph(
                "Hidden from readers of committed records",
                COUNT,
                (f"sum by (topic) (kafka_cluster_partition_laststableoffsetlag{_TOPIC})", _BY_TOPIC),
            ),
            _graph(
                "Transactions that hang",
                COUNT,
                ("sum(kafka_server_replicamanager_partitionswithlatetransactionscount)", "partitions"),
            ),
        ),
        (("topic", "kafka_topic_partitions, topic"),),
    ),
)


def as_grafana(dashboard: Dashboard) -> dict[str, Any]:
    """As Grafana imports it. The data source is chosen there."""
    return {
        "uid": dashboard.name,
        "title": dashboard.title,
        "tags": ["ottla"],
        "schemaVersion": _SCHEMA_VERSION,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": list(_variables(dashboard))},
        "panels": list(_panels(dashboard)),
    }


_SOURCE: Final = {"type": "prometheus", "uid": "${datasource}"}


def _variables(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    yield {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    for name, values in dashboard.variables:
        yield {
            "name": name,
            "label": name.capitalize(),
            "type": "query",
            "datasource": _SOURCE,
            "query": f"label_values({values})",
            "refresh": 2,
            "includeAll": True,
            "multi": True,
            "allValue": ".*",
            "current": {"text": "All", "value": "$__all"},
        }


def _panels(dashboard: Dashboard) -> Iterator[dict[str, Any]]:
    x = y = height = 0
    for number, panel in enumerate(dashboard.panels, 1):
        width, tall = (3, 4) if panel.is_number else (12, 8)
        if x + width > _WIDTH or (height and tall != height):
            x, y = 0, y + height
        height = tall
        yield {
            "id": number,
            "type": "stat" if panel.is_number else "timeseries",
            "title": panel.title,
            "datasource": _SOURCE,
            "gridPos": {"x": x, "y": y, "w": width, "h": tall},
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "targets": [
                {
                    "refId": chr(ord("A") + place),
                    "datasource": _SOURCE,
                    "expr": expression,
                    "legendFormat": legend or "__auto",
                }
                for place, (expression, legend) in enumerate(panel.queries)
            ],
        }
        x += width
