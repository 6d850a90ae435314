"""ApiVersions 0-4 on the listeners of brokers."""

from ottla.apis.table import APIS, served_by_brokers
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.telemetry.client_metrics import ClientMetrics
from ottla.runtime.request import RequestContext, Respond
from ottla.serving.api_versions import answer_api_versions, served
from ottla.wire.apis import ApiKey
from ottla.wire.messages import ApiVersionsRequest


def handle_api_versions(
    client_metrics: ClientMetrics,
    metadata: ClusterMetadata,
    context: RequestContext,
    request: ApiVersionsRequest,
    respond: Respond,
) -> None:
    keys = served_by_brokers() if client_metrics.is_on else without_telemetry()
    answer_api_versions(
        context, request, respond, served(keys), metadata.image.features, features_epoch=metadata.offset
    )


def without_telemetry() -> tuple[ApiKey, ...]:
    """Where nobody would see what clients push, it is not advertised, as in Apache Kafka."""
    return tuple([key for key in served_by_brokers() if not APIS[key].is_telemetry])
