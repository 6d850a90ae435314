"""Whether a simulated cluster is whole: everything is up, led and in sync."""

from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster


def is_whole(cluster: SimulatedCluster) -> bool:
    return not what_is_amiss(cluster)


def what_is_amiss(cluster: SimulatedCluster) -> str:
    """In a few words; empty if nothing is. By what each node knows of the others."""
    for machine in cluster.machines.values():
        if not machine.is_serving or machine.metadata is None:
            return f"node {machine.node_id} does not serve"
        image = machine.metadata.image
        for node_id in cluster.machines:
            broker = image.brokers.by_id.get(node_id)
            if broker is None or broker.fenced:
                return f"node {machine.node_id} takes node {node_id} for fenced"
        for topic in image.topics.by_name.values():
            for index, partition in topic.partitions.items():
                if partition.leader < 0:
                    return f"{topic.name}-{index} has no leader"
                if len(partition.isr) < len(partition.replicas):
                    return f"{topic.name}-{index} has only {partition.isr} of {partition.replicas} in sync"
    return ""
