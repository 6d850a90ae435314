"""The node itself on the metrics page: the metadata quorum, the loop, disks, certificates."""

from collections.abc import Iterable
from typing import Final

from ottla.node.metrics.node_watch import NodeWatch
from ottla.runtime.exposition import Exposition, escaped
from ottla.runtime.request_metrics import Times

_RAFT: Final = "kafka_server_raftmetrics_"
_CHANNEL: Final = "kafka_server_raftchannelmetrics_"
NOBODY: Final = -1


def add_quorum(page: Exposition, watch: NodeWatch, *, is_controller: bool) -> None:
    metadata = watch.metadata
    if metadata is None:
        return
    raft = metadata.raft
    page.gauge(_RAFT + "current_state", 1, current_state=raft.role.value if raft.is_voter else "observer")
    page.gauge(_RAFT + "current_leader", raft.leader_id)
    page.gauge(_RAFT + "current_vote", NOBODY if raft.voted_for is None else raft.voted_for.id)
    page.gauge(_RAFT + "current_epoch", raft.epoch)
    page.gauge(_RAFT + "high_watermark", raft.high_watermark)
    page.gauge(_RAFT + "log_end_offset", raft.log_end.offset)
    page.gauge(_RAFT + "number_of_voters", len(raft.voters.ids))
    page.gauge(_RAFT + "append_records_rate", watch.record_rate(as_leader=True))
    page.gauge(_RAFT + "fetch_records_rate", watch.record_rate(as_leader=False))
    average_ms, most_ms = watch.commit_latency_ms()
    page.gauge(_RAFT + "commit_latency_avg", average_ms)
    page.gauge(_RAFT + "commit_latency_max", most_ms)
    if is_controller:
        page.counter("kafka_controller_controllerstats_uncleanleaderelections_total", watch.unclean_elections)
    if watch.connections is not None:
        traffic = watch.connections.traffic("raft")
        page.counter(_CHANNEL + "incoming_byte_total", traffic.bytes_in)
        page.counter(_CHANNEL + "outgoing_byte_total", traffic.bytes_out)
        page.counter(_CHANNEL + "request_total", traffic.requests)
        page.counter(_CHANNEL + "response_total", traffic.responses)
    if raft.is_leader and raft.progress is not None:
        ends = {voter.key.id: raft.progress.replicas.get(voter.key.id) for voter in raft.voters}
        behind = {voter: raft.log_end.offset - max(seen.end_offset, 0) for voter, seen in ends.items() if seen}
        behind[raft.me.key.id] = 0
        page.add("ottla_quorum_voter_lag", "gauge", [({"voter": str(one)}, lag) for one, lag in sorted(behind.items())])


def add_node(page: Exposition, watch: NodeWatch, now_s: float) -> None:
    page.gauge("kafka_network_socketserver_networkprocessoravgidle_percent", watch.idle_share)
    page.gauge("kafka_server_kafkarequesthandlerpool_requesthandleravgidle_percent", watch.idle_share)
    if watch.loop is not None:
        page.gauge("ottla_loop_longest_stall_seconds", watch.longest_stall_s)
        page.counter("ottla_loop_busy_seconds_total", watch.loop.busy_s)
        page.counter("ottla_loop_rounds_total", watch.loop.rounds)
    disks = watch.health.disks
    add_histogram(
        page,
        "ottla_disk_latency_seconds",
        ((f'directory="{escaped(path)}"', disk.times) for path, disk in disks.items()),
    )
    known = [({"directory": path}, disk) for path, disk in disks.items() if disk.size_bytes]
    page.add("ottla_disk_free_bytes", "gauge", [(labels, disk.free_bytes) for labels, disk in known])
    page.add("ottla_disk_size_bytes", "gauge", [(labels, disk.size_bytes) for labels, disk in known])
    page.add(
        "ottla_disk_waiting_seconds",
        "gauge",
        [({"directory": path}, disk.waited_s(now_s)) for path, disk in disks.items()],
    )
    if watch.tls is not None:
        page.add(
            "ottla_certificate_expiry_timestamp_seconds",
            "gauge",
            [({"listener": listener}, at_s) for listener, at_s in watch.tls.expiries()],
        )


def add_histogram(page: Exposition, name: str, rows: Iterable[tuple[str, Times]]) -> None:
    """Prometheus' own kind: cumulative counts by upper bound, `_sum` and `_count`. Labels as `key="value"`."""
    lines = []
    for labels, times in rows:
        for bound_s, count in times.histogram():
            lines.append(f'{name}_bucket{{{labels},le="{bound_s:g}"}} {count}\n')
        lines.append(f'{name}_bucket{{{labels},le="+Inf"}} {times.count}\n')
        lines.append(f"{name}_sum{{{labels}}} {times.total_s:.6f}\n{name}_count{{{labels}}} {times.count}\n")
    if lines:
        page.head(name, "histogram")
        page.add_text("".join(lines))
