"""What is shown of a cluster on this machine: its nodes, who leads the quorum, and whether all replicas are in sync."""

from __future__ import annotations

from typing import NamedTuple

from ottla.cli.local_cluster.cluster_layout import NodeFiles, bootstrap
from ottla.cli.local_cluster.cluster_security import client_properties
from ottla.cli.local_cluster.node_process import is_ready, metrics_url, running_pid
from ottla.cli.text_tables import counted

_TIMEOUT_S = 3.0


class ClusterState(NamedTuple):
    leader_id: int | None
    topics: int
    lagging: int
    """Partitions of which a replica is not in sync."""
    leaderless: int


def node_line(node: NodeFiles) -> str:
    pid = running_pid(node)
    state = "down" if pid is None else "up" if is_ready(node) else "starting"
    shown = f"node {node.node_id}  {node.address:<22} {state:<9} {'' if pid is None else f'pid {pid}'}"
    url = None if pid is None else metrics_url(node)
    return (shown if url is None else f"{shown:<49}  {url}").rstrip()


def cluster_state(nodes: list[NodeFiles]) -> ClusterState | None:
    """None if no node answers."""
    from ottla.cli.sessions import open_admin
    from ottla.client.errors import KafkaError

    servers = bootstrap([node for node in nodes if running_pid(node) is not None])
    if not servers:
        return None
    try:
        with open_admin(servers, config_file=_properties_of(nodes[0]), is_quiet=True) as admin:
            quorum = admin.describe_metadata_quorum(timeout=_TIMEOUT_S)
            names = [topic.name for topic in admin.list_topics(include_internal=True, timeout=_TIMEOUT_S)]
            topics = admin.describe_topics(names, timeout=_TIMEOUT_S) if names else {}
    except (KafkaError, OSError):
        return None
    partitions = [partition for topic in topics.values() for partition in topic.partitions]
    return ClusterState(
        quorum.leader_id,
        len(names),
        sum(len(partition.in_sync_replicas) < len(partition.replicas) for partition in partitions),
        sum(partition.leader is None for partition in partitions),
    )


def _properties_of(node: NodeFiles) -> str | None:
    path = client_properties(node.directory.parent)
    return str(path) if path.exists() else None


def state_line(nodes: list[NodeFiles]) -> str:
    up = sum(running_pid(node) is not None for node in nodes)
    state = cluster_state(nodes)
    if state is None:
        return f"{up} of {counted(len(nodes), 'node')} up; no answer"
    line = f"{up} of {counted(len(nodes), 'node')} up; controller {state.leader_id}; {counted(state.topics, 'topic')}"
    if state.leaderless:
        return f"{line}; {counted(state.leaderless, 'partition')} without a leader"
    return f"{line}; {counted(state.lagging, 'partition')} not in sync" if state.lagging else f"{line}; all in sync"
