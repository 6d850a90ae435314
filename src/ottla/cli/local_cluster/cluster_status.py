"""What is shown of a cluster on this machine: its nodes, who leads the quorum, and whether all replicas are in sync."""

from __future__ import annotations

from typing import NamedTuple

from ottla.cli.local_cluster.cluster_layout import NodeFiles, bootstrap
from ottla.cli.local_cluster.node_process import is_ready, running_pid

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
    return f"node {node.node_id}  {node.address:<22} {state:<9} {'' if pid is None else f'pid {pid}'}".rstrip()


def cluster_state(nodes: list[NodeFiles]) -> ClusterState | None:
    """None if no node answers."""
    from ottla.cli.sessions import open_admin
    from ottla.client.errors import KafkaError

    servers = bootstrap([node for node in nodes if running_pid(node) is not None])
    if not servers:
        return None
    try:
        with open_admin(servers) as admin:
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


def state_line(nodes: list[NodeFiles]) -> str:
    up = sum(running_pid(node) is not None for node in nodes)
    state = cluster_state(nodes)
    if state is None:
        return f"{up} of {len(nodes)} nodes up; no answer"
    line = f"{up} of {len(nodes)} nodes up; controller {state.leader_id}; {state.topics} topics"
    if state.leaderless:
        return f"{line}; {state.leaderless} partitions without a leader"
    return f"{line}; {state.lagging} partitions not in sync" if state.lagging else f"{line}; all in sync"
