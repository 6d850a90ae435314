"""UpdateFeatures 0-2: raises or lowers the levels of what the cluster has agreed to use (KIP-584)."""

from ottla.broker.cluster.forwarding import forward
from ottla.broker.context import Broker
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse


def handle_update_features(
    broker: Broker, context: RequestContext, request: UpdateFeaturesRequest, respond: Respond
) -> None:
    forward(
        broker,
        lambda controller, now_ms: controller.update_features(request, now_ms, api_version=context.api_version),
        respond,
        lambda error: UpdateFeaturesResponse(error_code=error, error_message=None),
        timeout_ms=request.timeout_ms,
    )
