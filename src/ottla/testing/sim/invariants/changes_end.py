"""In the end nothing is on its way any more: no partition is being reassigned, and no replica moves."""

from ottla.testing.sim.invariants.invariant import Invariant


class ChangesEnd(Invariant):
    name = "reassignments and moves come to an end"

    def pending(self) -> str:
        for machine in self.cluster.machines.values():
            if machine.metadata is None:
                continue
            for topic in machine.metadata.image.topics.by_name.values():
                for index, partition in topic.partitions.items():
                    if partition.adding_replicas or partition.removing_replicas:
                        what = f"+{partition.adding_replicas} -{partition.removing_replicas}"
                        return f"{topic.name}-{index} is being reassigned: {what}, by node {machine.node_id}"
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            for path, directory in broker.partitions.logs.online.items() if broker is not None else ():
                for name in directory.futures.logs:
                    return f"{name} of node {machine.node_id} is on its way to {path}"
        return ""
