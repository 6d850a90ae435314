"""CreateDelegationToken 1-3, RenewDelegationToken 1-2, ExpireDelegationToken 1-2: decided for their client (KIP-48).

DescribeDelegationToken 1-3 is advertised by Apache Kafka's controllers, and answered with UNKNOWN_SERVER_ERROR: brokers
show tokens, and their HMACs.
"""

from ottla.apis.error_responses import refusal_response
from ottla.controller.controller_server import ControllerRequest, ControllerServer
from ottla.runtime.channels import Failed, Then
from ottla.security.api_access import ANONYMOUS
from ottla.wire.errors import ErrorCode


def alter_token(server: ControllerServer, asked: ControllerRequest, then: Then, failed: Failed) -> None:
    """Who is not known has nothing to delegate. Who came with a token would make it last for ever by another.

    Brokers refuse both; but a client may come to a listener of controllers (KIP-919).
    """
    request, version, caller = asked.request, asked.version, asked.caller
    if caller.principal == ANONYMOUS or caller.is_token_authenticated:
        then(refusal_response(request, version, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
        return
    # The hour, which clients and other nodes know too: decisions are given a time that says nothing of it.
    now_ms = server.clock.now_ms()
    server.log.submit(
        lambda controller, _: controller.alter_token(request, version, caller.principal, now_ms), then, failed
    )


def describe_tokens(_server: ControllerServer, asked: ControllerRequest, then: Then, _failed: Failed) -> None:
    then(refusal_response(asked.request, asked.version, ErrorCode.UNKNOWN_SERVER_ERROR))
