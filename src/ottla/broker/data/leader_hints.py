"""Where the leader of a partition is, for clients that asked the wrong node (KIP-951)."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from ottla.broker.partitions.held_partitions import Partitions

EndpointT = TypeVar("EndpointT")


def current_leader(partitions: "Partitions", topic: str, index: int) -> tuple[int, int]:
    """Leader and leader epoch, from the partition itself if this node holds it, else from the metadata."""
    partition = partitions.get((topic, index))
    if partition is not None:
        return partition.leader_id, partition.leader_epoch
    image = partitions.metadata.image.topics.partition(topic, index)
    return (image.leader, image.leader_epoch) if image is not None else (-1, -1)


def node_endpoints(
    partitions: "Partitions", leaders: set[int], listener: str, endpoint_type: Callable[..., EndpointT]
) -> list[EndpointT]:
    """The addresses of these leaders on the listener that the client uses, as far as they are up."""
    found: list[EndpointT] = []
    for leader in sorted(leaders):
        registration = partitions.metadata.image.brokers.by_id.get(leader)
        endpoint = registration.endpoint(listener) if registration and not registration.fenced else None
        if registration and endpoint:
            found.append(endpoint_type(node_id=leader, host=endpoint.host, port=endpoint.port, rack=registration.rack))
    return found
