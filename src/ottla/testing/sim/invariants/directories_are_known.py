"""In the end, the metadata names the log directory in which each replica really is (KIP-858)."""

from ottla.testing.sim.invariants.invariant import Invariant


class DirectoriesAreKnown(Invariant):
    name = "the metadata know the directory of every replica"

    def pending(self) -> str:
        for machine in self.cluster.machines.values():
            broker = machine.node.broker if machine.is_serving and machine.node is not None else None
            if broker is None or machine.metadata is None:
                continue
            held = broker.partitions
            for partition in held.values():
                name = partition.name
                topic = machine.metadata.image.topics.by_name.get(name.topic)
                image = topic.partitions.get(name.partition) if topic is not None else None
                real = held.identity.directory_ids.get(partition.directory)
                if image is not None and image.directory(machine.node_id) != real:
                    told = image.directory(machine.node_id)
                    where = f"{partition.directory} ({real!r})"
                    return f"{name} of node {machine.node_id} is in {where}; the metadata say {told!r}"
        return ""
