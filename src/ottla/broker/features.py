"""UpdateFeatures 0-2: raises or lowers the levels of what the cluster has agreed to use (KIP-584)."""

from ottla.broker.context import Broker
from ottla.broker.forwarding import forward
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import UpdateFeaturesRequest, UpdateFeaturesResponse

_FIRST_WITHOUT_RESULTS = 2
_FIRST_WITH_UPGRADE_TYPE = 1
_UPGRADE, _SAFE_DOWNGRADE = 1, 2


def handle_update_features(
    broker: Broker, context: RequestContext, request: UpdateFeaturesRequest, respond: Respond
) -> None:
    if context.api_version < _FIRST_WITH_UPGRADE_TYPE:
        for update in request.feature_updates:
            update.upgrade_type = _SAFE_DOWNGRADE if update.allow_downgrade else _UPGRADE

    def decided(response: object) -> None:
        """All are updated or none, so a result for each says nothing; older clients wait for them all the same."""
        assert isinstance(response, UpdateFeaturesResponse)
        if context.api_version < _FIRST_WITHOUT_RESULTS and response.error_code == ErrorCode.NONE:
            response.results = [
                UpdateFeaturesResponse.UpdatableFeatureResult(feature=update.feature, error_message=None)
                for update in request.feature_updates
            ]
        else:
            response.results = []
        respond(response)

    forward(
        broker,
        lambda controller, now_ms: controller.update_features(request, now_ms),
        decided,
        lambda error: UpdateFeaturesResponse(error_code=error, error_message=None),
        timeout_ms=request.timeout_ms,
    )
