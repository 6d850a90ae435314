"""UnregisterBroker 0: forgets a broker that is gone for good."""

from ottla.broker.cluster.forwarding import forward
from ottla.broker.context import Broker
from ottla.runtime.request import RequestContext, Respond
from ottla.wire.messages import UnregisterBrokerRequest, UnregisterBrokerResponse


def handle_unregister_broker(
    broker: Broker, context: RequestContext, request: UnregisterBrokerRequest, respond: Respond
) -> None:
    forward(
        broker,
        lambda controller, now_ms: controller.unregister_broker(request, now_ms),
        respond,
        lambda error: UnregisterBrokerResponse(error_code=error, error_message=None),
    )
