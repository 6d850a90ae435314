"""What a client of one listener sees of the cluster: brokers that it can reach, replicas that are gone.

A broker that is fenced, or that does not have the client's listener, is not there for it. A replica is offline when
its broker is not there, or when the log directory that holds it has failed (KIP-858).
"""

from collections.abc import Iterator

from ottla.machines.metadata.image.brokers_image import BrokerRegistration, Endpoint
from ottla.machines.metadata.image.directory_ids import is_online
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.machines.metadata.image.partition_image import NO_LEADER, PartitionImage


class ClusterView:
    """Made for one reply. `alive` are the brokers that take requests on the listener, by id."""

    __slots__ = ("_registered", "alive", "listener")

    def __init__(self, image: MetadataImage, listener: str) -> None:
        self.listener = listener
        self._registered = image.brokers.by_id
        self.alive: dict[int, tuple[BrokerRegistration, Endpoint]] = {}
        for broker_id in sorted(self._registered):
            broker = self._registered[broker_id]
            endpoint = broker.endpoint(listener)
            if endpoint is not None and not broker.fenced:
                self.alive[broker_id] = broker, endpoint

    def controller_id(self, node_id: int) -> int:
        """Where a client is to send what changes the cluster: any broker passes it on (KIP-590), so the one that it
        has already found.
        """
        if node_id in self.alive or not self.alive:
            return node_id if node_id in self.alive else NO_LEADER
        return next(iter(self.alive))

    def is_registered(self, broker_id: int) -> bool:
        return broker_id in self._registered

    def has_endpoint(self, broker_id: int) -> bool:
        """Whether a client of the listener could connect to a broker, fenced or not."""
        broker = self._registered.get(broker_id)
        return broker is not None and broker.endpoint(self.listener) is not None

    def offline_replicas(self, partition: PartitionImage) -> tuple[int, ...]:
        return tuple(self._offline(partition))

    def _offline(self, partition: PartitionImage) -> Iterator[int]:
        for replica, directory in zip(partition.replicas, partition.directories, strict=True):
            found = self.alive.get(replica)
            if found is None or not is_online(directory, found[0].directories):
                yield replica
