"""Alerts for Prometheus, one row each. `docs/runbook.md` has a section for each, which the alert links to."""

from typing import Final, NamedTuple

PAGE: Final = "critical"
TICKET: Final = "warning"


class Alert(NamedTuple):
    name: str
    expression: str
    lasting: str
    """How long it must hold."""
    severity: str
    summary: str


ALERTS: Final = (
    Alert("OttlaNodeDown", 'up{job="ottla"} == 0', "1m", PAGE, "Node {{ $labels.instance }} does not answer."),
    Alert(
        "OttlaNoActiveController",
        "sum(kafka_controller_kafkacontroller_activecontrollercount) != 1",
        "1m",
        PAGE,
        "Active controllers: {{ $value }}; there must be one.",
    ),
    Alert(
        "OttlaOfflinePartitions",
        "max(kafka_controller_kafkacontroller_offlinepartitionscount) > 0",
        "1m",
        PAGE,
        "Partitions without a leader: {{ $value }}.",
    ),
    Alert(
        "OttlaUnderMinIsr",
        "sum(kafka_server_replicamanager_underminisrpartitioncount) > 0",
        "1m",
        PAGE,
        "Partitions with too few replicas in sync: {{ $value }}. Writes with acks=all fail.",
    ),
    Alert(
        "OttlaUnderReplicated",
        "sum(kafka_server_replicamanager_underreplicatedpartitions) > 0",
        "10m",
        TICKET,
        "Partitions with a replica that is not in sync: {{ $value }}.",
    ),
    Alert(
        "OttlaUncleanElection",
        "increase(kafka_controller_controllerstats_uncleanleaderelections_total[10m]) > 0",
        "0m",
        PAGE,
        "A leader was elected from outside the ISR: acknowledged records may be lost.",
    ),
    Alert(
        "OttlaLogDirectoryOffline",
        "kafka_log_logmanager_offlinelogdirectorycount > 0",
        "1m",
        PAGE,
        "Failed log directories of {{ $labels.instance }}: {{ $value }}.",
    ),
    Alert(
        "OttlaDiskFull",
        "ottla_disk_free_bytes / ottla_disk_size_bytes < 0.1",
        "5m",
        PAGE,
        "{{ $labels.instance }} {{ $labels.directory }}: {{ $value | humanizePercentage }} free.",
    ),
    Alert(
        "OttlaDiskFillsUp",
        "predict_linear(ottla_disk_free_bytes[6h], 86400) < 0",
        "30m",
        TICKET,
        "{{ $labels.instance }} {{ $labels.directory }}: full within a day at the rate of the last six hours.",
    ),
    Alert(
        "OttlaDiskSlow",
        "histogram_quantile(0.9, rate(ottla_disk_latency_seconds_bucket[10m])) > 0.5",
        "10m",
        TICKET,
        "{{ $labels.instance }} {{ $labels.directory }}: a small write takes {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "OttlaDiskHung",
        "ottla_disk_waiting_seconds > 30",
        "0m",
        PAGE,
        "{{ $labels.instance }} {{ $labels.directory }}: no answer for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "OttlaLoopStalls",
        "ottla_loop_longest_stall_seconds > 1",
        "5m",
        TICKET,
        "{{ $labels.instance }} did not answer any client for {{ $value | humanizeDuration }}.",
    ),
    Alert(
        "OttlaOverloaded",
        "kafka_network_socketserver_networkprocessoravgidle_percent < 0.1",
        "10m",
        TICKET,
        "The loop of {{ $labels.instance }} is idle for only {{ $value | humanizePercentage }} of the time.",
    ),
    Alert(
        "OttlaGroupLagGrows",
        "max by (consumergroup, topic) (ottla_consumergroup_lag_seconds) > 300 and "
        "sum by (consumergroup, topic) (kafka_consumergroup_lag) > "
        "sum by (consumergroup, topic) (kafka_consumergroup_lag offset 10m)",
        "10m",
        TICKET,
        "{{ $labels.consumergroup }} is {{ $value | humanizeDuration }} behind in {{ $labels.topic }}; its lag grows.",
    ),
    Alert(
        "OttlaHangingTransaction",
        "sum(kafka_server_replicamanager_partitionswithlatetransactionscount) > 0",
        "5m",
        TICKET,
        "Partitions with a transaction that hangs: {{ $value }}. Readers of committed records wait.",
    ),
    Alert(
        "OttlaCertificateExpires",
        "ottla_certificate_expiry_timestamp_seconds - time() < 14 * 86400",
        "1h",
        TICKET,
        "Certificate of {{ $labels.listener }} on {{ $labels.instance }}: {{ $value | humanizeDuration }} left.",
    ),
    Alert(
        "OttlaQuorumLags",
        "max(ottla_quorum_voter_lag) > 1000",
        "5m",
        TICKET,
        "A controller is {{ $value }} records of metadata behind: losing another may stop the cluster.",
    ),
    # The first fault of a kind brings its series with it, and a series that begins with 1 has not increased.
    Alert(
        "OttlaFaults",
        "increase(ottla_faults_total[15m]) > 0 or (ottla_faults_total unless ottla_faults_total offset 15m)",
        "0m",
        TICKET,
        "{{ $labels.instance }} ran into a bug ({{ $labels.where }}); its log has the traceback.",
    ),
)


def rules_text(runbook: str) -> str:
    """The file of rules. `runbook` is the address of the page; each alert links to its section."""
    lines = ["# Rules for Prometheus, made by `ottla dashboards`.", "groups:", "  - name: ottla", "    rules:"]
    for alert in ALERTS:
        lines += [
            f"      - alert: {alert.name}",
            f"        expr: {_quoted(alert.expression)}",
            f"        for: {alert.lasting}",
            "        labels:",
            f"          severity: {alert.severity}",
            "        annotations:",
            f"          summary: {_quoted(alert.summary)}",
            f"          runbook_url: {_quoted(f'{runbook}#{alert.name.lower()}')}",
        ]
    return "\n".join(lines) + "\n"


def _quoted(text: str) -> str:
    """YAML in single quotes, in which only a quote is special."""
    return "'" + text.replace("'", "''") + "'"
