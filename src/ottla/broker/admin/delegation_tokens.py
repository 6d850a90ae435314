"""Delegation tokens at a broker (KIP-48): DescribeDelegationToken 1-3 is answered, the other three are passed on.

A client that is not known, or that came with a token itself, may ask for none of it.
"""

from collections.abc import Callable
from typing import Any, Final

from ottla.apis.error_responses import refusal_response
from ottla.broker.cluster.cluster_metadata import ClusterMetadata
from ottla.broker.cluster.forwarding import handle_forwarded
from ottla.runtime.channels import ControllerChannel
from ottla.runtime.large_requests.parts import MOST_ENTRIES_AT_ONCE
from ottla.runtime.large_requests.slow_lane import Steps
from ottla.runtime.request import RequestContext, Respond
from ottla.security.api_access import ANONYMOUS
from ottla.serving.node_settings import NodeSettings
from ottla.wire.errors import ErrorCode
from ottla.wire.messages import (
    DelegationTokenRecord,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)

_NO_ONE: Final = ("", "", "")
_OF_A_STEP: Final = 50

Described = DescribeDelegationTokenResponse.DescribedDelegationToken


def may_ask(context: RequestContext) -> bool:
    return context.connection.principal != ANONYMOUS and not context.connection.is_token_authenticated


def handle_alter_token(controller: ControllerChannel, context: RequestContext, request: Any, respond: Respond) -> None:
    if may_ask(context):
        handle_forwarded(controller, context, request, respond)
    else:
        respond(refusal_response(request, context.api_version, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))


def handle_describe_delegation_token(
    metadata: ClusterMetadata,
    node_settings: NodeSettings,
    context: RequestContext,
    request: DescribeDelegationTokenRequest,
    respond: Respond,
) -> None:
    """An empty list of owners asks for nothing, none at all for the tokens of all.

    Of many tokens the answer is made in steps: each has an HMAC, and rights that are looked up.
    """
    secret = node_settings.effective.secret("delegation.token.secret.key")
    if not may_ask(context):
        respond(DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED))
        return
    if secret is None:
        respond(DescribeDelegationTokenResponse(error_code=ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED))
        return
    owners = None
    if request.owners is not None:
        owners = {f"{owner.principal_type}:{owner.principal_name}" for owner in request.owners}
    tokens = list(metadata.image.security.tokens.values())
    steps = _describe(tokens, owners, secret.secret, context, respond)
    if len(tokens) > MOST_ENTRIES_AT_ONCE:
        context.go_through(steps)
    else:
        for _ in steps:
            pass


def _describe(
    tokens: list[DelegationTokenRecord],
    owners: set[str] | None,
    secret_key: str,
    context: RequestContext,
    respond: Respond,
) -> Steps:
    from ottla.machines.metadata.decisions.alter_tokens import FIRST_WITH_REQUESTERS
    from ottla.security.sasl.token_hmac import token_hmac

    tells_requester = context.api_version >= FIRST_WITH_REQUESTERS
    found: list[Described] = []
    for number, token in enumerate(tokens):
        if number % _OF_A_STEP == 0:
            yield None
        if owners is not None and owners.isdisjoint(people_of(token)):
            continue
        if context.may_use is None or context.may_use(token.token_id):
            found.append(described(token, lambda token_id: token_hmac(secret_key, token_id), tells_requester))
    respond(DescribeDelegationTokenResponse(tokens=found))


def people_of(token: DelegationTokenRecord) -> tuple[str, ...]:
    """Those who may see and renew a token without any other right."""
    return (token.owner, token.requester, *token.renewers)


def described(token: DelegationTokenRecord, hmac_of: Callable[[str], bytes], tells_requester: bool) -> Described:
    owner_type, _, owner = token.owner.partition(":")
    requester_type, _, requester = token.requester.partition(":") if tells_requester else _NO_ONE
    renewers = [one.partition(":") for one in token.renewers]
    return Described(
        principal_type=owner_type,
        principal_name=owner,
        token_requester_principal_type=requester_type,
        token_requester_principal_name=requester,
        issue_timestamp=token.issue_timestamp,
        expiry_timestamp=token.expiration_timestamp,
        max_timestamp=token.max_timestamp,
        token_id=token.token_id,
        hmac=hmac_of(token.token_id),
        renewers=[
            DescribeDelegationTokenResponse.DescribedDelegationTokenRenewer(principal_type=type_, principal_name=name)
            for type_, _, name in renewers
        ],
    )
