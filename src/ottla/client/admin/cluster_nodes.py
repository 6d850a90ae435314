"""The cluster as a whole: its nodes, forgetting a broker that is gone for good, and what it knows this client by."""

from typing import NamedTuple

from ottla.base.ids import ZERO_UUID, uuid_text
from ottla.client.admin.asking import Asking
from ottla.client.admin.operations import Operations, operations
from ottla.client.errors import UnsupportedVersion, error_for
from ottla.client.topic_partition import Broker
from ottla.wire import messages

_BROKERS, _CONTROLLERS = 1, 2


class ClusterDescription(NamedTuple):
    cluster_id: str
    controller: Broker | None
    """Where to send what is for the controller; with `bootstrap.controllers`, the quorum's leader."""
    nodes: tuple[Broker, ...]
    fenced: frozenset[int]
    """Which of the nodes are registered and not up; only with `include_fenced_brokers` are there any."""
    authorized_operations: Operations | None


async def describe_cluster(
    asking: Asking,
    *,
    include_authorized_operations: bool = False,
    include_fenced_brokers: bool = False,
    timeout: float | None = None,
) -> ClusterDescription:
    """Who is in the cluster. With `bootstrap.controllers`, the nodes are the controllers."""
    deadline = asking.deadline(timeout)
    request = messages.DescribeClusterRequest(
        include_cluster_authorized_operations=include_authorized_operations,
        endpoint_type=_CONTROLLERS if asking.via_controllers else _BROKERS,
        include_fenced_brokers=include_fenced_brokers,
    )
    try:
        response = await asking.any(request, deadline)
    except UnsupportedVersion:
        if include_fenced_brokers or asking.via_controllers:
            raise
        metadata = messages.MetadataRequest(
            topics=[], include_cluster_authorized_operations=include_authorized_operations
        )
        answer = await asking.any(metadata, deadline)
        nodes = [Broker(one.node_id, one.host, one.port, one.rack) for one in answer.brokers]
        return _description(answer, nodes, frozenset())
    if response.error_code:
        raise error_for(response.error_code, response.error_message)
    nodes = [Broker(one.broker_id, one.host, one.port, one.rack) for one in response.brokers]
    return _description(response, nodes, frozenset(one.broker_id for one in response.brokers if one.is_fenced))


def _description(
    answer: messages.DescribeClusterResponse | messages.MetadataResponse, nodes: list[Broker], fenced: frozenset[int]
) -> ClusterDescription:
    return ClusterDescription(
        answer.cluster_id or "",
        next((node for node in nodes if node.id == answer.controller_id), None),
        tuple(sorted(nodes)),
        fenced,
        operations(answer.cluster_authorized_operations),
    )


async def unregister_broker(asking: Asking, broker_id: int, *, timeout: float | None = None) -> None:
    """Forgets a broker that is not up and will not come back under its id."""
    request = messages.UnregisterBrokerRequest(broker_id=broker_id)
    response = await asking.controller(request, asking.deadline(timeout))
    if response.error_code:
        raise error_for(response.error_code, response.error_message)


async def client_instance_id(asking: Asking, *, timeout: float | None = None) -> str:
    """The id that a broker which collects metrics of clients (KIP-714) has for this admin: it gives one when asked.

    Raises `UnsupportedVersion` where brokers collect none.
    """
    if asking.instance_id == ZERO_UUID:
        request = messages.GetTelemetrySubscriptionsRequest(client_instance_id=ZERO_UUID)
        response = await asking.any(request, asking.deadline(timeout))
        if response.error_code:
            raise error_for(response.error_code)
        asking.instance_id = response.client_instance_id
    return uuid_text(asking.instance_id)
