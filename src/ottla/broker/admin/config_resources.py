"""ListConfigResources 0-1: the names of what has settings (KIP-1142). Version 0 knows client metrics only."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.machines.metadata.image.configs_image import ResourceType
from ottla.machines.metadata.image.metadata_image import MetadataImage
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import ListConfigResourcesRequest, ListConfigResourcesResponse

_FIRST_WITH_TYPES: Final = 1


def handle_list_config_resources(
    metadata: ClusterMetadata, context: RequestContext, request: ListConfigResourcesRequest, respond: Respond
) -> None:
    types: Iterable[int] = (ResourceType.CLIENT_METRICS,)
    if context.api_version >= _FIRST_WITH_TYPES:
        types = dict.fromkeys(request.resource_types) or _NAMES
    if any(type_ not in _NAMES for type_ in types):
        respond(ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION))
        return
    respond(
        ListConfigResourcesResponse(
            config_resources=[
                ListConfigResourcesResponse.ConfigResource(resource_name=name, resource_type=type_)
                for type_ in types
                for name in _NAMES[type_](metadata.image)
            ]
        )
    )


def _with_settings(type_: ResourceType) -> Callable[[MetadataImage], list[str]]:
    """Groups and subscriptions are known by their settings alone."""
    return lambda image: sorted(name for of, name in image.configs.by_resource if of == type_)


def _brokers(image: MetadataImage) -> list[str]:
    return [str(broker_id) for broker_id in sorted(image.brokers.by_id)]


_NAMES: Final[Mapping[int, Callable[[MetadataImage], list[str]]]] = {
    ResourceType.GROUP: _with_settings(ResourceType.GROUP),
    ResourceType.CLIENT_METRICS: _with_settings(ResourceType.CLIENT_METRICS),
    ResourceType.BROKER_LOGGER: _brokers,
    ResourceType.BROKER: _brokers,
    ResourceType.TOPIC: lambda image: list(image.topics.by_name),
}
"""How the resources of a type are found, in the order in which Kafka lists the types."""
