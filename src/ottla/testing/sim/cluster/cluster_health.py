"""Whether a simulated cluster is whole: everything is up, led and in sync."""

from ottla.testing.sim.cluster.machine import Machine
from ottla.testing.sim.cluster.simulated_cluster import SimulatedCluster


def is_whole(cluster: SimulatedCluster) -> bool:
    return not what_is_amiss(cluster)


def broker_epoch(machine: Machine) -> int:
    """That of the life which is on now: an earlier one may still be in the metadata, and in sync by it."""
    broker = machine.node.broker if machine.node is not None else None
    return -1 if broker is None else broker.identity.broker_epoch


def what_is_amiss(cluster: SimulatedCluster) -> str:
    """In a few words; empty if nothing is. By what each node knows of the others."""
    for machine in cluster.machines.values():
        if not machine.is_serving or machine.metadata is None:
            return f"node {machine.node_id} does not serve"
        image = machine.metadata.image
        for broker_id in cluster.settings.brokers():
            registered = image.brokers.by_id.get(broker_id)
            epoch = broker_epoch(cluster.machines[broker_id])
            if registered is None or registered.fenced or registered.epoch != epoch:
                return f"node {machine.node_id} takes node {broker_id} for fenced, or for one of an earlier life"
        for topic in image.topics.by_name.values():
            for index, partition in topic.partitions.items():
                if partition.leader < 0:
                    return f"{topic.name}-{index} has no leader"
                if len(partition.isr) < len(partition.replicas):
                    return f"{topic.name}-{index} has only {partition.isr} of {partition.replicas} in sync"
    return ""
